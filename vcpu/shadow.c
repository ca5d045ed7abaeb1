/* shadow.c - see shadow.h.  Mappings are made in runs: the neighbours within 64 KiB, or 1 MiB,
 * that the guest has mapped and used already, and large pages whole.
 */
#include "vcpu/shadow.h"

enum { USER_PAGES = VMP_USER_LIMIT >> PAGE_BITS, WINDOW_PAGE = VMP_WINDOW >> PAGE_BITS };

static bool chunk_used(const struct shadow *s, uint32_t chunk)
{
	return s->used[chunk / 32] >> chunk % 32 & 1;
}

/* Clear the entries of whole chunks: `first` and `count` are multiples of SHADOW_CHUNK. */
static void forget(struct shadow *s, uint32_t first, uint32_t count)
{
	for (uint32_t chunk = first / SHADOW_CHUNK; chunk < (first + count) / SHADOW_CHUNK;
	     chunk++) {
		if (!chunk_used(s, chunk))
			continue;
		__builtin_memset(s->entry + chunk * SHADOW_CHUNK, 0,
				 SHADOW_CHUNK * sizeof *s->entry);
		s->used[chunk / 32] &= ~(1u << chunk % 32);
	}
}

void shadow_drop_all(struct shadow *s)
{
	s->host->unmap(s->host->ctx, PAGE_BYTES, VMP_WINDOW - PAGE_BYTES);
	forget(s, 0, LINEAR_PAGES);
	s->user_pages = s->kernel_pages = s->kernel_local = s->areas = 0;
}

void shadow_switch_space(struct shadow *s)
{
	if (s->kernel_local) {
		shadow_drop_all(s);
	} else if (s->user_pages) {
		s->host->unmap(s->host->ctx, PAGE_BYTES, VMP_USER_LIMIT - PAGE_BYTES);
		forget(s, 0, USER_PAGES);
		s->user_pages = 0;
	}
}

void shadow_drop_kernel(struct shadow *s)
{
	if (!s->kernel_pages)
		return;
	s->host->unmap(s->host->ctx, VMP_USER_LIMIT, VMP_WINDOW - VMP_USER_LIMIT);
	forget(s, USER_PAGES, LINEAR_PAGES - USER_PAGES);
	s->kernel_pages = s->kernel_local = 0;
}

static void set_entry(struct shadow *s, uint32_t page, uint32_t value)
{
	uint32_t *entry = &s->entry[page];
	bool local = value && !(value & SHADOW_GLOBAL),
	     was_local = *entry && !(*entry & SHADOW_GLOBAL);

	if (page < USER_PAGES) {
		s->user_pages += !!value - !!*entry;
	} else {
		s->kernel_pages += !!value - !!*entry;
		s->kernel_local += local - was_local;
	}
	s->used[page / SHADOW_CHUNK / 32] |= 1u << page / SHADOW_CHUNK % 32;
	*entry = value;
}

static void drop_run(struct shadow *s, uint32_t page, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		set_entry(s, page + i, 0);
	s->host->unmap(s->host->ctx, page << PAGE_BITS, count << PAGE_BITS);
	s->areas++;
}

void shadow_drop_range(struct shadow *s, gva_t first, uint32_t pages)
{
	uint32_t page = first >> PAGE_BITS, end, run;

	end = pages > WINDOW_PAGE - page || page > WINDOW_PAGE ? WINDOW_PAGE : page + pages;
	for (; page < end; page += run + 1) {
		for (run = 0; page + run < end && s->entry[page + run]; run++)
			continue;
		if (run)
			drop_run(s, page, run);
	}
}

/* Map `count` linear pages whose entries have been set, to frames that follow each other. */
static void map_run(struct shadow *s, uint32_t page, unsigned count)
{
	uint32_t entry = s->entry[page] | (page < USER_PAGES ? SHADOW_EXECUTE : 0);

	s->host->map(s->host->ctx, page << PAGE_BITS, count << PAGE_BITS,
		     gfn_to_gpa(shadow_frame(entry)), entry & (SHADOW_WRITE | SHADOW_EXECUTE));
	s->areas++;
}

/* Map those of the `count` pages from `first` on that have a new entry: fresh[i]; 0: no new
 * entry. */
static void map_fresh(struct shadow *s, uint32_t first, const uint32_t *fresh, unsigned count)
{
	for (unsigned i = 0, run; i < count; i += run) {
		run = 1;
		if (!fresh[i])
			continue;
		while (i + run < count && fresh[i + run] == fresh[i] + run * SHADOW_NEXT)
			run++;
		for (unsigned k = 0; k < run; k++)
			set_entry(s, first + i + k, fresh[i + k]);
		map_run(s, first + i, run);
	}
}

/* Return `entry`, with SHADOW_EXECUTE if the kernel has run the same frame: that right stays
 * when the page becomes writable. */
static uint32_t still_run(uint32_t old, uint32_t entry)
{
	return entry | (shadow_frame(old ^ entry) ? 0 : old & SHADOW_EXECUTE);
}

/* Collect the entries of the large page, of so many `pages`, around page `touched` that are missing
 * or different, and its own. */
static void gather_large(const struct shadow *s, uint32_t touched, const struct vcpu_walk *w,
			 uint32_t pages, uint32_t execute, uint32_t *fresh)
{
	uint32_t first = touched & ~(pages - 1);
	struct vcpu_walk at = *w;

	for (uint32_t i = 0; i < pages; i++) {
		uint32_t old = s->entry[first + i], entry;

		at.gpa = (w->gpa & ~((gpa_t)pages * PAGE_BYTES - 1)) + i * PAGE_BYTES;
		entry = still_run(old, shadow_entry_of(s, &at) | execute);
		if (first + i < s->first_page || !ram_has(s->ram_pages, gpa_to_gfn(at.gpa)))
			entry = 0;
		fresh[i] = entry != old || first + i == touched ? entry : 0;
	}
}

/* True if a present entry lacks only the right to write: that right is given for several frames
 * at once. */
static bool lacks_right(const struct shadow *s, uint32_t old, uint32_t entry)
{
	return s->right && entry & SHADOW_WRITE && still_run(old, entry) == (old ^ SHADOW_WRITE);
}

/* Collect the entries of the run from page `first` on that are missing and can be mapped as
 * well. */
static void gather(struct shadow *s, struct vcpu *v, uint32_t first, uint32_t *fresh)
{
	struct vcpu_walk near[SHADOW_LONG_RUN];

	vcpu_peek_run(v, first << PAGE_BITS, s->run, near);
	for (unsigned i = 0; i < s->run; i++) {
		bool may_come = !near[i].error && first + i >= s->first_page &&
				first + i < WINDOW_PAGE &&
				ram_has(s->ram_pages, gpa_to_gfn(near[i].gpa)) &&
				(!s->users || near[i].user);
		uint32_t old = s->entry[first + i],
			 entry = may_come ? shadow_entry_of(s, &near[i]) : 0;

		fresh[i] = !old ? entry : lacks_right(s, old, entry) ? still_run(old, entry) : 0;
	}
}

/* Return a user page's entry by the current page tables; 0: not present, or not used yet. */
static uint32_t entry_now(const struct shadow *s, struct vcpu *v, uint32_t page)
{
	struct vcpu_walk now;
	bool used;

	if (vcpu_peek(v, page << PAGE_BITS, &now, &used) || !used || !now.user || now.large ||
	    now.global || !ram_has(s->ram_pages, gpa_to_gfn(now.gpa)))
		return 0;
	return shadow_entry_of(s, &now);
}

/* Return the number of pages from `page` on, at most up to `end`, whose frames follow each
 * other, before and now. */
static uint32_t alike(const struct shadow *s, struct vcpu *v, uint32_t page, uint32_t end,
		      uint32_t *now)
{
	uint32_t count = 1;

	*now = entry_now(s, v, page);
	for (; page + count < end && s->entry[page + count] == s->entry[page] + count * SHADOW_NEXT;
	     count++)
		if (entry_now(s, v, page + count) != (*now ? *now + count * SHADOW_NEXT : 0))
			break;
	return count;
}

static void refresh(struct shadow *s, struct vcpu *v, uint32_t page, uint32_t end)
{
	uint32_t now, count;

	for (; page < end; page += count) {
		count = 1;
		if (!s->entry[page])
			continue;
		count = alike(s, v, page, end, &now);
		if (!now) {
			drop_run(s, page, count);
		} else if (now != s->entry[page]) {
			for (uint32_t i = 0; i < count; i++)
				set_entry(s, page + i, now + i * SHADOW_NEXT);
			map_run(s, page, count);
		}
	}
}

/* (TRICKS: refresh-not-drop) */
void shadow_refresh_range(struct shadow *s, struct vcpu *v, gva_t first, uint32_t pages)
{
	uint32_t page = first >> PAGE_BITS, users = page < USER_PAGES ? USER_PAGES - page : 0;

	if (users > pages)
		users = pages;
	refresh(s, v, page, page + users);
	shadow_drop_range(s, (page + users) << PAGE_BITS, pages - users);
}

/* (TRICKS: refresh-not-drop) */
void shadow_refresh_user(struct shadow *s, struct vcpu *v)
{
	enum { TOO_MANY = 2048 }; /* examining them would take longer than their faults */

	if (s->kernel_local || s->user_pages > TOO_MANY || s->areas > s->area_limit) {
		shadow_switch_space(s);
		return;
	}
	for (uint32_t chunk = 0; chunk < USER_PAGES / SHADOW_CHUNK && s->user_pages; chunk++)
		if (chunk_used(s, chunk))
			refresh(s, v, chunk * SHADOW_CHUNK, (chunk + 1) * SHADOW_CHUNK);
}

static void ask_right(struct vcpu *v, gpa_t gpa)
{
	v->env->pin(v->env->ctx, gpa, true);
	v->env->unpin(v->env->ctx, gpa);
}

bool shadow_map(struct shadow *s, struct vcpu *v, gva_t gva, const struct vcpu_walk *w,
		enum vcpu_access access)
{
	uint32_t page = gva >> PAGE_BITS, first = page & ~(s->run - 1), fresh[SHADOW_CHUNK];
	uint32_t execute = page >= USER_PAGES && access == ACCESS_FETCH ? SHADOW_EXECUTE : 0;
	const uint32_t large = vcpu_large_pages(v);

	if (s->areas > s->area_limit)
		shadow_drop_all(s);
	/* The host forbids mappings there.  A guest's null pointer faults before this point.
	 * Here the guest's root has mapped page 0 (Linux lets only root do that).  The access is
	 * refused: the guest's kernel sends SIGSEGV. */
	if (page < s->first_page) {
		vcpu_exception(v, VECTOR_GP, 0);
		return false;
	}
	if (w->large ? page / large == WINDOW_PAGE / large : page >= WINDOW_PAGE) {
		vcpu_kill(v, "the guest maps address %x, where the CPU window is", gva);
		return false;
	}
	if (s->users && (!w->user || page >= USER_PAGES)) {
		vcpu_kill(v, "a guest program has the kernel's page %x", gva);
		return false;
	}
	if (s->right && access == ACCESS_WRITE && ram_has(s->ram_pages, gpa_to_gfn(w->gpa)))
		ask_right(v, w->gpa);
	if (w->large) {
		gather_large(s, page, w, large, execute, fresh);
		map_fresh(s, page & ~(large - 1), fresh, large);
		return true;
	}
	gather(s, v, first, fresh);
	fresh[page - first] = still_run(s->entry[page], shadow_entry_of(s, w)) | execute;
	map_fresh(s, first, fresh, s->run);
	return true;
}
