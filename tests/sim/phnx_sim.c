/* phnx_sim.c - the simulator of Phoenix nodes: events in a heap, ordered by virtual time; when a
 * node may run; nodes that start and end.  Their links are in phnx_sim_links.c. */
#include <stdio.h>
#include <time.h>
#include "tests/sim/phnx_sim_private.h"

static struct place {	/* a place in the heap; the key of the comparison is in it */
	uint64_t at, order;
	struct event *event;
} *heap;
static unsigned n_heap, room_heap;
static uint64_t order;
struct sim *the_sim;

/* ---- random numbers, and the heap ---- */

uint64_t sim_random(struct sim *s, uint64_t below)
{
	s->rng += 0x9e3779b97f4a7c15ULL;
	uint64_t x = s->rng;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return below ? x % below : x;
}

static bool before(const struct place *a, const struct place *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_push(struct event *e)
{
	if (n_heap == room_heap) {
		room_heap = room_heap ? 2 * room_heap : 1024;
		heap = realloc(heap, room_heap * sizeof *heap);
	}
	struct place p = { e->at, order++, e };
	unsigned i = n_heap++;
	for (; i && before(&p, heap + (i - 1) / 2); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = p;
}

static struct event *pop(void)
{
	struct event *top = heap[0].event;
	struct place last = heap[--n_heap];
	unsigned i = 0;

	for (unsigned child; (child = 2 * i + 1) < n_heap; i = child) {
		if (child + 1 < n_heap && before(heap + child + 1, heap + child))
			child++;
		if (!before(heap + child, &last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return top;
}

/* ---- the next timer: the nodes in a heap of their own; each knows its place ---- */

static void place(struct sim *s, int at, struct simnode *node)
{
	s->timers[at] = node;
	node->place = at;
}

static void set_tick(struct sim *s, struct simnode *node, uint64_t when)
{
	int i = node->place;

	node->tick_at = when;
	for (; i && when < s->timers[(i - 1) / 2]->tick_at; i = (i - 1) / 2)
		place(s, i, s->timers[(i - 1) / 2]);
	for (int child; (child = 2 * i + 1) < s->n; i = child) {
		if (child + 1 < s->n && s->timers[child + 1]->tick_at < s->timers[child]->tick_at)
			child++;
		if (when <= s->timers[child]->tick_at)
			break;
		place(s, i, s->timers[child]);
	}
	place(s, i, node);
}

/* ---- when a node may run, and what its work costs ---- */

/* Returns when a node may run: now, unless nodes share a processor. */
static uint64_t its_turn(const struct sim *s, const struct simnode *node)
{
	uint64_t place = s->turn_us * (uint64_t)node->id / (uint64_t)s->n;

	return s->turn_us ? s->now + (place + s->turn_us - s->now % s->turn_us) % s->turn_us
			  : s->now;
}

void sim_charge(struct simnode *node, uint64_t ns)
{
	if (node->busy_until < the_sim->now)
		node->busy_until = the_sim->now;
	node->busy_ns += ns;
	node->all_busy_ns += ns;
	node->busy_until += node->busy_ns / 1000;
	node->busy_ns %= 1000;
}

uint64_t sim_clock_ns(void)
{
	struct timespec t = { 0 };

	if (the_sim->cpu_costs)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void sim_charge_work(struct simnode *node, enum work kind, size_t bytes, uint64_t ns)
{
	static double typical[KINDS][64];
	double *t = &typical[kind][bytes ? 64 - __builtin_clzll(bytes) : 0];

	if (!the_sim->cpu_costs)
		return;
	*t = *t == 0 ? (double)ns : *t * ((double)ns > *t ? 17 : 15) / 16;
	sim_charge(node, (uint64_t)*t);
}

/* An event of a busy node waits.  When the node is done, an EV_RESUME takes the first event. */
static void resume_later(struct simnode *node)
{
	struct event *ev = calloc(1, sizeof *ev);

	*ev = (struct event){ .at = node->busy_until > the_sim->now ? node->busy_until
								    : the_sim->now,
			      .kind = EV_RESUME,
			      .from = node->id };
	sim_push(ev);
}

static bool postponed(struct simnode *node, struct event *ev)
{
	uint64_t turn = its_turn(the_sim, node);

	if (node->busy_until < turn)
		node->busy_until = turn;
	if (!node->waiting && node->busy_until <= the_sim->now)
		return false;
	if (!node->waiting) {
		node->waiting_end = &node->waiting;
		resume_later(node);
	}
	ev->next = NULL;
	*node->waiting_end = ev;
	node->waiting_end = &ev->next;
	return true;
}

/* ---- running ---- */

/* Returns whether the node settles later: a real node does what can wait after its application
 * has answered, or some milliseconds later.  One in two does so here. */
static bool settles_later(struct sim *s, struct simnode *node)
{
	enum { LATEST = 4000 };

	if (!s->tardy_us || !node_can_wait(node->ph) || sim_random(s, 2))
		return false;
	links_drain(node);
	uint64_t when = s->now + 1 + sim_random(s, LATEST);
	set_tick(s, node, when < node->tick_at || node->tick_at <= s->now ? when : node->tick_at);
	return true;
}

void sim_settle(struct sim *s, struct simnode *node)
{
	enum { MOST_TOGETHER = 256 };

	if (node->dead || (node->waiting && ++node->unsettled < MOST_TOGETHER))
		return;
	if (its_turn(s, node) > s->now) {
		set_tick(s, node, its_turn(s, node));
		return;
	}
	node->unsettled = 0;
	if (settles_later(s, node))
		return;
	uint64_t when = s->now, start = sim_clock_ns();
	size_t bytes = 0;
	for (int again = 0; again < 100 && when <= s->now; again++)
		when = node_poll(node->ph);
	uint64_t took = sim_clock_ns() - start;
	for (struct end *e = node->kicked; e; e = e->next_kicked)
		bytes += e->l ? e->l->out_bytes : 0;
	sim_charge_work(node, POLL, bytes, took);
	links_drain(node);
	set_tick(s, node, when > s->now ? when : s->now + 100);
}

void sim_touch(struct sim *s, int node)
{
	sim_settle(s, s->nodes + node);
}

static void resume(struct sim *s, struct simnode *node)
{
	struct event *ev = node->busy_until <= s->now ? node->waiting : NULL;

	if (ev) {
		node->waiting = ev->next;
		links_happen(s, ev);
	}
	if (node->waiting)
		resume_later(node);
}

static void handle(struct sim *s, struct event *ev)
{
	s->events++;
	if (ev->kind == EV_RESUME) {
		resume(s, s->nodes + ev->from);
		free(ev);
	} else if (!postponed(ev->end ? ev->end->node : s->nodes + ev->from, ev)) {
		links_happen(s, ev);
	}
}

static bool step(struct sim *s, uint64_t until)
{
	uint64_t next_event = n_heap ? heap[0].at : UINT64_MAX, next_tick = s->timers[0]->tick_at;
	uint64_t next = next_event < next_tick ? next_event : next_tick;
	if (next > until) {
		s->now = until;
		return false;
	}
	s->now = next > s->now ? next : s->now;
	if (next_event <= next_tick)
		handle(s, pop());
	else
		sim_settle(s, s->timers[0]);
	return true;
}

void sim_run(struct sim *s, uint64_t until_us)
{
	while (step(s, until_us))
		;
}

bool sim_until(struct sim *s, uint64_t limit_us, bool (*check)(struct sim *s))
{
	uint64_t limit = s->now + limit_us;

	for (;;) {
		if (check(s))
			return true;
		if (s->now >= limit)
			return false;
		sim_run(s, s->now + 5000 < limit ? s->now + 5000 : limit);
	}
}

/* ---- nodes that start and end ---- */

void sim_kill(struct sim *s, int node)
{
	struct simnode *n = s->nodes + node;

	n->dead = true;
	set_tick(s, n, UINT64_MAX);
	links_cut_all(s, n);
	links_drain(n);		/* frames that lead nowhere */
	node_free(n->ph);
	n->ph = NULL;
}

static void start(struct sim *s, int i, ph_vp_t lower, ph_vp_t upper)
{
	struct simnode *n = s->nodes + i;

	n->dead = false;
	n->ph = node_new(&links_ops, n, lower, upper);
	n->ph->routes->tardy_us = s->tardy_us;
	snprintf(n->ph->me.addrs[0].host, sizeof n->ph->me.addrs[0].host, "sim%d", i);
	n->ph->me.addrs[0].port = 1;
	n->ph->me.n_addrs = 1;
	route_self_changed(n->ph);
	set_tick(s, n, s->now);
}

void sim_restart(struct sim *s, int node)
{
	const struct phnx *any = s->nodes[node ? 0 : 1].ph;

	start(s, node, any->lower, any->upper);
}

void sim_tardy(struct sim *s, uint64_t us)
{
	s->tardy_us = us;
	for (int i = 0; i < s->n; i++)
		if (!s->nodes[i].dead)
			s->nodes[i].ph->routes->tardy_us = us;
}

bool sim_know(struct sim *s, int a, int b)
{
	char host[32];
	struct phnx_contact at = { .host = host, .port = 1 };

	snprintf(host, sizeof host, "sim%d", b);
	set_tick(s, s->nodes + a, s->now);
	return contact_add(s->nodes[a].ph, &at, 0) != NULL;
}

void sim_init(struct sim *s, uint64_t seed, int n, ph_vp_t lower, ph_vp_t upper)
{
	*s = (struct sim){ .seed = seed,
			   .rng = seed,
			   .n = n,
			   .delay_min = 50,
			   .delay_max = 500,
			   .now = 1000000 };
	the_sim = s;
	s->nodes = calloc((size_t)n, sizeof *s->nodes);
	s->timers = calloc((size_t)n, sizeof(*s->timers));
	for (int i = 0; i < n; i++) {
		s->nodes[i].id = i;
		place(s, i, s->nodes + i);
	}
	for (int i = 0; i < n; i++) {
		start(s, i, lower, upper);
	}
}

void sim_free(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		/* no node is to tell the others of any node's end: that would be n^3 messages */
		s->nodes[i].dead = true;
	for (int i = 0; i < s->n; i++)
		if (s->nodes[i].ph)
			sim_kill(s, i);
	while (n_heap)
		links_forget(pop());
	for (int i = 0; i < s->n; i++) {
		for (struct event *ev = s->nodes[i].waiting, *next; ev; ev = next) {
			next = ev->next;
			links_forget(ev);
		}
		free(s->nodes[i].ends);
	}
	free(s->nodes);
	free(s->timers);
	free(heap);
	heap = NULL;
	n_heap = room_heap = 0;
}
