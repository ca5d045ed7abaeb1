/* phnx_sim.c - the simulator's transport: events in a heap, ordered by virtual time. */
#include <assert.h>
#include <stdio.h>
#include <time.h>
#include "tests/sim/phnx_sim.h"

enum work { INPUT, POLL, KINDS };
enum event_kind { EV_DIAL, EV_BYTES, EV_EOF, EV_RESUME };
struct end {
	struct simnode *node;
	struct plink *l;		/* NULL: closed on this side */
	struct end *peer, *next_kicked;
	bool kicked, cut;
	uint64_t last_arrival;
	int refs;
};
struct event {
	struct event *next;
	uint64_t at;
	enum event_kind kind;
	struct end *end;		/* receiving side */
	unsigned char *bytes;
	size_t len;
	struct contact *contact;	/* EV_DIAL */
	int from, to;
	bool cancelled;
};

static struct place {	/* a place in the heap; the key of the comparison is in it */
	uint64_t at, order;
	struct event *event;
} *heap;
static unsigned n_heap, room_heap;
static uint64_t order;
static struct sim *the_sim;

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

static void push(struct event *e)
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

static void charge(struct simnode *node, uint64_t ns)
{
	if (node->busy_until < the_sim->now)
		node->busy_until = the_sim->now;
	node->busy_ns += ns;
	node->all_busy_ns += ns;
	node->busy_until += node->busy_ns / 1000;
	node->busy_ns %= 1000;
}

static uint64_t clock_ns(void)
{
	struct timespec t = { 0 };

	if (the_sim->cpu_costs)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Charges the node the typical time (a running median) that the library takes here for this kind of
 * work on so many bytes.  So other work on this computer makes no node late. */
static void charge_work(struct simnode *node, enum work kind, size_t bytes, uint64_t ns)
{
	static double typical[KINDS][64];
	double *t = &typical[kind][bytes ? 64 - __builtin_clzll(bytes) : 0];

	if (!the_sim->cpu_costs)
		return;
	*t = *t == 0 ? (double)ns : *t * ((double)ns > *t ? 17 : 15) / 16;
	charge(node, (uint64_t)*t);
}

/* An event of a busy node waits.  When the node is done, an EV_RESUME takes the first event. */
static void resume_later(struct simnode *node)
{
	struct event *ev = calloc(1, sizeof *ev);

	*ev = (struct event){ .at = node->busy_until > the_sim->now ? node->busy_until
								    : the_sim->now,
			      .kind = EV_RESUME,
			      .from = node->id };
	push(ev);
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

static void end_put(struct end *e)
{
	if (--e->refs == 0)
		free(e);
}

static uint64_t delay(struct sim *s)
{
	return s->delay_min + sim_random(s, s->delay_max - s->delay_min + 1);
}

static void to_peer(struct end *e, enum event_kind kind, unsigned char *bytes, size_t len)
{
	struct event *ev = calloc(1, sizeof *ev);

	uint64_t leaves = e->node->busy_until > the_sim->now ? e->node->busy_until : the_sim->now;
	*ev = (struct event){ .at = leaves + delay(the_sim),
			      .kind = kind,
			      .end = e->peer,
			      .bytes = bytes,
			      .len = len };
	if (ev->at < e->last_arrival)
		ev->at = e->last_arrival;	/* first in, first out */
	e->last_arrival = ev->at;
	e->peer->refs++;
	push(ev);
}

/* Takes everything out of a link's queue, as one packet. */
static void drain(struct end *e)
{
	size_t len = e->l ? e->l->out_bytes : 0, at = 0;

	e->kicked = false;
	if (!len)
		return;
	unsigned char *bytes = malloc(len);
	for (struct outframe *f = e->l->out; f; f = f->next) {
		memcpy(bytes + at, f->head, f->head_len);
		at += f->head_len;
		if (f->body && f->body->len) {
			memcpy(bytes + at, f->body->data, f->body->len);
			at += f->body->len;
		}
	}
	assert(at == len);
	charge(e->node, the_sim->packet_cost_ns + len * the_sim->kib_cost_ns / 1024);
	link_taken(e->l, len);
	to_peer(e, EV_BYTES, bytes, len);
}

static void drain_all(struct simnode *node)
{
	for (struct end *e; (e = node->kicked); end_put(e)) {
		node->kicked = e->next_kicked;
		drain(e);
	}
}

/* ---- the environment of a node ---- */

static uint64_t op_now(void *ctx)
{
	(void)ctx;
	return the_sim->now;
}

static void op_random(void *ctx, void *buf, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		((unsigned char *)buf)[i] = (unsigned char)sim_random(the_sim, 256);
}

static void op_dial(void *ctx, struct contact *c)
{
	struct simnode *node = ctx;
	struct event *ev = calloc(1, sizeof *ev);

	*ev = (struct event){ .at = the_sim->now + delay(the_sim),
			      .kind = EV_DIAL,
			      .contact = c,
			      .from = node->id,
			      .to = strncmp(c->at.host, "sim", 3) ? -1 : atoi(c->at.host + 3) };
	c->transport = ev;
	push(ev);
}

static void op_undial(void *ctx, struct contact *c)
{
	(void)ctx;
	if (c->transport)
		((struct event *)c->transport)->cancelled = true;
}

static void op_kick(void *ctx, struct plink *l)
{
	struct simnode *node = ctx;
	struct end *e = l->transport;

	if (e->kicked)
		return;
	e->kicked = true;
	e->refs++;
	e->next_kicked = NULL;
	*(node->kicked ? node->kicked_end : &node->kicked) = e;
	node->kicked_end = &e->next_kicked;
}

static void forget_end(struct simnode *node, struct end *e)
{
	for (unsigned i = 0; i < node->n_ends; i++)
		if (node->ends[i] == e)
			node->ends[i] = node->ends[--node->n_ends];
	struct end *peer = e->peer;
	e->l = NULL;
	end_put(e);
	end_put(peer);		/* the reference of this side */
}

static void op_close(void *ctx, struct plink *l)
{
	struct end *e = l->transport;

	drain(e);
	to_peer(e, EV_EOF, NULL, 0);
	forget_end(ctx, e);
}

static void op_report(void *ctx, int error, const char *text)
{
	struct simnode *node = ctx;

	node->errors++;
	node->last_error = error;
	node->short_of_memory |= error == PH_ENOMEM;
	if (getenv("SIM_VERBOSE"))
		printf("%llu node %d: %s\n", (unsigned long long)the_sim->now, node->id, text);
}

static void op_arrived(void *ctx)
{
	(void)ctx;
}

static const struct phnx_ops ops = { op_now,  op_random, op_dial,   op_undial,
				     op_kick, op_close,	 op_report, op_arrived };

/* ---- running ---- */

/* Returns whether the node settles later: a real node does what can wait after its application
 * has answered, or some milliseconds later.  One in two does so here. */
static bool settles_later(struct sim *s, struct simnode *node)
{
	enum { LATEST = 4000 };

	if (!s->tardy_us || !node_can_wait(node->ph) || sim_random(s, 2))
		return false;
	drain_all(node);
	uint64_t when = s->now + 1 + sim_random(s, LATEST);
	set_tick(s, node, when < node->tick_at || node->tick_at <= s->now ? when : node->tick_at);
	return true;
}

/* Settles a node once for everything that has arrived, as a real node does. */
static void settle(struct sim *s, struct simnode *node)
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
	uint64_t when = s->now, start = clock_ns();
	size_t bytes = 0;
	for (int again = 0; again < 100 && when <= s->now; again++)
		when = node_poll(node->ph);
	uint64_t took = clock_ns() - start;
	for (struct end *e = node->kicked; e; e = e->next_kicked)
		bytes += e->l ? e->l->out_bytes : 0;
	charge_work(node, POLL, bytes, took);
	drain_all(node);
	set_tick(s, node, when > s->now ? when : s->now + 100);
}

void sim_touch(struct sim *s, int node)
{
	settle(s, s->nodes + node);
}

static struct end *new_end(struct simnode *node)
{
	struct end *e = calloc(1, sizeof *e);

	*e = (struct end){ .node = node, .refs = 1 };
	if (node->n_ends == node->room_ends) {
		node->room_ends = node->room_ends ? 2 * node->room_ends : 8;
		node->ends = realloc(node->ends, node->room_ends * sizeof(*node->ends));
	}
	node->ends[node->n_ends++] = e;
	return e;
}

static bool may_connect(struct sim *s, int from, int to)
{
	return !s->nodes[to].dead && s->nodes[from].group == s->nodes[to].group &&
	       (!s->may_connect || s->may_connect(s, from, to));
}

static void lose_end(struct end *e)
{
	struct plink *l = e->l;

	if (!l)
		return;
	forget_end(e->node, e);
	link_lost(l);
}

static void drop_end(struct end *e)
{
	if (e->l)
		lose_end(e);
	else
		forget_end(e->node, e);
}

static void connected(struct sim *s, struct event *ev)
{
	struct simnode *a = s->nodes + ev->from, *b = s->nodes + ev->to;
	struct contact *c = ev->contact;

	c->transport = NULL;
	if (ev->to < 0 || ev->to >= s->n || !may_connect(s, ev->from, ev->to)) {
		charge(a, s->link_cost_ns / 2);
		contact_dial_failed(a->ph, c);
		settle(s, a);
		return;
	}
	struct end *x = new_end(a), *y = new_end(b);
	x->peer = y;
	y->peer = x;
	charge(a, s->link_cost_ns);
	charge(b, s->link_cost_ns);
	x->refs++;
	y->refs++;
	x->l = link_open(a->ph, x, c, NULL);
	y->l = link_open(b->ph, y, NULL, NULL);
	if (y->l)
		snprintf(y->l->from, sizeof y->l->from, "sim%d", a->id);
	if (!x->l || !y->l) {		/* one of them is leaving */
		bool refused = !x->l;
		x->cut = y->cut = true;
		drop_end(x);
		drop_end(y);
		if (refused)
			contact_dial_failed(a->ph, c);
	}
	settle(s, a);
	settle(s, b);
}

static void bytes_arrived(struct end *e, struct event *ev)
{
	struct simnode *node = e->node;
	size_t at = 0, room;

	while (at < ev->len && e->l) {
		unsigned char *to = link_space(e->l, &room);
		size_t n = room < ev->len - at ? room : ev->len - at;
		memcpy(to, ev->bytes + at, n);
		at += n;
		if (at == n)
			charge(node, the_sim->packet_cost_ns);
		charge(node, n * the_sim->kib_cost_ns / 1024);
		uint64_t start = clock_ns();
		int closed = link_input(e->l, n);
		charge_work(node, INPUT, n, clock_ns() - start);
		if (closed)
			break;
	}
}

static void happen(struct sim *s, struct event *ev)
{
	struct end *e = ev->end;

	if (ev->kind == EV_DIAL) {
		if (!ev->cancelled)
			connected(s, ev);
	} else {
		struct simnode *node = e->node;
		if (e->l && !e->cut) {
			if (ev->kind == EV_BYTES)
				bytes_arrived(e, ev);
			else
				lose_end(e);
			settle(s, node);
		}
		end_put(e);
	}
	free(ev->bytes);
	free(ev);
}

static void resume(struct sim *s, struct simnode *node)
{
	struct event *ev = node->busy_until <= s->now ? node->waiting : NULL;

	if (ev) {
		node->waiting = ev->next;
		happen(s, ev);
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
		happen(s, ev);
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
		settle(s, s->timers[0]);
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

/* ---- interference ---- */

static void cut_end(struct sim *s, struct end *e)
{
	struct end *peer = e->peer;
	struct simnode *a = e->node, *b = peer->node;

	e->cut = peer->cut = true;
	e->refs++;
	peer->refs++;
	lose_end(e);
	lose_end(peer);
	end_put(e);
	end_put(peer);
	settle(s, a);
	settle(s, b);
}

void sim_cut(struct sim *s, int node, unsigned k)
{
	if (s->nodes[node].n_ends)
		cut_end(s, s->nodes[node].ends[k % s->nodes[node].n_ends]);
}

int sim_peer(const struct sim *s, int node, unsigned k)
{
	return s->nodes[node].ends[k]->peer->node->id;
}

void sim_cut_groups(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->nodes[i].n_ends; k++)
			if (s->nodes[i].ends[k]->peer->node->group != s->nodes[i].group) {
				cut_end(s, s->nodes[i].ends[k]);
				k = UINT32_MAX;		/* the list has changed: begin anew */
			}
}

void sim_kill(struct sim *s, int node)
{
	struct simnode *n = s->nodes + node;

	n->dead = true;
	set_tick(s, n, UINT64_MAX);
	while (n->n_ends)
		cut_end(s, n->ends[0]);
	drain_all(n);		/* frames that lead nowhere */
	node_free(n->ph);
	n->ph = NULL;
}

static void start(struct sim *s, int i, ph_vp_t lower, ph_vp_t upper)
{
	struct simnode *n = s->nodes + i;

	n->dead = false;
	n->ph = node_new(&ops, n, lower, upper);
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

static void event_free(struct event *ev)
{
	if (ev->end)
		end_put(ev->end);
	free(ev->bytes);
	free(ev);
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
		event_free(pop());
	for (int i = 0; i < s->n; i++) {
		for (struct event *ev = s->nodes[i].waiting, *next; ev; ev = next) {
			next = ev->next;
			event_free(ev);
		}
		free(s->nodes[i].ends);
	}
	free(s->nodes);
	free(s->timers);
	free(heap);
	heap = NULL;
	n_heap = room_heap = 0;
}
