/* ahead.c - see ahead.h. */
#include "vcpu/ahead.h"

#include "vcpu/shadow.h"

static int64_t page_at(int64_t at)
{
	return at >> PAGE_BITS;
}

static int64_t base_of(int64_t at)
{
	return at & ~(int64_t)PAGE_MASK;
}

/* Return the number of steps from `from` to a point in the page, or -1. */
static int64_t steps_to(int64_t from, int64_t step, int64_t page)
{
	int64_t lowest = page << PAGE_BITS, highest = lowest + PAGE_MASK;
	int64_t way = step > 0 ? lowest - from : from - highest, size = step > 0 ? step : -step;
	int64_t steps = way <= 0 ? 0 : (way + size - 1) / size, at = from + steps * step;

	return at >= lowest && at <= highest ? steps : -1;
}

/* Return the number of the run's steps from `from` to `to`, both of which are points of it. */
static int64_t distance(const struct ahead_run *run, int64_t from, int64_t to)
{
	return (to - from) / run->step;
}

/* True if the page belongs to the run: it was requested, or is the next one.  Then the run's last
 * miss is there. */
static bool continues(struct ahead_run *run, int64_t page)
{
	if (!run->used || run->length < AHEAD_MISSES)
		return false;
	for (uint32_t column = 0; column < run->wide; column++) {
		int64_t steps = steps_to(run->last, run->step, page - column);

		if (steps < 0 || (!steps && !column) ||
		    steps > distance(run, run->last, run->end))
			continue;
		run->last += steps * run->step;
		return true;
	}
	return false;
}

/* The same for a run that is not certain yet.  A second page beside the first one sets the run's
 * direction. */
static bool may_continue(struct ahead_run *run, int64_t page)
{
	int64_t base = page << PAGE_BITS;

	if (!run->used || run->length >= AHEAD_MISSES)
		return false;
	if (!run->step) {
		if (page != page_at(run->last) + 1 && page != page_at(run->last) - 1)
			return false;
		run->first = run->last = base_of(run->last);
		run->step = base - run->last;
		run->end = base;
	}
	if (base != run->last + run->step)
		return false;
	run->last = base;
	return true;
}

static bool was_missed(const struct ahead *ahead, int64_t at, int64_t mask)
{
	for (unsigned i = 0; i < AHEAD_RECENT; i++)
		if (ahead->recent_plus_1[i] && ((ahead->recent_plus_1[i] - 1) & mask) == at)
			return true;
	return false;
}

/* Return the distance at which places before `at` were missed, or 0.  The miss before it is looked
 * for first among the latest. */
static int64_t stride_to(const struct ahead *ahead, int64_t at, int64_t mask)
{
	at &= mask;
	for (unsigned back = 1; back <= AHEAD_RECENT; back++) {
		int64_t before = ahead->recent_plus_1[(ahead->n_recent - back) % AHEAD_RECENT];
		int64_t step = at - ((before - 1) & mask);
		int misses = 2;

		if (!before || (step < PAGE_BYTES && step > -PAGE_BYTES) ||
		    step > AHEAD_STRIDE_MOST || step < -AHEAD_STRIDE_MOST)
			continue;
		while (misses < AHEAD_STRIDE_MISSES &&
		       was_missed(ahead, at - misses * step, mask))
			misses++;
		if (misses == AHEAD_STRIDE_MISSES)
			return step;
	}
	return 0;
}

/* Where a run that began with this page is remembered.  The first pages of an array's rows have
 * equal low bits. */
static unsigned place_of(int64_t page)
{
	_Static_assert(AHEAD_KNOWN == 1 << 10, "the bits that are left");
	return (uint32_t)page * 0x9e3779b1u >> 22;
}

/* Return what is remembered of the run that began with this page, or NULL. */
static const struct ahead_known *recall(const struct ahead *ahead, int64_t page)
{
	const struct ahead_known *known = &ahead->known[place_of(page)];

	if (known->pages < 2 || page_at(known->first) != page ||
	    !mechanism_on(ahead->without, MECHANISM_RECALL))
		return NULL;
	return known;
}

static bool is_near(int64_t page, int64_t other, int64_t most)
{
	return page - other <= most && other - page <= most;
}

/* Return whether twice as many columns are still a small part of a row. */
static bool may_widen(const struct ahead *ahead, const struct ahead_run *run)
{
	int64_t pages = page_at(run->step > 0 ? run->step : -run->step);

	return mechanism_on(ahead->without, MECHANISM_COLUMNS) &&
	       2 * run->wide <= AHEAD_WIDE_MOST &&
	       2 * run->wide * AHEAD_ROW_PARTS <= pages;
}

/* Return what is remembered of a run at a stride that began just beside this page, or one step
 * before that: this page begins the next column of an array.  *wide becomes the number of columns
 * to request: twice as many as those of a run that ends just before this page. */
static const struct ahead_known *column_beside(const struct ahead *ahead, int64_t page,
					       uint32_t *wide)
{
	const struct ahead_known *beside = NULL;

	for (const struct ahead_run *run = ahead->run; run < ahead->run + AHEAD_RUNS; run++)
		for (int64_t at = run->first; run->used && at != run->first + 2 * run->step;
		     at += run->step) {
			const struct ahead_known *known = recall(ahead, page_at(run->first));

			if (!known || is_near(page_at(run->step), 0, 2 * AHEAD_BESIDE))
				continue;
			if (page == page_at(at) + run->wide) {
				*wide = may_widen(ahead, run) ? 2 * run->wide : run->wide;
				return known;
			}
			if (!is_near(page, page_at(at), AHEAD_BESIDE))
				continue;
			beside = known;
			*wide = run->wide;
		}
	return beside;
}

static struct ahead_run *least_used(struct ahead *ahead)
{
	struct ahead_run *oldest = ahead->run;

	for (struct ahead_run *run = ahead->run; run < ahead->run + AHEAD_RUNS; run++)
		if (run->used < oldest->used)
			oldest = run;
	return oldest;
}

/* Begin a run at this place.  Several columns are requested from its first place on, since only one
 * page there is missed. */
static struct ahead_run *begin_known(struct ahead *ahead, int64_t at,
				     const struct ahead_known *known, uint32_t wide)
{
	struct ahead_run *run = least_used(ahead);

	*run = (struct ahead_run){
		.first = at, .last = at, .end = at, .step = known->step,
		.length = AHEAD_MISSES,
		.window = known->pages - 1u < AHEAD_WINDOW ? known->pages - 1u : AHEAD_WINDOW,
		.wide = wide,
	};
	return run;
}

/* Begin a run that has begun with the misses at that stride before `at`. */
static struct ahead_run *begin_stride(struct ahead *ahead, int64_t at, int64_t stride)
{
	struct ahead_run *run = least_used(ahead);

	*run = (struct ahead_run){
		.first = at - (AHEAD_STRIDE_MISSES - 1) * stride, .last = at, .end = at,
		.step = stride, .length = AHEAD_STRIDE_MISSES - 1, .wide = 1,
	};
	return run;
}

/* Return the run that a miss at `at` belongs to.  A run that is certain comes first, then one that
 * is known, then a stride, in bytes or in pages, then a neighbour. */
static struct ahead_run *find(struct ahead *ahead, int64_t at)
{
	const struct ahead_known *known;
	struct ahead_run *run;
	int64_t stride;
	uint32_t wide;

	for (run = ahead->run; run < ahead->run + AHEAD_RUNS; run++)
		if (continues(run, page_at(at)))
			return run;
	known = recall(ahead, page_at(at));
	if (known)
		return begin_known(ahead, known->first, known, known->wide);
	known = column_beside(ahead, page_at(at), &wide);
	if (known)
		return begin_known(ahead, at, known, wide);
	if (mechanism_on(ahead->without, MECHANISM_STRIDES)) {
		stride = stride_to(ahead, at, -1);
		if (stride)
			return begin_stride(ahead, at, stride);
		stride = stride_to(ahead, at, ~(int64_t)PAGE_MASK);
		if (stride)
			return begin_stride(ahead, base_of(at), stride);
	}
	for (run = ahead->run; run < ahead->run + AHEAD_RUNS; run++)
		if (may_continue(run, page_at(at)))
			return run;
	run = least_used(ahead);
	*run = (struct ahead_run){ .first = at, .last = at, .end = at, .wide = 1 };
	return run;
}

static void remember(struct ahead *ahead, const struct ahead_run *run)
{
	int64_t pages = distance(run, run->first, run->end);

	if (pages >= AHEAD_MISSES)
		ahead->known[place_of(page_at(run->first))] = (struct ahead_known){
			.first = run->first, .step = (int32_t)run->step,
			.pages = (uint16_t)(pages < UINT16_MAX ? pages : UINT16_MAX),
			.wide = (uint8_t)run->wide,
		};
}

/* Return the places that are missing in the window beyond the last miss, below `limit`. */
static struct ahead_pages extend(struct ahead_run *run, int64_t limit)
{
	struct ahead_pages pages = { .first = run->end, .step = run->step };
	int64_t last = run->step > 0 ? limit - 1 : 0; /* of all places */
	bool is_beyond = run->step > 0 ? run->end > last : run->end < last;
	int64_t room = is_beyond ? 0 : distance(run, run->end, last) + 1;
	int64_t count = run->window + 1 - distance(run, run->last, run->end);

	pages.count = (uint32_t)(count < room ? count : room);
	if (pages.count > MAX_AHEAD / run->wide)
		pages.count = MAX_AHEAD / run->wide;
	while (run->wide > 1 && (pages.first + (run->wide - 1) * PAGE_BYTES > limit - 1 ||
				 pages.first + (pages.count - 1) * run->step +
				 (run->wide - 1) * PAGE_BYTES > limit - 1))
		run->wide /= 2;
	pages.wide = run->wide;
	run->end += run->step * (int64_t)pages.count;
	return pages;
}

static bool wants_more(struct ahead_run *run)
{
	if (run->length < AHEAD_MISSES ||
	    distance(run, run->last, run->end) - 1 > run->window / 2)
		return false;
	run->window = run->window ? run->window * 2 : AHEAD_FIRST;
	if (run->window > AHEAD_WINDOW)
		run->window = AHEAD_WINDOW;
	return true;
}

struct ahead_pages ahead_on_miss(struct ahead *ahead, int64_t at, int64_t limit)
{
	struct ahead_pages pages = { 0 };
	struct ahead_run *run;
	bool remembered;

	if (!mechanism_on(ahead->without, MECHANISM_RUNS))
		return pages;
	run = find(ahead, at);
	remembered = !run->used && run->window;
	run->used = ++ahead->misses;
	run->length++;
	if (run->end == run->last && run->wide == 1)
		run->end += run->step;
	if (run->length < AHEAD_MISSES)
		ahead->recent_plus_1[ahead->n_recent++ % AHEAD_RECENT] = at + 1;
	if (remembered || wants_more(run)) {
		pages = extend(run, limit);
		remember(ahead, run);
	}
	return pages;
}

void ahead_vain(struct ahead *ahead, uint32_t page)
{
	for (unsigned i = 0; i < AHEAD_KNOWN; i++) {
		struct ahead_known *known = &ahead->known[i];

		for (uint32_t column = 0; known->step && column < known->wide; column++) {
			int64_t place = steps_to(known->first, known->step,
						 (int64_t)page - column);

			if (place < 0 || place >= known->pages)
				continue;
			if (column)
				known->wide = (uint8_t)column;
			else if (place)
				known->pages = (uint16_t)place;
		}
	}
}

/* Return how many pages these are. */
static uint32_t number_of(const struct ahead_pages *pages)
{
	return pages->count * pages->wide;
}

static uint32_t page_of(const struct ahead_pages *pages, uint32_t i)
{
	return (uint32_t)page_at(pages->first + i / pages->wide * pages->step) + i % pages->wide;
}

/* Walk to adjacent pages of one page table, or of one large page. */
static void walk_run(struct vcpu *v, uint32_t page, uint32_t count, struct vcpu_walk *walk)
{
	bool used;

	if (vcpu_peek(v, page << PAGE_BITS, &walk[0], &used) || !used || !walk[0].large) {
		vcpu_peek_run(v, page << PAGE_BITS, count, walk);
		return;
	}
	for (uint32_t i = 1; i < count; i++) {
		walk[i] = walk[0];
		walk[i].gpa += (gpa_t)i * PAGE_BYTES;
	}
}

/* Translate adjacent pages by the guest's page tables, one table after the other. */
static void look_up_run(const struct shadow *shadow, struct vcpu *v, uint32_t lowest,
			uint32_t count, uint32_t entry[MAX_AHEAD])
{
	struct vcpu_walk walk[MAX_AHEAD];

	for (uint32_t done = 0, n; done < count; done += n) {
		uint32_t page = lowest + done,
			 in_table = vcpu_large_pages(v) - page % vcpu_large_pages(v);

		n = in_table < count - done ? in_table : count - done;
		walk_run(v, page, n, walk + done);
	}
	for (uint32_t i = 0; i < count; i++)
		if (!entry[i] && !walk[i].error)
			entry[i] = shadow_entry_of(shadow, &walk[i]);
}

/* Translate pages by the shadow or the guest's page tables.  Each result is
 * as in the shadow; 0: not mapped, or not looked up. */
static void look_up(const struct shadow *shadow, struct vcpu *v, const struct ahead_pages *pages,
		    uint32_t entry[MAX_AHEAD])
{
	bool missing = false;

	for (uint32_t i = 0; i < number_of(pages); i++) {
		entry[i] = shadow->entry[page_of(pages, i)];
		missing |= !entry[i];
	}
	if (!missing)
		return;
	if (pages->step == PAGE_BYTES) {
		look_up_run(shadow, v, page_of(pages, 0), pages->count, entry);
		return;
	}
	for (uint32_t i = 0; i < number_of(pages); i++)
		if (!entry[i])
			look_up_run(shadow, v, page_of(pages, i), 1, entry + i);
}

static bool may_write(uint32_t entry)
{
	const uint32_t needs = SHADOW_VALID | SHADOW_WRITE;

	return (entry & needs) == needs;
}

static bool was_asked(const struct ahead *ahead, gfn_t frame)
{
	return ahead->asked[frame % AHEAD_ASKED].frame_plus_1 == frame + 1;
}

static struct ahead_asked *asked_of(struct ahead *ahead, gfn_t frame, uint32_t page)
{
	struct ahead_asked *asked = &ahead->asked[frame % AHEAD_ASKED];

	if (!was_asked(ahead, frame))
		*asked = (struct ahead_asked){ .frame_plus_1 = frame + 1, .used = true };
	asked->page = page;
	return asked;
}

void ahead_missed(struct ahead *ahead, gfn_t frame, uint32_t page)
{
	struct ahead_asked *asked = asked_of(ahead, frame, page);

	asked->misses_due -= asked->misses_due > 0;
	asked->used = true;
}

bool ahead_asks(struct ahead *ahead, gfn_t frame, uint32_t page)
{
	struct ahead_asked *asked = asked_of(ahead, frame, page);

	if (!asked->used && ahead->misses - asked->at_miss > AHEAD_ON_ITS_WAY)
		asked->misses_due = AHEAD_VAIN_MISSES;
	if (!asked->used || asked->misses_due)
		return false;
	asked->used = false;
	asked->at_miss = ahead->misses;
	return true;
}

void ahead_used(struct miss_history *history, gfn_t frame)
{
	for (enum page_right right = PAGE_READ; right <= PAGE_WRITE; right++)
		if (was_asked(&history->by_right[right], frame))
			history->by_right[right].asked[frame % AHEAD_ASKED].used = true;
}

/* Return the right to request for a page that the CPU wants with the right `wanted`. */
static enum page_right right_for(struct miss_history *history, const struct shadow *shadow,
				 const struct vcpu *v, uint32_t page, enum page_right wanted,
				 const _Atomic uint8_t *rights)
{
	uint32_t entry = shadow->entry[page];
	gfn_t frame = shadow_frame(entry);

	if (!(entry & SHADOW_VALID) || !ram_has(shadow->ram_pages, frame))
		return wanted;
	if (wanted == PAGE_WRITE) {
		if (rights[frame] == PAGE_READ)
			written_upgraded(&history->written, page);
		return wanted;
	}
	if (!written_read(&history->written, v->eip, page) || !may_write(entry))
		return wanted;
	return PAGE_WRITE;
}

struct ahead_pages ahead_text(gva_t gva, gva_t eip, uint32_t without)
{
	if (gva - eip >= INSN_MAX_BYTES || !mechanism_on(without, MECHANISM_RUNS) ||
	    !mechanism_on(without, MECHANISM_TEXT))
		return (struct ahead_pages){ .count = 0 };
	return (struct ahead_pages){ .first = gva & ~(AHEAD_TEXT * PAGE_BYTES - 1),
				     .step = PAGE_BYTES, .count = AHEAD_TEXT, .wide = 1 };
}

unsigned ahead_frames(struct miss_history *history, const struct shadow *shadow, struct vcpu *v,
		      gva_t gva, enum page_right *right, const _Atomic uint8_t *rights,
		      gfn_t frames[MAX_AHEAD])
{
	enum page_right wanted = *right;
	struct ahead *ahead = &history->by_right[wanted];
	uint32_t entry[MAX_AHEAD], page = gva >> PAGE_BITS;
	struct ahead_pages pages = ahead_on_miss(ahead, gva, (int64_t)LINEAR_PAGES << PAGE_BITS);
	unsigned n = 0;

	if (!pages.count && wanted == PAGE_READ)
		pages = ahead_text(gva, v->eip, ahead->without);
	ahead_missed(ahead, shadow_frame(shadow->entry[page]), page);
	if (mechanism_on(ahead->without, MECHANISM_WRITTEN))
		*right = right_for(history, shadow, v, page, wanted, rights);
	if (pages.count)
		look_up(shadow, v, &pages, entry);
	for (uint32_t i = 0; i < number_of(&pages); i++) {
		gfn_t frame = shadow_frame(entry[i]);

		page = page_of(&pages, i);
		if (page == gva >> PAGE_BITS || !(entry[i] & SHADOW_VALID) ||
		    (*right == PAGE_WRITE && !may_write(entry[i])) ||
		    !ram_has(shadow->ram_pages, frame) || rights[frame] >= *right ||
		    !ahead_asks(ahead, frame, page))
			continue;
		if (wanted == PAGE_READ)
			written_read(&history->written, v->eip, page);
		else if (rights[frame] == PAGE_READ)
			written_upgraded(&history->written, page);
		frames[n++] = frame;
	}
	return n;
}

void ahead_vain_frame(struct miss_history *history, gfn_t frame)
{
	const struct ahead *reads = &history->by_right[PAGE_READ];
	struct ahead *writes = &history->by_right[PAGE_WRITE];

	if (was_asked(writes, frame))
		ahead_vain(writes, writes->asked[frame % AHEAD_ASKED].page);
	if (was_asked(reads, frame))
		written_vain(&history->written, reads->asked[frame % AHEAD_ASKED].page);
}

unsigned ahead_named(struct ahead *ahead, gfn_t first, unsigned count, bool write,
		     const _Atomic uint8_t *rights, uint32_t ram_pages,
		     gfn_t frames[AHEAD_NAMED_MOST])
{
	uint8_t needed = write ? 2 : 1;
	struct ahead_pages pages;
	unsigned n = 0;

	for (gfn_t gfn = first; gfn < ram_pages && gfn - first < count && n < MAX_AHEAD; gfn++)
		if (ram_has(ram_pages, gfn) && rights[gfn] < needed)
			frames[n++] = gfn;
	if (n && !mechanism_on(ahead->without, MECHANISM_RUNS))
		return 1;
	if (n != 1)
		return n;
	pages = ahead_on_miss(ahead, (int64_t)frames[0] << PAGE_BITS,
			      (int64_t)ram_pages << PAGE_BITS);
	for (uint32_t i = 0; i < number_of(&pages); i++) {
		gfn_t gfn = page_of(&pages, i);

		if (gfn != frames[0] && ram_has(ram_pages, gfn) && rights[gfn] < needed)
			frames[n++] = gfn;
	}
	return n;
}
