/* litmus.c - the classic tests of a memory model, and the outcome of each that sequential
 * consistency forbids.
 *
 * A program is a line per processor: W<var><value> stores, R<var> loads.  `forbidden` lists the
 * loaded values in the order of the text, then `var=value` for final values that matter. x86-TSO
 * allows two of these outcomes, since a store may wait in its buffer while a later load goes ahead,
 * unless there is a fence between them.
 */
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/sim.h"

enum { LITMUS_THREADS = 4 };

static const struct litmus {
	const char *name;
	bool tso_allows;
	const char *threads[LITMUS_THREADS];
	const char *forbidden;
} tests[] = {
	{ "SB", true, { "Wx1 Ry", "Wy1 Rx" }, "0 0" },
	{ "MP", false, { "Wx1 Wy1", "Ry Rx" }, "1 0" },
	{ "LB", false, { "Rx Wy1", "Ry Wx1" }, "1 1" },
	{ "WRC", false, { "Wx1", "Rx Wy1", "Ry Rx" }, "1 1 0" },
	{ "IRIW", false, { "Wx1", "Wy1", "Rx Ry", "Ry Rx" }, "1 0 1 0" },
	{ "2+2W", false, { "Wx1 Wy2", "Wy1 Wx2" }, "x=1 y=1" },
	{ "S", false, { "Wx2 Wy1", "Ry Wx1" }, "1 x=2" },
	{ "R", true, { "Wx1 Wy1", "Wy2 Rx" }, "0 y=2" },
};
const unsigned litmus_count = ARRAY_LEN(tests);

const char *litmus_name(unsigned test)
{
	return tests[test].name;
}

bool litmus_tso_allows(unsigned test)
{
	return tests[test].tso_allows;
}

struct round {
	const struct litmus *test;
	unsigned pages[2], word, cpus[LITMUS_THREADS];
	bool fenced, locked;
};

static unsigned page_of(const struct round *round, char variable)
{
	return round->pages[variable - 'x'];
}

/* Chooses distinct CPUs, and nearly always distinct pages: on one page the protocol has fewer
 * chances to be wrong. */
static void choose(struct sim *sim, struct round *round)
{
	unsigned order[SIM_MAX_CPUS];

	for (unsigned i = 0; i < sim->n_cpus; i++) {
		unsigned j = sim_random(sim, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	memcpy(round->cpus, order, sizeof(round->cpus));
	round->pages[0] = sim_random(sim, sim->n_pages);
	round->pages[1] = sim_random(sim, sim->n_pages);
	if (round->pages[0] == round->pages[1] && sim_chance(sim, 90))
		round->pages[1] = (round->pages[0] + 1) % sim->n_pages;
	round->fenced = sim_chance(sim, 30);
	round->locked = sim_chance(sim, 20);
}

/* Often lets the CPU first read or write other words in its variables' pages, so that copies exist
 * that a wrong protocol would leave stale. */
static void warm_up(struct sim *sim, struct round *round, struct sim_cpu *cpu)
{
	for (unsigned i = 0; i < 2; i++) {
		if (sim_chance(sim, 70))
			cpu_add(cpu, OP_LOAD, round->pages[i], round->word, 0);
		else if (sim_chance(sim, 30))
			cpu_add(cpu, OP_STORE, round->pages[i], 0, ++sim->next_value);
	}
}

static void compile(struct round *round, struct sim_cpu *cpu, const char *text)
{
	char kind, variable;
	int value = 0, length;

	while (sscanf(text, " %c%c%n", &kind, &variable, &length) == 2) {
		text += length;
		if (kind == 'W') {
			bug_on(sscanf(text, "%1d%n", &value, &length) != 1);
			text += length;
		}
		cpu_add(cpu,
			kind == 'R'	? OP_LOAD
			: round->locked ? OP_EXCHANGE
					: OP_STORE,
			page_of(round, variable), round->word + (unsigned)(variable - 'x'),
			(uint32_t)value);
		if (round->fenced)
			cpu_add(cpu, OP_FENCE, 0, 0, 0);
	}
}

static void describe(struct sim *sim, struct round *round, const unsigned *first_op, char *text,
		     size_t bytes)
{
	size_t length = 0;

	for (unsigned t = 0; t < LITMUS_THREADS && round->test->threads[t]; t++) {
		struct sim_cpu *cpu = &sim->cpus[round->cpus[t]];

		for (unsigned i = first_op[t]; i < cpu->next_op; i++) {
			if (cpu->ops[i].kind == OP_LOAD)
				length += (size_t)snprintf(text + length, bytes - length, "%s%u",
							   length ? " " : "", cpu->ops[i].result);
		}
	}
	for (char variable = 'x'; variable <= 'y'; variable++) {
		char name[4] = { variable, '=', 0 };

		if (strstr(round->test->forbidden, name))
			length += (size_t)
				snprintf(text + length, bytes - length, "%s%c=%u",
					 length ? " " : "", variable,
					 sim->latest[page_of(round, variable)]
						    [round->word + (unsigned)(variable - 'x')]);
	}
}

static void judge(struct sim *sim, struct round *round, const unsigned *first_op)
{
	unsigned index = (unsigned)(round->test - tests);
	char outcome[64];

	describe(sim, round, first_op, outcome, sizeof(outcome));
	sim->litmus_rounds++;
	if (strcmp(outcome, round->test->forbidden))
		return;
	if (sim->depth && round->test->tso_allows && !round->fenced && !round->locked)
		return;
	if (!sim->expect_fault)
		sim_fail(sim, "litmus %s: forbidden outcome %s", round->test->name, outcome);
	sim->forbidden[index]++;
}

/* Runs one test on fresh words, which are zero, with random accesses of the other CPUs around
 * it. */
void litmus_round(struct sim *sim, unsigned word)
{
	struct round round = { .test = &tests[sim_random(sim, litmus_count)], .word = word };
	unsigned first_op[LITMUS_THREADS] = { 0 };

	choose(sim, &round);
	for (unsigned i = 0; i < sim->n_cpus; i++) {
		unsigned t;

		sim->cpus[i].n_ops = 0;
		for (t = 0; t < LITMUS_THREADS && round.test->threads[t]; t++) {
			if (round.cpus[t] == i)
				break;
		}
		if (t < LITMUS_THREADS && round.test->threads[t]) {
			warm_up(sim, &round, &sim->cpus[i]);
			cpu_add(&sim->cpus[i], OP_PAUSE, 0, 0, 1000 + sim_random(sim, 400000));
			first_op[t] = sim->cpus[i].n_ops;
			compile(&round, &sim->cpus[i], round.test->threads[t]);
		} else if (sim_chance(sim, 30)) {
			cpu_random_program(sim, i, 1 + sim_random(sim, 6));
		}
		cpu_start(sim, i, sim_random(sim, 20000));
	}
	sim_trace(sim, "litmus %s on pages %u %u word %u", round.test->name, round.pages[0],
		  round.pages[1], word);
	cluster_run(sim);
	if (!sim->ended && !sim->went_back)
		judge(sim, &round, first_op);
}
