/* wants.h - the CPUs of this host that wait for pages: their requests, and the replies.
 *
 * A CPU asks by its slot in the shared memory (direct engine, base/hostshm.h) or by its
 * monitor's message (ptrace engine, and what a monitor of the direct engine itself touches).
 * The page store (pagestore.c) is asked then, and says when the page is here.
 */
#ifndef VMM_NODE_PAGES_WANTS_H
#define VMM_NODE_PAGES_WANTS_H

#include "base/hostshm.h"
#include "base/types.h"

struct node;

void wants_start(struct node *node);
/* Frees what wants_start() made, if it was called.  For tests that make many daemons. */
void wants_end(struct node *node);

/* The eventfd that VM processes write to when the daemon may be asleep. */
int wants_bell(const struct node *node);

/* Takes the requests in the CPUs' slots.  Returns true if there was one. */
bool wants_look(struct node *node);

/* wants_poll(): from here on the daemon polls the slots, and VM processes need not ring.
 * wants_may_sleep(): the daemon is about to sleep; returns false if it must not, because a request
 * has arrived meanwhile. */
void wants_poll(struct node *node);
bool wants_may_sleep(struct node *node);

/* A want may have to wait until this host has room (spill.h).  wants_put_off(): some want does.
 * wants_go_on(): requests the pages of those that need not wait any longer. */
bool wants_put_off(const struct node *node);
void wants_go_on(struct node *node);

/* Return whether this CPU waits for a page; whether it waits for this page; whether any CPU waits
 * for it. */
bool wants_waits(const struct node *node, unsigned cpu);
bool wants_waits_for(const struct node *node, unsigned cpu, gfn_t gfn);
bool wants_any_waits_for(const struct node *node, gfn_t gfn);
/* Returns whether a locked instruction waits for the page. */
bool wants_locked(const struct node *node, gfn_t gfn);
/* Returns whether no CPU is known to write to the page: none waits for it, or those that do read it
 * and requested it to write to. */
bool wants_may_be_vain(const struct node *node, gfn_t gfn);
/* Returns whether the CPU's last request came by its slot. */
bool wants_by_slot(const struct node *node, unsigned cpu);

/* The page was requested to write to before a CPU wrote to it, and went unchanged: notes that for
 * the CPUs of this host. */
void wants_vain(struct node *node, gfn_t gfn);

/* The page is here with that right: replies to the CPUs that wait for at most this right. */
void wants_ready(struct node *node, gfn_t gfn, enum page_right right);

/* True if a CPU requested the page, got the reply, and has not run since. */
bool wants_unused(const struct node *node, gfn_t gfn);

#endif
