/* kept.c - see kept.h.  All records but pages and blocks are few, and each checkpoint brings them
 * anew. */
#include "vmm/cli/snapshot/kept.h"

#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/layout.h"
#include "vmm/cli/parts/recordlist.h"

struct kept {
	bool valid, changes;
	bool copied; /* what has changed since the copy is marked in `part` */
	struct saved_machine machine, coming;
	struct recordlist small, small_coming; /* all records but pages and blocks */
	struct part *part;
	/* where pages and blocks go; NULL: into `part` */
	void (*put)(void *context, const struct snapfile_record *record, const void *data);
	void *context;
	size_t put_bytes; /* of this checkpoint */
};

/* ---- taking a checkpoint ---- */

struct kept *kept_new(void)
{
	struct kept *k = calloc(1, sizeof *k);

	if (k)
		k->part = part_new();
	if (k && !k->part) {
		free(k);
		return NULL;
	}
	return k;
}

void kept_put_elsewhere(struct kept *k,
			void (*put)(void *context, const struct snapfile_record *record,
				    const void *data),
			void *context)
{
	k->put = put;
	k->context = context;
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	saved_free(&k->coming);
	recordlist_free(&k->small_coming);
	recordlist_free(&k->small);
	part_free(k->part);
	free(k);
}

void kept_begin(struct kept *k, bool changes)
{
	kept_abandon(k);
	k->changes = k->coming.changes = changes;
	k->coming.elsewhere = k->put;
	part_begin(k->part, changes);
}

static void forget_coming(struct kept *k)
{
	saved_free(&k->coming);
	memset(&k->coming, 0, sizeof k->coming);
	recordlist_free(&k->small_coming);
	k->put_bytes = 0;
}

void kept_abandon(struct kept *k)
{
	forget_coming(k);
	part_abandon(k->part);
}

static int add(struct kept *k, const struct snapfile_record *record, const void *data)
{
	if (!part_takes(record))
		return recordlist_add(&k->small_coming, record, data);
	if (!k->put)
		return part_add(k->part, record, data);
	k->put_bytes += sizeof *record + record->bytes;
	k->put(k->context, record, data);
	return 0;
}

int kept_add(struct kept *k, const struct snapfile_record *record, const void *data,
	     struct problem *p)
{
	if (saved_has(&k->coming, record))
		return 0;
	if (saved_add(&k->coming, record, data, p))
		return -1;
	if (fault_on(FAULT_SNAPSHOT_FULL) == (record->kind == SNAPSHOT_PAGE  ? 1
					      : record->kind == SNAPSHOT_CPU ? 2
									     : ~0u) ||
	    add(k, record, data))
		return problem(p, "needs more memory than there is");
	return 0;
}

static bool is_same_machine(const struct kept *k)
{
	bool same = k->valid && k->machine.was.mem_mib == k->coming.was.mem_mib;

	for (unsigned i = 0; i < MAX_DISKS; i++)
		same &= k->machine.disk[i].bytes == k->coming.disk[i].bytes;
	return same;
}

int kept_commit(struct kept *k, struct problem *p)
{
	if (saved_complete(&k->coming, p))
		return -1;
	if (k->changes && !is_same_machine(k))
		return problem(p, "has changes of another machine");
	part_commit(k->part);
	k->copied &= k->changes;
	recordlist_free(&k->small);
	k->small = k->small_coming;
	k->small_coming = (struct recordlist){ 0 };
	k->machine = k->coming;
	k->machine.page_seen = NULL;
	k->valid = true;
	forget_coming(k);
	return 0;
}

const struct saved_machine *kept_machine(const struct kept *k)
{
	return k->valid ? &k->machine : NULL;
}

size_t kept_bytes(const struct kept *k)
{
	return k->small_coming.n + k->put_bytes + part_bytes(k->part);
}

/* ---- reading it ---- */

bool kept_next(const struct kept *k, struct kept_cursor *cursor, struct snapfile_record *record,
	       void *data)
{
	const uint8_t *small = recordlist_next(&k->small, &cursor->at, record);

	if (!small)
		return part_next(k->part, &cursor->part, record, data);
	memcpy(data, small, record->bytes);
	return true;
}

void kept_copied(struct kept *k, bool copied)
{
	k->copied = copied;
	part_copied(k->part);
}

struct kept_cursor kept_changes(const struct kept *k)
{
	return (struct kept_cursor){ .part.changes = k->copied };
}
