/* phnx_memory.c - memory that runs out: a small cluster sends, moves and combines, again and again.
 * In each run another allocation of the library's fails, or all fail for a while from some one on.
 * There may be no crash.  Once there is memory again, what was accepted must arrive, each message
 * once and in order, and nothing may wait for ever.
 *
 * Usage: phnx_memory [FIRST [LAST]], numbers of the allocations that fail.
 *
 * The library's objects call their allocations by names of their own (module.mk), so the
 * simulator's do not fail.
 */
#include <limits.h>
#include <stdio.h>
#include "tests/sim/phnx_sim.h"

enum { NODES = 3, EACH = 16, SPACE = NODES * EACH, STEPS = 40, STEP_US = 3000, SOON_US = 60000000 };

void *phnx_test_malloc(size_t n);
void *phnx_test_calloc(size_t n, size_t size);
void *phnx_test_realloc(void *p, size_t n);
char *phnx_test_strdup(const char *s);

static bool counting;
static unsigned long calls, first_bad, last_bad;

static bool fails(void)
{
	if (!counting)
		return false;
	calls++;
	return calls >= first_bad && calls <= last_bad;
}

void *phnx_test_malloc(size_t n) { return fails() ? NULL : malloc(n); }
void *phnx_test_calloc(size_t n, size_t size) { return fails() ? NULL : calloc(n, size); }
void *phnx_test_realloc(void *p, size_t n) { return fails() ? NULL : realloc(p, n); }
char *phnx_test_strdup(const char *s) { return fails() ? NULL : strdup(s); }

static struct sim s;
static const char *wrong;

static void check(bool right, const char *what)
{
	if (!right && !wrong)
		wrong = what;
}

/* ---- messages: how many were accepted, and which was last, between each node and each virtual
 * node ---- */

enum { LETTER = 1, CAST = 2, BIG = 3000 };
struct letter {
	int from, number;
	char more[BIG];
};
static int sent[NODES][SPACE], taken[NODES][SPACE], n_sent, n_taken, casts, cast_taken[NODES];

static void send_letter(int from, int to, size_t len)
{
	struct letter l = { from, sent[from][to] + 1, "" };
	struct pbuf *b = pbuf_new(&l, len);
	bool ok = b && !flow_send_own(s.nodes[from].ph, to, b, LETTER, 0, 0);

	pbuf_put(b);
	sent[from][to] += ok;
	n_sent += ok;
	sim_touch(&s, from);
}

static void take_letter(int node, const struct rmsg *m)
{
	const struct letter *l = m->pub.body;
	int *last = &taken[l->from][m->pub.dest];

	check(l->number == *last + 1,
	      l->number <= *last ? "a message came twice" : "a message was lost or came too early");
	*last = l->number;
	n_taken++;
	(void)node;
}

static void take_all(int node)
{
	for (struct rmsg *m; (m = flow_receive(s.nodes[node].ph, PH_MSG_ANY_TAG)); rmsg_free(m)) {
		if (m->pub.tag == LETTER)
			take_letter(node, m);
		else
			cast_taken[node]++;
		check(cast_taken[node] <= casts, "a multicast came twice");
	}
	sim_touch(&s, node);
}

static bool all_taken(struct sim *sim)
{
	bool casts_taken = true, told = false;

	(void)sim;
	for (int i = 0; i < NODES; i++) {
		take_all(i);
		casts_taken &= cast_taken[i] == casts;
		told |= s.nodes[i].short_of_memory;
	}
	/* a multicast may be lost, but not without a report */
	return wrong || (n_taken == n_sent && (casts_taken || told));
}

/* ---- what else is done ---- */

static int change(int node, ph_vp_t lo, ph_vp_t hi, bool come)
{
	struct vrange r = { lo, hi };
	struct ph_vps vps = { .n = 1, .r = &r };
	int error = (come ? mapping_assume : mapping_release)(s.nodes[node].ph, &vps);

	sim_touch(&s, node);
	check(error == 0 || error == PH_ENOMEM, "another error of a change of virtual nodes");
	return error;
}

static void must_change(int node, ph_vp_t lo, ph_vp_t hi, bool come)
{
	for (int i = 0; change(node, lo, hi, come); i++) {
		check(i < STEPS, "virtual nodes cannot be changed");
		if (wrong)
			return;
		sim_run(&s, s.now + STEP_US);
	}
}

static bool still(struct sim *sim)
{
	bool moving = false;

	for (int i = 0; i < NODES; i++)
		moving |= sim->nodes[i].ph->migration->result > 0 ||
			  sim->nodes[i].ph->migration->locked;
	return !moving;
}

static void unite(void *into, const void *from, size_t len)
{
	(void)len;
	*(unsigned *)into |= *(const unsigned *)from;
}

static struct reduction *asked[NODES];
static unsigned value[NODES];
static int result[NODES];

static void begin_reduction(int id)
{
	for (int i = 0; i < NODES; i++) {
		value[i] = 1u << i;
		asked[i] = reduce_begin(s.nodes[i].ph, 0, SPACE, id, sizeof value[i]);
		result[i] = asked[i] ? PH_EAGAIN : PH_ENOMEM;
		sim_touch(&s, i);
	}
}

static bool reduced(struct sim *sim)
{
	bool all = true;

	for (int i = 0; i < NODES; i++) {
		if (result[i] == PH_EAGAIN) {
			result[i] = reduce_poll(sim->nodes[i].ph, asked[i], value + i,
						sizeof value[i], unite);
			sim_touch(&s, i);
		}
		all &= result[i] != PH_EAGAIN;
	}
	return all;
}

static void give_up_reduction(void)
{
	for (int i = 0; i < NODES; i++) {
		if (result[i] == PH_EAGAIN)
			reduce_end(s.nodes[i].ph, asked[i]);
		check(result[i] || value[i] == (1u << NODES) - 1, "not all values");
	}
}

/* ---- a run ---- */

static void begin_all(void)
{
	memset(sent, 0, sizeof sent);
	memset(taken, 0, sizeof taken);
	memset(cast_taken, 0, sizeof cast_taken);
	n_sent = n_taken = casts = 0;
	wrong = NULL;
	sim_init(&s, 7, NODES, 0, SPACE);
	calls = 0;
	counting = true;
	for (int i = 1; i < NODES; i++)
		while (!sim_know(&s, i, 0))
			;
	for (int i = 0; i < NODES; i++)
		must_change(i, i * EACH, (i + 1) * EACH, true);
}

static void step(int n)
{
	for (int i = 0; i < NODES; i++)
		send_letter(i, (int)sim_random(&s, SPACE), n % 5 ? 8 : sizeof(struct letter));
	if (n % 10 == 2)
		must_change(1, 20, 22, false);
	if (n % 10 == 5)
		must_change(n % 4 ? 2 : 1, 20, 22, true);
	if (n % 10 == 8 && n % 4 == 0)
		must_change(2, 20, 22, false), must_change(1, 20, 22, true);
	if (n == 15)
		sim_cut(&s, 0, 0);
	if (n == 20)
		casts += collective_multicast(s.nodes[1].ph, 0, SPACE, CAST, "cast", 5) == 0;
	if (n % 3)
		for (int i = 0; i < NODES; i++)
			take_all(i);
	sim_run(&s, s.now + STEP_US);
}

static const char *play(unsigned long first, unsigned long last)
{
	first_bad = first;
	last_bad = last;
	begin_all();
	for (int n = 0; n < STEPS && !wrong; n++)
		step(n);
	begin_reduction(1);
	sim_until(&s, 300000, reduced);
	give_up_reduction();
	for (int i = 0; i < NODES; i++)
		migrate_begin(s.nodes[i].ph, WISH_HAND, 2, i ? -1 : 1);
	sim_run(&s, s.now + 300000);
	counting = false;
	check(sim_until(&s, SOON_US, all_taken), "not all came");
	check(sim_until(&s, SOON_US, still), "a migration stands still");
	sim_run(&s, s.now + 1000000);
	begin_reduction(2);
	check(sim_until(&s, SOON_US, reduced), "a reduction stands still");
	give_up_reduction();
	sim_free(&s);
	return wrong;
}

/* Tries nodes that have not even the memory to start. */
static unsigned long births(void)
{
	sim_init(&s, 7, 1, 0, SPACE);
	for (first_bad = last_bad = 1;; first_bad = ++last_bad) {
		calls = 0;
		counting = true;
		struct phnx *ph = node_new(s.nodes[0].ph->ops, s.nodes[0].ph->ctx, 0, SPACE);
		counting = false;
		if (ph)
			node_free(ph);
		if (calls < first_bad)
			break;
	}
	sim_free(&s);
	return calls;
}

int main(int argc, char **argv)
{
	unsigned long first = argc > 1 ? strtoul(argv[1], NULL, 0) : 1,
		      last = argc > 2 ? strtoul(argv[2], NULL, 0) : ULONG_MAX, bad = 0;

	printf("%lu allocations of a birth\n", births());
	for (unsigned long n = first; n <= last; n++) {
		for (int many = 0; many < 2; many++) {
			const char *what = play(n, n + (many ? 20 : 0));
			if (what)
				printf("allocations %lu to %lu: %s; %d of %d messages\n", n,
				       last_bad, what, n_taken, n_sent);
			bad += what != NULL;
		}
		if (calls < n)
			last = n;
	}
	printf("%lu allocations, %lu runs are wrong\n", last, bad);
	return bad != 0;
}
