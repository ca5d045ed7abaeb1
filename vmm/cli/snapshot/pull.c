/* pull.c - see pull.h. */
#include "vmm/cli/snapshot/pull.h"

#include <string.h>
#include "vmm/cli/snapshot/saved.h"

enum { PULL = 512 /* PULL: items per request */, AHEAD = 2 * PULL, SEQ_MASK = 0xffff };

static void step(struct pull *p, enum snapshot_step what, uint32_t result)
{
	struct msg_snapshot body = { .seq = p->seq, .step = what, .result = result };

	client_send(p->client, MSG_SNAPSHOT, VNODE_CLI, &body, sizeof body, NULL, 0);
}

void pull_start(struct pull *p, enum snapshot_mode mode)
{
	p->seq = (p->seq + 1) & SEQ_MASK;
	p->part = p->asked = p->came = 0;
	p->mode = mode;
	p->active = true;
	p->is_cut = false;
	step(p, SNAPSHOT_SAVE, mode);
}

void pull_stop(struct pull *p)
{
	if (p->active)
		step(p, SNAPSHOT_END, 0);
	p->active = false;
}

void pull_thaw(struct pull *p) { step(p, SNAPSHOT_END, 0); }

static void fail(struct pull *p, const char *line, bool nothing_happened)
{
	pull_stop(p);
	p->failed(p->context, line, nothing_happened);
}

static void fail_as_bug(struct pull *p, const char *what)
{
	struct problem why;

	problem(&why, "the machine's state %s; this is a bug in vmp", what);
	fail(p, why.line, false);
}

static void ask(struct pull *p)
{
	struct msg_snapshot_pull body = { .of = p->part, .seq = p->seq, .count = PULL };

	while (p->asked - p->came <= AHEAD - PULL && !(p->is_full && p->is_full(p->context))) {
		client_send(p->client, MSG_SNAPSHOT_PULL, VNODE_CLI, &body, sizeof body, NULL, 0);
		p->asked += PULL;
	}
}

void pull_go_on(struct pull *p)
{
	if (p->active && p->is_cut)
		ask(p);
}

static void keep(struct pull *p, uint32_t kind, uint32_t index, const void *data, uint32_t bytes)
{
	struct snapfile_record record = { kind, index, bytes };
	struct problem why;

	if (p->keep(p->context, &record, data, &why))
		fail(p, why.line, false);
	else
		ask(p);
}

/* The machine runs again.  Its description is the first record; this side adds what only it
 * knows. */
static void on_cut(struct pull *p, const void *data, uint32_t bytes)
{
	struct snapshot_machine machine;
	uint8_t described[MAX_MSG_PAYLOAD];
	const char *line = (const char *)data + sizeof machine;

	if (bytes <= sizeof machine || line[bytes - sizeof machine - 1]) {
		fail_as_bug(p, "does not describe a machine");
		return;
	}
	memcpy(&machine, data, sizeof machine);
	p->is_cut = true;
	if (p->cut)
		p->cut(p->context);
	while (p->part != SNAPSHOT_OF_IOSRV && !(p->hosts >> p->part & 1))
		p->part++;
	keep(p, SNAPSHOT_MACHINE, 0, described,
	     saved_describe(&machine, line, p->kernel, described));
}

static void on_part_done(struct pull *p, uint32_t items)
{
	if (items != p->came) {
		fail_as_bug(p, "came without some of its items");
		return;
	}
	p->asked = p->came = 0;
	if (p->part == SNAPSHOT_OF_IOSRV) {
		if (p->mode != CHECKPOINT_LAST)
			pull_stop(p);
		p->active = false;
		p->done(p->context);
		return;
	}
	do
		p->part++;
	while (p->part != SNAPSHOT_OF_IOSRV && !(p->hosts >> p->part & 1));
	ask(p);
}

void pull_on_item(struct pull *p, const void *body, size_t body_bytes)
{
	const uint8_t *data = (const uint8_t *)body + sizeof(struct msg_snapshot_item);
	uint32_t bytes = body_bytes - sizeof(struct msg_snapshot_item);
	struct msg_snapshot_item item;
	struct problem why;

	memcpy(&item, body, sizeof item);
	if (!p->active || item.seq != p->seq)
		return;
	switch (item.kind) {
	case SNAPSHOT_REFUSED:
		problem(&why, "%.*s", (int)bytes, (const char *)data);
		fail(p, why.line, item.index);
		return;
	case SNAPSHOT_WAITS:
		problem(&why, "%.*s", (int)bytes, (const char *)data);
		if (p->waits)
			p->waits(p->context, why.line);
		return;
	case SNAPSHOT_MACHINE:
		on_cut(p, data, bytes);
		return;
	case SNAPSHOT_LAST:
		on_part_done(p, item.index);
		return;
	default:
		p->came++;
		keep(p, item.kind, item.index, data, bytes);
	}
}
