/* phnx_thousand.c - a thousand nodes in one process: sites of fifty, which only their gateways
 * connect.  They find each other, links break, the network falls in two and heals, a quarter of the
 * nodes leaves at once and comes back at once.  All the while messages go to random virtual nodes,
 * and each must arrive exactly once, in order.
 *
 * Usage: phnx_thousand [SEED [NODES]].  NODES is 200 by default, for `make unit`: a thousand nodes
 * take minutes. */
#include <stdio.h>
#include <time.h>
#include "tests/sim/phnx_sim.h"

enum { SITE = 50, MAX_NODES = 2000, MAX_LETTERS = 512, DESTS = 4, PER_NODE = 16 };

struct letter {
	uint32_t sender, serial, dest, of_dest;
};
struct sender {			/* one for each host: the nodes that come and go there share it */
	uint32_t sent, of_dest[DESTS], last[DESTS];
	ph_vp_t dests[DESTS];
	uint8_t seen[MAX_LETTERS];
};
static struct sender senders[MAX_NODES];
static unsigned sent, received, doubled, disordered;
static int failures;

static void check(struct sim *s, bool ok, const char *what)
{
	static struct timespec last;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	double took = last.tv_sec ? (double)(t.tv_sec - last.tv_sec) +
					    (double)(t.tv_nsec - last.tv_nsec) / 1e9
				  : 0;
	last = t;
	printf("%-4s %-50s at %6.2f s, %9llu events, took %5.1f s\n", ok ? "ok" : "FAIL", what,
	       (double)s->now / 1e6 - 1, (unsigned long long)s->events, took);
	fflush(stdout);
	failures += !ok;
}

/* ---- the network ---- */

static int site(int node)
{
	return node / SITE;
}

static bool same_site_or_gateways(const struct sim *s, int from, int to)
{
	(void)s;
	return site(from) == site(to) || (from % SITE == 0 && to % SITE == 0);
}

static void configure(struct sim *s, int node)
{
	int gateway = site(node) * SITE;

	if (node != gateway)
		sim_know(s, node, gateway);
	else if (node)
		sim_know(s, node, 0);
	else if (s->n > SITE)
		/* the first gateway may come back: it must know some node */
		sim_know(s, 0, SITE);
}

static int n_alive(const struct sim *s, int group)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += !s->nodes[i].dead && s->nodes[i].group == group;
	return n;
}

static bool converged(struct sim *s)
{
	int alive[2] = { n_alive(s, 0), n_alive(s, 1) };

	for (int i = 0; i < s->n; i++) {
		const struct simnode *node = s->nodes + i;
		int reachable = 0;
		if (node->dead)
			continue;
		for (unsigned k = 0; k < node->ph->routes->n; k++)
			reachable += node->ph->routes->list[k]->nhops < UNREACHABLE;
		if (reachable != alive[node->group])
			return false;
	}
	return true;
}

/* ---- messages ---- */

static void assume(struct sim *s, int node, int whose, bool really)
{
	struct vrange r = { (ph_vp_t)whose * PER_NODE, (ph_vp_t)(whose + 1) * PER_NODE };
	struct ph_vps vps = { .n = 1, .r = &r };

	if (really)
		mapping_assume(s->nodes[node].ph, &vps);
	else
		mapping_release(s->nodes[node].ph, &vps);
	sim_touch(s, node);
}

static void send_one(struct sim *s, int node)
{
	struct sender *me = senders + node;
	unsigned d = (unsigned)sim_random(s, DESTS);
	struct letter l = { (uint32_t)node, me->sent, d, me->of_dest[d] + 1 };
	struct pbuf *b = pbuf_new(&l, sizeof l);

	if (!s->nodes[node].dead && !s->nodes[node].ph->leaving && me->sent < MAX_LETTERS &&
	    flow_send_own(s->nodes[node].ph, me->dests[d], b, 7, 0, 0) == 0) {
		me->sent++;
		me->of_dest[d]++;
		sent++;
		sim_touch(s, node);
	}
	pbuf_put(b);
}

static void receive_all(struct sim *s)
{
	for (int i = 0; i < s->n; i++) {
		struct rmsg *m;
		if (s->nodes[i].dead || !s->nodes[i].ph->flows->received)
			continue;
		while ((m = flow_receive(s->nodes[i].ph, 7))) {
			const struct letter *l = m->pub.body;
			struct sender *from = senders + l->sender;
			received++;
			doubled += from->seen[l->serial]++ != 0;
			disordered += l->of_dest != from->last[l->dest] + 1;
			from->last[l->dest] = l->of_dest;
			free(m);
		}
		sim_touch(s, i);
	}
}

static bool all_received(struct sim *s)
{
	receive_all(s);
	return received >= sent;
}

/* Sends messages all the time, for a while. */
static void talk(struct sim *s, int rounds, bool cutting)
{
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < s->n / 10; i++)
			send_one(s, (int)sim_random(s, (uint64_t)s->n));
		if (cutting)
			for (int i = 0; i < 3; i++)
				sim_cut(s, (int)sim_random(s, (uint64_t)s->n),
					(unsigned)sim_random(s, SITE));
		receive_all(s);
		sim_run(s, s->now + 20000);
	}
}

static void everything_arrived(struct sim *s, const char *what)
{
	bool all = sim_until(s, 60000000, all_received);

	if (!all || doubled || disordered)
		printf("sent %u received %u doubled %u out of order %u\n", sent, received, doubled,
		       disordered);
	check(s, all && received == sent && !doubled && !disordered, what);
}

/* ---- storms: every fourth node dies, but no gateway ---- */

static bool in_storm(int node)
{
	return node % 4 == 2 && node % SITE;
}

static bool leavers_idle(struct sim *s)
{
	bool idle = true;

	receive_all(s);
	for (int i = 0; i < s->n; i++)
		if (in_storm(i) && !(flow_idle(s->nodes[i].ph) & flow_settled(s->nodes[i].ph))) {
			sim_touch(s, i);
			idle = false;
		}
	return idle;
}

static void leave_storm(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		if (in_storm(i)) {
			assume(s, i, i, false);
			s->nodes[i].ph->leaving = s->nodes[i].ph->me.leaving = true;
			assume(s, i - 1, i, true);
		}
	check(s, sim_until(s, 30000000, leavers_idle),
	      "a quarter may leave: its messages have arrived");
	for (int i = 0; i < s->n; i++)
		if (in_storm(i)) {
			node_goodbye(s->nodes[i].ph);
			sim_touch(s, i);
		}
	sim_run(s, s->now + 2000);
	for (int i = 0; i < s->n; i++)
		if (in_storm(i))
			sim_kill(s, i);
	talk(s, 20, false);
	check(s, sim_until(s, 30000000, converged), "a quarter has left at once");
}

static void join_storm(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		if (in_storm(i)) {
			sim_restart(s, i);
			configure(s, i);
		}
	talk(s, 5, false);
	check(s, sim_until(s, 60000000, converged), "and has come back at once, as new nodes");
	for (int i = 0; i < s->n; i++)
		if (in_storm(i)) {
			assume(s, i - 1, i, false);
			assume(s, i, i, true);
		}
	talk(s, 20, false);
	everything_arrived(s, "all messages arrived, over both storms");
}

static void partition(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		s->nodes[i].group = site(i) % 2;
	sim_cut_groups(s);
	talk(s, 50, false);
	check(s, sim_until(s, 30000000, converged), "in two halves, each knows its own");
	for (int i = 0; i < s->n; i++)
		s->nodes[i].group = 0;
	talk(s, 20, false);
	check(s, sim_until(s, 60000000, converged), "healed");
	everything_arrived(s, "all messages arrived, over the partition");
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	int n = argc > 2 ? atoi(argv[2]) : 200;
	static struct sim s;

	n = n < SITE ? SITE : n > MAX_NODES ? MAX_NODES : n;
	printf("seed %llu, %d nodes in %d sites\n", (unsigned long long)seed, n,
	       (n + SITE - 1) / SITE);
	sim_init(&s, seed, n, 0, (ph_vp_t)n * PER_NODE);
	s.may_connect = same_site_or_gateways;
	check(&s, true, "start");
	for (int i = 0; i < n; i++) {
		configure(&s, i);
		for (int d = 0; d < DESTS; d++)
			senders[i].dests[d] = (ph_vp_t)sim_random(&s, (uint64_t)n * PER_NODE);
	}
	check(&s, sim_until(&s, 60000000, converged), "all know all");
	for (int i = 0; i < n; i++)
		assume(&s, i, i, true);
	talk(&s, 20, false);
	everything_arrived(&s, "all messages arrived");
	talk(&s, 50, true);
	check(&s, sim_until(&s, 60000000, converged), "healed after 150 links broke");
	everything_arrived(&s, "all messages arrived, over broken links");
	partition(&s);
	leave_storm(&s);
	join_storm(&s);
	printf("%u messages, %s\n", received,
	       failures ? "FAILED; repeat with the seed above" : "each exactly once");
	sim_free(&s);
	return failures != 0;
}
