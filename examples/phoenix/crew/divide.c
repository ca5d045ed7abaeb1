/* divide.c - the stack, stealing, syncs. */
#include <string.h>
#include "examples/phoenix/crew/divide.h"

enum { SPACE = 4096, MAX_DEPTH = 64, STEAL_EVERY_US = 2000, STEAL_WAIT_US = 100000 };
enum { TAG_STEAL = DIVIDE_TAGS, TAG_TASK, TAG_RESULT };

struct name {	/* names a place where a result is awaited; id 0 at virtual node 0: the end */
	ph_vp_t vp;
	uint64_t id;
};
struct task {
	uint64_t lo, hi;
	struct name reply;
};
struct result {
	struct name to;
	uint64_t sums[DIVIDE_SUMS];
	/* from the run itself: how many tasks were stolen from it; from one of these: -1 */
	long tasks;
};
struct sync {
	struct sync *next;
	struct name name, reply;
	uint64_t sums[DIVIDE_SUMS];
	/* results of stolen tasks; announced is -1 until the run has ended */
	long received, announced;
};
struct waiting {
	struct waiting *next;
	struct task task;
};
static const struct divide *divide;
static struct sync *syncs;
static struct waiting *queue;
static struct {			/* the task that this process works on */
	bool active;
	struct name reply, sync;	/* sync.id 0: nobody has stolen from it yet */
	long stolen;
	unsigned n;		/* > 0: it is active */
	struct { uint64_t lo, hi; } stack[MAX_DEPTH];	/* the oldest first */
	uint64_t sums[DIVIDE_SUMS];
} run;

/* ---- names ---- */

static ph_vp_t somewhere_here(void)
{
	return crew.lo + (ph_vp_t)(crew_random() % (uint64_t)(crew.hi - crew.lo));
}

/* Returns a random virtual node that is not here, or PH_INVALID_VP if all are. */
static ph_vp_t somewhere_else(void)
{
	ph_vp_t others = SPACE - (crew.hi - crew.lo);

	if (others == 0)
		return PH_INVALID_VP;
	ph_vp_t v = (ph_vp_t)(crew_random() % (uint64_t)others);
	return v < crew.lo ? v : v + (crew.hi - crew.lo);
}

static void name_the_run(void)
{
	struct sync *s = allocate(sizeof *s);

	*s = (struct sync){ .next = syncs,
			    .name = { somewhere_here(), crew_random() },
			    .reply = run.reply,
			    .announced = -1 };
	syncs = s;
	run.sync = s->name;
}

static void add(uint64_t to[DIVIDE_SUMS], const uint64_t from[DIVIDE_SUMS])
{
	for (int i = 0; i < DIVIDE_SUMS; i++)
		to[i] += from[i];
}

/* ---- the queue of tasks that wait here ---- */

static void push(const struct task *t)
{
	struct waiting *w = allocate(sizeof *w);

	w->task = *t;
	w->next = queue;
	queue = w;
}

static bool pop(struct task *t)
{
	struct waiting *w = queue;

	if (!w)
		return false;
	*t = w->task;
	queue = w->next;
	free(w);
	return true;
}

/* ---- work ---- */

static void end_run(void)
{
	struct result r = { .to = run.sync.id ? run.sync : run.reply,
			    .tasks = run.sync.id ? run.stolen : -1 };

	memcpy(r.sums, run.sums, sizeof r.sums);
	crew_post(r.to.vp, &r, sizeof r, TAG_RESULT, 0);
	memset(&run, 0, sizeof run);
}

static void start_run(const struct task *t)
{
	run.active = true;
	run.reply = t->reply;
	run.stack[0].lo = t->lo;
	run.stack[0].hi = t->hi;
	run.n = 1;
}

static void one_leaf(void)
{
	uint64_t lo = run.stack[run.n - 1].lo, hi = run.stack[run.n - 1].hi;

	for (run.n--; hi - lo > 1; run.n++) {
		uint64_t middle = lo + (hi - lo) / 2;
		run.stack[run.n].lo = middle;
		run.stack[run.n].hi = hi;
		hi = middle;
	}
	divide->leaf(lo, run.sums);
}

/* Asks for work at a random virtual node; a request that finds nobody times out. */
static void steal(void)
{
	static long long last_us;
	ph_vp_t there = somewhere_else();

	if (there == PH_INVALID_VP || crew.lo == crew.hi || crew.leaving ||
	    crew_now_us() < last_us + STEAL_EVERY_US)
		return;
	ph_vp_t here = somewhere_here();
	crew_post(there, &here, sizeof here, TAG_STEAL, STEAL_WAIT_US);
	last_us = crew_now_us();
}

static bool work(void)
{
	struct task t;

	if (!run.active && pop(&t))
		start_run(&t);
	if (!run.active) {
		steal();
		return false;
	}
	for (unsigned i = 0; i < divide->leaves_per_step && run.n; i++)
		one_leaf();
	if (run.n == 0)
		end_run();
	return true;
}

/* ---- messages ---- */

/* Makes a task of the oldest part of the run.  False: the run has no part to spare. */
static bool split_off(struct task *t)
{
	if (!run.active || (run.n == 1 && run.stack[0].hi - run.stack[0].lo < 2))
		return false;
	*t = (struct task){ .lo = run.stack[0].lo, .hi = run.stack[0].hi };
	if (run.n > 1) {
		run.n--;
		memmove(run.stack, run.stack + 1, run.n * sizeof run.stack[0]);
	} else {
		run.stack[0].hi = t->lo += (t->hi - t->lo) / 2;
	}
	if (!run.sync.id)
		name_the_run();
	run.stolen++;
	t->reply = run.sync;
	return true;
}

static void on_steal(ph_vp_t thief)
{
	struct task t;

	if (pop(&t) || split_off(&t))
		crew_post(thief, &t, sizeof t, TAG_TASK, 0);
}

static void on_task(const struct task *t)
{
	if (crew.leaving)
		crew_post(somewhere_else(), t, sizeof *t, TAG_TASK, 0);
	else
		push(t);
}

static void on_result(const struct result *r)
{
	struct sync **at = &syncs, *s;

	if (r->to.id == 0) {
		divide->done(r->sums);
		return;
	}
	while ((s = *at) && (s->name.id != r->to.id || s->name.vp != r->to.vp))
		at = &s->next;
	if (!s)
		abort();		/* a sync is always where its virtual node is */
	add(s->sums, r->sums);
	if (r->tasks < 0)
		s->received++;
	else
		s->announced = r->tasks;
	if (s->received != s->announced)
		return;
	struct result up = { .to = s->reply, .tasks = -1 };
	memcpy(up.sums, s->sums, sizeof up.sums);
	crew_post(up.to.vp, &up, sizeof up, TAG_RESULT, 0);
	*at = s->next;
	free(s);
}

static void receive(const struct ph_msg *m)
{
	struct view in = { m->body, (const unsigned char *)m->body + m->len };
	struct task t;
	struct result r;
	ph_vp_t thief;

	switch (m->tag) {
	case TAG_STEAL:
		view_get(&in, &thief, sizeof thief);
		on_steal(thief);
		break;
	case TAG_TASK:
		view_get(&in, &t, sizeof t);
		on_task(&t);
		break;
	case TAG_RESULT:
		view_get(&in, &r, sizeof r);
		on_result(&r);
		break;
	default:
		divide->receive(m);
	}
}

/* ---- moving ---- */

static void begin(ph_vp_t lo, ph_vp_t hi)
{
	(void)hi;
	if (lo == 0)
		push(&(struct task){ 0, divide->items, { 0, 0 } });
}

static void pack(ph_vp_t lo, ph_vp_t hi, struct bytes *out)
{
	struct sync **at = &syncs, *s;

	if (lo == 0 && divide->pack)
		divide->pack(out);
	while ((s = *at)) {
		if (s->name.vp < lo || s->name.vp >= hi) {
			at = &s->next;
			continue;
		}
		bytes_put(out, s, sizeof *s);
		*at = s->next;
		free(s);
	}
}

static void unpack(ph_vp_t lo, ph_vp_t hi, struct view *in)
{
	(void)hi;
	if (lo == 0 && divide->unpack)
		divide->unpack(in);
	while (in->p < in->end) {
		struct sync *s = allocate(sizeof *s);
		view_get(in, s, sizeof *s);
		s->next = syncs;
		syncs = s;
	}
}

/* Gives the rest of the run to others, piece by piece, and reports what it has done. */
static void evacuate(void)
{
	struct task t;

	while (pop(&t) || split_off(&t))
		crew_post(somewhere_else(), &t, sizeof t, TAG_TASK, 0);
	if (run.active) {
		one_leaf();
		end_run();
	}
}

int divide_run(const char *name, size_t state_bytes, const struct divide *what)
{
	struct crew_app app = { name, SPACE, state_bytes, begin,   receive,
				work, pack,  unpack,	  evacuate };

	divide = what;
	return crew_run(&app);
}
