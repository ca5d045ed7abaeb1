/* shadow.c - see shadow.h.  Mappings are made in runs: the neighbours within 64 KiB that the guest has mapped and used
 * already, and 4 MiB pages whole.
 */
#include "vcpu/shadow.h"

enum { USER_PAGES = VMP_USER_LIMIT >> PAGE_BITS, WINDOW_PAGE = VMP_WINDOW >> PAGE_BITS };

static bool chunk_used(const struct shadow *s, uint32_t chunk) { return s->used[chunk / 32] >> chunk % 32 & 1; }

/* Entries of whole chunks only: `first` and `count` are multiples of SHADOW_CHUNK. */
static void forget(struct shadow *s, uint32_t first, uint32_t count)
{
	for (uint32_t chunk = first / SHADOW_CHUNK; chunk < (first + count) / SHADOW_CHUNK; chunk++) {
		if (!chunk_used(s, chunk))
			continue;
		__builtin_memset(s->entry + chunk * SHADOW_CHUNK, 0, SHADOW_CHUNK * sizeof *s->entry);
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
	bool local = value && !(value & SHADOW_GLOBAL), was_local = *entry && !(*entry & SHADOW_GLOBAL);

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
	uint32_t entry = s->entry[page];

	s->host->map(s->host->ctx, page << PAGE_BITS, count << PAGE_BITS, entry & ~(uint32_t)PAGE_MASK, entry & SHADOW_WRITE);
	s->areas++;
}

static uint32_t walk_entry(const struct vcpu_walk *w)
{
	return (w->gpa & ~(uint32_t)PAGE_MASK) | SHADOW_VALID | (w->writable ? SHADOW_WRITE : 0) |
	       (w->global ? SHADOW_GLOBAL : 0);
}

static void map_large(struct shadow *s, gva_t gva, const struct vcpu_walk *w)
{
	uint32_t first = (gva >> PAGE_BITS) & ~(SHADOW_CHUNK - 1u), entry = walk_entry(w);
	uint32_t frame = gpa_to_gfn(w->gpa) & ~(SHADOW_CHUNK - 1u);
	unsigned count = SHADOW_CHUNK, skip = first < s->first_page ? s->first_page - first : 0;

	if (frame + count > s->ram_pages)
		count = s->ram_pages - frame;
	for (unsigned i = skip; i < count; i++)
		set_entry(s, first + i, (frame + i) << PAGE_BITS | (entry & PAGE_MASK));
	map_run(s, first + skip, count - skip);
}

/* The entries of the run around `page` that are not there yet and may come along. */
static void gather(struct shadow *s, struct vcpu *v, uint32_t page, uint32_t first, uint32_t fresh[SHADOW_RUN])
{
	for (unsigned i = 0; i < SHADOW_RUN; i++) {
		struct vcpu_walk near;
		bool used;

		fresh[i] = 0;
		if (first + i == page || first + i < s->first_page || s->entry[first + i])
			continue;
		if (vcpu_peek(v, (first + i) << PAGE_BITS, &near, &used) || !used || near.large ||
		    gpa_to_gfn(near.gpa) >= s->ram_pages)
			continue;
		fresh[i] = walk_entry(&near);
	}
}

/* What may stay of an entry: all, less the right to write, or nothing. */
static uint32_t still_true(struct vcpu *v, uint32_t page, uint32_t entry)
{
	struct vcpu_walk now;
	bool used;
	uint32_t fresh;

	if (vcpu_peek(v, page << PAGE_BITS, &now, &used) || !used || !now.user || now.large || now.global)
		return 0;
	fresh = walk_entry(&now);
	return (fresh | SHADOW_WRITE) == (entry | SHADOW_WRITE) ? fresh & entry : 0;
}

/* Pages from `page` on, at most to `end`, that have lost the same; `*keep` is what the first one keeps. */
static uint32_t alike(const struct shadow *s, struct vcpu *v, uint32_t page, uint32_t end, uint32_t *keep)
{
	uint32_t count = 1;

	*keep = still_true(v, page, s->entry[page]);
	for (; page + count < end && s->entry[page + count] == s->entry[page] + count * PAGE_BYTES; count++)
		if (still_true(v, page + count, s->entry[page + count]) != (*keep ? *keep + count * PAGE_BYTES : 0))
			break;
	return count;
}

static void refresh_chunk(struct shadow *s, struct vcpu *v, uint32_t page, uint32_t end)
{
	uint32_t keep, count;

	for (; page < end; page += count) {
		count = 1;
		if (!s->entry[page])
			continue;
		count = alike(s, v, page, end, &keep);
		if (!keep) {
			drop_run(s, page, count);
		} else if (keep != s->entry[page]) {
			for (uint32_t i = 0; i < count; i++)
				set_entry(s, page + i, keep + i * PAGE_BYTES);
			map_run(s, page, count);
		}
	}
}

void shadow_refresh_user(struct shadow *s, struct vcpu *v)
{
	enum { TOO_MANY = 2048 }; /* looking at them would take longer than their faults */

	if (s->kernel_local || s->user_pages > TOO_MANY || s->areas > s->area_limit) {
		shadow_switch_space(s);
		return;
	}
	for (uint32_t chunk = 0; chunk < USER_PAGES / SHADOW_CHUNK && s->user_pages; chunk++)
		if (chunk_used(s, chunk))
			refresh_chunk(s, v, chunk * SHADOW_CHUNK, (chunk + 1) * SHADOW_CHUNK);
}

void shadow_map(struct shadow *s, struct vcpu *v, gva_t gva, const struct vcpu_walk *w)
{
	uint32_t page = gva >> PAGE_BITS, first = page & ~(SHADOW_RUN - 1u), fresh[SHADOW_RUN];

	if (s->areas > s->area_limit)
		shadow_drop_all(s);
	if (page < s->first_page) { /* the host forbids it; a guest's null pointer has faulted before this */
		vcpu_kill(v, "the guest maps address %x, below the host's vm.mmap_min_addr", gva);
		return;
	}
	if (w->large ? page / SHADOW_CHUNK == WINDOW_PAGE / SHADOW_CHUNK : first + SHADOW_RUN > WINDOW_PAGE) {
		vcpu_kill(v, "the guest maps address %x, beside the CPU window", gva);
		return;
	}
	if (w->large) {
		map_large(s, gva, w);
		return;
	}
	gather(s, v, page, first, fresh);
	fresh[page - first] = walk_entry(w);
	for (unsigned i = 0, count; i < SHADOW_RUN; i += count) {
		for (count = 1; i + count < SHADOW_RUN && fresh[i] && fresh[i + count] == fresh[i] + count * PAGE_BYTES; count++)
			continue;
		if (!fresh[i])
			continue;
		for (unsigned k = 0; k < count; k++)
			set_entry(s, first + i + k, fresh[i + k]);
		map_run(s, first + i, count);
	}
}
