/* kernel_load.h - loads the segments of a guest kernel (vmlinux) at their physical addresses.  Pure
 * except for the file. */
#ifndef VMM_NODE_LOAD_KERNEL_LOAD_H
#define VMM_NODE_LOAD_KERNEL_LOAD_H

#include "base/types.h"

struct kernel_image {
	gpa_t entry;	  /* physical */
	gpa_t first, end; /* bytes that the kernel occupies, with zero-initialised data */
	gpa_t file_end;	  /* end of the bytes that come from the file; pages behind it are zero */
};

/* Loads `path` into `ram`, which holds zeros.  Nothing below 1 MiB is accepted, since boot
 * parameters and tables are there.  Returns 0; or -1 with a line in `why` that says what is wrong
 * with the file and what to do. */
int kernel_load(const char *path, uint8_t *ram, uint32_t ram_bytes, struct kernel_image *image,
		char *why, size_t why_bytes);

#endif
