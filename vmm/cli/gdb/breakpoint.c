/* breakpoint.c - see breakpoint.h. */
#include "vmm/cli/gdb/breakpoint.h"

#include <stddef.h>

struct gdb_breakpoint *gdb_breakpoint_at(struct gdb_breakpoint *all, gva_t gva)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (all[i].used && all[i].gva == gva)
			return &all[i];
	return NULL;
}

struct gdb_breakpoint *gdb_breakpoint_in_memory(struct gdb_breakpoint *all, gpa_t gpa)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (all[i].used && all[i].gpa == gpa)
			return &all[i];
	return NULL;
}

struct gdb_breakpoint *gdb_breakpoint_free(struct gdb_breakpoint *all)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (!all[i].used)
			return &all[i];
	return NULL;
}

void gdb_hide_breakpoints(const struct gdb_breakpoint *all, gpa_t gpa, uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (all[i].used && all[i].gpa - gpa < n)
			bytes[all[i].gpa - gpa] = all[i].original;
}

void gdb_keep_breakpoints(struct gdb_breakpoint *all, gpa_t gpa, uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (all[i].used && all[i].gpa - gpa < n)
			all[i].original = bytes[all[i].gpa - gpa];
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (all[i].used && all[i].gpa - gpa < n)
			bytes[all[i].gpa - gpa] = GDB_INT3;
}
