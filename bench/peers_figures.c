/* peers_figures.c - figures of the P2P-MPI paper (2009) that are about peers, as tables.
 *
 *   choice      figures 4 and 5: the computers on which processors are chosen, with concentrate and
 *               with spread.  The nearest site has 60 of 350 computers, of 4 processors each, as in
 *               the paper.  The other sizes are made up; the round trips of three sites overlap.
 *   reliable    figure 12: how often a node hears nothing of another living node, because the nodes
 *               between them have died; each node dies with probability 0.1
 *   ages        how old a node's knowledge of another living node may be, compared with the cleanup
 *               time: with all nodes' cycles in step, and with cycles that begin at random
 *   detect      figure 13: how long after its death a node is declared gone by the others, with the
 *               library's failure detector in the simulator, compared with the prediction.  From
 *               MANY nodes on, a node is not connected to all others, but to those 1, 2, 4 ...
 *               behind it: the routing tables of 1,000 nodes with 1,000 links each take 9 GB.
 *
 * Usage: peers_figures choice [COMPUTERS] | reliable [TRIALS] | ages [NODES...] |
 *                      detect brr|dbrr [NODES...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/phnx_sim.h"
#include "vpg/peer/choose.h"

enum { MAX_NODES = 1000, MANY = 512, SPACE = 1 << 20 };

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static bool happens(double probability)
{
	return (double)(next_random() >> 11) / (double)(1ULL << 53) < probability;
}

/* ---- the choice ---- */

static const struct site { const char *name; uint32_t hosts, cores, rtt_us, jitter_us; } sites[] = {
	{ "near", 60, 4, 80, 40 },	 { "lyon", 50, 2, 10500, 700 },
	{ "rennes", 90, 2, 10900, 700 }, { "bordeaux", 60, 2, 11200, 700 },
	{ "alpes", 20, 2, 13200, 300 },	 { "sophia", 70, 2, 17200, 300 },
};
enum { SITES = sizeof sites / sizeof *sites, COMPUTERS = 350 };

static void place(enum choose_how how, const char *name, uint32_t computers)
{
	static struct candidate c[MAX_NODES + SITES];
	static char nick[MAX_NODES + SITES][16];
	uint32_t step = 50 * computers / COMPUTERS;

	printf("%s: computers/processors of each site\n%10s", name, "processors");
	for (size_t i = 0; i < SITES; i++)
		printf(" %11s", sites[i].name);
	printf("\n");
	for (uint32_t wanted = 2 * step; wanted <= 12 * step; wanted += step) {
		uint32_t hosts[SITES] = { 0 }, cores[SITES] = { 0 };
		size_t n = 0;

		for (size_t i = 0; i < SITES; i++)
			for (uint32_t k = 0; k < sites[i].hosts * computers / COMPUTERS; k++, n++) {
				snprintf(nick[n], sizeof nick[n], "%c%u", (int)('a' + i), k);
				c[n] = (struct candidate){
					.nick = nick[n], .self = !n, .free = sites[i].cores,
					.rtt_us = n ? sites[i].rtt_us +
						  next_random() % sites[i].jitter_us : 0 };
			}
		choose(c, n, how, (uint32_t)n, wanted);
		for (size_t i = 0; i < n; i++) {
			hosts[c[i].nick[0] - 'a'] += c[i].gives > 0;
			cores[c[i].nick[0] - 'a'] += c[i].gives;
		}
		printf("%10u", wanted);
		for (size_t i = 0; i < SITES; i++)
			printf(" %5u/%-5u", hosts[i], cores[i]);
		printf("\n");
	}
}

/* ---- reliability ---- */

static const char *const protocol_names[] = { [DETECT_DBRR] = "dbrr", [DETECT_BRR] = "brr" };

/* Returns how many living nodes hear of a living node `from`, itself included, when each gossips to
 * its targets of one cycle.  With `back`: how many living nodes `from` hears of. */
static unsigned reached(enum detect_protocol p, const bool *dead, unsigned n, unsigned from,
			bool back)
{
	static unsigned queue[MAX_NODES];
	static bool seen[MAX_NODES];
	unsigned head = 0, tail = 0;

	memset(seen, 0, n);
	seen[from] = true;
	queue[tail++] = from;
	while (head < tail) {
		unsigned at = queue[head++];

		for (unsigned r = 0; r < detect_rounds(p, n); r++) {
			unsigned to = detect_target(p, at, n, r);

			to = back ? (2 * at + n - to) % n : to;
			if (!dead[to] && !seen[to]) {
				seen[to] = true;
				queue[tail++] = to;
			}
		}
	}
	return tail;
}

/* Returns whether some living node hears nothing of another one.  All hear of all if all hear of
 * one node, and that node hears of all. */
static bool is_false(enum detect_protocol p, const bool *dead, unsigned n)
{
	unsigned alive = 0, one = 0;

	for (unsigned i = 0; i < n; i++) {
		alive += !dead[i];
		one = dead[i] ? one : i;
	}
	return alive && (reached(p, dead, n, one, false) < alive ||
			 reached(p, dead, n, one, true) < alive);
}

static void reliable(unsigned long trials)
{
	static const unsigned sizes[] = { 4, 8, 16, 32, 64, 128, 256, 512, 1000 };

	printf("%6s %10s %10s %12s\n", "nodes", "BRR", "DBRR", "trials");
	for (size_t row = 0; row < sizeof sizes / sizeof *sizes; row++) {
		unsigned n = sizes[row];
		unsigned long wrong[2] = { 0 }, most = n > 64 ? trials * 64 / n : trials;

		for (unsigned long i = 0; i < most; i++) {
			bool dead[MAX_NODES];

			for (unsigned k = 0; k < n; k++)
				dead[k] = happens(0.1);
			wrong[DETECT_BRR] += is_false(DETECT_BRR, dead, n);
			wrong[DETECT_DBRR] += is_false(DETECT_DBRR, dead, n);
		}
		printf("%6u %10.2e %10.2e %12lu\n", n, (double)wrong[DETECT_BRR] / (double)most,
		       (double)wrong[DETECT_DBRR] / (double)most, most);
		fflush(stdout);
	}
}

/* ---- ages ---- */

enum { PARTS = 1000 };	/* in a round: the nodes gossip one after the other */

/* news[to][from]: when the newest information about `from` that `to` has was made, in parts of a
 * round. */
static uint32_t (*news)[MAX_NODES];

/* Simulates one round: each node gossips once, in a random order that stays the same. */
static void gossip_all(enum detect_protocol p, unsigned n, const unsigned *order,
		       const unsigned *begin, unsigned round)
{
	for (unsigned k = 0; k < n; k++) {
		unsigned from = order[k], to = detect_target(p, from, n, round + begin[from]);

		news[from][from] = round * PARTS + k * PARTS / n;
		for (unsigned i = 0; i < n; i++)
			if (news[to][i] < news[from][i])
				news[to][i] = news[from][i];
	}
}

/* Returns the age, in rounds, of the oldest information that any node ever has about another
 * one. */
static double oldest(enum detect_protocol p, unsigned n, bool in_step)
{
	static unsigned order[MAX_NODES], begin[MAX_NODES];
	unsigned cycle = detect_rounds(p, n);
	uint32_t age = 0;

	memset(news, 0, sizeof *news * MAX_NODES);
	for (unsigned i = 0; i < n; i++) {
		unsigned k = (unsigned)(next_random() % (i + 1));

		order[i] = order[k];
		order[k] = i;
		begin[i] = in_step ? 0 : (unsigned)(next_random() % cycle);
	}
	for (unsigned round = 1; round < 10 * cycle; round++) {
		gossip_all(p, n, order, begin, round);
		for (unsigned i = 0; round >= 4 * cycle && i < n * n; i++) {
			uint32_t now = (round + 1) * PARTS, made = news[i / n][i % n];

			age = now - made > age ? now - made : age;
		}
	}
	return (double)age / PARTS;
}

static void ages(unsigned n)
{
	printf("%6u", n);
	for (int p = DETECT_BRR; p >= DETECT_DBRR; p--) {
		double step = oldest(p, n, true), random = 0;

		for (int i = 0; i < 3; i++) {
			double age = oldest(p, n, false);

			random = age > random ? age : random;
		}
		printf(" %9.1f %9.1f %9u", step, random, (unsigned)detect_cleanup(p, n, 1));
	}
	printf("\n");
	fflush(stdout);
}

/* ---- detection ---- */

static struct sim s;
static unsigned n_gone;
static uint64_t died_at, last_gone;
static double sum_gone;

static void on_gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	(void)arg, (void)name;
	if (returned)
		return;
	n_gone++;
	last_gone = s.now;
	sum_gone += (double)(s.now - died_at) / 1e6;
}

static bool all_know_all(struct sim *sim)
{
	for (int i = 0; i < sim->n; i++)
		if (sim->nodes[i].ph->routes->n != (unsigned)sim->n)
			return false;
	return true;
}

static void connect_all(int n)
{
	for (int i = 1; i < n && n < MANY; i++)
		sim_know(&s, i, 0);
	for (int i = 0; i < n && n >= MANY; i++) {
		contact_set_learning(s.nodes[i].ph, false);
		for (int step = 1; step < n; step *= 2)
			sim_know(&s, i, (i + step) % n);
	}
}

static bool all_declared(struct sim *sim) { return n_gone == (unsigned)sim->n - 1; }

static void detect(enum detect_protocol p, int n)
{
	unsigned wrong;

	sim_init(&s, 1, n, 0, SPACE);
	connect_all(n);
	if (!sim_until(&s, 300000000, all_know_all)) {
		printf("%6d  the nodes do not find each other\n", n);
		sim_free(&s);
		return;
	}
	n_gone = 0;
	for (int i = 0; i < n; i++) {
		detect_set_protocol(s.nodes[i].ph, p, 0);
		detect_by_size(s.nodes[i].ph);
		flow_set_gone(s.nodes[i].ph, PH_GONE_DISCARD, on_gone, NULL);
	}
	sim_run(&s, s.now + 30000000);
	wrong = n_gone;
	n_gone = 0;
	sum_gone = 0;
	died_at = s.now;
	sim_kill(&s, n / 2);
	bool all = sim_until(&s, 120000000, all_declared);
	printf("%6d %9.1f %9.1f %9.1f %9.1f %8u%s\n", n,
	       (double)detect_rounds(DETECT_BRR, (unsigned)n) * GOSSIP_INTERVAL / 1e6,
	       (double)detect_cleanup(p, (unsigned)n, GOSSIP_INTERVAL) / 1e6,
	       n_gone ? sum_gone / n_gone : 0, (double)(last_gone - died_at) / 1e6, wrong,
	       all ? "" : "  not all");
	fflush(stdout);
	sim_free(&s);
}

/* ---- the command line ---- */

enum { SIZES = 10 };
static const int sizes[SIZES] = { 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000 };

static int size_of(const char *word)
{
	int n = atoi(word);

	return n < 2 ? 2 : n > MAX_NODES ? MAX_NODES : n;
}

static int all_choices(int argc, char **argv)
{
	uint32_t computers = argc > 0 ? (uint32_t)size_of(argv[0]) : COMPUTERS;

	place(CHOOSE_CONCENTRATE, "concentrate", computers);
	place(CHOOSE_SPREAD, "spread", computers);
	return 0;
}

static int all_ages(int argc, char **argv)
{
	news = calloc(MAX_NODES, sizeof *news);
	if (!news)
		return 1;
	printf("%6s %29s %29s\n%6s", "", "BRR", "DBRR", "nodes");
	for (int i = 0; i < 2; i++)
		printf(" %9s %9s %9s", "in step", "at random", "cleanup");
	printf("   (rounds)\n");
	for (int i = 0; i < (argc ? argc : SIZES); i++)
		ages((unsigned)(argc ? size_of(argv[i]) : sizes[i]));
	free(news);
	return 0;
}

static int all_detections(int argc, char **argv)
{
	enum detect_protocol p = strcmp(argv[0], "brr") ? DETECT_DBRR : DETECT_BRR;

	printf("%s\n%6s %9s %9s %9s %9s %8s   (seconds)\n", protocol_names[p], "nodes",
	       "one way", "cleanup", "mean", "last", "false");
	for (int i = 0; i < (argc > 1 ? argc - 1 : SIZES); i++)
		detect(p, argc > 1 ? size_of(argv[i + 1]) : sizes[i]);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (!strcmp(verb, "choice"))
		return all_choices(argc - 2, argv + 2);
	if (!strcmp(verb, "ages"))
		return all_ages(argc - 2, argv + 2);
	if (!strcmp(verb, "detect") && argc > 2)
		return all_detections(argc - 2, argv + 2);
	if (strcmp(verb, "reliable")) {
		fprintf(stderr, "usage: peers_figures choice [COMPUTERS] | reliable [TRIALS] | "
			"ages [NODES...] | detect brr|dbrr [NODES...]\n");
		return 1;
	}
	reliable(argc > 2 ? strtoul(argv[2], NULL, 10) : 5000);
	return 0;
}
