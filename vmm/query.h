/* query.h - commands that ask a running machine: console, regs, pages. Each returns the exit status. */
#ifndef VMM_QUERY_H
#define VMM_QUERY_H

#include "vmm/options.h"

int query_console(const struct options *o);
int query_regs(const struct options *o);
int query_pages(const struct options *o);

#endif
