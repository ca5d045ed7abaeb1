/* replay.c - replays recorded fetches (`vmp run --trace`, as bench/replay prepares them) on other
 * numbers of hosts and on other networks.  The page protocol is the daemons' own (dsm/); network,
 * daemons and programs are a model.
 *
 *   replay [--hosts N,...] [--rtt US,...] [--gbit N,...] [--serve US] [--one S] [--json]
 *          <FETCHES
 *
 * FETCHES has lines of words, ordered by time:
 *   fetch HOST CPU BEGIN_US END_US PAGE read|write FROM TO_DAEMON_US TO_GUEST_US
 *   take HOST END_US PAGE
 *
 * A program is a sequence for each CPU: compute, fetch, compute, ...  The time between two fetches
 * is computing, less what every fetch costs outside its recorded stages: the longest of the
 * shortest tenth of these times. --one gives the program's measured time on one CPU; all computing
 * is then scaled to that sum.  If a host loses a page during such a time, and its CPU fetches it
 * again within SPIN_US, the CPU was waiting for another CPU's store.  In the replay it continues as
 * soon as its host loses the page again, but not later than in the recording.  With N hosts, more
 * than were recorded, CPU i behaves as CPU i mod K of the K recorded ones and computes K/N of the
 * time.  Each K hosts have copies of their own of the recorded pages, except those that every
 * recorded host wrote GLOBAL_WRITES times or more (barriers, reductions, locks, the kernel's
 * variables): all hosts share these.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/wire.h"
#include "dsm/dsm.h"

enum {
	SPIN_US = 60, GLOBAL_WRITES = 8, LISTED = 8, HEADER_BYTES = 64, MOST_PAGES = 1 << 20,
	MOST_EVENTS = 1 << 22,
};

/* ---- what was recorded ---- */

struct fetch {
	double compute_us; /* since the fetch before it */
	uint32_t page;	   /* index into `pages` */
	uint8_t right;
	bool waits; /* for the loss of the page */
};

struct track { struct fetch *fetch; uint32_t n, room; double last_us, lost_us; };

/* A page of the trace: the host that had it first, and how often each host wanted to write to
 * it. */
struct page { uint32_t number, writes[MAX_NODES]; uint8_t first_owner; bool owned, global; };

static struct {
	struct track track[MAX_CPUS]; /* recorded CPUs, in order of their first fetch */
	int track_of[MAX_CPUS];
	unsigned tracks;
	struct page *page;
	uint32_t pages, *find; /* hash: index + 1 */
	double begin_us, end_us, to_daemon_us, to_guest_us, overhead_us;
	double *lost_us; /* MAX_NODES a page: when the host lost it last; 0: never */
	uint64_t fetches;
} record;

static void *grow(void *old, size_t n, size_t bytes)
{
	void *grown = realloc(old, n * bytes);

	if (!grown)
		die("no memory for the trace");
	return grown;
}

static uint32_t page_index(uint32_t number)
{
	uint32_t at = number * 0x9e3779b1u % (2 * MOST_PAGES);

	for (; record.find[at]; at = (at + 1) % (2 * MOST_PAGES))
		if (record.page[record.find[at] - 1].number == number)
			return record.find[at] - 1;
	if (record.pages == MOST_PAGES)
		die("more than %d pages in the trace", MOST_PAGES);
	if (record.pages % 1024 == 0) {
		record.page = grow(record.page, record.pages + 1024, sizeof *record.page);
		record.lost_us = grow(record.lost_us, (record.pages + 1024) * (size_t)MAX_NODES,
				      sizeof(double));
	}
	record.page[record.pages] = (struct page){ .number = number };
	memset(record.lost_us + (size_t)record.pages * MAX_NODES, 0, MAX_NODES * sizeof(double));
	record.find[at] = record.pages + 1;
	return record.pages++;
}

static struct track *track_of(unsigned cpu)
{
	if (record.track_of[cpu] < 0)
		record.track_of[cpu] = (int)record.tracks++;
	return &record.track[record.track_of[cpu]];
}

struct line {
	unsigned host, cpu;
	double begin_us, end_us, to_daemon_us, to_guest_us;
	uint32_t page;
	char right[8];
	int from;
};

static void add_fetch(const struct line *l)
{
	struct track *t = track_of(l->cpu);
	uint32_t index = page_index(l->page);
	struct page *page = &record.page[index];
	double lost_us = record.lost_us[(size_t)index * MAX_NODES + l->host];
	bool write = !strcmp(l->right, "write");

	if (!record.fetches++)
		record.begin_us = l->begin_us;
	if (!page->owned && l->from >= 0 && l->from < MAX_NODES) {
		page->first_owner = (uint8_t)l->from;
		page->owned = true;
	}
	page->writes[l->host] += write;
	if (t->n == t->room)
		t->fetch = grow(t->fetch, t->room = t->room ? 2 * t->room : 256, sizeof *t->fetch);
	t->fetch[t->n] = (struct fetch){
		.compute_us = l->begin_us - (t->n ? t->last_us : record.begin_us), .page = index,
		.right = write ? PAGE_WRITE : PAGE_READ,
		.waits = t->n && lost_us > t->last_us && l->begin_us >= lost_us &&
			 l->begin_us - lost_us < SPIN_US,
	};
	if (t->fetch[t->n].compute_us < 0)
		t->fetch[t->n].compute_us = 0;
	t->n++;
	t->last_us = l->end_us;
	if (l->end_us > record.end_us)
		record.end_us = l->end_us;
	record.to_daemon_us += l->to_daemon_us;
	record.to_guest_us += l->to_guest_us;
}

/* Returns whether the line is sound. */
static bool add_line(const char *text)
{
	struct line l = { .from = -1 };
	uint32_t index;

	if (sscanf(text, "take %u %lf %x", &l.host, &l.end_us, &l.page) == 3) {
		if (l.host >= MAX_NODES)
			return false;
		index = page_index(l.page);
		record.lost_us[(size_t)index * MAX_NODES + l.host] = l.end_us;
		return true;
	}
	if (sscanf(text, "fetch %u %u %lf %lf %x %7s %d %lf %lf", &l.host, &l.cpu, &l.begin_us,
		   &l.end_us, &l.page, l.right, &l.from, &l.to_daemon_us, &l.to_guest_us) != 9 ||
	    l.host >= MAX_NODES || l.cpu >= MAX_CPUS || record.fetches == MOST_EVENTS ||
	    !(l.begin_us >= 0 && l.end_us >= l.begin_us && l.to_daemon_us >= 0 &&
	      l.to_guest_us >= 0) ||
	    (strcmp(l.right, "read") && strcmp(l.right, "write")))
		return false;
	add_fetch(&l);
	return true;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Subtracts what each fetch costs outside its stages from the times between fetches. */
static void subtract_overhead(void)
{
	double *gap = grow(NULL, record.fetches, sizeof *gap);
	size_t n = 0;

	for (unsigned i = 0; i < record.tracks; i++)
		for (uint32_t k = 1; k < record.track[i].n; k++)
			gap[n++] = record.track[i].fetch[k].compute_us;
	if (n < 10) {
		free(gap);
		return;
	}
	qsort(gap, n, sizeof *gap, by_size);
	record.overhead_us = gap[n / 10];
	free(gap);
	for (unsigned i = 0; i < record.tracks; i++)
		for (uint32_t k = 0; k < record.track[i].n; k++) {
			double *us = &record.track[i].fetch[k].compute_us;

			*us = *us > record.overhead_us ? *us - record.overhead_us : 0;
		}
}

static void read_record(FILE *in)
{
	char text[200];

	record.find = calloc(2 * (size_t)MOST_PAGES, sizeof *record.find);
	if (!record.find)
		die("no memory for the trace");
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		record.track_of[cpu] = -1;
	for (unsigned number = 1; fgets(text, sizeof text, in); number++)
		if (!add_line(text))
			die("line %u is neither a fetch nor a take: %.60s", number, text);
	if (record.tracks < 2)
		die("the trace has fetches of %u CPU%s; it needs those of two hosts",
		    record.tracks, record.tracks == 1 ? "" : "s");
	record.to_daemon_us /= (double)record.fetches;
	record.to_guest_us /= (double)record.fetches;
	subtract_overhead();
	for (uint32_t i = 0; i < record.pages; i++) {
		unsigned writers = 0;

		for (unsigned host = 0; host < MAX_NODES; host++)
			writers += record.page[i].writes[host] >= GLOBAL_WRITES;
		record.page[i].global = writers >= record.tracks;
	}
}

/* Returns the us that all recorded CPUs computed: what one processor would need. */
static double computed_us(void)
{
	double us = 0;

	for (unsigned i = 0; i < record.tracks; i++)
		for (uint32_t k = 0; k < record.track[i].n; k++)
			if (!record.track[i].fetch[k].waits)
				us += record.track[i].fetch[k].compute_us;
	return us;
}

/* Scales all computing so that it is `one_us` in all. */
static void scale_computing(double one_us)
{
	double sum = computed_us(), factor = sum > 0 ? one_us / sum : 1;

	for (unsigned i = 0; i < record.tracks; i++)
		for (uint32_t k = 0; k < record.track[i].n; k++)
			if (!record.track[i].fetch[k].waits)
				record.track[i].fetch[k].compute_us *= factor;
}

/* ---- the model ---- */

enum kind { DELIVER, GO, TIMEOUT, RETRY };

struct event {
	double at_us;
	uint64_t order;
	enum kind kind;
	unsigned node, from;
	uint16_t type;
	uint32_t step; /* TIMEOUT: of which fetch */
	struct msg_dsm body;
	bool has_page;
};

/* Each host has one CPU. */
struct node {
	struct dsm *dsm;
	uint8_t *right;
	double daemon_free_us, link_free_us;
	uint32_t step; /* next fetch of its track */
	bool computing, awaits_loss, awaits_page;
	double end_us;
};

static struct {
	unsigned hosts, groups;
	double one_way_us, us_per_byte, serve_us, now_us;
	double departs_us; /* when what the current handler sends leaves its host */
	struct node node[MAX_NODES];
	double last_us[MAX_NODES][MAX_NODES]; /* messages of a pair keep their order */
	struct event *heap;
	size_t n, room;
	uint64_t order, messages, fetches;
} model;

static bool before(const struct event *a, const struct event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void add_event(struct event event)
{
	size_t i = model.n++;

	event.order = model.order++;
	if (model.n > model.room)
		model.heap = grow(model.heap, model.room = model.room ? 2 * model.room : 1024,
				  sizeof *model.heap);
	for (; i && before(&event, &model.heap[(i - 1) / 2]); i = (i - 1) / 2)
		model.heap[i] = model.heap[(i - 1) / 2];
	model.heap[i] = event;
}

static bool next_event(struct event *event)
{
	struct event last;
	size_t i = 0, child;

	if (!model.n)
		return false;
	*event = model.heap[0];
	last = model.heap[--model.n];
	while ((child = 2 * i + 1) < model.n) {
		if (child + 1 < model.n && before(&model.heap[child + 1], &model.heap[child]))
			child++;
		if (!before(&model.heap[child], &last))
			break;
		model.heap[i] = model.heap[child];
		i = child;
	}
	if (model.n)
		model.heap[i] = last;
	return true;
}

static const struct track *track_at(unsigned node)
{
	return &record.track[node % record.tracks];
}

/* The protocol's page for a recorded one, as a host sees it. */
static gfn_t gfn_of(unsigned node, uint32_t page)
{
	unsigned group = record.page[page].global ? 0 : node / record.tracks;

	return group * record.pages + page;
}

static void on_send(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body,
		    const void *payload, uint32_t payload_bytes)
{
	struct node *node = ctx;
	unsigned from = (unsigned)(node - model.node), peer = dsm_node_of(node->dsm, to);
	struct event event = { .kind = DELIVER, .node = peer, .from = from, .type = type,
			       .body = *body, .has_page = payload };
	double *last = &model.last_us[from][peer];
	double leaves_us = model.departs_us > node->link_free_us ? model.departs_us
								: node->link_free_us;

	node->link_free_us = leaves_us + (HEADER_BYTES + payload_bytes) * model.us_per_byte;
	event.at_us = node->link_free_us + model.one_way_us;
	if (event.at_us < *last)
		event.at_us = *last;
	*last = event.at_us;
	model.messages++;
	add_event(event);
}

static void on_send_home(void *ctx, const struct msg_home *body, const void *payload, uint32_t n)
{
	(void)ctx, (void)body, (void)payload, (void)n;
	bug("homes do not move here");
}

static void set_right(void *ctx, gfn_t gfn, enum page_right right)
{
	((struct node *)ctx)->right[gfn] = (uint8_t)right;
}

static void on_take(void *ctx, gfn_t gfn, enum page_right new_right, void *contents)
{
	struct node *node = ctx;
	unsigned me = (unsigned)(node - model.node);

	if (contents)
		memset(contents, 0, PAGE_BYTES);
	set_right(ctx, gfn, new_right);
	if (node->awaits_loss && gfn_of(me, track_at(me)->fetch[node->step].page) == gfn) {
		node->awaits_loss = false;
		add_event((struct event){ .kind = GO, .node = me, .at_us = model.departs_us });
	}
}

static void on_fill(void *ctx, gfn_t gfn, const void *contents, enum page_right right)
{
	(void)contents;
	set_right(ctx, gfn, right);
}

static void on_upgrade(void *ctx, gfn_t gfn) { set_right(ctx, gfn, PAGE_WRITE); }

static uint32_t on_hold(void *ctx, gfn_t gfn, enum page_right right)
{
	(void)ctx, (void)gfn, (void)right;
	return 0;
}

static void on_after(void *ctx, gfn_t gfn, uint32_t us)
{
	add_event((struct event){ .kind = RETRY,
				  .node = (unsigned)((struct node *)ctx - model.node),
				  .at_us = model.now_us + us,
				  .body.gfn = gfn });
}

/* The CPU computes until its next fetch, or waits until the page is lost. */
static void go_on(unsigned number, double at_us)
{
	struct node *node = &model.node[number];
	const struct track *track = track_at(number);
	const struct fetch *next = &track->fetch[node->step];
	double part = (double)record.tracks / model.hosts;

	node->end_us = at_us;
	if (node->step == track->n)
		return;
	if (next->waits && node->right[gfn_of(number, next->page)] >= next->right) {
		node->awaits_loss = true;
		add_event((struct event){ .kind = TIMEOUT, .node = number, .step = node->step,
					  .at_us = at_us + next->compute_us });
		return;
	}
	add_event((struct event){ .kind = GO, .node = number,
				  .at_us = at_us + (next->waits ? 0 : next->compute_us * part) });
}

static void on_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	struct node *node = ctx;
	unsigned me = (unsigned)(node - model.node);
	const struct fetch *fetch = &track_at(me)->fetch[node->step];

	if (!node->awaits_page || gfn_of(me, fetch->page) != gfn || right < fetch->right)
		return;
	node->awaits_page = false;
	node->step++;
	go_on(me, model.departs_us + record.to_guest_us + record.overhead_us);
}

/* The CPU touches its next page. */
static void touch(unsigned number)
{
	struct node *node = &model.node[number];
	const struct fetch *fetch = &track_at(number)->fetch[node->step];
	gfn_t gfn = gfn_of(number, fetch->page);

	if (node->right[gfn] >= fetch->right) {
		node->step++;
		go_on(number, model.now_us);
		return;
	}
	model.fetches++;
	node->awaits_page = true;
	model.departs_us = model.now_us + record.to_daemon_us;
	dsm_want(node->dsm, gfn, (enum page_right)fetch->right);
}

/* A daemon handles one message after the other. */
static void deliver(struct event *event)
{
	static const uint8_t contents[PAGE_BYTES];
	struct node *node = &model.node[event->node];
	struct msg_header header = { .type = event->type, .from_node = (uint8_t)event->from,
				     .bytes = (uint32_t)sizeof event->body +
					      (event->has_page ? PAGE_BYTES : 0) };

	if (node->daemon_free_us > model.now_us) {
		event->at_us = node->daemon_free_us;
		add_event(*event);
		return;
	}
	node->daemon_free_us = model.departs_us = model.now_us + model.serve_us;
	if (dsm_on_message(node->dsm, &header, &event->body, event->has_page ? contents : NULL))
		bug("the page protocol refuses its own message");
}

static void handle(struct event *event)
{
	struct node *node = &model.node[event->node];

	model.now_us = model.departs_us = event->at_us;
	switch (event->kind) {
	case DELIVER:
		return deliver(event);
	case GO:
		return touch(event->node);
	case TIMEOUT:
		if (!node->awaits_loss || node->step != event->step)
			return;
		node->awaits_loss = false;
		return touch(event->node);
	case RETRY:
		return dsm_retry(node->dsm, event->body.gfn);
	}
}

static void begin(unsigned hosts)
{
	uint32_t groups = (hosts + record.tracks - 1) / record.tracks;
	uint32_t gfns = groups * record.pages;

	model.hosts = hosts;
	model.now_us = model.departs_us = 0;
	model.messages = model.fetches = model.order = 0;
	memset(model.last_us, 0, sizeof model.last_us);
	for (unsigned i = 0; i < hosts; i++) {
		struct dsm_host host = {
			.send = on_send, .send_home = on_send_home, .take = on_take,
			.fill = on_fill, .upgrade = on_upgrade, .ready = on_ready,
			.hold_us = on_hold, .after_us = on_after,
		};

		host.ctx = &model.node[i];
		model.node[i] = (struct node){ .dsm = dsm_new(i, hosts, gfns, &host),
					       .right = calloc(gfns, 1) };
		if (!model.node[i].right)
			die("no memory for %u pages", gfns);
	}
	for (uint32_t gfn = 0; gfn < gfns; gfn++) {
		const struct page *page = &record.page[gfn % record.pages];
		unsigned owner = gfn / record.pages * record.tracks + page->first_owner;

		if (!page->owned || owner >= hosts || page->first_owner >= record.tracks)
			continue;
		for (unsigned i = 0; i < hosts; i++)
			dsm_preloaded(model.node[i].dsm, gfn, 1, owner);
		model.node[owner].right[gfn] = PAGE_WRITE;
	}
}

/* Returns the us until the last CPU is done. */
static double run(unsigned hosts)
{
	double end_us = 0;
	struct event event;

	begin(hosts);
	for (unsigned i = 0; i < hosts; i++)
		go_on(i, 0);
	while (next_event(&event))
		handle(&event);
	for (unsigned i = 0; i < hosts; i++) {
		bug_on(model.node[i].step != track_at(i)->n);
		if (model.node[i].end_us > end_us)
			end_us = model.node[i].end_us;
		dsm_free(model.node[i].dsm);
		free(model.node[i].right);
	}
	return end_us;
}

/* ---- the command line ---- */

struct list { double value[LISTED]; unsigned n; };

static void parse_list(struct list *list, const char *name, const char *text, double most)
{
	list->n = 0;
	for (char *end;; text = end + 1) {
		double value = strtod(text, &end);

		if (end == text || (*end && *end != ',') || !(value > 0) || value > most ||
		    list->n == LISTED)
			die("--%s %s: up to %d numbers above 0 and up to %.0f, as 10,25", name,
			    text, LISTED, most);
		list->value[list->n++] = value;
		if (!*end)
			return;
	}
}

struct options { struct list hosts, rtt, gbit, serve, one; bool json; };

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option words[] = {
		{ "hosts", 1, NULL, 'h' }, { "rtt", 1, NULL, 'r' }, { "gbit", 1, NULL, 'g' },
		{ "serve", 1, NULL, 's' }, { "one", 1, NULL, 'o' }, { "json", 0, NULL, 'j' },
		{ 0 }
	};

	*o = (struct options){ .hosts = { { 2, 4, 8, 16, 32 }, 5 }, .rtt = { { 10, 25, 100 }, 3 },
			       .gbit = { { 1, 10, 100 }, 3 }, .serve = { { 3 }, 1 } };
	for (int c; (c = getopt_long(argc, argv, "", words, NULL)) != -1;)
		switch (c) {
		case 'h': parse_list(&o->hosts, "hosts", optarg, MAX_NODES); break;
		case 'r': parse_list(&o->rtt, "rtt", optarg, 1e6); break;
		case 'g': parse_list(&o->gbit, "gbit", optarg, 1e4); break;
		case 's': parse_list(&o->serve, "serve", optarg, 1e6); break;
		case 'o': parse_list(&o->one, "one", optarg, 1e6); break;
		case 'j': o->json = true; break;
		default: exit(2);
		}
}

static void print_row(const struct options *o, unsigned hosts, double rtt, double gbit,
		      double one_us)
{
	double us = run(hosts);

	if (o->json)
		printf("{\"hosts\": %u, \"rtt_us\": %g, \"gbit\": %g, \"seconds\": %.6f, "
		       "\"speedup\": %.3f, \"fetches\": %llu, \"messages\": %llu}\n", hosts, rtt,
		       gbit, us / 1e6, one_us / us, (unsigned long long)model.fetches,
		       (unsigned long long)model.messages);
	else
		printf("%5u%s %8g %9g %10.4f %9.2f %10llu\n", hosts,
		       hosts > record.tracks ? "*" : " ", rtt, gbit, us / 1e6, one_us / us,
		       (unsigned long long)model.fetches);
}

static void print_head(const struct options *o, double one_us)
{
	printf("measured: %llu fetches of %u CPUs in %.4f s; each took %.1f us to its daemon and "
	       "%.1f us back\n  to the guest, and %.1f us besides; one CPU takes %.4f s%s\n",
	       (unsigned long long)record.fetches, record.tracks,
	       (record.end_us - record.begin_us) / 1e6, record.to_daemon_us, record.to_guest_us,
	       record.overhead_us, one_us / 1e6,
	       o->one.n ? "" : ", the sum of what they computed (--one S: as measured)");
	printf("model: the network, %g us of a daemon for a message, and all rows below; * more "
	       "hosts than recorded\n", o->serve.value[0]);
	printf("%5s  %8s %9s %10s %9s %10s\n", "hosts", "rtt us", "Gbit/s", "seconds", "speed-up",
	       "fetches");
}

int main(int argc, char **argv)
{
	struct options o;
	double one_us;

	parse(&o, argc, argv);
	read_record(stdin);
	one_us = o.one.n ? o.one.value[0] * 1e6 : computed_us();
	if (o.one.n)
		scale_computing(one_us);
	if (!o.json)
		print_head(&o, one_us);
	model.serve_us = o.serve.value[0];
	for (unsigned h = 0; h < o.hosts.n; h++)
		for (unsigned r = 0; r < o.rtt.n; r++)
			for (unsigned g = 0; g < o.gbit.n; g++) {
				model.one_way_us = o.rtt.value[r] / 2;
				model.us_per_byte = 8 / (o.gbit.value[g] * 1000);
				print_row(&o, (unsigned)o.hosts.value[h], o.rtt.value[r],
					  o.gbit.value[g], one_us);
			}
	return 0;
}
