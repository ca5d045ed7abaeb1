/* copy.c - see copy.h. */
#include "vmm/node/cut/copy.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "dsm/dsm.h"

enum {
	WORD_BITS = 64,
	LOOK_AGAIN = 32, /* for so many cuts changes are guessed of a word's pages */
};

struct copy {
	/* These stay as long as the daemon lives.  One bit each: pages that changed since the last
	 * checkpoint, and those that had changed when one of the last cuts was made. */
	uint64_t *changed, *before;
	unsigned cuts;
	/* From here on: of one snapshot. */
	uint64_t *pending, *copied; /* NULL: no snapshot is being made */
	uint8_t *pages;		    /* as large as RAM; only copied pages use memory */
	bool all_changes; /* zero pages must be sent too: they may not have been zero before */
	unsigned at_cpu;
	gfn_t at_page;
	uint32_t cpu_bytes[MAX_CPUS];
	/* CPU states; last member, since it is large.  A state is valid where cpu_bytes is not
	 * 0. */
	uint8_t cpu[MAX_CPUS][CPU_STATE_LIMIT];
};

static uint32_t words(const struct node *node)
{
	return (node->ram_pages + WORD_BITS - 1) / WORD_BITS;
}
static bool has(const uint64_t *bits, gfn_t gfn)
{
	return bits[gfn / WORD_BITS] >> gfn % WORD_BITS & 1;
}
static void set(uint64_t *bits, gfn_t gfn) { bits[gfn / WORD_BITS] |= 1ull << gfn % WORD_BITS; }
static void clear(uint64_t *bits, gfn_t gfn)
{
	bits[gfn / WORD_BITS] &= ~(1ull << gfn % WORD_BITS);
}

static size_t ram_bytes(const struct node *node) { return (size_t)node->ram_pages << PAGE_BITS; }
static uint8_t *page_of(const struct node *node, gfn_t gfn)
{
	return node->ram + ((size_t)gfn << PAGE_BITS);
}
static uint8_t *copy_of(const struct copy *copy, gfn_t gfn)
{
	return copy->pages + ((size_t)gfn << PAGE_BITS);
}

static bool is_zero(const uint8_t *page)
{
	const uint64_t *word = (const uint64_t *)page;

	for (unsigned i = 0; i < PAGE_BYTES / sizeof *word; i += 4)
		if (word[i] | word[i + 1] | word[i + 2] | word[i + 3])
			return false;
	return true;
}

void copy_start(struct node *node)
{
	node->copy = calloc(1, sizeof *node->copy);
	if (node->copy) {
		node->copy->changed = calloc(words(node), sizeof *node->copy->changed);
		node->copy->before = calloc(words(node), sizeof *node->copy->before);
	}
	if (!node->copy || !node->copy->changed || !node->copy->before)
		die("out of memory");
}

void copy_end(struct node *node)
{
	if (!node->copy)
		return;
	copy_forget(node);
	free(node->copy->changed);
	free(node->copy->before);
	free(node->copy);
	node->copy = NULL;
}

/* A host that has all memory alone has the right to write to all of it, except during a
 * snapshot. */
static void give_back_rights(const struct node *node)
{
	if (!node->dsm && node->copy->pending)
		hostshm_give_all_rights(node->shm, node->ram_pages);
}

void copy_forget(const struct node *node)
{
	struct copy *copy = node->copy;
	const size_t begin = offsetof(struct copy, pending), end = offsetof(struct copy, cpu);

	give_back_rights(node);
	if (copy->pages)
		munmap(copy->pages, ram_bytes(node));
	free(copy->pending);
	free(copy->copied);
	memset((uint8_t *)copy + begin, 0, end - begin);
}

int copy_prepare(const struct node *node)
{
	struct copy *copy = node->copy;

	copy_forget(node);
	copy->pending = calloc(words(node), sizeof *copy->pending);
	copy->copied = calloc(words(node), sizeof *copy->copied);
	copy->pages = mmap(NULL, ram_bytes(node), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy->pages == MAP_FAILED)
		copy->pages = NULL;
	if (copy->pending && copy->copied && copy->pages &&
	    fault_on(FAULT_SNAPSHOT_NO_MEMORY) != node->o.node + 1)
		return 0;
	copy_forget(node);
	return -ENOMEM;
}

bool copy_cpu(const struct node *node, unsigned cpu, const void *state, uint32_t bytes)
{
	struct copy *copy = node->copy;

	if (!copy->pending || bytes > CPU_STATE_LIMIT)
		return false;
	memcpy(copy->cpu[cpu], state, bytes);
	copy->cpu_bytes[cpu] = bytes;
	return true;
}

/* ---- the cut ---- */

static void mark_range(const struct node *node, gfn_t first, gfn_t end)
{
	for (gfn_t gfn = first; gfn < end; gfn++)
		if (ram_has(node->ram_pages, gfn) &&
		    (!node->dsm || dsm_is_owner(node->dsm, gfn)))
			set(node->copy->pending, gfn);
}

/* Marks all pages that this host owns.  Pages that were never touched have no memory and are
 * skipped. */
static int mark_all(const struct node *node)
{
	off_t end = (off_t)ram_bytes(node), at = 0, hole;

	while (at < end && (at = lseek(node->ram_fd, at, SEEK_DATA)) >= 0) {
		hole = lseek(node->ram_fd, at, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		mark_range(node, at >> PAGE_BITS, (hole + PAGE_MASK) >> PAGE_BITS);
		at = hole;
	}
	return 0;
}

static void mark_changes(const struct node *node)
{
	for (uint32_t word = 0; word < words(node); word++)
		for (uint64_t left = node->copy->changed[word]; left; left &= left - 1) {
			gfn_t gfn = word * WORD_BITS + (unsigned)__builtin_ctzll(left);

			mark_range(node, gfn, gfn + 1);
		}
}

/* Lowers every right to write.  Nothing races with this: no pin is held and no VM process can
 * write.  (TRICKS: lower-locally) */
static void lower_rights(struct node *node)
{
	for (gfn_t gfn = 0; gfn < node->ram_pages; gfn++)
		if (atomic_load_explicit(&node->shm->page_right[gfn], memory_order_relaxed) ==
		    PAGE_WRITE)
			atomic_store_explicit(&node->shm->page_right[gfn], PAGE_READ,
					      memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static void copy_page(const struct node *node, gfn_t gfn)
{
	memcpy(copy_of(node->copy, gfn), page_of(node, gfn), PAGE_BYTES);
	set(node->copy->copied, gfn);
}

static bool goes_without_guesses(const struct copy *copy, uint32_t word)
{
	return (word + copy->cuts) % LOOK_AGAIN == 0;
}

/* What is given back by a guess counts as changed, and would be guessed again for ever.  So in turn
 * each word of pages goes without guesses, and what had changed there before is forgotten. */
static void note_changes(const struct node *node)
{
	struct copy *copy = node->copy;

	for (uint32_t word = 0; word < words(node); word++)
		copy->before[word] = copy->changed[word] |
				     (goes_without_guesses(copy, word) ? 0 : copy->before[word]);
	copy->cuts++;
}

int copy_mark(struct node *node, enum snapshot_mode mode)
{
	struct copy *copy = node->copy;
	int error = 0;

	if (!copy->pending)
		return -ENOMEM;
	copy->all_changes = mode >= CHECKPOINT_CHANGES;
	if (copy->all_changes)
		mark_changes(node);
	else
		error = mark_all(node);
	note_changes(node);
	if (mode != SNAPSHOT_APART)
		memset(copy->changed, 0, words(node) * sizeof *copy->changed);
	lower_rights(node);
	return error;
}

/* ---- after the cut ---- */

bool copy_is_pending(const struct node *node)
{
	return node->copy->pending != NULL;
}

void copy_before_loss(const struct node *node, gfn_t gfn)
{
	const struct copy *copy = node->copy;

	if (copy->pending && has(copy->pending, gfn) && !has(copy->copied, gfn))
		copy_page(node, gfn);
}

void copy_before_change(const struct node *node, gfn_t gfn)
{
	copy_before_loss(node, gfn);
	set(node->copy->changed, gfn);
}

uint64_t copy_guess_changes(const struct node *node, gfn_t gfn)
{
	uint32_t word = gfn / WORD_BITS;

	return goes_without_guesses(node->copy, word) ? 0 : node->copy->before[word];
}

static bool next_cpu(const struct node *node, struct copy_item *item)
{
	struct copy *copy = node->copy;

	for (; copy->at_cpu < node->o.machine.cpus; copy->at_cpu++)
		if (copy->cpu_bytes[copy->at_cpu]) {
			*item = (struct copy_item){ SNAPSHOT_CPU, copy->at_cpu,
						    copy->cpu_bytes[copy->at_cpu],
						    copy->cpu[copy->at_cpu] };
			copy->at_cpu++;
			return true;
		}
	return false;
}

/* Takes the next page that must be saved; it is no longer pending. */
static bool take_pending(const struct node *node, gfn_t *gfn)
{
	struct copy *copy = node->copy;

	for (uint32_t word = copy->at_page / WORD_BITS; word < words(node); word++)
		if (copy->pending[word]) {
			*gfn = copy->at_page = word * WORD_BITS +
					       (unsigned)__builtin_ctzll(copy->pending[word]);
			clear(copy->pending, *gfn);
			return true;
		}
	return false;
}

static bool next_page(const struct node *node, struct copy_item *item)
{
	const struct copy *copy = node->copy;
	gfn_t gfn;

	while (take_pending(node, &gfn)) {
		const uint8_t *data = has(copy->copied, gfn) ? copy_of(copy, gfn)
							     : page_of(node, gfn);
		bool zero = is_zero(data);

		if (zero && !copy->all_changes)
			continue;
		*item = (struct copy_item){ SNAPSHOT_PAGE, gfn, zero ? 0 : PAGE_BYTES, data };
		return true;
	}
	return false;
}

bool copy_next(const struct node *node, struct copy_item *item)
{
	return node->copy->pending && (next_cpu(node, item) || next_page(node, item));
}
