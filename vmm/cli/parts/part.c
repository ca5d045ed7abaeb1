/* part.c - see part.h.  Pages and blocks are in sparse memory, which uses the computer's only where
 * something was written.  A whole checkpoint is written into sparse memory of its own, changes into
 * a list: so changes need no more memory than they have bytes. */
#include "vmm/cli/parts/part.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/layout.h"
#include "base/limits.h"
#include "vmm/cli/parts/recordlist.h"

enum { PIECE_BYTES = 4096, FIRST_PIECES = 1 << 12 };

/* Pieces of 4 KiB. `there`: which exist.  `changed`: which have appeared or gone since the last
 * copy.  `room`: for so many, a power of two.  `end`: where the last one ends, in bytes. */
struct pieces { uint8_t *bytes, *there, *changed; uint64_t room, end; };
struct contents { struct pieces pages, blocks[MAX_DISKS]; };

struct part {
	struct contents is, comes; /* comes: of a whole checkpoint */
	struct recordlist changes;
	bool changing;
	size_t bytes;
};

/* ---- the list of changes ---- */

/* Forgets the records.  Their memory stays for the next ones, unless these needed little of it: new
 * memory costs as much as to copy into it. */
static void records_forget(struct recordlist *r)
{
	if (r->n && r->n < r->room / 4)
		recordlist_free(r);
	r->n = 0;
}

/* ---- pieces ---- */

static size_t bits_bytes(uint64_t pieces) { return pieces / 8; }

static void pieces_free(struct pieces *p)
{
	if (p->bytes)
		munmap(p->bytes, p->room * PIECE_BYTES);
	free(p->there);
	free(p->changed);
	*p = (struct pieces){ 0 };
}

static int grow_bits(uint8_t **bits, uint64_t from, uint64_t to)
{
	uint8_t *grown = realloc(*bits, bits_bytes(to));

	if (!grown)
		return -1;
	memset(grown + bits_bytes(from), 0, bits_bytes(to) - bits_bytes(from));
	*bits = grown;
	return 0;
}

/* Makes room for piece `i`.  Returns 0, or -1 without memory; then all stays as it was. */
static int make_room(struct pieces *p, uint64_t i)
{
	uint64_t room = p->room ? p->room : FIRST_PIECES;
	void *bytes;

	while (room <= i)
		room *= 2;
	if (room == p->room)
		return 0;
	if (grow_bits(&p->there, p->room, room) || grow_bits(&p->changed, p->room, room))
		return -1;
	bytes = p->bytes ? mremap(p->bytes, p->room * PIECE_BYTES, room * PIECE_BYTES,
				  MREMAP_MAYMOVE)
			 : mmap(NULL, room * PIECE_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -1;
	p->bytes = bytes;
	p->room = room;
	return 0;
}

/* Stores a piece for which there is room.  Without data it is zero, and not there any more. */
static void put(struct pieces *p, uint64_t i, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(p->bytes + i * PIECE_BYTES, data, bytes);
	if (bytes)
		p->there[i / 8] |= 1 << i % 8;
	else
		p->there[i / 8] &= ~(1 << i % 8);
	p->changed[i / 8] |= 1 << i % 8;
	if (bytes && p->end < i * PIECE_BYTES + bytes)
		p->end = i * PIECE_BYTES + bytes;
}

static bool is_there(const struct pieces *p, uint64_t i) { return p->there[i / 8] >> i % 8 & 1; }

/* The last block of a disk may be shorter. */
static size_t bytes_of(const struct pieces *p, uint64_t i)
{
	return p->end - i * PIECE_BYTES < PIECE_BYTES ? p->end - i * PIECE_BYTES : PIECE_BYTES;
}

static bool next_piece(const struct pieces *p, uint64_t *i, bool changes)
{
	const uint8_t *wanted = changes ? p->changed : p->there;

	while (*i < p->room)
		if (!wanted[*i / 8])
			*i = (*i / 8 + 1) * 8;
		else if (wanted[*i / 8] >> *i % 8 & 1)
			return true;
		else
			++*i;
	return false;
}

/* ---- contents ---- */

static void contents_free(struct contents *c)
{
	pieces_free(&c->pages);
	for (unsigned i = 0; i < MAX_DISKS; i++)
		pieces_free(&c->blocks[i]);
}

static struct pieces *pieces_of(struct contents *c, const struct snapfile_record *record)
{
	return record->kind == SNAPSHOT_PAGE ? &c->pages
					     : &c->blocks[record->index >> SNAPSHOT_DISK_SHIFT];
}

static uint64_t number_of(const struct snapfile_record *record)
{
	return record->kind == SNAPSHOT_PAGE ? record->index : record->index & SNAPSHOT_BLOCK_MASK;
}

/* ---- taking a checkpoint ---- */

struct part *part_new(void) { return calloc(1, sizeof(struct part)); }

void part_free(struct part *part)
{
	if (!part)
		return;
	contents_free(&part->is);
	contents_free(&part->comes);
	recordlist_free(&part->changes);
	free(part);
}

bool part_takes(const struct snapfile_record *record)
{
	if (record->bytes > PIECE_BYTES)
		return false;
	return record->kind == SNAPSHOT_PAGE
		       ? record->index < MAX_RAM_PAGES
		       : record->kind == SNAPSHOT_BLOCK &&
				 record->index >> SNAPSHOT_DISK_SHIFT < MAX_DISKS;
}

void part_begin(struct part *part, bool changes)
{
	part_abandon(part);
	part->changing = changes;
	if (!changes)
		recordlist_free(&part->changes);
}

void part_abandon(struct part *part)
{
	contents_free(&part->comes);
	records_forget(&part->changes);
	part->bytes = 0;
}

int part_add(struct part *part, const struct snapfile_record *record, const void *data)
{
	struct pieces *p = pieces_of(part->changing ? &part->is : &part->comes, record);

	if (make_room(p, number_of(record)))
		return -1;
	if (part->changing && recordlist_add(&part->changes, record, data))
		return -1;
	if (!part->changing)
		put(p, number_of(record), data, record->bytes);
	part->bytes += sizeof *record + record->bytes;
	return 0;
}

static void apply_changes(struct part *part)
{
	struct snapfile_record record;
	const uint8_t *data;
	size_t at = 0;

	while ((data = recordlist_next(&part->changes, &at, &record)))
		put(pieces_of(&part->is, &record), number_of(&record), data, record.bytes);
}

void part_commit(struct part *part)
{
	if (part->changing) {
		apply_changes(part);
	} else {
		contents_free(&part->is);
		part->is = part->comes;
		part->comes = (struct contents){ 0 };
	}
	part_abandon(part);
}

size_t part_bytes(const struct part *part) { return part->bytes; }

/* ---- reading it ---- */

/* `disk`: the number of a disk whose block it is, shifted; 0 of a page. */
static bool give(const struct pieces *p, uint32_t kind, uint32_t disk, uint64_t i,
		 struct snapfile_record *record, void *data)
{
	*record = (struct snapfile_record){ kind, disk | (uint32_t)i,
					    is_there(p, i) ? (uint32_t)bytes_of(p, i) : 0 };
	memcpy(data, p->bytes + i * PIECE_BYTES, record->bytes);
	return true;
}

bool part_next(const struct part *part, struct part_cursor *cursor, struct snapfile_record *record,
	       void *data)
{
	uint64_t gfn = cursor->gfn;

	for (; cursor->disk < MAX_DISKS; cursor->disk++, cursor->block = 0)
		if (next_piece(&part->is.blocks[cursor->disk], &cursor->block, cursor->changes))
			return give(&part->is.blocks[cursor->disk], SNAPSHOT_BLOCK,
				    cursor->disk << SNAPSHOT_DISK_SHIFT, cursor->block++, record,
				    data);
	if (!next_piece(&part->is.pages, &gfn, cursor->changes))
		return false;
	cursor->gfn = gfn + 1;
	return give(&part->is.pages, SNAPSHOT_PAGE, 0, gfn, record, data);
}

static void pieces_copied(struct pieces *p)
{
	if (p->changed)
		memset(p->changed, 0, bits_bytes(p->room));
}

void part_copied(struct part *part)
{
	pieces_copied(&part->is.pages);
	for (unsigned i = 0; i < MAX_DISKS; i++)
		pieces_copied(&part->is.blocks[i]);
}
