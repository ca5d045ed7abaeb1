/* kept.c - see kept.h.  Pages and disk blocks are in sparse memory as large as the guest's, which
 * uses host memory only where something was written.  All other records are few, and each
 * checkpoint brings them anew. */
#include "vmm/cli/snapshot/kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/faultpoint.h"
#include "base/layout.h"

enum { BLOCK_BYTES = 4096, FIRST_ROOM = 1 << 20 };

struct records { uint8_t *bytes; size_t n, room; };
/* Pieces of 4 KiB. `there`: which exist.  `changed`: which have appeared or gone since the last
 * copy.  `end`: total bytes. */
struct pieces { uint8_t *bytes, *there, *changed; uint64_t end; };

struct kept {
	bool valid, changes;
	bool copied; /* what has changed since the copy is marked in `pages` and `blocks` */
	struct saved_machine machine, coming;
	struct records small, small_coming; /* all records but pages and blocks */
	struct records large_coming;
	struct pieces pages, blocks[MAX_DISKS];
};

static void records_free(struct records *r)
{
	free(r->bytes);
	*r = (struct records){ 0 };
}

/* Forgets the records.  Their memory stays for the next ones, unless these needed little of it: new
 * memory costs as much as to copy into it. */
static void records_forget(struct records *r)
{
	if (r->n && r->n < r->room / 4)
		records_free(r);
	r->n = 0;
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

/* Returns the data of the record at `*at`, and advances `*at`; NULL at the end. */
static const uint8_t *records_next(const struct records *r, size_t *at,
				   struct snapfile_record *record)
{
	const uint8_t *data;

	if (*at == r->n)
		return NULL;
	memcpy(record, r->bytes + *at, sizeof *record);
	data = r->bytes + *at + sizeof *record;
	*at += sizeof *record + record->bytes;
	return data;
}

static uint64_t count_of(const struct pieces *p)
{
	return (p->end + BLOCK_BYTES - 1) / BLOCK_BYTES;
}
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
	p->bytes = mmap(NULL, end, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->bytes == MAP_FAILED)
		p->bytes = NULL;
	if (p->bytes && p->there && p->changed)
		return 0;
	pieces_free(p);
	return -1;
}

/* Stores a piece.  Without data it is zero, and not there any more. kept_add() has checked the
 * index. */
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

/* ---- taking a checkpoint ---- */

struct kept *kept_new(void) { return calloc(1, sizeof(struct kept)); }

void kept_free(struct kept *k)
{
	if (!k)
		return;
	kept_abandon(k);
	records_free(&k->large_coming);
	records_free(&k->small);
	pieces_free(&k->pages);
	for (unsigned i = 0; i < MAX_DISKS; i++)
		pieces_free(&k->blocks[i]);
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
	records_forget(&k->large_coming);
}

int kept_add(struct kept *k, const struct snapfile_record *record, const void *data,
	     struct problem *p)
{
	bool large = record->kind == SNAPSHOT_PAGE || record->kind == SNAPSHOT_BLOCK;

	if (saved_has(&k->coming, record))
		return 0;
	if (saved_add(&k->coming, record, data, p))
		return -1;
	if (fault_on(FAULT_SNAPSHOT_FULL) == (record->kind == SNAPSHOT_PAGE  ? 1
					      : record->kind == SNAPSHOT_CPU ? 2
									     : ~0u) ||
	    records_add(large ? &k->large_coming : &k->small_coming, record, data))
		return problem(p, "needs more memory than there is");
	return 0;
}

static bool is_same_machine(const struct kept *k, uint64_t ram)
{
	bool same = k->valid && k->pages.end == ram;

	for (unsigned i = 0; i < MAX_DISKS; i++)
		same &= k->blocks[i].end == k->coming.disk[i].bytes;
	return same;
}

/* Makes memory for a new machine's pages and blocks; for changes, checks that they belong to the
 * kept machine. */
static int make_room(struct kept *k, struct problem *p)
{
	uint64_t ram = (uint64_t)ram_pages_of(k->coming.was.mem_mib) << PAGE_BITS;
	int error;

	if (k->changes)
		return is_same_machine(k, ram) ? 0 : problem(p, "has changes of another machine");
	k->valid = k->copied = false;
	error = pieces_make(&k->pages, ram);
	for (unsigned i = 0; i < MAX_DISKS && !error; i++)
		error = pieces_make(&k->blocks[i], k->coming.disk[i].bytes);
	return error ? problem(p, "needs more memory than there is") : 0;
}

/* A page or a block: the index was checked when it came. */
static void put(struct kept *k, const struct snapfile_record *record, const void *data)
{
	if (record->kind == SNAPSHOT_PAGE)
		pieces_put(&k->pages, record->index, data, record->bytes);
	else
		pieces_put(&k->blocks[record->index >> SNAPSHOT_DISK_SHIFT],
			   record->index & SNAPSHOT_BLOCK_MASK, data, record->bytes);
}

int kept_commit(struct kept *k, struct problem *p)
{
	struct snapfile_record record;
	const uint8_t *data;
	size_t at = 0;

	if (saved_complete(&k->coming, p) || make_room(k, p))
		return -1;
	while ((data = records_next(&k->large_coming, &at, &record)))
		put(k, &record, data);
	records_free(&k->small);
	k->small = k->small_coming;
	k->small_coming = (struct records){ 0 };
	k->machine = k->coming;
	k->machine.page_seen = NULL;
	k->valid = true;
	kept_abandon(k);
	return 0;
}

const struct saved_machine *kept_machine(const struct kept *k)
{
	return k->valid ? &k->machine : NULL;
}
size_t kept_bytes(const struct kept *k) { return k->small_coming.n + k->large_coming.n; }

/* ---- reading it ---- */

/* `disk`: the number of a disk whose block it is, shifted; 0 of a page. */
static bool give(const struct pieces *p, uint32_t kind, uint32_t disk, uint64_t i,
		 struct snapfile_record *record, void *data)
{
	*record = (struct snapfile_record){ kind, disk | (uint32_t)i,
					    is_there(p, i) ? (uint32_t)bytes_of(p, i) : 0 };
	memcpy(data, p->bytes + i * BLOCK_BYTES, record->bytes);
	return true;
}

static bool next_block(const struct kept *k, struct kept_cursor *cursor,
		       struct snapfile_record *record, void *data)
{
	for (; cursor->disk < MAX_DISKS; cursor->disk++, cursor->block = 0)
		if (pieces_next(&k->blocks[cursor->disk], &cursor->block, cursor->changes))
			return give(&k->blocks[cursor->disk], SNAPSHOT_BLOCK,
				    cursor->disk << SNAPSHOT_DISK_SHIFT, cursor->block++, record,
				    data);
	return false;
}

bool kept_next(const struct kept *k, struct kept_cursor *cursor, struct snapfile_record *record,
	       void *data)
{
	const uint8_t *small = records_next(&k->small, &cursor->at, record);
	uint64_t gfn = cursor->gfn;

	if (small) {
		memcpy(data, small, record->bytes);
		return true;
	}
	if (next_block(k, cursor, record, data))
		return true;
	if (!pieces_next(&k->pages, &gfn, cursor->changes))
		return false;
	cursor->gfn = gfn + 1;
	return give(&k->pages, SNAPSHOT_PAGE, 0, gfn, record, data);
}

void kept_copied(struct kept *k, bool copied)
{
	k->copied = copied;
	pieces_copied(&k->pages);
	for (unsigned i = 0; i < MAX_DISKS; i++)
		pieces_copied(&k->blocks[i]);
}

struct kept_cursor kept_changes(const struct kept *k)
{
	return (struct kept_cursor){ .changes = k->copied };
}
