/* recording.c - see recording.h. */
#include "vmm/cli/watch/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

int recording_begin(struct recording *r, uint32_t ram_pages)
{
	*r = (struct recording){ .interval_ms = RECORDING_FIRST_MS, .ram_pages = ram_pages };
	r->sample = calloc(RECORDING_SAMPLES, sizeof *r->sample);
	r->move = calloc(RECORDING_MOVES, sizeof *r->move);
	r->requests = calloc(ram_pages ? ram_pages : 1, sizeof *r->requests);
	if (r->sample && r->move && r->requests)
		return 0;
	recording_free(r);
	return -ENOMEM;
}

void recording_free(struct recording *r)
{
	free(r->sample);
	free(r->move);
	free(r->requests);
	pageheat_free(&r->last.report.heat);
	*r = (struct recording){ 0 };
}

/* ---- looks ---- */

/* A counter that is below what it was has started from 0 again. */
static uint64_t grown(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

static void add_hosts(struct recording_sample *s, const struct report *before,
		      const struct report *now)
{
	s->hosts = now->hosts;
	for (uint32_t i = 0; i < MAX_NODES; i++) {
		const struct node_stats *a = &before->node[i], *b = &now->node[i];

		if (!(now->hosts >> i & 1))
			continue;
		s->host[i] = (struct recording_host){
			.ram_bytes = b->ram_bytes,
			.fetches = grown(a->page_fetches, b->page_fetches),
			.given_up = grown(a->page_invalidations, b->page_invalidations),
			.sent_bytes = grown(a->bytes_sent, b->bytes_sent),
			.received_bytes = grown(a->bytes_received, b->bytes_received),
		};
	}
}

static void note_move(struct recording *r, uint64_t at_ns, uint32_t cpu, uint32_t from, uint32_t to,
		      const char *why)
{
	struct recording_move *move;

	if (r->n_moves == RECORDING_MOVES && r->slides) {
		r->n_moves /= 2;
		memmove(r->move, r->move + RECORDING_MOVES - r->n_moves,
			r->n_moves * sizeof *r->move);
	}
	if (r->n_moves == RECORDING_MOVES) {
		r->moves_lost++;
		return;
	}
	move = &r->move[r->n_moves++];
	*move = (struct recording_move){ .at_ns = at_ns, .cpu = (uint8_t)cpu,
					 .from = (uint8_t)from, .to = (uint8_t)to };
	snprintf(move->why, sizeof move->why, "%s", why);
}

/* Adds the moves that node 0 has noted since the last look.  The numbers of a machine that has gone
 * back to a checkpoint begin again. */
static void add_notes(struct recording *r, const struct recording_sample *s,
		      const struct status_look *now)
{
	uint64_t begin_ns = s->end_ns - s->span_ns, at_ns;
	uint32_t newest = now->n_notes ? now->note[now->n_notes - 1].number : 0;

	if (now->has_notes && newest < r->last_note)
		r->last_note = 0;
	for (unsigned i = 0; i < now->n_notes; i++) {
		const struct move_note *note = &now->note[i];

		if (note->number <= r->last_note)
			continue;
		at_ns = note->at_ns > r->begin_ns ? note->at_ns - r->begin_ns : 0;
		/* a move between the answer with the notes and the sample's end is in the next */
		at_ns = at_ns <= begin_ns ? begin_ns + 1 : at_ns > s->end_ns ? s->end_ns : at_ns;
		note_move(r, at_ns, note->cpu, note->from, note->to, note->why);
	}
	if (now->has_notes)
		r->last_note = newest;
}

static void add_cpus(struct recording *r, struct recording_sample *s,
		     const struct status_look *look)
{
	const struct report *before = &r->last.report, *now = &look->report;

	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		const struct cpu_stats *a = &before->cpu[i], *b = &now->cpu[i];

		/* while a CPU is on its way, no host has it */
		if (!now->cpu_seen[i] || b->node >= MAX_NODES)
			continue;
		s->cpu[i].seen = true;
		s->cpu[i].host = (uint8_t)b->node;
		for (unsigned k = 0; k < TIME_KIND_COUNT; k++)
			s->cpu[i].time_ns[k] = grown(a->time_ns[k], b->time_ns[k]);
		if (before->cpu_seen[i] && a->node != b->node && !look->has_notes)
			note_move(r, s->end_ns, i, a->node, b->node, "");
	}
}

static bool has_started_again(const struct report *before, const struct report *now)
{
	for (uint32_t i = 0; i < MAX_NODES; i++)
		if ((before->hosts & now->hosts) >> i & 1 &&
		    now->node[i].page_requests < before->node[i].page_requests)
			return true;
	return false;
}

/* Adds how often each page was asked for since the last look.  A host names its hottest pages
 * alone, so a page's sum may be smaller than it was; then nothing is added. */
static void add_pages(struct recording *r, struct recording_sample *s, const struct report *now)
{
	if (has_started_again(&r->last.report, now))
		memset(r->requests, 0, r->ram_pages * sizeof *r->requests);
	for (size_t i = 0; i < now->heat.n; i++) {
		const struct page_heat *page = &now->heat.page[i];
		uint32_t *known = page->gfn < r->ram_pages ? &r->requests[page->gfn] : NULL;

		if (!known || page->faults <= *known)
			continue;
		if (s)
			s->band[(uint64_t)page->gfn * RECORDING_BANDS / r->ram_pages] +=
				page->faults - *known;
		*known = page->faults;
	}
}

/* Keeps the look for the next one, with what it knows of CPUs that were on their way. */
static void keep(struct recording *r, const struct status_look *now)
{
	struct report *last = &r->last.report;
	struct cpu_stats cpu[MAX_CPUS];
	bool seen[MAX_CPUS];

	memcpy(cpu, last->cpu, sizeof cpu);
	memcpy(seen, last->cpu_seen, sizeof seen);
	pageheat_free(&last->heat);
	r->last = *now;
	last->heat = (struct pageheat){ 0 };
	pageheat_add(&last->heat, now->report.heat.page, now->report.heat.n);
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (last->cpu_seen[i] || !seen[i])
			continue;
		last->cpu[i] = cpu[i];
		last->cpu_seen[i] = true;
	}
}

/* ---- thinning ---- */

static void add_up(struct recording_sample *into, const struct recording_sample *more)
{
	into->end_ns = more->end_ns;
	into->span_ns += more->span_ns;
	into->hosts |= more->hosts;
	for (uint32_t i = 0; i < MAX_NODES; i++) {
		if (!(more->hosts >> i & 1))
			continue;
		into->host[i].ram_bytes = more->host[i].ram_bytes;
		into->host[i].fetches += more->host[i].fetches;
		into->host[i].given_up += more->host[i].given_up;
		into->host[i].sent_bytes += more->host[i].sent_bytes;
		into->host[i].received_bytes += more->host[i].received_bytes;
	}
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (!more->cpu[i].seen)
			continue;
		into->cpu[i].seen = true;
		into->cpu[i].host = more->cpu[i].host;
		for (unsigned k = 0; k < TIME_KIND_COUNT; k++)
			into->cpu[i].time_ns[k] += more->cpu[i].time_ns[k];
	}
	for (unsigned i = 0; i < RECORDING_BANDS; i++)
		into->band[i] += more->band[i];
}

static void thin_out(struct recording *r)
{
	for (unsigned i = 0; i + 1 < r->n; i += 2) {
		add_up(&r->sample[i], &r->sample[i + 1]);
		r->sample[i / 2] = r->sample[i];
	}
	r->n /= 2;
	r->interval_ms *= 2;
}

static void drop_half(struct recording *r)
{
	unsigned gone = r->n / 2;

	memmove(r->sample, r->sample + gone, (r->n - gone) * sizeof *r->sample);
	r->n -= gone;
	r->dropped += gone;
}

void recording_add(struct recording *r, const struct status_look *now)
{
	struct recording_sample *s;

	if (!r->begin_ns) {
		r->begin_ns = now->at_ns;
		r->last_note = now->n_notes ? now->note[now->n_notes - 1].number : 0;
		add_pages(r, NULL, &now->report);
		keep(r, now);
		return;
	}
	if (now->at_ns <= r->last.at_ns)
		return;
	if (r->n == RECORDING_SAMPLES && r->slides)
		drop_half(r);
	else if (r->n == RECORDING_SAMPLES)
		thin_out(r);
	s = &r->sample[r->n++];
	*s = (struct recording_sample){ .end_ns = now->at_ns - r->begin_ns,
					.span_ns = now->at_ns - r->last.at_ns };
	add_hosts(s, &r->last.report, &now->report);
	add_cpus(r, s, now);
	add_notes(r, s, now);
	add_pages(r, s, &now->report);
	keep(r, now);
}
