/* dumptext.h - a virtual CPU's state (vcpu_dump) for people: with the guest kernel's names. */
#ifndef VMM_CLI_QUERY_DUMPTEXT_H
#define VMM_CLI_QUERY_DUMPTEXT_H

#include <stdio.h>
#include "vmm/cli/query/pageheat.h"

/* The lines as they are; behind the one that says where EIP leads, the kernel's name for it, and below the words of the stack
 * a line for each that points into a function. `symbols` may be empty. */
void dump_print(FILE *out, const char *text, const struct symbols *symbols);

#endif
