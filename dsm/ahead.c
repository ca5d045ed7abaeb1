/* ahead.c - see ahead.h. */
#include "dsm/ahead.h"

/* How many pages there are from `from` on until `to`, in the run's direction. */
static int64_t distance(const struct ahead_run *run, int64_t from, int64_t to)
{
	return (to - from) * run->step;
}

/* Does `gfn` belong to the run, as one of those asked for or the next one? A second page gives it its direction. */
static bool continues(struct ahead_run *run, int64_t gfn)
{
	if (!run->used)
		return false;
	if (run->step)
		return distance(run, run->last, gfn) > 0 && distance(run, gfn, run->end) >= 0;
	if (gfn != run->last + 1 && gfn != run->last - 1)
		return false;
	run->step = (int)(gfn - run->last);
	run->end = gfn;
	return true;
}

static struct ahead_run *find(struct ahead *ahead, int64_t gfn)
{
	struct ahead_run *oldest = ahead->run;

	for (unsigned i = 0; i < AHEAD_RUNS; i++) {
		if (continues(&ahead->run[i], gfn))
			return &ahead->run[i];
		if (ahead->run[i].used < oldest->used)
			oldest = &ahead->run[i];
	}
	*oldest = (struct ahead_run){ 0 };
	return oldest;
}

/* What is missing of a window beyond the last page, as far as there are pages. */
static struct ahead_pages extend(struct ahead_run *run, uint32_t n_pages)
{
	struct ahead_pages pages = { .first = (gfn_t)run->end, .step = run->step };
	int64_t room = run->step > 0 ? n_pages - run->end : run->end + 1;
	int64_t count = run->window + 1 - distance(run, run->last, run->end);

	pages.count = (uint32_t)(count < room ? count : room);
	run->end += run->step * (int64_t)pages.count;
	return pages;
}

struct ahead_pages ahead_on_miss(struct ahead *ahead, gfn_t gfn, uint32_t n_pages)
{
	struct ahead_run *run = find(ahead, gfn);

	run->used = ++ahead->misses;
	run->last = gfn;
	run->length++;
	if (run->end == gfn)
		run->end += run->step;
	if (run->length < AHEAD_MISSES || distance(run, gfn, run->end) - 1 > run->window / 2)
		return (struct ahead_pages){ 0 };
	run->window = run->window ? run->window * 2 : AHEAD_FIRST;
	if (run->window > AHEAD_MOST)
		run->window = AHEAD_MOST;
	return extend(run, n_pages);
}
