/* cpu.c - virtual processors: in order, one access a step; with a store buffer if the run models
 * x86-TSO.
 *
 * A store is performed when it reaches memory with the right to write there. sim->latest then says
 * what every load of that word must return from now on.  Each load is checked at its own moment.
 * So the order of steps is a witness that the whole execution is sequentially consistent (or TSO,
 * with the buffers).
 */
#include <string.h>
#include "base/log.h"
#include "tests/sim/sim.h"

static void schedule(struct sim *sim, unsigned cpu, uint64_t delay_ns)
{
	struct sim_event event = { .kind = EVENT_CPU,
				   .node = (uint8_t)cpu,
				   .at_ns = sim->now_ns + delay_ns };

	events_add(&event);
}

void cpu_start(struct sim *sim, unsigned cpu, uint32_t delay_ns)
{
	sim->cpus[cpu].next_op = 0;
	sim->cpus[cpu].depth = sim->depth;
	sim->cpus[cpu].done = false;
	sim->cpus_running++;
	schedule(sim, cpu, delay_ns);
}

void cpu_add(struct sim_cpu *cpu, enum sim_op_kind kind, unsigned page, unsigned word,
	     uint32_t value)
{
	bug_on(cpu->n_ops == SIM_MAX_OPS);
	cpu->ops[cpu->n_ops++] = (struct sim_op){
		.kind = (uint8_t)kind, .page = (uint8_t)page, .word = (uint8_t)word, .value = value
	};
}

/* Returns whether the CPU's node has the right; otherwise the CPU requests it and waits. */
static bool have(struct sim *sim, struct sim_cpu *cpu, gfn_t gfn, enum page_right right)
{
	struct sim_node *node = &sim->nodes[cpu->node];

	if (node->right[gfn] >= right)
		return true;
	cpu->waits_for = gfn + 1;
	cpu->waits_right = right;
	cpu->waits_since = sim->now_ns;
	sim_trace(sim, "cpu %zu wants page %u, right %d", cpu - sim->cpus, gfn, right);
	pages_want(sim, (unsigned)(cpu - sim->cpus), gfn, right);
	return false;
}

static uint32_t perform_load(struct sim *sim, struct sim_cpu *cpu, unsigned page, unsigned word)
{
	uint32_t value = sim->nodes[cpu->node].memory[page][word];

	sim_trace(sim, "cpu %zu loads page %u word %u: %u", cpu - sim->cpus, page, word, value);
	if (value == sim->latest[page][word])
		return value;
	if (!sim->expect_fault)
		sim_fail(sim, "cpu %zu on node %u loads %u from page %u word %u, but %u was stored",
			 cpu - sim->cpus, cpu->node, value, page, word, sim->latest[page][word]);
	sim->stale_loads++;
	return value;
}

static void perform_store(struct sim *sim, struct sim_cpu *cpu, unsigned page, unsigned word,
			  uint32_t value)
{
	sim_trace(sim, "cpu %zu stores page %u word %u: %u", cpu - sim->cpus, page, word, value);
	sim->nodes[cpu->node].memory[page][word] = value;
	sim->latest[page][word] = value;
}

/* Moves the oldest buffered store to memory.  Returns false if it must wait for its page. */
static bool drain_one(struct sim *sim, struct sim_cpu *cpu)
{
	unsigned page = cpu->buffer[0].page;

	if (!have(sim, cpu, page, PAGE_WRITE))
		return false;
	perform_store(sim, cpu, page, cpu->buffer[0].word, cpu->buffer[0].value);
	memmove(&cpu->buffer[0], &cpu->buffer[1], sizeof(cpu->buffer) - sizeof(cpu->buffer[0]));
	cpu->buffered--;
	return true;
}

/* Loads a word; the CPU's own youngest buffered store to it comes first. */
static bool load(struct sim *sim, struct sim_cpu *cpu, struct sim_op *op)
{
	for (unsigned i = cpu->buffered; i--;) {
		if (cpu->buffer[i].page == op->page && cpu->buffer[i].word == op->word) {
			op->result = cpu->buffer[i].value;
			return true;
		}
	}
	if (!have(sim, cpu, op->page, PAGE_READ))
		return false;
	op->result = perform_load(sim, cpu, op->page, op->word);
	return true;
}

/* Does one operation.  Returns false if it is not finished: it waits, or a buffered store went
 * first. */
static bool operate(struct sim *sim, struct sim_cpu *cpu, struct sim_op *op)
{
	switch ((enum sim_op_kind)op->kind) {
	case OP_LOAD:
		return load(sim, cpu, op);
	case OP_STORE:
		if (cpu->depth == 0) {
			if (!have(sim, cpu, op->page, PAGE_WRITE))
				return false;
			perform_store(sim, cpu, op->page, op->word, op->value);
			return true;
		}
		if (cpu->buffered == cpu->depth) {
			drain_one(sim, cpu);
			return false;
		}
		cpu->buffer[cpu->buffered].page = op->page;
		cpu->buffer[cpu->buffered].word = op->word;
		cpu->buffer[cpu->buffered++].value = op->value;
		return true;
	case OP_EXCHANGE: /* locked: the buffer drains first, then load and store are one step */
	case OP_FENCE:
		if (cpu->buffered) {
			drain_one(sim, cpu);
			return false;
		}
		if (op->kind == OP_FENCE)
			return true;
		if (!have(sim, cpu, op->page, PAGE_WRITE))
			return false;
		op->result = perform_load(sim, cpu, op->page, op->word);
		perform_store(sim, cpu, op->page, op->word, op->value);
		return true;
	case OP_PAUSE:
		return true;
	}
	return true;
}

static void finish(struct sim *sim, struct sim_cpu *cpu)
{
	cpu->done = true;
	cpu->n_ops = 0;
	sim->cpus_running--;
}

void cpu_step(struct sim *sim, unsigned index)
{
	struct sim_cpu *cpu = &sim->cpus[index];
	uint64_t pause = 50 + sim_random(sim, 500);

	if (cpu->held) {
		cpu->stepped = true;
		return;
	}
	if (cpu->granted)
		pages_run(sim, index);
	cpu->granted = 0;
	if (cpu->buffered && (cpu->next_op == cpu->n_ops || sim_chance(sim, 30))) {
		drain_one(sim, cpu);
	} else if (cpu->next_op == cpu->n_ops) {
		return finish(sim, cpu);
	} else {
		struct sim_op *op = &cpu->ops[cpu->next_op];

		if (operate(sim, cpu, op))
			cpu->next_op++;
		if (op->kind == OP_PAUSE)
			pause = op->value;
	}
	/* ready() may have been called within have(), if another CPU of the node got the page
	 * meanwhile; then this CPU is scheduled already. */
	if (!cpu->waits_for && !cpu->granted)
		schedule(sim, index, pause);
}

void cpu_hold(struct sim *sim, unsigned index)
{
	sim->cpus[index].held = true;
}

void cpu_go(struct sim *sim, unsigned index)
{
	bool stepped = sim->cpus[index].stepped;

	sim->cpus[index].held = sim->cpus[index].stepped = false;
	if (stepped)
		schedule(sim, index, 1000 + sim_random(sim, 20000));
}

bool cpu_move(struct sim *sim, unsigned index, unsigned node)
{
	struct sim_cpu *cpu = &sim->cpus[index];

	if (cpu->waits_for || cpu->granted)
		return false;
	sim_trace(sim, "cpu %u moves from node %u to %u", index, cpu->node, node);
	cpu->node = node;
	sim->moves++;
	return true;
}

/* The CPU goes on soon, or much later, as if its host had stopped it. */
void cpu_answered(struct sim *sim, unsigned index)
{
	struct sim_cpu *cpu = &sim->cpus[index];

	cpu->granted = cpu->waits_for;
	cpu->waits_for = 0;
	schedule(sim, index,
		 sim_chance(sim, 1) ? sim_random(sim, 60000000) : 1000 + sim_random(sim, 20000));
}

void cpu_ready(struct sim *sim, unsigned node, gfn_t gfn, enum page_right right)
{
	for (unsigned i = 0; i < sim->n_cpus; i++) {
		struct sim_cpu *cpu = &sim->cpus[i];

		if (cpu->node == node && cpu->waits_for == gfn + 1 && cpu->waits_right <= right)
			cpu_answered(sim, i);
	}
}

bool cpu_holds(struct sim *sim, unsigned node, gfn_t gfn)
{
	for (unsigned i = 0; i < sim->n_cpus; i++) {
		if (sim->cpus[i].node == node && sim->cpus[i].granted == gfn + 1)
			return true;
	}
	return false;
}

/* Checks progress.  A want is one or two requests (a pending read, then the write).  Before each,
 * every other node is served at most once.  A transaction has at most four messages in sequence,
 * and is held once at each holder. */
void cpu_watch(struct sim *sim)
{
	uint64_t transaction_ns = 4ull * SIM_MAX_DELAY_NS + DSM_HOLD_MAX_US * 1000ull;
	uint64_t bound_ns = 2 * (sim->n_nodes * transaction_ns + SIM_MAX_DELAY_NS);

	if (sim->broken)
		return;
	if (sim->changes) /* a request or confirmation may have to be forwarded */
		bound_ns *= 2;

	for (unsigned i = 0; i < sim->n_cpus; i++) {
		struct sim_cpu *cpu = &sim->cpus[i];

		if (cpu->waits_for && sim->now_ns - cpu->waits_since > bound_ns)
			sim_fail(sim, "cpu %u has waited for page %u since %llu ns", i,
				 cpu->waits_for - 1, (unsigned long long)cpu->waits_since);
	}
}

void cpu_random_program(struct sim *sim, unsigned index, unsigned n_ops)
{
	struct sim_cpu *cpu = &sim->cpus[index];
	unsigned hot = sim_random(sim, sim->n_pages);

	while (n_ops--) {
		unsigned page = sim_chance(sim, 50) ? hot : sim_random(sim, sim->n_pages);
		unsigned word = sim_random(sim, SIM_STRESS_WORDS), choice = sim_random(sim, 100);

		if (choice < 50)
			cpu_add(cpu, OP_LOAD, page, word, 0);
		else if (choice < 80)
			cpu_add(cpu, OP_STORE, page, word, ++sim->next_value);
		else if (choice < 92)
			cpu_add(cpu, OP_EXCHANGE, page, word, ++sim->next_value);
		else if (choice < 95)
			cpu_add(cpu, OP_FENCE, 0, 0, 0);
		else
			cpu_add(cpu, OP_PAUSE, 0, 0, sim_random(sim, 300000));
	}
}
