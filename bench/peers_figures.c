/* peers_figures.c - figures of the P2P-MPI paper (2009) that are about peers, as tables.
 *
 *   choice      figures 4 and 5: on which computers 100 to 600 processors are, with concentrate
 *               and spread.  The nearest site has 60 computers of 4 processors, as in the paper;
 *               the other sizes are made up, and round trips of three sites overlap.
 *   reliable    figure 12: how often a node hears nothing of another one that lives, because those
 *               between have died; each node dies with probability 0.1
 *   detect      figure 13: how long after its death a node is declared gone by the others, with the
 *               library's failure detector in the simulator; the prediction beside it
 *
 * Usage: peers_figures choice | reliable [TRIALS] | detect [NODES...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/phnx_sim.h"
#include "vpg/peer/choose.h"

enum { MAX_NODES = 1000, SPACE = 1 << 20 };

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
enum { SITES = sizeof sites / sizeof *sites };

static void place(enum choose_how how, const char *name)
{
	static struct candidate c[512];
	static char nick[512][16];

	printf("%s: computers/processors of each site\n%10s", name, "processors");
	for (size_t i = 0; i < SITES; i++)
		printf(" %11s", sites[i].name);
	printf("\n");
	for (uint32_t wanted = 100; wanted <= 600; wanted += 50) {
		uint32_t hosts[SITES] = { 0 }, cores[SITES] = { 0 };
		size_t n = 0;

		for (size_t i = 0; i < SITES; i++)
			for (uint32_t k = 0; k < sites[i].hosts; k++, n++) {
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

static unsigned log2_up(unsigned n)
{
	unsigned k = 0;

	while (1u << k < n)
		k++;
	return k;
}

/* Whether node `s` of those that live reaches all others that live, by who gossips to whom in a
 * cycle; both: in both directions. */
static bool reaches_all(const bool *dead, unsigned n, unsigned s, bool both)
{
	static unsigned queue[MAX_NODES];
	static bool seen[MAX_NODES];
	unsigned head = 0, tail = 0, alive = 0, half = log2_up(n);

	memset(seen, 0, n);
	seen[s] = true;
	queue[tail++] = s;
	while (head < tail) {
		unsigned at = queue[head++];

		for (unsigned r = 0; r < (both ? 2 : 1) * half; r++) {
			unsigned to = detect_target(at, n, r);

			if (!dead[to] && !seen[to]) {
				seen[to] = true;
				queue[tail++] = to;
			}
		}
	}
	for (unsigned i = 0; i < n; i++)
		alive += !dead[i];
	return tail == alive;
}

static bool is_false(const bool *dead, unsigned n, bool both)
{
	for (unsigned s = 0; s < n; s++)
		if (!dead[s] && !reaches_all(dead, n, s, both))
			return true;
	return false;
}

static void reliable(unsigned long trials)
{
	printf("%6s %10s %10s   (of %lu trials)\n", "nodes", "BRR", "DBRR", trials);
	for (unsigned n = 4; n <= 128; n *= 2) {
		unsigned long one = 0, two = 0;

		for (unsigned long i = 0; i < trials; i++) {
			bool dead[MAX_NODES];

			for (unsigned k = 0; k < n; k++)
				dead[k] = happens(0.1);
			one += is_false(dead, n, false);
			two += is_false(dead, n, true);
		}
		printf("%6u %10.6f %10.6f\n", n, (double)one / (double)trials,
		       (double)two / (double)trials);
	}
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

static bool all_declared(struct sim *sim) { return n_gone == (unsigned)sim->n - 1; }

static void detect(int n)
{
	unsigned wrong;

	sim_init(&s, 1, n, 0, SPACE);
	for (int i = 1; i < n; i++)
		sim_know(&s, i, 0);
	if (!sim_until(&s, 300000000, all_know_all)) {
		printf("%6d  the nodes do not find each other\n", n);
		sim_free(&s);
		return;
	}
	n_gone = 0;
	for (int i = 0; i < n; i++) {
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
	       (double)detect_rounds((unsigned)n) / 2 * GOSSIP_INTERVAL / 1e6,
	       (double)detect_timeout((unsigned)n, GOSSIP_INTERVAL) / 1e6,
	       n_gone ? sum_gone / n_gone : 0, (double)(last_gone - died_at) / 1e6, wrong,
	       all ? "" : "  not all");
	fflush(stdout);
	sim_free(&s);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 2, 4, 8, 16, 32, 64, 128 };

	if (argc > 1 && !strcmp(argv[1], "choice")) {
		place(CHOOSE_CONCENTRATE, "concentrate");
		place(CHOOSE_SPREAD, "spread");
	} else if (argc > 1 && !strcmp(argv[1], "reliable")) {
		reliable(argc > 2 ? strtoul(argv[2], NULL, 10) : 5000);
	} else if (argc > 1 && !strcmp(argv[1], "detect")) {
		printf("%6s %9s %9s %9s %9s %8s   (seconds)\n", "nodes", "one way", "cleanup",
		       "mean", "last", "false");
		for (int i = 2; i < argc; i++)
			detect(atoi(argv[i]) > 1 && atoi(argv[i]) <= MAX_NODES ? atoi(argv[i]) : 2);
		for (size_t i = 0; argc == 2 && i < sizeof sizes / sizeof *sizes; i++)
			detect(sizes[i]);
	} else {
		fprintf(stderr, "usage: peers_figures choice | reliable [TRIALS] | "
			"detect [NODES...]\n");
		return 1;
	}
	return 0;
}
