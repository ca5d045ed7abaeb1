/* gdb_watch.c - see gdb_watch.h.  The bits of DR7: Intel SDM 3, 18.2.4. */
#include "vmm/cli/gdb/gdb_watch.h"

#include <errno.h>
#include <string.h>

enum { ON_WRITE = 1, ON_ACCESS = 3, MOST_BYTES = 8 };

static unsigned enable_at(unsigned n) { return 2 * n; }
static unsigned kind_at(unsigned n) { return 16 + 4 * n; }
static unsigned length_at(unsigned n) { return 18 + 4 * n; }

static uint32_t length_code(uint32_t bytes)
{
	switch (bytes) {
	case 1: return 0;
	case 2: return 1;
	case 4: return 3;
	default: return 2; /* 8 */
	}
}

/* Returns the size of the longest aligned piece that begins at gva. */
static uint32_t piece(gva_t gva, uint32_t left)
{
	uint32_t bytes = MOST_BYTES;

	while (bytes > left || gva % bytes)
		bytes /= 2;
	return bytes;
}

int gdb_watch_plan(const struct gdb_watch watch[GDB_MAX_WATCHES], struct debug_watch *plan)
{
	unsigned n = 0;

	memset(plan, 0, sizeof *plan);
	for (const struct gdb_watch *w = watch; w < watch + GDB_MAX_WATCHES; w++) {
		gva_t gva = w->gva;
		uint32_t left = w->bytes, bytes;

		if (left && gva + (left - 1) < gva)
			return -EINVAL;
		for (; left; gva += bytes, left -= bytes, n++) {
			if (n == DEBUG_WATCHES)
				return -ENOSPC;
			bytes = piece(gva, left);
			plan->address[n] = gva;
			plan->control |= 1u << enable_at(n) |
					 (uint32_t)(w->reads ? ON_ACCESS : ON_WRITE) << kind_at(n) |
					 length_code(bytes) << length_at(n);
		}
	}
	return 0;
}
