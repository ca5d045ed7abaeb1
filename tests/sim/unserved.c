/* unserved.c - handlers of the messages (base/msg.def) that no part of this simulation sends.  Each
 * ends the run.  They are weak symbols: a handler that is linked takes the place of the one
 * here. */
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void unserved(const char *handler)
{
	fprintf(stderr, "a message has come that %s() serves, which is not simulated\n", handler);
	abort();
}

#define X(handler) \
	void handler(void); \
	__attribute__((weak)) void handler(void) { unserved(#handler); }
#include "tests/sim/unserved.inc" /* each handler's name once */
