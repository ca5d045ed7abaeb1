/* recording.c - what a recording keeps of a machine's samples, and its JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/types.h"
#include "tests/unit/unit.h"
#include "vmm/cli/watch/recording.h"

enum { RAM_PAGES = 1024, SECOND = 1000000000 };

/* A look at a machine of two hosts and one CPU, `at` seconds after its start: each second host 0
 * has fetched 10 pages, and the CPU has worked for half of the time. */
static struct status_look look_at(unsigned at)
{
	struct status_look look = { .at_ns = (uint64_t)(at + 1) * SECOND };
	struct report *r = &look.report;

	r->hosts = 3;
	r->node[0].page_fetches = r->node[0].page_requests = 10 * at;
	r->node[0].ram_bytes = 4096 * at;
	r->cpu_seen[0] = true;
	r->cpu[0].node = at / 100 % 2; /* it moves every 100 seconds */
	r->cpu[0].time_ns[TIME_NATIVE] = (uint64_t)at * SECOND / 2;
	return look;
}

static void add_heat(struct status_look *look, gfn_t gfn, uint32_t faults)
{
	struct page_heat page = { .gfn = gfn, .faults = faults };

	pageheat_add(&look->report.heat, &page, 1);
}

static void add(struct recording *r, unsigned from, unsigned to)
{
	for (unsigned i = from; i <= to; i++) {
		struct status_look look = look_at(i);

		recording_add(r, &look);
	}
}

static uint64_t fetches(const struct recording *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->n; i++)
		sum += r->sample[i].host[0].fetches;
	return sum;
}

static uint64_t time_covered(const struct recording *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->n; i++)
		sum += r->sample[i].span_ns;
	return sum;
}

static void samples_are_differences(void)
{
	struct recording r;

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	add(&r, 3, 3);
	CU_ASSERT_EQUAL(r.n, 0);
	add(&r, 4, 5);
	CU_ASSERT_EQUAL_FATAL(r.n, 2);
	CU_ASSERT_EQUAL(r.sample[1].host[0].fetches, 10);
	CU_ASSERT_EQUAL(r.sample[1].host[0].ram_bytes, 4096 * 5);
	CU_ASSERT_EQUAL(r.sample[1].cpu[0].time_ns[TIME_NATIVE], SECOND / 2);
	CU_ASSERT_EQUAL(r.sample[1].end_ns, 2ull * SECOND);
	add(&r, 5, 5); /* the same moment again */
	CU_ASSERT_EQUAL(r.n, 2);
	recording_free(&r);
}

static void full_ones_become_coarse(void)
{
	struct recording r;

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	add(&r, 0, RECORDING_SAMPLES);
	CU_ASSERT(r.n == RECORDING_SAMPLES && r.interval_ms == RECORDING_FIRST_MS);
	add(&r, RECORDING_SAMPLES + 1, RECORDING_SAMPLES + 1);
	CU_ASSERT_EQUAL(r.n, RECORDING_SAMPLES / 2 + 1);
	CU_ASSERT_EQUAL(r.interval_ms, 2 * RECORDING_FIRST_MS);
	add(&r, RECORDING_SAMPLES + 2, 3 * RECORDING_SAMPLES);
	CU_ASSERT(r.n <= RECORDING_SAMPLES && r.dropped == 0);
	CU_ASSERT_EQUAL(fetches(&r), 10 * 3 * RECORDING_SAMPLES);
	CU_ASSERT_EQUAL(time_covered(&r), 3ull * RECORDING_SAMPLES * SECOND);
	CU_ASSERT_EQUAL(r.n_moves, 14);
	recording_free(&r);
}

static void sliding_ones_forget(void)
{
	struct recording r;

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	r.slides = true;
	add(&r, 0, 3 * RECORDING_SAMPLES);
	CU_ASSERT(r.n <= RECORDING_SAMPLES && r.n >= RECORDING_SAMPLES / 2);
	CU_ASSERT_EQUAL(r.dropped + r.n, 3 * RECORDING_SAMPLES);
	CU_ASSERT_EQUAL(r.interval_ms, RECORDING_FIRST_MS);
	CU_ASSERT_EQUAL(fetches(&r), 10 * r.n);
	CU_ASSERT_EQUAL(r.sample[r.n - 1].end_ns, 3ull * RECORDING_SAMPLES * SECOND);
	recording_free(&r);
}

static void moves_are_bounded(void)
{
	for (unsigned slides = 0; slides < 2; slides++) {
		struct recording r;

		CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
		r.slides = slides;
		for (unsigned i = 0; i <= RECORDING_MOVES + 10; i++) {
			struct status_look look = look_at(i);

			look.report.cpu[0].node = i % 2;
			recording_add(&r, &look);
		}
		CU_ASSERT(slides ? r.n_moves == RECORDING_MOVES / 2 + 10 && !r.moves_lost
				 : r.n_moves == RECORDING_MOVES && r.moves_lost == 10);
		CU_ASSERT(!slides || r.move[r.n_moves - 1].at_ns ==
				     (RECORDING_MOVES + 10ull) * SECOND);
		recording_free(&r);
	}
}

/* A CPU on its way is on no host; the move is seen when it has arrived. */
static void cpus_on_their_way(void)
{
	struct recording r;
	struct status_look look = look_at(1);

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	add(&r, 0, 0);
	look.report.cpu_seen[0] = false;
	recording_add(&r, &look);
	CU_ASSERT(r.n == 1 && !r.sample[0].cpu[0].seen && !r.n_moves);
	look = look_at(2);
	look.report.cpu[0].node = 1;
	recording_add(&r, &look);
	CU_ASSERT(r.n_moves == 1 && r.move[0].from == 0 && r.move[0].to == 1);
	CU_ASSERT_EQUAL(r.sample[1].cpu[0].time_ns[TIME_NATIVE], SECOND);
	look = look_at(3);
	look.report.cpu[0].node = MAX_NODES; /* no host of a machine */
	recording_add(&r, &look);
	CU_ASSERT(!r.sample[2].cpu[0].seen);
	recording_free(&r);
}

static void add_note(struct status_look *look, uint32_t number, unsigned at, uint32_t cpu,
		     uint32_t to)
{
	struct move_note note = { .at_ns = (at + 1ull) * SECOND, .number = number, .cpu = cpu,
				  .from = 1 - to, .to = to };

	snprintf(note.why, sizeof note.why, "reason %u", number);
	look->has_notes = true;
	if (number)
		look->note[look->n_notes++] = note;
}

/* What node 0 has noted counts, and not what the places tell; each note once. */
static void moves_have_reasons(void)
{
	struct status_look look = look_at(0);
	struct recording r;

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	add_note(&look, 7, 0, 0, 1); /* before the recording */
	recording_add(&r, &look);
	look = look_at(1);
	look.report.cpu[0].node = 1; /* its note comes with the next sample */
	add_note(&look, 7, 0, 0, 1);
	recording_add(&r, &look);
	CU_ASSERT_EQUAL(r.n_moves, 0);
	look = look_at(2);
	add_note(&look, 7, 0, 0, 1);
	add_note(&look, 8, 1, 0, 1);
	add_note(&look, 9, 2, 0, 0);
	recording_add(&r, &look);
	CU_ASSERT_EQUAL_FATAL(r.n_moves, 2);
	CU_ASSERT(r.move[0].at_ns > r.sample[0].end_ns && !strcmp(r.move[0].why, "reason 8"));
	CU_ASSERT(r.move[1].at_ns == r.sample[1].end_ns && !strcmp(r.move[1].why, "reason 9"));
	look = look_at(3); /* the machine has gone back: its moves are numbered anew */
	add_note(&look, 0, 0, 0, 0);
	recording_add(&r, &look);
	look = look_at(4);
	add_note(&look, 1, 4, 0, 1);
	recording_add(&r, &look);
	CU_ASSERT(r.n_moves == 3 && !strcmp(r.move[2].why, "reason 1"));
	look = look_at(5); /* without notes, as the last look of a run */
	look.report.cpu[0].node = 1;
	recording_add(&r, &look);
	CU_ASSERT(r.n_moves == 4 && !r.move[3].why[0]);
	recording_free(&r);
}

static void notes_are_not_trusted(void)
{
	struct { struct move_note note[MOVE_NOTES + 2]; } payload;
	struct status_look look = { .at_ns = 0 };

	memset(&payload, 'x', sizeof payload);
	status_take_notes(&look, &payload, sizeof payload);
	CU_ASSERT(look.has_notes && look.n_notes == 0);
	for (unsigned i = 0; i < MOVE_NOTES + 2; i++)
		payload.note[i].cpu = payload.note[i].from = payload.note[i].to = 0;
	status_take_notes(&look, &payload, sizeof payload);
	CU_ASSERT(look.n_notes == MOVE_NOTES && strlen(look.note[0].why) == MOVE_WHY - 1);
	payload.note[0].cpu = MAX_CPUS;
	payload.note[1].to = MAX_NODES;
	status_take_notes(&look, &payload, 3 * sizeof *payload.note + 5);
	CU_ASSERT_EQUAL(look.n_notes, 1);
}

static void counters_may_start_again(void)
{
	struct recording r;
	struct status_look look;

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	add(&r, 5, 6);
	look = look_at(7);
	look.report.node[0].page_fetches = 4; /* the machine has gone back to a checkpoint */
	recording_add(&r, &look);
	CU_ASSERT_EQUAL(r.sample[1].host[0].fetches, 4);
	recording_free(&r);
}

static void pages_count_once(void)
{
	struct recording r;
	struct status_look look = look_at(0);

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	add_heat(&look, 8, 100); /* what happened before the first look */
	recording_add(&r, &look);
	pageheat_free(&look.report.heat);
	look = look_at(1);
	add_heat(&look, 8, 103);
	add_heat(&look, RAM_PAGES - 1, 5);
	add_heat(&look, RAM_PAGES, 7); /* beyond the RAM: not trusted */
	add_heat(&look, UINT32_MAX, 7);
	recording_add(&r, &look);
	CU_ASSERT_EQUAL(r.sample[0].band[1], 3);
	CU_ASSERT_EQUAL(r.sample[0].band[RECORDING_BANDS - 1], 5);
	pageheat_free(&look.report.heat);
	look = look_at(2);
	add_heat(&look, 8, 50); /* a host that has gone no longer counts */
	recording_add(&r, &look);
	CU_ASSERT_EQUAL(r.sample[1].band[1], 0);
	pageheat_free(&look.report.heat);
	recording_free(&r);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void json_from_a_sample_on(void)
{
	static const struct { uint64_t from; const char *has[3]; } cases[] = {
		{ 0, { "\"first\": 240,", "\"end_ms\": [241000,",
			"\"moves\": [[300000,0,0,1,\"\"],[400000,0,1,0,\"\"]]" } },
		{ 480, { "\"first\": 480,", "\"end_ms\": [481000],", "\"moves\": []" } },
		{ 481, { "\"first\": 481,", "\"end_ms\": [],", "\"moves\": []" } },
		{ UINT64_MAX, { "\"first\": 481,", "\"end_ms\": [],", "\"requests\": []" } },
	};
	struct recording_about about = { .name = "a<b", .cpus = 1, .mem_mib = 4 };
	struct recording r;

	CU_ASSERT_FATAL(!recording_begin(&r, RAM_PAGES));
	r.slides = true;
	add(&r, 0, RECORDING_SAMPLES + 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text;
		size_t bytes;
		FILE *out = open_memstream(&text, &bytes);

		recording_print(out, &r, &about, cases[i].from);
		fclose(out);
		for (unsigned k = 0; k < ARRAY_LEN(cases[i].has); k++) {
			CU_ASSERT(strstr(text, cases[i].has[k]) != NULL);
			if (!strstr(text, cases[i].has[k]))
				fprintf(stderr, "%s is not in: %.300s\n", cases[i].has[k], text);
		}
		CU_ASSERT(!strncmp(text, RECORDING_HEAD, strlen(RECORDING_HEAD)));
		CU_ASSERT(!strchr(text, '<') && count(text, "{") == count(text, "}"));
		free(text);
	}
	recording_free(&r);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "samples are differences", samples_are_differences },
		{ "full ones become coarse", full_ones_become_coarse },
		{ "sliding ones forget", sliding_ones_forget },
		{ "moves are bounded", moves_are_bounded },
		{ "CPUs on their way", cpus_on_their_way },
		{ "moves have reasons", moves_have_reasons },
		{ "notes are not trusted", notes_are_not_trusted },
		{ "counters may start again", counters_may_start_again },
		{ "pages count once", pages_count_once },
		{ "JSON from a sample on", json_from_a_sample_on },
		UNIT_END
	};

	return UNIT_RUN("recording", tests);
}
