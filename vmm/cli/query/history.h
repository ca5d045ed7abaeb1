/* history.h - what `vmp top` has seen so far, as lines of small bars: load and page traffic of each
 * host, load of each processor, and from which host a processor came.  Pure. */
#ifndef VMM_CLI_QUERY_HISTORY_H
#define VMM_CLI_QUERY_HISTORY_H

#include <stdio.h>
#include "vmm/cli/query/status.h"

enum { HISTORY_LOOKS = 120 };

/* The newest value is last.  NAN: the host or processor was not there. */
struct history_line { float value[HISTORY_LOOKS]; };

struct history {
	unsigned n; /* number of samples so far, at most HISTORY_LOOKS */
	struct history_line host_load[MAX_NODES], host_pages[MAX_NODES], cpu_load[MAX_CPUS];
	/* at_ns: when it moved last; 0: no move was seen */
	struct { bool has; uint32_t host, from; uint64_t at_ns; } cpu[MAX_CPUS];
};

void history_add(struct history *h, const struct status_look *before,
		 const struct status_look *now);

/* Prints the bars as wide as `columns` allows (0: 80).  `blocks`: the terminal shows U+2581 to
 * U+2588. */
void history_print(FILE *out, const struct history *h, uint64_t now_ns, uint32_t columns,
		   bool blocks);

/* Prints the last moves of processors, and why each was made, in lines of `columns` characters (0:
 * as long as they are); the newest first. */
void history_print_moves(FILE *out, const struct status_look *now, uint32_t columns);

/* Prints the text's lines, each cut to `columns` characters, in a window of `rows` lines (0: any
 * number).  If there are more lines, the last one that fits says how many are left out. */
void history_fit(FILE *out, const char *text, uint32_t columns, uint32_t rows);

/* Writes the last `width` of `n` values as bars from 0 to `most`, a space for a NAN. `out` has room
 * for 3 * width + 1 bytes. */
void history_bars(const struct history_line *line, unsigned n, unsigned width, float most,
		  bool blocks, char *out);

#endif
