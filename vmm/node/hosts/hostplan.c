/* hostplan.c - see hostplan.h. */
#include "vmm/node/hosts/hostplan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "dsm/dsm.h"

bool hostplan_push(struct hostqueue *q, const struct host_request *request)
{
	if (q->n == MAX_HOST_REQUESTS)
		return false;
	q->wait[q->n++] = *request;
	return true;
}

void hostplan_pop(struct hostqueue *q)
{
	q->n--;
	memmove(q->wait, q->wait + 1, q->n * sizeof q->wait[0]);
}

uint32_t hostplan_staying(const struct hostqueue *q, unsigned first, uint32_t hosts)
{
	for (unsigned i = first; i < q->n; i++)
		if (q->wait[i].body.op == HOST_REMOVE && q->wait[i].body.host &&
		    q->wait[i].body.host < MAX_NODES)
			hosts &= ~(1u << q->wait[i].body.host);
	return hosts;
}

int hostplan_free(uint32_t hosts)
{
	return hosts == ~0u ? -1 : __builtin_ctz(~hosts);
}

int hostplan_may_go(uint32_t hosts, uint32_t host, uint32_t mem_mib, uint32_t host_mem_mib,
		    char *why, size_t why_bytes)
{
	unsigned left = (unsigned)__builtin_popcount(hosts) - 1;

	if (host >= MAX_NODES || !(hosts >> host & 1))
		snprintf(why, why_bytes, "there is no host %u; vmp status shows which there are",
			 host);
	else if (!left)
		snprintf(why, why_bytes, "host %u is the last one; vmp down ends the machine",
			 host);
	else if (host_mem_mib && (uint64_t)host_mem_mib * left < mem_mib)
		snprintf(why, why_bytes, "the hosts that would be left may hold %llu MiB of the "
			 "guest's %u MiB (--host-mem)",
			 (unsigned long long)host_mem_mib * left, mem_mib);
	else
		return 0;
	return -EINVAL;
}

int hostplan_has_room(uint64_t held_pages, uint64_t room_pages, char *why, size_t why_bytes)
{
	if (held_pages <= room_pages)
		return 0;
	snprintf(why, why_bytes, "it holds %llu MiB, and the computers of the others have memory "
		 "for %llu MiB",
		 (unsigned long long)held_pages >> (20 - PAGE_BITS),
		 (unsigned long long)room_pages >> (20 - PAGE_BITS));
	return -ENOMEM;
}

static void count_homes(const struct home_place *places, unsigned count[MAX_NODES])
{
	memset(count, 0, MAX_NODES * sizeof *count);
	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		count[places[i].node]++;
}

/* Returns the host of the set with the highest or lowest count; of equal ones, the lowest
 * number. */
static unsigned extreme(const unsigned *count, uint32_t hosts, bool most)
{
	unsigned found = MAX_NODES;

	for (; hosts; hosts &= hosts - 1) {
		unsigned host = (unsigned)__builtin_ctz(hosts);

		if (found == MAX_NODES ||
		    (most ? count[host] > count[found] : count[host] < count[found]))
			found = host;
	}
	return found;
}

unsigned hostplan_homes_for(const struct home_place *places, uint32_t hosts, unsigned newcomer,
			    struct home_order *orders)
{
	uint32_t others = hosts & ~(1u << newcomer);
	unsigned count[MAX_NODES], n = 0, share;

	count_homes(places, count);
	share = DSM_INTERVALS / ((unsigned)__builtin_popcount(others) + 1);
	/* Backwards over the intervals, so that each host keeps the first ones that it has. */
	for (unsigned i = DSM_INTERVALS; i-- > 0 && count[newcomer] < share;) {
		unsigned from = places[i].node;

		if (from == newcomer || count[from] <= share)
			continue;
		orders[n++] = (struct home_order){ (uint16_t)i, (uint8_t)from, (uint8_t)newcomer };
		count[from]--;
		count[newcomer]++;
	}
	return n;
}

unsigned hostplan_homes_of(const struct home_place *places, uint32_t others, unsigned leaver,
			   struct home_order *orders)
{
	unsigned count[MAX_NODES], n = 0;

	count_homes(places, count);
	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		if (places[i].node == leaver) {
			unsigned to = extreme(count, others, false);

			orders[n++] = (struct home_order){ (uint16_t)i, (uint8_t)leaver,
							   (uint8_t)to };
			count[to]++;
		}
	return n;
}

unsigned hostplan_place_for_cpu(const uint32_t *at, unsigned n_cpus, uint32_t hosts)
{
	unsigned count[MAX_NODES] = { 0 };

	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		count[at[cpu]]++;
	return extreme(count, hosts, false);
}
