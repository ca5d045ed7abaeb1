/* ahead.c - see ahead.h. */
#include "vcpu/ahead.h"

#include "vcpu/shadow.h"

/* Return the number of the run's steps from `from` to `to`, both of which are pages of it. */
static int64_t distance(const struct ahead_run *run, int64_t from, int64_t to)
{
	return (to - from) / run->step;
}

/* True if `page` belongs to the run: it was requested, or is the next one.  A second page beside
 * the first one sets the run's direction. */
static bool continues(struct ahead_run *run, int64_t page)
{
	if (!run->used)
		return false;
	if (run->step)
		return (page - run->last) % run->step == 0 &&
		       distance(run, run->last, page) > 0 && distance(run, page, run->end) >= 0;
	if (page != run->last + 1 && page != run->last - 1)
		return false;
	run->step = (int)(page - run->last);
	run->end = page;
	return true;
}

static bool was_missed(const struct ahead *ahead, int64_t page)
{
	for (unsigned i = 0; i < AHEAD_RECENT; i++)
		if (ahead->recent_plus_1[i] && ahead->recent_plus_1[i] == page + 1)
			return true;
	return false;
}

/* Return the distance at which pages before `page` were missed, or 0.  The miss before it is looked
 * for first among the latest. */
static int stride_to(const struct ahead *ahead, int64_t page)
{
	if (!mechanism_on(ahead->without, MECHANISM_STRIDES))
		return 0;
	for (unsigned back = 1; back <= AHEAD_RECENT; back++) {
		uint32_t before = ahead->recent_plus_1[(ahead->n_recent - back) % AHEAD_RECENT];
		int64_t step = page + 1 - before;
		int misses = 2;

		if (!before || !step || step > AHEAD_STRIDE_MOST || step < -AHEAD_STRIDE_MOST)
			continue;
		while (misses < AHEAD_STRIDE_MISSES && was_missed(ahead, page - misses * step))
			misses++;
		if (misses == AHEAD_STRIDE_MISSES)
			return (int)step;
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

	if (known->first_plus_1 != page + 1 || known->pages < 2 ||
	    !mechanism_on(ahead->without, MECHANISM_RECALL))
		return NULL;
	return known;
}

static bool is_near(int64_t page, int64_t other, int64_t most)
{
	return page - other <= most && other - page <= most;
}

/* Return what is remembered of a run at a stride that began just beside this page, or one step
 * before that: this page begins the next column of an array. */
static const struct ahead_known *column_beside(const struct ahead *ahead, int64_t page)
{
	for (const struct ahead_run *run = ahead->run; run < ahead->run + AHEAD_RUNS; run++)
		for (int64_t at = run->first; run->used && at != run->first + 2 * run->step;
		     at += run->step) {
			const struct ahead_known *known = recall(ahead, run->first);

			if (known && !is_near(run->step, 0, 2 * AHEAD_BESIDE) &&
			    is_near(page, at, AHEAD_BESIDE))
				return known;
		}
	return NULL;
}

/* Begin a run with this page, which continues as a known one did, or which follows others at a
 * stride; then it has begun with those. */
static void begin(struct ahead_run *run, int64_t page, const struct ahead_known *known, int stride)
{
	*run = (struct ahead_run){ .first = page, .end = page };
	if (known) {
		run->step = known->step;
		run->end = page + known->step;
		run->length = AHEAD_MISSES;
		run->window = known->pages - 1u < MAX_AHEAD ? known->pages - 1u : MAX_AHEAD;
	} else if (stride) {
		run->first = page - (AHEAD_STRIDE_MISSES - 1) * (int64_t)stride;
		run->step = stride;
		run->length = AHEAD_STRIDE_MISSES - 1;
	}
}

/* Return the run that the page belongs to.  A run that is certain comes first, then one that is
 * known, then a stride, then a neighbour. */
static struct ahead_run *find(struct ahead *ahead, int64_t page)
{
	struct ahead_run *run, *oldest = ahead->run;
	const struct ahead_known *known;
	int stride = 0;

	for (run = ahead->run; run < ahead->run + AHEAD_RUNS; run++) {
		if (run->length >= AHEAD_MISSES && continues(run, page))
			return run;
		if (run->used < oldest->used)
			oldest = run;
	}
	known = recall(ahead, page);
	if (!known)
		known = column_beside(ahead, page);
	if (!known)
		stride = stride_to(ahead, page);
	for (run = ahead->run; !known && !stride && run < ahead->run + AHEAD_RUNS; run++)
		if (run->length < AHEAD_MISSES && continues(run, page))
			return run;
	begin(oldest, page, known, stride);
	return oldest;
}

static void remember(struct ahead *ahead, const struct ahead_run *run)
{
	struct ahead_known *known = &ahead->known[place_of(run->first)];
	int64_t pages;

	if (!run->step || (pages = distance(run, run->first, run->end)) < AHEAD_MISSES)
		return;
	*known = (struct ahead_known){ .first_plus_1 = (uint32_t)run->first + 1,
				       .step = (int16_t)run->step,
				       .pages = (uint16_t)(pages < UINT16_MAX ? pages :
										UINT16_MAX) };
}

/* Return the pages that are missing in the window beyond the last miss, within n_pages. */
static struct ahead_pages extend(struct ahead_run *run, uint32_t n_pages)
{
	struct ahead_pages pages = { .first = (uint32_t)run->end, .step = run->step };
	int64_t last = run->step > 0 ? (int64_t)n_pages - 1 : 0, /* of all pages */
		room = (last - run->end) * run->step < 0 ? 0 : distance(run, run->end, last) + 1;
	int64_t count = run->window + 1 - distance(run, run->last, run->end);

	pages.count = (uint32_t)(count < room ? count : room);
	run->end += run->step * (int64_t)pages.count;
	return pages;
}

static bool wants_more(struct ahead_run *run, int64_t page)
{
	if (run->length < AHEAD_MISSES || distance(run, page, run->end) - 1 > run->window / 2)
		return false;
	run->window = run->window ? run->window * 2 : AHEAD_FIRST;
	if (run->window > MAX_AHEAD)
		run->window = MAX_AHEAD;
	return true;
}

struct ahead_pages ahead_on_miss(struct ahead *ahead, uint32_t page, uint32_t n_pages)
{
	struct ahead_pages pages = { 0 };
	struct ahead_run *run;
	bool remembered;

	if (!mechanism_on(ahead->without, MECHANISM_RUNS))
		return pages;
	run = find(ahead, page);
	remembered = !run->used && run->window;
	run->used = ++ahead->misses;
	run->last = page;
	run->length++;
	if (run->end == page)
		run->end += run->step;
	if (run->length < AHEAD_MISSES)
		ahead->recent_plus_1[ahead->n_recent++ % AHEAD_RECENT] = page + 1;
	if (remembered || wants_more(run, page)) {
		pages = extend(run, n_pages);
		remember(ahead, run);
	}
	return pages;
}

/* Return the page's place in a remembered run, or -1. */
static int64_t place_in(const struct ahead_known *known, uint32_t page)
{
	int64_t pages = (int64_t)page + 1 - known->first_plus_1, place;

	if (!known->first_plus_1 || pages % known->step)
		return -1;
	place = pages / known->step;
	return place < known->pages ? place : -1;
}

void ahead_vain(struct ahead *ahead, uint32_t page)
{
	for (unsigned i = 0; i < AHEAD_KNOWN; i++) {
		int64_t place = place_in(&ahead->known[i], page);

		if (place > 0)
			ahead->known[i].pages = (uint16_t)place;
	}
}

/* Translate adjacent pages by the guest's page table, within one page table. */
static void look_up_run(const struct shadow *shadow, struct vcpu *v, uint32_t lowest,
			uint32_t count, uint32_t entry[MAX_AHEAD])
{
	uint32_t in_table = 1024 - lowest % 1024;
	struct vcpu_walk walk[MAX_AHEAD];

	if (in_table > count)
		in_table = count;
	vcpu_peek_run(v, lowest << PAGE_BITS, in_table, walk);
	for (uint32_t i = 0; i < in_table; i++)
		if (!entry[i] && !walk[i].error)
			entry[i] = shadow_entry_of(shadow, &walk[i]);
}

/* Translate pages by the shadow or the guest's page tables.  Each result is
 * frame << PAGE_BITS | SHADOW_*; 0: not mapped, or not looked up.  In ascending order. */
static void look_up(const struct shadow *shadow, struct vcpu *v, const struct ahead_pages *pages,
		    uint32_t entry[MAX_AHEAD])
{
	uint32_t step = (uint32_t)(pages->step > 0 ? pages->step : -pages->step);
	uint32_t lowest = pages->step > 0 ? pages->first : pages->first - (pages->count - 1) * step;
	bool missing = false;

	for (uint32_t i = 0; i < pages->count; i++) {
		entry[i] = shadow->entry[lowest + i * step];
		missing |= !entry[i];
	}
	if (!missing)
		return;
	if (step == 1) {
		look_up_run(shadow, v, lowest, pages->count, entry);
		return;
	}
	for (uint32_t i = 0; i < pages->count; i++)
		if (!entry[i])
			look_up_run(shadow, v, lowest + i * step, 1, entry + i);
}

static bool may_write(uint32_t entry)
{
	const uint32_t needs = SHADOW_VALID | SHADOW_WRITE;

	return (entry & needs) == needs;
}

static void note_asked(struct ahead *ahead, gfn_t frame, uint32_t page)
{
	ahead->asked[frame % AHEAD_ASKED].frame_plus_1 = frame + 1;
	ahead->asked[frame % AHEAD_ASKED].page = page;
}

/* Return the right to request for a page that the CPU wants with the right `wanted`. */
static enum page_right right_for(struct miss_history *history, const struct vcpu *v, uint32_t page,
				 uint32_t entry, enum page_right wanted,
				 const _Atomic uint8_t *rights)
{
	gfn_t frame = gpa_to_gfn(entry);

	if (wanted == PAGE_WRITE) {
		if (rights[frame] == PAGE_READ)
			written_upgraded(&history->written, page);
		return wanted;
	}
	if (!written_read(&history->written, v->eip, page) || !may_write(entry))
		return wanted;
	note_asked(&history->by_right[PAGE_READ], frame, page);
	return PAGE_WRITE;
}

unsigned ahead_frames(struct miss_history *history, const struct shadow *shadow, struct vcpu *v,
		      gva_t gva, enum page_right *right, const _Atomic uint8_t *rights,
		      gfn_t frames[MAX_AHEAD])
{
	enum page_right wanted = *right;
	struct ahead *ahead = &history->by_right[wanted];
	uint32_t entry[MAX_AHEAD], page = gva >> PAGE_BITS;
	struct ahead_pages pages = ahead_on_miss(ahead, page, LINEAR_PAGES);
	unsigned n = 0;

	if (mechanism_on(ahead->without, MECHANISM_WRITTEN))
		*right = right_for(history, v, page, shadow->entry[page], wanted, rights);
	if (pages.count)
		look_up(shadow, v, &pages, entry);
	for (uint32_t i = 0; i < pages.count; i++) {
		uint32_t found = entry[pages.step > 0 ? i : pages.count - 1 - i];
		gfn_t frame = gpa_to_gfn(found);

		page = pages.first + i * (uint32_t)pages.step;
		if (!(found & SHADOW_VALID) || (*right == PAGE_WRITE && !may_write(found)) ||
		    frame >= shadow->ram_pages || rights[frame] >= *right)
			continue;
		if (wanted == PAGE_READ)
			written_read(&history->written, v->eip, page);
		else if (rights[frame] == PAGE_READ)
			written_upgraded(&history->written, page);
		frames[n++] = frame;
		note_asked(ahead, frame, page);
	}
	return n;
}

static bool was_asked(const struct ahead *ahead, gfn_t frame, uint32_t *page)
{
	*page = ahead->asked[frame % AHEAD_ASKED].page;
	return ahead->asked[frame % AHEAD_ASKED].frame_plus_1 == frame + 1;
}

void ahead_vain_frame(struct miss_history *history, gfn_t frame)
{
	uint32_t page;

	if (was_asked(&history->by_right[PAGE_WRITE], frame, &page))
		ahead_vain(&history->by_right[PAGE_WRITE], page);
	if (was_asked(&history->by_right[PAGE_READ], frame, &page))
		written_vain(&history->written, page);
}

unsigned ahead_named(struct ahead *ahead, gfn_t first, unsigned count, bool write,
		     const _Atomic uint8_t *rights, uint32_t ram_pages,
		     gfn_t frames[AHEAD_NAMED_MOST])
{
	uint8_t needed = write ? 2 : 1;
	struct ahead_pages pages;
	unsigned n = 0;

	for (gfn_t gfn = first; gfn < ram_pages && gfn - first < count && n < MAX_AHEAD; gfn++)
		if (rights[gfn] < needed)
			frames[n++] = gfn;
	if (n && !mechanism_on(ahead->without, MECHANISM_RUNS))
		return 1;
	if (n != 1)
		return n;
	pages = ahead_on_miss(ahead, frames[0], ram_pages);
	for (uint32_t i = 0; i < pages.count; i++) {
		gfn_t gfn = pages.first + i * (uint32_t)pages.step;

		if (rights[gfn] < needed)
			frames[n++] = gfn;
	}
	return n;
}
