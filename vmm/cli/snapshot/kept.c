/* kept.c - see kept.h. Pages and disk blocks stand in sparse memory as large as the guest's, of which only what was written
 * takes any; all other records are few, and come anew with each checkpoint. */
#include "vmm/cli/snapshot/kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/faultpoint.h"

enum { BLOCK_BYTES = 4096, FIRST_ROOM = 1 << 20 };

struct records { uint8_t *bytes; size_t n, room; };
/* Equal pieces of 4 KiB, of which some are there, and some have come or gone since they were copied; `end`: bytes of all together. */
struct pieces { uint8_t *bytes, *there, *changed; uint64_t end; };

struct kept {
	bool valid, changes;
	bool copied; /* what has changed since is marked in `pages` and `blocks` */
	struct saved_machine machine, coming;
	struct records small, small_coming; /* all but pages and blocks */
	struct records large_coming;
	struct pieces pages, blocks;
};

static void records_free(struct records *r)
{
	free(r->bytes);
	*r = (struct records){ 0 };
}

static int records_add(struct records *r, const struct snapfile_record *record, const void *data)
{
	size_t need = r->n + sizeof *record + record->bytes, room = r->room ? r->room : FIRST_ROOM;
	uint8_t *bytes;

	while (room < need)
		room *= 2;
	bytes = room > r->room ? realloc(r->bytes, room) : r->bytes;
	if (!bytes)
		return -1;
	r->bytes = bytes;
	r->room = room;
	memcpy(r->bytes + r->n, record, sizeof *record);
	if (record->bytes)
		memcpy(r->bytes + r->n + sizeof *record, data, record->bytes);
	r->n = need;
	return 0;
}

/* The record at `*at`, which moves on to the next; its data, or NULL at the end. */
static const uint8_t *records_next(const struct records *r, size_t *at, struct snapfile_record *record)
{
	const uint8_t *data;

	if (*at == r->n)
		return NULL;
	memcpy(record, r->bytes + *at, sizeof *record);
	data = r->bytes + *at + sizeof *record;
	*at += sizeof *record + record->bytes;
	return data;
}

static uint64_t count_of(const struct pieces *p) { return (p->end + BLOCK_BYTES - 1) / BLOCK_BYTES; }
static size_t bytes_of(const struct pieces *p, uint64_t i)
{
	return p->end - i * BLOCK_BYTES < BLOCK_BYTES ? p->end - i * BLOCK_BYTES : BLOCK_BYTES;
}

static void pieces_free(struct pieces *p)
{
	if (p->bytes)
		munmap(p->bytes, p->end);
	free(p->there);
	free(p->changed);
	*p = (struct pieces){ 0 };
}

static int pieces_make(struct pieces *p, uint64_t end)
{
	pieces_free(p);
	if (!end)
		return 0;
	p->end = end;
	p->there = calloc(count_of(p) / 8 + 1, 1);
	p->changed = calloc(count_of(p) / 8 + 1, 1);
	p->bytes = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->bytes == MAP_FAILED)
		p->bytes = NULL;
	if (p->bytes && p->there && p->changed)
		return 0;
	pieces_free(p);
	return -1;
}

/* No data: it is zero, and there no more. The index was checked when the record came. */
static void pieces_put(struct pieces *p, uint64_t i, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(p->bytes + i * BLOCK_BYTES, data, bytes);
	if (bytes)
		p->there[i / 8] |= 1 << i % 8;
	else
		p->there[i / 8] &= ~(1 << i % 8);
	p->changed[i / 8] |= 1 << i % 8;
}

static void pieces_copied(struct pieces *p)
{
	if (p->changed)
		memset(p->changed, 0, count_of(p) / 8 + 1);
}

static bool is_there(const struct pieces *p, uint64_t i) { return p->there[i / 8] >> i % 8 & 1; }

static bool pieces_next(const struct pieces *p, uint64_t *i, bool changes)
{
	const uint8_t *wanted = changes ? p->changed : p->there;

	for (; *i < count_of(p); ++*i)
		if (wanted[*i / 8] >> *i % 8 & 1)
			return true;
	return false;
}

/* --- taking a checkpoint -------------------------------------------------------------------------------------------- */

struct kept *kept_new(void) { return calloc(1, sizeof(struct kept)); }

void kept_free(struct kept *k)
{
	if (!k)
		return;
	kept_abandon(k);
	records_free(&k->small);
	pieces_free(&k->pages);
	pieces_free(&k->blocks);
	free(k);
}

void kept_begin(struct kept *k, bool changes)
{
	kept_abandon(k);
	k->changes = k->coming.changes = changes;
}

void kept_abandon(struct kept *k)
{
	saved_free(&k->coming);
	memset(&k->coming, 0, sizeof k->coming);
	records_free(&k->small_coming);
	records_free(&k->large_coming);
}

int kept_add(struct kept *k, const struct snapfile_record *record, const void *data, struct problem *p)
{
	bool large = record->kind == SNAPSHOT_PAGE || record->kind == SNAPSHOT_BLOCK;

	if (saved_has(&k->coming, record))
		return 0;
	if (saved_add(&k->coming, record, data, p))
		return -1;
	if (record->kind == SNAPSHOT_BLOCK && (record->bytes > BLOCK_BYTES ||
	    (uint64_t)record->index * BLOCK_BYTES + record->bytes > k->coming.disk.bytes))
		return problem(p, "has a block %u that is not the disk's", record->index);
	if (fault_on(FAULT_SNAPSHOT_FULL) == (record->kind == SNAPSHOT_PAGE ? 1 : record->kind == SNAPSHOT_CPU ? 2 : ~0u) ||
	    records_add(large ? &k->large_coming : &k->small_coming, record, data))
		return problem(p, "needs more memory than there is");
	return 0;
}

/* A new machine's memory and disk, or those that stand are this one's. */
static int make_room(struct kept *k, struct problem *p)
{
	uint64_t ram = (uint64_t)k->coming.was.mem_mib << 20, disk = k->coming.disk.bytes;

	if (k->changes)
		return k->valid && k->pages.end == ram && k->blocks.end == disk ? 0 : problem(p, "has changes of another machine");
	k->valid = k->copied = false;
	return pieces_make(&k->pages, ram) || pieces_make(&k->blocks, disk) ? problem(p, "needs more memory than there is") : 0;
}

int kept_commit(struct kept *k, struct problem *p)
{
	struct snapfile_record record;
	const uint8_t *data;
	size_t at = 0;

	if (saved_complete(&k->coming, p) || make_room(k, p))
		return -1;
	while ((data = records_next(&k->large_coming, &at, &record)))
		pieces_put(record.kind == SNAPSHOT_PAGE ? &k->pages : &k->blocks, record.index, data, record.bytes);
	records_free(&k->small);
	k->small = k->small_coming;
	k->small_coming = (struct records){ 0 };
	k->machine = k->coming;
	k->machine.page_seen = NULL;
	k->valid = true;
	kept_abandon(k);
	return 0;
}

const struct saved_machine *kept_machine(const struct kept *k) { return k->valid ? &k->machine : NULL; }
size_t kept_bytes(const struct kept *k) { return k->small_coming.n + k->large_coming.n; }

/* --- giving it back ------------------------------------------------------------------------------------------------- */

static bool give(const struct pieces *p, uint32_t kind, uint64_t i, struct snapfile_record *record, void *data)
{
	*record = (struct snapfile_record){ kind, (uint32_t)i, is_there(p, i) ? (uint32_t)bytes_of(p, i) : 0 };
	memcpy(data, p->bytes + i * BLOCK_BYTES, record->bytes);
	return true;
}

bool kept_next(const struct kept *k, struct kept_cursor *cursor, struct snapfile_record *record, void *data)
{
	const uint8_t *small = records_next(&k->small, &cursor->at, record);
	uint64_t gfn = cursor->gfn;

	if (small) {
		memcpy(data, small, record->bytes);
		return true;
	}
	if (pieces_next(&k->blocks, &cursor->block, cursor->changes))
		return give(&k->blocks, SNAPSHOT_BLOCK, cursor->block++, record, data);
	if (!pieces_next(&k->pages, &gfn, cursor->changes))
		return false;
	cursor->gfn = gfn + 1;
	return give(&k->pages, SNAPSHOT_PAGE, gfn, record, data);
}

void kept_copied(struct kept *k, bool copied)
{
	k->copied = copied;
	pieces_copied(&k->pages);
	pieces_copied(&k->blocks);
}

struct kept_cursor kept_changes(const struct kept *k) { return (struct kept_cursor){ .changes = k->copied }; }
