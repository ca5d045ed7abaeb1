/* replay_record.c - reads the fetches that replay.c says, and takes the computing out of them. */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "bench/replay.h"
#include "dsm/dsm.h"

enum { SPIN_US = 60, GLOBAL_WRITES = 8, MOST_PAGES = 1 << 20, MOST_EVENTS = 1 << 22 };

struct record record;

static struct {
	int track_of[MAX_CPUS];
	uint32_t *find;	 /* hash of record.page: index + 1 */
	double *lost_us; /* MAX_NODES a page: when the host lost it last; 0: never */
} reading;

void *record_grow(void *old, size_t n, size_t bytes)
{
	void *grown = realloc(old, n * bytes);

	if (!grown)
		die("no memory for the trace");
	return grown;
}

static uint32_t page_index(uint32_t number)
{
	uint32_t at = number * 0x9e3779b1u % (2 * MOST_PAGES);

	for (; reading.find[at]; at = (at + 1) % (2 * MOST_PAGES))
		if (record.page[reading.find[at] - 1].number == number)
			return reading.find[at] - 1;
	if (record.pages == MOST_PAGES)
		die("more than %d pages in the trace", MOST_PAGES);
	if (record.pages % 1024 == 0) {
		record.page = record_grow(record.page, record.pages + 1024, sizeof *record.page);
		reading.lost_us = record_grow(reading.lost_us,
					      (record.pages + 1024) * (size_t)MAX_NODES,
					      sizeof(double));
	}
	record.page[record.pages] = (struct page){ .number = number };
	memset(reading.lost_us + (size_t)record.pages * MAX_NODES, 0, MAX_NODES * sizeof(double));
	reading.find[at] = record.pages + 1;
	return record.pages++;
}

static struct track *track_of(unsigned cpu)
{
	if (reading.track_of[cpu] < 0)
		reading.track_of[cpu] = (int)record.tracks++;
	return &record.track[reading.track_of[cpu]];
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
	double lost_us = reading.lost_us[(size_t)index * MAX_NODES + l->host];
	bool write = !strcmp(l->right, "write");

	if (!record.fetches++)
		record.begin_us = l->begin_us;
	if (!page->owned && l->from >= 0 && l->from < MAX_NODES) {
		page->first_owner = (uint8_t)l->from;
		page->owned = true;
	}
	page->writes[l->host] += write;
	if (t->n == t->room)
		t->fetch = record_grow(t->fetch, t->room = t->room ? 2 * t->room : 256,
				       sizeof *t->fetch);
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
		reading.lost_us[(size_t)index * MAX_NODES + l.host] = l.end_us;
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
	double *gap = record_grow(NULL, record.fetches, sizeof *gap);
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

void record_read(FILE *in)
{
	char text[200];

	reading.find = calloc(2 * (size_t)MOST_PAGES, sizeof *reading.find);
	if (!reading.find)
		die("no memory for the trace");
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		reading.track_of[cpu] = -1;
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

double record_computed_us(void)
{
	double us = 0;

	for (unsigned i = 0; i < record.tracks; i++)
		for (uint32_t k = 0; k < record.track[i].n; k++)
			if (!record.track[i].fetch[k].waits)
				us += record.track[i].fetch[k].compute_us;
	return us;
}

void record_scale(double one_us)
{
	double sum = record_computed_us(), factor = sum > 0 ? one_us / sum : 1;

	for (unsigned i = 0; i < record.tracks; i++)
		for (uint32_t k = 0; k < record.track[i].n; k++)
			if (!record.track[i].fetch[k].waits)
				record.track[i].fetch[k].compute_us *= factor;
}
