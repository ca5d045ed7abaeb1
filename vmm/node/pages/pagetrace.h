/* pagetrace.h - --trace: what happened to pages on this host, kept in memory until the machine ends
 * (base/trace.h).  Without --trace nothing is kept, and each function returns at once.
 */
#ifndef VMM_NODE_PAGES_PAGETRACE_H
#define VMM_NODE_PAGES_PAGETRACE_H

#include "base/hostshm.h"
#include "base/types.h"
#include "base/wire.h"

struct node;

/* Begins, if the machine is traced. */
void trace_start(struct node *node);
/* Returns the machine's time, or 0 if nothing is traced. */
uint64_t trace_now_ns(const struct node *node);
/* A CPU's request was taken. */
void trace_seen(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right);
/* A message of the page protocol has come.  Call it before the message is handled; only messages
 * with a page or a right are noted. */
void trace_came(struct node *node, gfn_t gfn, unsigned from, uint16_t type);
/* The CPU was answered. */
void trace_answered(struct node *node, unsigned cpu);
/* The page was taken from the CPUs of this host, which keep `right`; the taking began at
 * begin_ns. */
void trace_taken(struct node *node, gfn_t gfn, enum page_right right, uint64_t begin_ns);
/* Sends all to `vmp run`, at the machine's end. */
void trace_send(struct node *node);

#endif
