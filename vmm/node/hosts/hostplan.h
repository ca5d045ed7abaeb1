/* hostplan.h - hosts that come and go: who is next, which homes and CPUs go where. Pure. */
#ifndef VMM_NODE_HOSTS_HOSTPLAN_H
#define VMM_NODE_HOSTS_HOSTPLAN_H

#include "base/limits.h"
#include "base/wire.h"

enum { MAX_HOST_REQUESTS = 64 };

struct host_request {
	struct msg_host body;
	unsigned client;
	char name[64]; /* of one that comes: as the owner knows it, or "" */
	uint64_t since_ns;
};
/* In order of their coming; the front is under way. */
struct hostqueue { struct host_request wait[MAX_HOST_REQUESTS]; unsigned n; };

/* False: there is no room. */
bool hostqueue_push(struct hostqueue *q, const struct host_request *request);
void hostqueue_pop(struct hostqueue *q);

/* Bit set of those of the `hosts` that nobody in the queue, from its place `first` on, has asked to remove.  What one that leaves gives
 * away is not to be given away again; host 0 stays. */
uint32_t hostplan_staying(const struct hostqueue *q, unsigned first, uint32_t hosts);

/* The lowest number that no host has; -1: there are MAX_NODES. */
int hostplan_free(uint32_t hosts);

/* Whether a host may be removed: 0, or -errno with the reason in `why`. host_mem_mib: how much of the guest's mem_mib a host may
 * hold; 0: any. */
int hostplan_may_go(uint32_t hosts, uint32_t host, uint32_t mem_mib, uint32_t host_mem_mib, char *why, size_t why_bytes);

/* Whether what a host holds has room on the computers of the others: 0, or -errno with the reason in `why`.  A computer of several
 * hosts counts for each of them: what is refused has no room at all. */
int hostplan_has_room(uint64_t held_pages, uint64_t room_pages, char *why, size_t why_bytes);

/* Where a home interval goes: `to`. At most DSM_INTERVALS of them; returns how many. */
struct home_order { uint16_t interval; uint8_t from, to; };
/* The new host's share, from those that have most. */
unsigned hostplan_homes_for(const struct home_place *places, uint32_t hosts, unsigned newcomer, struct home_order *orders);
/* All of the leaver's, to those of `others` that have fewest. */
unsigned hostplan_homes_of(const struct home_place *places, uint32_t others, unsigned leaver, struct home_order *orders);

/* The host with the fewest CPUs of those in `hosts`, which is not empty. */
unsigned hostplan_place_for_cpu(const uint32_t *at, unsigned n_cpus, uint32_t hosts);

#endif
