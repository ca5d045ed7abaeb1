/* pagenames.h - what lies on a page of the guest's RAM, found in the guest kernel's own structures
 * as a debugger would: a variable of a CPU, a slab, a task's stack or page table, a program's
 * memory, a file.
 *
 * The guest may have written anything there: each address is checked before it is read, each list
 * ends after so many entries, and names are shown without what is not printable.
 */
#ifndef VMM_CLI_QUERY_PAGENAMES_H
#define VMM_CLI_QUERY_PAGENAMES_H

#include "base/types.h"
#include "vmm/cli/query/pageheat.h"

/* The guest's memory.  page(): the contents of a frame, valid until pagenames_free(), or NULL. */
struct pagenames_ram {
	void *context;
	const uint8_t *(*page)(void *context, gfn_t gfn);
	uint32_t pages;
	unsigned cpus;
};

struct pagenames;

/* Reads the guest's tasks.  NULL: no memory, or this is not the kernel that guest_layout.def
 * describes.  `symbols` must outlive it. */
struct pagenames *pagenames_read(const struct pagenames_ram *ram, const struct symbols *symbols);
void pagenames_free(struct pagenames *names);
/* Writes what lies on the frame, "" if nothing is known. */
void pagenames_describe(const struct pagenames *names, gfn_t gfn, char *text, size_t text_bytes);

#endif
