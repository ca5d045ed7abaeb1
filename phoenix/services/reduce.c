/* reduce.c - values combined over a range of virtual nodes, on their way.
 *
 * The holder of the range's first virtual node asks (TAG_GATHER) along the tree of collective.c.  A
 * node that is asked for a set of virtual nodes asks its branches for those that it does not assume
 * itself, waits until they have answered and its own application has called, combines everything
 * into one value, and answers (TAG_VALUE).  The result goes back the same way (TAG_RESULT) to all
 * nodes whose values are in it.
 *
 * Virtual nodes may move meanwhile.  A node's value counts for what it assumed when its application
 * called.  At the top these counts must add up to the whole range.  If they do not, virtual nodes
 * have moved between the call and the question: then all nodes get PH_EBUSY and call again.  So
 * does a node that has released everything before it was asked.
 *
 * The first virtual node may move as well.  A node that assumes it and waits in vain to be asked
 * begins an attempt of its own, so there may be two attempts.  A node whose value has gone into one
 * attempt refuses the other (PH_EBUSY).  A node that gives an attempt up tells the same to those
 * who have answered it, now or later.  So at most one attempt gets all values, and the nodes of the
 * other call again.
 *
 * A node may wait for a call that never comes, because its caller was part of another attempt, or
 * for branches that wait for one.  So it asks now and then whether its answer is still wanted, with
 * an answer for no virtual nodes.
 */
#include "phoenix/services/services_private.h"

struct answer {			/* a node that has answered a question */
	ph_vp_t node;
	uint64_t id;		/* of that node's own question */
};
struct value {
	struct value *next;
	size_t len;
	unsigned char data[];
};
struct gather {			/* a question that this node was asked */
	struct gather *next;
	uint64_t id;
	ph_vp_t lo, hi, parent;	/* parent: the node that asked; at the top this node itself */
	uint64_t parent_id;
	/* the attempt: the node that began it, and the number of its question there */
	ph_vp_t top;
	uint64_t top_id;
	int tag, error;
	/* virtual nodes asked about; of these, those whose branches have not answered */
	uint64_t weight, missing;
	uint64_t counted;	/* for how many of them the values speak */
	bool own;		/* this node assumes some of them */
	bool answered;
	struct reduction *by;	/* the call that has taken it */
	struct value *values;
	struct answer *answers;
	unsigned n_answers;
	/* when to ask whether the answer is still wanted, and the wait before */
	uint64_t doubt_us, patience_us;
};
struct reduction {		/* a call that waits */
	struct reduction *next;
	ph_vp_t lo, hi;
	int id;
	struct ph_vps mine;	/* what this node assumed of the range when it was called */
	uint64_t weight;
	size_t len;
	struct gather *gather;
	uint64_t begun_us;	/* when it was called, or last began to ask */
	bool done;
	int error;
	unsigned char *result;
	size_t result_len;
};

static uint64_t weight_of(const struct ph_vps *set)
{
	uint64_t w = 0;

	for (size_t i = 0; i < set->n; i++)
		w += (uint64_t)(set->r[i].hi - set->r[i].lo);
	return w;
}

/* ---- questions ---- */

static struct gather *gather_find(struct phnx *ph, uint64_t id)
{
	struct gather *g = ph->collectives->gathers;

	while (g && g->id != id)
		g = g->next;
	return g;
}

static void drop_value(struct phnx *ph, struct gather *g)
{
	struct value *v = g->values;

	g->values = v->next;
	ph->collectives->value_bytes -= sizeof *v + v->len;
	free(v);
}

static void drop_values(struct phnx *ph, struct gather *g)
{
	while (g->values)
		drop_value(ph, g);
}

static void gather_free(struct phnx *ph, struct gather *g)
{
	struct gather **at = &ph->collectives->gathers;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	ph->collectives->n_gathers--;
	if (g->by)
		g->by->gather = NULL;
	drop_values(ph, g);
	free(g->answers);
	free(g);
}

/* Adds a value.  Returns 0 or an error. */
static int add_value(struct phnx *ph, struct gather *g, const void *data, size_t len)
{
	struct value *v;

	if (ph->collectives->value_bytes + len > MAX_VALUE_BYTES)
		return PH_ETOOBIG;
	if (!(v = malloc(sizeof *v + len)))
		return PH_ENOMEM;
	ph->collectives->value_bytes += sizeof *v + len;
	v->next = g->values;
	v->len = len;
	if (len)
		memcpy(v->data, data, len);
	g->values = v;
	return 0;
}

static void ask(struct phnx *ph, ph_vp_t to, const struct ph_vps *set, void *arg)
{
	const struct gather *g = arg;
	struct writer w = { 0 };

	put64(&w, g->id);
	put64(&w, (uint64_t)g->top);
	put64(&w, g->top_id);
	put64(&w, (uint64_t)g->lo);
	put64(&w, (uint64_t)g->hi);
	put32(&w, (uint32_t)g->tag);
	collective_put_set(&w, set);
	flow_send_internal(ph, to, TAG_GATHER, &w, 0);
}

static void put_answer(struct writer *w, const struct gather *g, uint64_t weight, uint64_t counted,
		       int error, uint64_t n_values)
{
	put64(w, g->parent_id);
	put64(w, g->id);
	put64(w, weight);
	put64(w, counted);
	put8(w, (uint8_t)-error);
	put_var(w, n_values);
}

static void answer(struct phnx *ph, struct gather *g)
{
	struct writer w = { 0 };
	uint64_t n = 0;

	for (struct value *v = g->values; v; v = v->next)
		n++;
	g->answered = true;
	put_answer(&w, g, g->weight, g->counted, g->error, n);
	for (struct value *v = g->values; v; v = v->next) {
		put32(&w, (uint32_t)v->len);
		put_bytes(&w, v->data, v->len);
	}
	flow_send_internal(ph, g->parent, TAG_VALUE, &w, 0);
}

static void tell(struct phnx *ph, struct gather *g, int error, const void *value, size_t len);

/* Returns the call that a question is for: one that has no question yet. */
static struct reduction *unasked(struct phnx *ph, const struct gather *g)
{
	struct reduction *r = ph->collectives->list;

	while (r && (r->lo != g->lo || r->hi != g->hi || r->id != g->tag || r->gather || r->done))
		r = r->next;
	return r;
}

/* Does what can be done about a question without the application's function. */
static void advance(struct phnx *ph, struct gather *g)
{
	if (g->own && !g->by && (g->by = unasked(ph, g)))
		g->by->gather = g;
	if (!g->own && !g->missing && !g->answered)
		answer(ph, g);
	ph->ops->arrived(ph->ctx);	/* a waiting call may go on */
}

static bool is_top(const struct phnx *ph, const struct gather *g)
{
	return g->parent == ph->name && !g->parent_id;
}

/* Another attempt has come: gives this one up.  A call that waits here is free for the other
 * one. */
static void give_up(struct phnx *ph, struct gather *g)
{
	if (g->by)
		g->by->gather = NULL;
	g->by = NULL;
	g->error = PH_EBUSY;
	if (!is_top(ph, g))
		answer(ph, g);
	tell(ph, g, PH_EBUSY, NULL, 0);
}

/* Returns whether this node's value is to go into g: once into each attempt, and into one
 * attempt alone. */
static bool takes_part(struct phnx *ph, struct gather *g)
{
	struct gather *o = ph->collectives->gathers, *next;
	bool part = true;

	for (; o; o = next) {
		next = o->next;
		if (o == g || !o->own || o->lo != g->lo || o->hi != g->hi || o->tag != g->tag)
			continue;
		if (o->top == g->top && o->top_id == g->top_id) {
			part = false;
		} else if (!o->answered) {
			give_up(ph, o);
		} else {
			part = false;
			g->error = PH_EBUSY;
		}
	}
	return part;
}

static void on_gather(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	struct gather *g =
		ph->collectives->n_gathers < MAX_REDUCTIONS ? calloc(1, sizeof *g) : NULL;
	struct ph_vps set;

	if (!g)
		return;
	*g = (struct gather){ .next = ph->collectives->gathers,
			      .id = ++ph->collectives->counter,
			      .parent = from,
			      .parent_id = get64(r),
			      .doubt_us = core_now(ph) + REDUCE_DOUBT,
			      .patience_us = REDUCE_DOUBT };
	g->top = (ph_vp_t)get64(r);
	g->top_id = get64(r);
	if (is_top(ph, g)) {
		g->top = ph->name;
		g->top_id = g->id;
	}
	g->lo = (ph_vp_t)get64(r);
	g->hi = (ph_vp_t)get64(r);
	g->tag = (int)get32(r);
	if (!collective_get_set(ph, r, &set)) {
		free(g);
		return;
	}
	ph->collectives->gathers = g;
	ph->collectives->n_gathers++;
	ph_vps_t here = ph_vps_create_inter(&set, &ph->me.vps),
		 rest = ph_vps_create_diff(&set, &ph->me.vps);
	g->weight = weight_of(&set);
	g->missing = rest ? weight_of(rest) : g->weight;
	g->own = here && here->n && takes_part(ph, g);
	if (rest)
		collective_share(ph, rest, ask, g);
	ph_vps_destroy(here);
	ph_vps_destroy(rest);
	free(set.r);
	advance(ph, g);
}

/* ---- the result ---- */

static void send_result(struct phnx *ph, const struct answer *to, int error, const void *value,
			size_t len)
{
	struct writer w = { 0 };

	put64(&w, to->id);
	put8(&w, (uint8_t)-error);
	put_bytes(&w, value, len);
	flow_send_internal(ph, to->node, TAG_RESULT, &w, 0);
}

static void tell(struct phnx *ph, struct gather *g, int error, const void *value, size_t len)
{
	for (unsigned i = 0; i < g->n_answers; i++)
		send_result(ph, g->answers + i, error, value, len);
	struct reduction *by = g->by;
	gather_free(ph, g);
	if (!by)
		return;
	by->result = malloc(len + 1);
	by->error = by->result ? error : PH_ENOMEM;
	if (by->result && len)
		memcpy(by->result, value, len);
	by->result_len = len;
	by->done = true;
	ph->ops->arrived(ph->ctx);
}

static void on_value(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	struct gather *g = gather_find(ph, get64(r));
	uint64_t id = get64(r), weight = get64(r), counted = get64(r);
	int error = -(int)get8(r);
	uint64_t n = get_var(r);
	if (!g && !r->bad)		/* it was given up */
		send_result(ph, &(struct answer){ from, id }, PH_EBUSY, NULL, 0);
	if (g && (!weight || !g->missing || g->n_answers == MAX_ANSWERS))
		return;			/* it is still wanted; or nobody was asked */
	struct answer *more =
		g && !r->bad ? realloc(g->answers, (g->n_answers + 1) * sizeof *more) : NULL;

	if (!more)
		return;
	g->answers = more;
	g->answers[g->n_answers++] = (struct answer){ from, id };
	for (; n && !error; n--) {
		size_t len = get32(r);
		error = r->bad || len > (size_t)(r->end - r->p) ? PH_EINVAL
								: add_value(ph, g, r->p, len);
		r->p += error ? 0 : len;
	}
	if (error)			/* nobody will want the other values */
		drop_values(ph, g);
	g->missing -= weight < g->missing ? weight : g->missing;
	g->counted += counted;
	g->error = g->error ? g->error : error;
	advance(ph, g);
}

static void on_result(struct phnx *ph, struct reader *r)
{
	struct gather *g = gather_find(ph, get64(r));
	int error = -(int)get8(r);

	if (g && !r->bad)
		tell(ph, g, error, r->p, (size_t)(r->end - r->p));
}

static void ask_whether_wanted(struct phnx *ph, const struct gather *g)
{
	struct writer w = { 0 };

	put_answer(&w, g, 0, 0, 0, 0);
	flow_send_internal(ph, g->parent, TAG_VALUE, &w, 0);
}

/* The answer to the first question is for the call that asked, and so it is wanted. */
static bool may_be_unwanted(const struct phnx *ph, const struct gather *g)
{
	return !g->answered && !(is_top(ph, g) && g->by);
}

void reduce_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	for (struct gather *g = ph->collectives->gathers; g;) {
		bool doubtful = may_be_unwanted(ph, g);
		if (doubtful && now >= g->doubt_us) {
			g->patience_us *= g->patience_us < REDUCE_DOUBT_MAX ? 2 : 1;
			g->doubt_us = now + g->patience_us;
			ask_whether_wanted(ph, g);
			/* the answer may have come at once and freed this one */
			g = ph->collectives->gathers;
			continue;
		}
		if (doubtful && g->doubt_us < *next)
			*next = g->doubt_us;
		g = g->next;
	}
}

void reduce_on_message(struct phnx *ph, const struct rmsg *m)
{
	const unsigned char *body = m->pub.body;
	struct reader r = { body, body + m->pub.len, false };

	if (m->pub.tag == TAG_GATHER)
		on_gather(ph, m->source, &r);
	else if (m->pub.tag == TAG_VALUE)
		on_value(ph, m->source, &r);
	else if (m->pub.tag == TAG_RESULT)
		on_result(ph, &r);
}

/* ---- a call ---- */

/* The node that assumes the first virtual node asks itself. */
static void begin_at_top(struct phnx *ph, struct reduction *r)
{
	struct gather top = { .lo = r->lo, .hi = r->hi, .tag = r->id };
	struct vrange range = { r->lo, r->hi };

	if (r->gather || r->done || !ph_vps_is_member(&ph->me.vps, r->lo))
		return;
	r->begun_us = core_now(ph);
	ask(ph, ph->name, &(struct ph_vps){ .n = 1, .r = &range }, &top);
}

struct reduction *reduce_begin(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int id, size_t len)
{
	struct vrange range = { lo, hi };
	ph_vps_t here = ph_vps_create_inter(&(struct ph_vps){ .n = 1, .r = &range }, &ph->me.vps);
	struct reduction *r = here && here->n ? calloc(1, sizeof *r) : NULL;

	if (!r) {
		ph_vps_destroy(here);
		return NULL;
	}
	*r = (struct reduction){ .next = ph->collectives->list,
				 .lo = lo,
				 .hi = hi,
				 .id = id,
				 .mine = *here,
				 .weight = weight_of(here),
				 .begun_us = core_now(ph),
				 .len = len };
	free(here);
	ph->collectives->list = r;
	for (struct gather *g = ph->collectives->gathers; g && !r->gather; g = g->next)
		if (g->own && !g->by && !g->answered && unasked(ph, g) == r)
			advance(ph, g);
	begin_at_top(ph, r);
	return r;
}

void reduce_end(struct phnx *ph, struct reduction *r)
{
	struct reduction **at = &ph->collectives->list;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (r->gather)
		gather_free(ph, r->gather);
	free(r->mine.r);
	free(r->result);
	free(r);
}

/* Combines everything that was asked for into one value. */
static int fold(struct phnx *ph, struct gather *g, struct reduction *r, void *value,
		ph_combine_fn combine)
{
	int error = 0;

	for (const struct value *v; (v = g->values); drop_value(ph, g)) {
		if (v->len != r->len)
			error = PH_EINVAL;
		else if (r->len && combine)
			combine(value, v->data, v->len);
	}
	g->counted += r->weight;
	return error ? error : add_value(ph, g, value, r->len);
}

static void pass_on(struct phnx *ph, struct reduction *r, void *value, ph_combine_fn combine)
{
	struct gather *g = r->gather;
	int error = fold(ph, g, r, value, combine);

	g->error = g->error ? g->error : error;
	if (!is_top(ph, g))
		answer(ph, g);
	else
		tell(ph, g,
		     g->error		       ? g->error
		     : g->counted != g->weight ? PH_EBUSY
					       : 0,
		     value, r->len);
}

int reduce_poll(struct phnx *ph, struct reduction *r, void *value, size_t len,
		ph_combine_fn combine)
{
	if (r->gather && !r->gather->missing && !r->gather->answered)
		pass_on(ph, r, value, combine);
	else if (core_now(ph) >= r->begun_us + REDUCE_AGAIN)
		begin_at_top(ph, r);
	int error = r->done ? r->error : PH_EAGAIN;
	if (!r->done && !r->gather && ph_vps_is_exclusive(&r->mine, &ph->me.vps))
		/* other nodes assume all of it now, and nobody had asked before */
		error = PH_EBUSY;
	if (error == PH_EAGAIN)
		return error;
	if (!error && r->result_len != len)
		error = PH_EINVAL;
	if (!error && len)
		memcpy(value, r->result, len);
	reduce_end(ph, r);
	return error;
}

void reduce_free(struct phnx *ph)
{
	while (ph->collectives->list)
		reduce_end(ph, ph->collectives->list);
	while (ph->collectives->gathers)
		gather_free(ph, ph->collectives->gathers);
}
