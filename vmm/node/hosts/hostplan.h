/* hostplan.h - changes of hosts: which is next, and which homes and CPUs go where.  Pure. */
#ifndef VMM_NODE_HOSTS_HOSTPLAN_H
#define VMM_NODE_HOSTS_HOSTPLAN_H

#include "base/limits.h"
#include "base/wire.h"

enum { MAX_HOST_REQUESTS = 64 };

struct host_request {
	struct msg_host body;
	unsigned client;
	char name[64]; /* of a new host: its name as the owner knows it, or "" */
	uint64_t since_ns;
};
/* In the order of arrival; the first is being served. */
struct hostqueue { struct host_request wait[MAX_HOST_REQUESTS]; unsigned n; };

/* Returns false if there is no room. */
bool hostplan_push(struct hostqueue *q, const struct host_request *request);
void hostplan_pop(struct hostqueue *q);

/* Returns the bit set of those `hosts` whose removal nobody in the queue, from place `first` on,
 * has asked for.  What a leaver gives away then does not have to be given away again.  Host 0
 * stays. */
uint32_t hostplan_staying(const struct hostqueue *q, unsigned first, uint32_t hosts);

/* Returns the lowest number that no host has, or -1 if there are MAX_NODES. */
int hostplan_free(uint32_t hosts);

/* Checks whether a host may be removed. host_mem_mib: how much of the guest's mem_mib a host may
 * hold; 0: all of it.  Returns 0, or -errno with the reason in `why`. */
int hostplan_may_go(uint32_t hosts, uint32_t host, uint32_t mem_mib, uint32_t host_mem_mib,
		    char *why, size_t why_bytes);

/* Checks whether the pages that a host holds have room on the computers of the others.  A computer
 * with several hosts is counted for each of them, so only what has no room at all is refused.
 * Returns 0, or -errno with the reason in `why`. */
int hostplan_has_room(uint64_t held_pages, uint64_t room_pages, char *why, size_t why_bytes);

/* A home interval goes to host `to`.  These functions write at most DSM_INTERVALS orders and return
 * how many. */
struct home_order { uint16_t interval; uint8_t from, to; };
/* Gives the new host its share, from the hosts that have most. */
unsigned hostplan_homes_for(const struct home_place *places, uint32_t hosts, unsigned newcomer,
			    struct home_order *orders);
/* Gives all intervals of the leaver to the hosts of `others` that have fewest. */
unsigned hostplan_homes_of(const struct home_place *places, uint32_t others, unsigned leaver,
			   struct home_order *orders);

/* Returns the host of `hosts`, which is not empty, with the fewest CPUs. */
unsigned hostplan_place_for_cpu(const uint32_t *at, unsigned n_cpus, uint32_t hosts);

#endif
