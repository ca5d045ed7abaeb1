/* kernel_load.h - put the segments of a guest kernel (vmlinux) at their physical addresses. Pure but for the file. */
#ifndef VMM_NODE_LOAD_KERNEL_LOAD_H
#define VMM_NODE_LOAD_KERNEL_LOAD_H

#include "base/types.h"

struct kernel_image {
	gpa_t entry;	  /* physical */
	gpa_t first, end; /* bytes occupied, zero-initialised data included */
	gpa_t file_end;	  /* bytes that come from the file end here: pages behind it are zero */
};

/* Load `path` into `ram`, which holds zeros. 0, or -1 with one line in `why` that says what is wrong with the file and what
 * to do. Nothing below 1 MiB is accepted: the boot parameters and tables stand there. */
int kernel_load(const char *path, uint8_t *ram, uint32_t ram_bytes, struct kernel_image *image, char *why,
		size_t why_bytes);

#endif
