/* phnx_sim_links.c - the links of the simulator's nodes: bytes and breaks that arrive later, and
 * what the library is given in place of a transport. */
#include <assert.h>
#include <stdio.h>
#include "tests/sim/phnx_sim_private.h"

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
	sim_push(ev);
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
	sim_charge(e->node, the_sim->packet_cost_ns + len * the_sim->kib_cost_ns / 1024);
	link_taken(e->l, len);
	to_peer(e, EV_BYTES, bytes, len);
}

void links_drain(struct simnode *node)
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
	sim_push(ev);
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

const struct phnx_ops links_ops = { op_now,  op_random, op_dial,   op_undial,
					   op_kick, op_close,  op_report, op_arrived };

/* ---- what arrives ---- */

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
		sim_charge(a, s->link_cost_ns / 2);
		contact_dial_failed(a->ph, c);
		sim_settle(s, a);
		return;
	}
	struct end *x = new_end(a), *y = new_end(b);
	x->peer = y;
	y->peer = x;
	sim_charge(a, s->link_cost_ns);
	sim_charge(b, s->link_cost_ns);
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
	sim_settle(s, a);
	sim_settle(s, b);
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
			sim_charge(node, the_sim->packet_cost_ns);
		sim_charge(node, n * the_sim->kib_cost_ns / 1024);
		uint64_t start = sim_clock_ns();
		int closed = link_input(e->l, n);
		sim_charge_work(node, INPUT, n, sim_clock_ns() - start);
		if (closed)
			break;
	}
}

void links_happen(struct sim *s, struct event *ev)
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
			sim_settle(s, node);
		}
		end_put(e);
	}
	free(ev->bytes);
	free(ev);
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
	sim_settle(s, a);
	sim_settle(s, b);
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

void links_cut_all(struct sim *s, struct simnode *node)
{
	while (node->n_ends)
		cut_end(s, node->ends[0]);
}

void links_forget(struct event *ev)
{
	if (ev->end)
		end_put(ev->end);
	free(ev->bytes);
	free(ev);
}
