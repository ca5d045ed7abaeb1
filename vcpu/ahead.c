/* ahead.c - see ahead.h. */
#include "vcpu/ahead.h"

#include "vcpu/shadow.h"

/* Return the number of pages from `from` up to, not including, `to` in the run's direction. */
static int64_t distance(const struct ahead_run *run, int64_t from, int64_t to)
{
	return (to - from) * run->step;
}

/* True if `page` belongs to the run: it was requested, or is the next one.  A second page sets
 * the run's direction. */
static bool continues(struct ahead_run *run, int64_t page)
{
	if (!run->used)
		return false;
	if (run->step)
		return distance(run, run->last, page) > 0 && distance(run, page, run->end) >= 0;
	if (page != run->last + 1 && page != run->last - 1)
		return false;
	run->step = (int)(page - run->last);
	run->end = page;
	return true;
}

/* Begin a run with this page.  If a remembered run began with it, this one continues in the same
 * way. */
static void begin(struct ahead *ahead, struct ahead_run *run, int64_t page)
{
	const struct ahead_known *known = &ahead->known[page % AHEAD_KNOWN];

	*run = (struct ahead_run){ .first = page, .end = page };
	if (known->first_plus_1 != page + 1 || known->pages < 2 ||
	    !mechanism_on(ahead->without, MECHANISM_RECALL))
		return;
	run->step = known->step;
	run->end = page + known->step;
	run->length = AHEAD_MISSES;
	run->window = known->pages - 1u < MAX_AHEAD ? known->pages - 1u : MAX_AHEAD;
}

static struct ahead_run *find(struct ahead *ahead, int64_t page)
{
	struct ahead_run *oldest = ahead->run;

	for (unsigned i = 0; i < AHEAD_RUNS; i++) {
		if (continues(&ahead->run[i], page))
			return &ahead->run[i];
		if (ahead->run[i].used < oldest->used)
			oldest = &ahead->run[i];
	}
	begin(ahead, oldest, page);
	return oldest;
}

static void remember(struct ahead *ahead, const struct ahead_run *run)
{
	int64_t pages = distance(run, run->first, run->end);

	if (run->step && pages >= AHEAD_MISSES)
		ahead->known[run->first % AHEAD_KNOWN] = (struct ahead_known){
			.first_plus_1 = (uint32_t)run->first + 1, .step = (int16_t)run->step,
			.pages = (uint16_t)(pages < UINT16_MAX ? pages : UINT16_MAX),
		};
}

/* Return the pages that are missing in the window beyond the last miss, within n_pages. */
static struct ahead_pages extend(struct ahead_run *run, uint32_t n_pages)
{
	struct ahead_pages pages = { .first = (uint32_t)run->end, .step = run->step };
	int64_t room = run->step > 0 ? n_pages - run->end : run->end + 1;
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
	if (remembered || wants_more(run, page)) {
		pages = extend(run, n_pages);
		remember(ahead, run);
	}
	return pages;
}

void ahead_vain(struct ahead *ahead, uint32_t page)
{
	for (unsigned i = 0; i < AHEAD_KNOWN; i++) {
		struct ahead_known *known = &ahead->known[i];
		int64_t place = ((int64_t)page + 1 - known->first_plus_1) * known->step;

		if (known->first_plus_1 && place > 0 && place < known->pages)
			known->pages = (uint16_t)place;
	}
}

/* Translate pages by the shadow or the guest's page table, within one page table.  Each result
 * is frame << PAGE_BITS | SHADOW_*; 0: not mapped. */
static void look_up(const struct shadow *shadow, struct vcpu *v, const struct ahead_pages *pages,
		    uint32_t entry[MAX_AHEAD])
{
	uint32_t lowest = pages->step > 0 ? pages->first : pages->first - (pages->count - 1);
	uint32_t in_table = 1024 - lowest % 1024;
	struct vcpu_walk walk[MAX_AHEAD];
	bool missing = false;

	for (uint32_t i = 0; i < pages->count; i++) {
		entry[i] = shadow->entry[lowest + i];
		missing |= !entry[i];
	}
	if (!missing)
		return;
	if (in_table > pages->count)
		in_table = pages->count;
	vcpu_peek_run(v, lowest << PAGE_BITS, in_table, walk);
	for (uint32_t i = 0; i < in_table; i++)
		if (!entry[i] && !walk[i].error)
			entry[i] = shadow_entry_of(shadow, &walk[i]);
}

unsigned ahead_frames(struct ahead *ahead, const struct shadow *shadow, struct vcpu *v, gva_t gva,
		      bool write, const _Atomic uint8_t *rights, gfn_t frames[MAX_AHEAD])
{
	struct ahead_pages pages = ahead_on_miss(ahead, gva >> PAGE_BITS, LINEAR_PAGES);
	uint32_t needs = SHADOW_VALID | (write ? SHADOW_WRITE : 0), entry[MAX_AHEAD];
	unsigned n = 0;

	if (pages.count)
		look_up(shadow, v, &pages, entry);
	for (uint32_t i = 0; i < pages.count; i++) {
		uint32_t found = entry[pages.step > 0 ? i : pages.count - 1 - i];
		gfn_t frame = gpa_to_gfn(found);

		if ((found & needs) != needs || frame >= shadow->ram_pages ||
		    rights[frame] >= (write ? 2 : 1))
			continue;
		frames[n++] = frame;
		ahead->asked[frame % AHEAD_ASKED].frame_plus_1 = frame + 1;
		ahead->asked[frame % AHEAD_ASKED].page = pages.first + i * (uint32_t)pages.step;
	}
	return n;
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

void ahead_vain_frame(struct ahead *ahead, gfn_t frame)
{
	if (ahead->asked[frame % AHEAD_ASKED].frame_plus_1 == frame + 1)
		ahead_vain(ahead, ahead->asked[frame % AHEAD_ASKED].page);
}
