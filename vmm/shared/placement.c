/* placement.c - see placement.h. */
#include "vmm/shared/placement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/machine.h"

const char *placement_policy_name(enum policy policy)
{
	return (unsigned)policy < POLICIES ? policy_names[policy] : "?";
}

int placement_policy_of_name(const char *name)
{
	for (int i = 0; i < POLICIES; i++)
		if (!strcmp(name, policy_names[i]))
			return i;
	return -EINVAL;
}

static void count_cpus(const struct placement_look *look, unsigned count[MAX_NODES])
{
	memset(count, 0, MAX_NODES * sizeof *count);
	for (unsigned cpu = 0; cpu < look->n_cpus; cpu++)
		count[look->cpu[cpu].host]++;
}

/* ---- spread and concentrate ---- */

static unsigned distance(const struct placement_look *look, unsigned host)
{
	uint32_t us = look->host[host].rtt_us;

	return us ? 32 - (unsigned)__builtin_clz(us) : 0;
}

/* Sorts the hosts, the nearest first.  Returns how many there are. */
static unsigned rank(const struct placement_look *look, unsigned order[MAX_NODES])
{
	unsigned n = 0;

	for (unsigned host = 0; host < MAX_NODES; host++) {
		unsigned at = n;

		if (!(look->hosts >> host & 1))
			continue;
		for (; at && distance(look, order[at - 1]) > distance(look, host); at--)
			order[at] = order[at - 1];
		order[at] = host;
		n++;
	}
	return n;
}

/* Sets how many CPUs each host should have.  CPUs beyond the number of processors are dealt in
 * turn. */
static void deal(enum policy policy, const struct placement_look *look, const unsigned *order,
		 unsigned n, unsigned want[MAX_NODES])
{
	unsigned left = look->n_cpus;

	memset(want, 0, MAX_NODES * sizeof *want);
	for (unsigned i = 0; i < n && policy == POLICY_CONCENTRATE; i++) {
		uint32_t room = look->host[order[i]].processors;

		want[order[i]] = left < room ? left : room;
		left -= want[order[i]];
	}
	for (unsigned i = 0; left; i++, left--)
		want[order[i % n]]++;
}

bool placement_step(enum policy policy, const struct placement_look *look,
		    struct placement_move *move)
{
	unsigned order[MAX_NODES], count[MAX_NODES], want[MAX_NODES], n = rank(look, order);
	int from = -1, to = -1;

	if (!n)
		return false;
	deal(policy, look, order, n, want);
	count_cpus(look, count);
	for (unsigned i = 0; i < n; i++) {
		if (count[order[i]] > want[order[i]])
			from = (int)order[i]; /* the farthest host that has too many */
		if (to < 0 && count[order[i]] < want[order[i]])
			to = (int)order[i]; /* the nearest host that has too few */
	}
	if (from < 0 || to < 0)
		return false;
	*move = (struct placement_move){ .from = (unsigned)from, .to = (unsigned)to };
	for (unsigned cpu = 0; cpu < look->n_cpus; cpu++)
		if (look->cpu[cpu].host == (unsigned)from)
			move->cpu = cpu;
	snprintf(move->why, sizeof move->why, "%s: host %d has %u processors and should have %u, "
		 "host %d (%u us away) %u and %u", placement_policy_name(policy), from, count[from],
		 want[from], to, look->host[to].rtt_us, count[to], want[to]);
	return true;
}

/* ---- auto ---- */

static bool has_room(const struct placement_look *look, const unsigned *count, unsigned host)
{
	return count[host] < look->host[host].processors;
}

/* Returns the host from which most of the CPU's pages come, if that is worth a move; otherwise
 * MAX_NODES. */
static unsigned attraction(const struct placement_look *look, const unsigned *count, unsigned cpu,
			   struct placement_move *move)
{
	const uint32_t *fetched = look->cpu[cpu].fetched;
	unsigned best = look->cpu[cpu].host;
	uint64_t all = 0;

	for (unsigned host = 0; host < MAX_NODES; host++) {
		all += fetched[host];
		if (look->hosts >> host & 1 && fetched[host] > fetched[best])
			best = host;
	}
	/* A host without CPUs does not fetch its pages back: they move once. */
	if (best == look->cpu[cpu].host || !count[best] ||
	    look->cpu[cpu].waited_percent < AUTO_WAIT_PERCENT || all < AUTO_PAGES ||
	    fetched[best] * 100ull < all * AUTO_SHARE_PERCENT || !has_room(look, count, best))
		return MAX_NODES;
	snprintf(move->why, sizeof move->why, "auto: it waits for pages for %u %% of its time, "
		 "and %llu %% of the last %llu came from there", look->cpu[cpu].waited_percent,
		 fetched[best] * 100ull / all, (unsigned long long)all);
	return best;
}

/* Returns a CPU of the host for which tasks wait while no other CPU of the host is idle; otherwise
 * MAX_CPUS. */
static unsigned crowded_cpu(const struct placement_look *look, unsigned host)
{
	unsigned found = MAX_CPUS;

	for (unsigned cpu = 0; cpu < look->n_cpus; cpu++) {
		if (look->cpu[cpu].host != host)
			continue;
		if (look->cpu[cpu].idle_percent >= AUTO_IDLE_PERCENT)
			return MAX_CPUS;
		if (look->cpu[cpu].crowded)
			found = cpu;
	}
	return found;
}

/* Returns a host where tasks wait for a CPU, if this one is idle, and that host's computer does not
 * have much more to do; otherwise MAX_NODES. */
static unsigned crowd(const struct placement_look *look, const unsigned *count, unsigned cpu,
		      struct placement_move *move)
{
	unsigned here = look->cpu[cpu].host, waited_for;

	if (look->cpu[cpu].idle_percent < AUTO_IDLE_PERCENT)
		return MAX_NODES;
	for (unsigned host = 0; host < MAX_NODES; host++) {
		if (host == here || !(look->hosts >> host & 1) || !has_room(look, count, host) ||
		    look->host[host].load_percent >=
			    look->host[here].load_percent + AUTO_LESS_PERCENT)
			continue;
		waited_for = crowded_cpu(look, host);
		if (waited_for == MAX_CPUS)
			continue;
		snprintf(move->why, sizeof move->why, "auto: it is idle for %u %% of its time, and "
			 "tasks wait for CPU %u there", look->cpu[cpu].idle_percent, waited_for);
		return host;
	}
	return MAX_NODES;
}

/* Returns a host whose computer has less to do, if the CPU's has too much; otherwise MAX_NODES. */
static unsigned relief(const struct placement_look *look, const unsigned *count, unsigned cpu,
		       struct placement_move *move)
{
	unsigned here = look->cpu[cpu].host, best = here;
	uint32_t load = look->host[here].load_percent;

	for (unsigned host = 0; host < MAX_NODES; host++)
		if (look->hosts >> host & 1 &&
		    look->host[host].load_percent < look->host[best].load_percent &&
		    has_room(look, count, host))
			best = host;
	if (load < AUTO_LOADED_PERCENT || look->host[best].load_percent + AUTO_LESS_PERCENT > load)
		return MAX_NODES;
	snprintf(move->why, sizeof move->why, "auto: the computer of host %u has a load of %u %%, "
		 "that of host %u %u %%", here, load, best, look->host[best].load_percent);
	return best;
}

/* Returns the host to which the CPU should move, or MAX_NODES; *after_ms is how long that must have
 * been so. */
static unsigned wish_of(const struct placement_look *look, const unsigned *count, unsigned cpu,
			struct placement_move *wish, uint32_t *after_ms)
{
	unsigned to = attraction(look, count, cpu, wish);

	*after_ms = AUTO_PULL_MS;
	if (to != MAX_NODES)
		return to;
	to = crowd(look, count, cpu, wish);
	*after_ms = AUTO_CROWD_MS;
	if (to != MAX_NODES)
		return to;
	*after_ms = AUTO_LOAD_MS;
	return relief(look, count, cpu, wish);
}

bool placement_auto(struct placement_auto *state, const struct placement_look *look,
		    struct placement_move *move)
{
	unsigned count[MAX_NODES];
	bool moves = false;

	count_cpus(look, count);
	/* backwards: the first CPUs stay with the devices, if there is a choice */
	for (unsigned cpu = look->n_cpus; cpu-- > 0;) {
		struct placement_move wish = { .cpu = cpu, .from = look->cpu[cpu].host };
		uint32_t *so_long_ms = &state->cpu[cpu].so_long_ms,
			 *rest_ms = &state->cpu[cpu].rest_ms, after_ms;
		unsigned to = wish_of(look, count, cpu, &wish, &after_ms);

		*rest_ms -= *rest_ms < look->window_ms ? *rest_ms : look->window_ms;
		if (to == MAX_NODES || to != state->cpu[cpu].towards)
			*so_long_ms = 0;
		if (to != MAX_NODES)
			*so_long_ms += look->window_ms;
		state->cpu[cpu].towards = to;
		if (moves || to == MAX_NODES || *so_long_ms < after_ms || *rest_ms)
			continue;
		*so_long_ms = 0;
		*rest_ms = AUTO_REST_MS;
		wish.to = to;
		*move = wish;
		moves = true;
	}
	return moves;
}
