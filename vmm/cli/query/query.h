/* query.h - commands that ask a running machine: status, top, down, cpu move, console, regs, pages. Each returns the exit status. */
#ifndef VMM_CLI_QUERY_QUERY_H
#define VMM_CLI_QUERY_QUERY_H

#include "vmm/cli/options.h"

int query_status(const struct options *o);
int query_top(const struct options *o);
int query_down(const struct options *o);
int query_cpu_move(const struct options *o);
int query_host(const struct options *o);
int query_policy(const struct options *o);
int query_console(const struct options *o);
int query_regs(const struct options *o);
int query_pages(const struct options *o);

#endif
