/* dumptext.h - prints a virtual CPU's state (vcpu_dump) for people, with the guest kernel's
 * names. */
#ifndef VMM_CLI_QUERY_DUMPTEXT_H
#define VMM_CLI_QUERY_DUMPTEXT_H

#include <stdio.h>
#include "vmm/cli/query/pageheat.h"

/* Prints the lines as they are.  The line of EIP also gets the kernel's name for that place, and
 * each word of the stack that points into a function gets a line of its own.  `symbols` may be
 * empty. */
void dump_print(FILE *out, const char *text, const struct symbols *symbols);

#endif
