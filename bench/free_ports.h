/* free_ports.h - ports for the nodes of a bench, where no other program has any. */
#ifndef BENCH_FREE_PORTS_H
#define BENCH_FREE_PORTS_H

#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/free_port.h"

/* Returns the first of n ports in a row that are free, below those that the system hands out.  Two
 * benches at once begin to look at different places.  Ends the bench if there are none. */
static inline int free_ports(int n)
{
	enum { FIRST = 10000, END = 32000 };
	int first = FIRST + (int)(getpid() * 64L % (END - FIRST)), length = 0;

	for (int i = 0, port = first; i < END - FIRST; i++, port++) {
		if (port >= END)
			port = FIRST, length = 0;
		length = port_is_free(port) ? length + 1 : 0;
		if (length == n)
			return port - n + 1;
	}
	fprintf(stderr, "no %d free ports in a row from %d to %d\n", n, FIRST, END - 1);
	exit(1);
}

#endif
