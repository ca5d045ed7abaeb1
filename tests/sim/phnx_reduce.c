/* phnx_reduce.c - values are combined while virtual nodes move, the first one of the range too.
 * Every call ends: all with the same result, or with PH_EBUSY; and with the result once nothing
 * moves.  Usage: phnx_reduce [SEED [ROUNDS [HOLD_US]]].  Routing messages are held at random for
 * up to HOLD_US at each node: by default first 0, then 30000.  Without a seed: the first 50
 * seeds, 50 rounds each. */
#include <stdio.h>
#include "tests/sim/phnx_sim.h"

enum {
	NODES = 8,
	WIDTH = 100,
	SPACE = NODES * WIDTH,
	FLOATS = 8,
	STEP_US = 500,
	LATEST_US = 20000,
	MOVING_US = 30000,
	PATIENCE_US = 20000000
};

struct caller {
	struct reduction *call;
	uint64_t at;			/* when it calls (again) */
	bool done;
	unsigned value;
};
static struct sim s;
static struct caller callers[NODES];
/* of the virtual nodes [0, FLOATS), which move; next: the node that it moves to, or -1 */
static int holder[FLOATS], next_holder[FLOATS];
static unsigned long calls, again, moves;

static void move(int node, ph_vp_t lo, ph_vp_t hi, bool come)
{
	struct vrange r = { lo, hi };
	struct ph_vps vps = { .n = 1, .r = &r };

	(come ? mapping_assume : mapping_release)(s.nodes[node].ph, &vps);
	sim_touch(&s, node);
}

static void float_about(bool moving)
{
	for (int f = 0; f < FLOATS; f++) {
		if (next_holder[f] >= 0) {
			if (moving && sim_random(&s, 4))
				continue;
			move(next_holder[f], f, f + 1, true);
			holder[f] = next_holder[f];
			next_holder[f] = -1;
			moves++;
		} else if (moving && sim_random(&s, 40) == 0) {
			move(holder[f], f, f + 1, false);
			next_holder[f] = (int)sim_random(&s, NODES);
		}
	}
}

static void unite(void *into, const void *from, size_t len)
{
	*(unsigned *)into |= *(const unsigned *)from;
	(void)len;
}

/* Returns NULL, or what is wrong. */
static const char *call(int node, int id)
{
	struct caller *c = callers + node;
	struct phnx *ph = s.nodes[node].ph;

	if (c->done || s.now < c->at)
		return NULL;
	if (!c->call) {
		c->value = 1U << node;
		c->call = reduce_begin(ph, 0, SPACE, id, sizeof c->value);
		calls++;
	}
	int error =
		c->call ? reduce_poll(ph, c->call, &c->value, sizeof c->value, unite) : PH_EINVAL;
	sim_touch(&s, node);
	if (error == PH_EAGAIN)
		return NULL;
	c->call = NULL;
	c->done = error == 0;
	c->at = s.now + sim_random(&s, 3000);
	again += error == PH_EBUSY;
	return error && error != PH_EBUSY		 ? "an error"
	       : !error && c->value != (1U << NODES) - 1 ? "not all values"
							 : NULL;
}

static bool all_done(void)
{
	for (int i = 0; i < NODES; i++)
		if (!callers[i].done)
			return false;
	return true;
}

static const char *play(int id)
{
	uint64_t start = s.now;
	const char *wrong = NULL;

	for (int i = 0; i < NODES; i++)
		callers[i] = (struct caller){ .at = start + sim_random(&s, LATEST_US) };
	while (!all_done() && !wrong) {
		float_about(s.now < start + MOVING_US);
		for (int i = 0; i < NODES && !wrong; i++)
			wrong = call(i, id);
		if (s.now > start + PATIENCE_US)
			wrong = "a call does not end";
		sim_run(&s, s.now + STEP_US);
	}
	return wrong;
}

static unsigned left_over(void)
{
	unsigned n = 0;

	for (int i = 0; i < NODES; i++)
		n += s.nodes[i].ph->collectives->n_gathers;
	return n;
}

static bool play_all(uint64_t seed, int rounds, uint64_t hold_us)
{
	const char *wrong = NULL;
	int round = 0;

	calls = again = moves = 0;
	sim_init(&s, seed, NODES, 0, SPACE);
	sim_tardy(&s, hold_us);
	for (int i = 1; i < NODES; i++)
		sim_know(&s, i, 0);
	for (int i = 0; i < NODES; i++)
		move(i, i * WIDTH + FLOATS, (i + 1) * WIDTH + (i < NODES - 1 ? FLOATS : 0), true);
	for (int f = 0; f < FLOATS; f++)
		next_holder[f] = 0;
	sim_run(&s, s.now + 3000000);
	for (; round < rounds && !wrong; round++)
		wrong = play(round);
	if (!wrong) {
		sim_run(&s, s.now + 15000000);
		wrong = left_over() ? "questions are left over" : NULL;
	}
	printf("seed %llu, news held up to %llu us: %d reductions, "
	       "%lu calls, %lu told to call again, %lu moves: %s\n",
	       (unsigned long long)seed, (unsigned long long)hold_us, round, calls, again, moves,
	       wrong ? wrong : "all combined");
	for (int i = 0; wrong && i < NODES; i++)
		printf("node %d: %s, %u questions\n", i,
		       callers[i].done	 ? "done"
		       : callers[i].call ? "waits"
					 : "calls later",
		       s.nodes[i].ph->collectives->n_gathers);
	sim_free(&s);
	return !wrong;
}

int main(int argc, char **argv)
{
	enum { SEEDS = 50, ROUNDS = 50 };

	for (uint64_t seed = 1; argc == 1; seed++)
		if (seed > SEEDS || !play_all(seed, ROUNDS, 0) || !play_all(seed, ROUNDS, 30000))
			return seed <= SEEDS;
	uint64_t seed = strtoull(argv[1], NULL, 0);
	int rounds = argc > 2 ? atoi(argv[2]) : 100;

	if (argc > 3)
		return !play_all(seed, rounds, strtoull(argv[3], NULL, 0));
	return !play_all(seed, rounds, 0) || !play_all(seed, rounds, 30000);
}
