/* main.c - dsm-sim, daemon-sim: run the page protocol under many seeds.
 *
 *   dsm-sim --seeds N [--first S] [--nodes N]      every seed must be right; names the first that
 *                                                  is wrong
 *   dsm-sim --seed S [--nodes N] [--trace]         one seed, with all that happens
 *   dsm-sim --fault NAME[:n] --expect-forbidden    with a fault on, some seed must show a forbidden
 *                                                  litmus outcome
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "tests/sim/sim.h"

struct totals {
	uint64_t steps, messages, litmus_rounds, moves, joins, leaves, stale_loads,
		broken_invariants, forbidden[16];
	struct dsm_stats dsm;
};

static void add_stats(struct totals *totals, const struct dsm_stats *stats)
{
#define X(field, text) totals->dsm.field += stats->field;
	DSM_COUNTERS(X)
#undef X
}

static void run_seed(struct sim *sim, struct totals *totals)
{
	unsigned litmus = 4 + sim_random(sim, 5), word = SIM_STRESS_WORDS, start;

	sim->n_pages = 2 + sim_random(sim, SIM_MAX_PAGES - 1);
	sim->n_cpus = SIM_MAX_CPUS / 2 + sim_random(sim, SIM_MAX_CPUS / 2 + 1);
	sim->depth = sim_chance(sim, 50) ? 0 : 1 + sim_random(sim, SIM_BUFFER_MAX);
	sim->changes = sim->n_nodes > 1 && sim_chance(sim, 60) ? 1 + sim_random(sim, 6) : 0;
	start = sim->changes ? 1 + sim_random(sim, sim->n_nodes) : sim->n_nodes;
	sim->present = (1u << start) - 1;
	for (unsigned i = 0; i < sim->n_cpus; i++)
		sim->cpus[i].node = i < start ? i : sim_random(sim, start);
	cluster_begin(sim);
	for (unsigned i = 0; i < litmus && !sim->ended; i++, word += 2)
		litmus_round(sim, word);
	for (unsigned i = 0; i < sim->n_cpus; i++) {
		sim->cpus[i].n_ops = 0;
		cpu_random_program(sim, i, SIM_MAX_OPS);
		cpu_start(sim, i, sim_random(sim, 20000));
	}
	if (!sim->ended)
		cluster_run(sim);
	if (!sim->ended)
		cluster_check_idle(sim);
	for (unsigned i = 0; i < sim->n_nodes; i++)
		if (sim->nodes[i].dsm)
			add_stats(totals, dsm_stats(sim->nodes[i].dsm));
	cluster_end(sim);
	totals->steps += sim->steps;
	totals->messages += sim->messages;
	totals->litmus_rounds += sim->litmus_rounds;
	totals->moves += sim->moves;
	totals->joins += sim->joins;
	totals->leaves += sim->leaves;
	totals->stale_loads += sim->stale_loads;
	totals->broken_invariants += sim->broken_invariants;
	for (unsigned i = 0; i < litmus_count; i++)
		totals->forbidden[i] += sim->forbidden[i];
}

static void print_totals(const struct totals *totals, uint64_t seeds, bool counters)
{
	printf("%s: %llu seeds, %llu steps, %llu messages, %llu litmus rounds; %llu moves of homes "
	       "and processors, "
	       "%llu joins, %llu leaves\n",
	       program_invocation_short_name, (unsigned long long)seeds,
	       (unsigned long long)totals->steps, (unsigned long long)totals->messages,
	       (unsigned long long)totals->litmus_rounds, (unsigned long long)totals->moves,
	       (unsigned long long)totals->joins, (unsigned long long)totals->leaves);
	if (!counters)
		return;
#define X(field, text) printf("  %10llu %s\n", (unsigned long long)totals->dsm.field, text);
	DSM_COUNTERS(X)
#undef X
}

/* With a fault on, outcomes that x86-TSO forbids must have been seen.  SB and R alone would prove
 * nothing, since a real processor shows them. */
static int judge_fault(const struct totals *totals, const char *fault)
{
	uint64_t forbidden = 0;

	printf("dsm-sim: fault %s: %llu stale loads, %llu broken invariants, forbidden outcomes:",
	       fault, (unsigned long long)totals->stale_loads,
	       (unsigned long long)totals->broken_invariants);
	for (unsigned i = 0; i < litmus_count; i++) {
		printf(" %s %llu", litmus_name(i), (unsigned long long)totals->forbidden[i]);
		if (!litmus_tso_allows(i))
			forbidden += totals->forbidden[i];
	}
	printf("\n");
	return forbidden ? 0 : 1;
}

static void usage(void)
{
	fprintf(stderr, "usage: dsm-sim [--seeds N] [--first S] [--seed S] [--nodes N] [--fault "
		"NAME[:n]] [--expect-forbidden] [--counters] [--trace]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "fault", required_argument, NULL, 'F' },
		{ "expect-forbidden", no_argument, NULL, 'e' },
		{ "counters", no_argument, NULL, 'c' },
		{ "trace", no_argument, NULL, 't' },
		{ 0 },
	};
	uint64_t seeds = 1000, first = 1;
	unsigned n_nodes = 4;
	bool trace = false, expect = false, counters = false;
	const char *fault = NULL;
	struct totals totals = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n': seeds = strtoull(optarg, NULL, 0); break;
		case 'f': first = strtoull(optarg, NULL, 0); break;
		case 's': first = strtoull(optarg, NULL, 0); seeds = 1; break;
		case 'N': n_nodes = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'F': fault = optarg; break;
		case 'e': expect = true; break;
		case 'c': counters = true; break;
		case 't': trace = true; break;
		default: usage();
		}
	}
	if (n_nodes < 1 || n_nodes > SIM_MAX_CPUS || optind != argc ||
	    (fault && fault_parse(fault)) || (expect && !fault))
		usage();
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		struct sim sim = { .seed = seed,
				   .random = (seed + 1) * 0x9e3779b97f4a7c15ull,
				   .n_nodes = n_nodes,
				   .verbose = trace,
				   .expect_fault = expect,
				   .fault_name = fault };

		run_seed(&sim, &totals);
	}
	print_totals(&totals, seeds, counters);
	return expect ? judge_fault(&totals, fault) : hosts_report();
}
