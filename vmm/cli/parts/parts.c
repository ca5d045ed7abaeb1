/* parts.c - see parts.h. */
#include "vmm/cli/parts/parts.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "vmm/cli/parts/holder_record.h"
#include "vmm/cli/parts/holder_start.h"
#include "vmm/cli/parts/parts_layout.h"

enum {
	FULL_BYTES = 2 << 20,	/* queued for one holder */
	AHEAD_BYTES = 1 << 20,	/* read from one holder in advance */
	STILL_LOOKS = 20,
	END_MS = 3000,
};

static size_t queued(const struct holder *h)
{
	return evbuffer_get_length(bufferevent_get_output(h->ssh.to));
}

static void put(struct holder *h, uint32_t kind, uint32_t index, const void *data, size_t bytes)
{
	struct snapfile_record record = { kind, index, (uint32_t)bytes };

	if (h->state != HOLDER_OFF && (bufferevent_write(h->ssh.to, &record, sizeof record) ||
				       (bytes && bufferevent_write(h->ssh.to, data, bytes))))
		h->still_looks = STILL_LOOKS; /* no memory: it is given up at the next look */
}

/* Returns the place of a holder in a layout, or -1. */
static int place_in(const struct parts *parts, const struct parts_layout *layout,
		    const struct holder *h)
{
	for (uint32_t i = 0; i < layout->n; i++)
		if (&parts->holder[layout->holder[i]] == h)
			return (int)i;
	return -1;
}

static void tell_all(struct parts *parts, const struct parts_layout *layout, uint32_t kind,
		     uint32_t index, const void *data, size_t bytes)
{
	for (uint32_t i = 0; i < layout->n; i++)
		put(&parts->holder[layout->holder[i]], kind, index, data, bytes);
}

/* ---- the end of a holder ---- */

static void turn_off(struct holder *h)
{
	ssh_streams_close(&h->ssh);
	h->state = HOLDER_OFF;
	h->due = 0;
}

static bool is_needed(const struct parts *parts, const struct holder *h)
{
	return place_in(parts, &parts->is, h) >= 0 || place_in(parts, &parts->comes, h) >= 0 ||
	       place_in(parts, &parts->before, h) >= 0;
}

/* Tells a holder to end, and does not wait for it. */
static void say_end(struct holder *h)
{
	struct evbuffer *output = bufferevent_get_output(h->ssh.to);

	put(h, HOLD_END, 0, NULL, 0);
	evbuffer_unfreeze(output, true);
	evbuffer_write(output, bufferevent_getfd(h->ssh.to));
	evbuffer_freeze(output, true);
}

/* Ends the holders that retire, if nothing that they hold is needed. */
static void end_unneeded(struct parts *parts)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++) {
		struct holder *h = &parts->holder[i];

		if (h->state != HOLDER_OFF && h->retires && !is_needed(parts, h))
			put(h, HOLD_END, 0, NULL, 0);
	}
}

static void stop_reading(struct parts *parts);

static void give_up(struct holder *h, const char *why)
{
	struct parts *parts = h->parts;
	bool comes = parts->state == PARTS_COME || parts->state == PARTS_SEAL;
	bool unneeded = h->retires && !is_needed(parts, h);
	bool needed = (comes && place_in(parts, &parts->comes, h) >= 0) ||
		      (parts->state == PARTS_READ && h->due);
	struct cluster_host host = h->host;
	struct problem said;

	problem(&said, "%s", why); /* it may be in the holder */
	turn_off(h);
	if (needed && parts->state == PARTS_READ)
		stop_reading(parts);
	if (!unneeded)
		parts->lost(parts->context, &host, said.line, needed);
}

/* ---- what holders say ---- */

static void check_sealed(struct parts *parts)
{
	for (uint32_t i = 0; i < parts->comes.n; i++)
		if (!parts->holder[parts->comes.holder[i]].sealed)
			return;
	if (parts->state == PARTS_SEAL)
		parts->sealed(parts->context);
}

/* Takes the next record that is whole.  Returns false if there is none, or the holder is given
 * up. */
static bool take_record(struct holder *h, struct evbuffer *input, struct snapfile_record *record,
			void *data)
{
	if (evbuffer_copyout(input, record, sizeof *record) != sizeof *record)
		return false;
	if (record->bytes > MAX_MSG_PAYLOAD) {
		give_up(h, "what it says is nothing that a holder says");
		return false;
	}
	if (evbuffer_get_length(input) < sizeof *record + record->bytes)
		return false;
	evbuffer_drain(input, sizeof *record);
	evbuffer_remove(input, data, record->bytes);
	return true;
}

/* Takes a record that is no part of the checkpoint. */
static void take_answer(struct holder *h, const struct snapfile_record *record, const char *data)
{
	struct parts *parts = h->parts;
	struct hold_ready ready = { 0 };
	struct problem why;

	switch (record->kind) {
	case HOLD_READY:
		if (record->bytes == sizeof ready)
			memcpy(&ready, data, sizeof ready);
		h->state = HOLDER_READY;
		h->has = ready.sealed && ready.sealed == parts->is_number ? ready.sealed : ready.is;
		return;
	case HOLD_SEALED:
		h->sealed |= parts->state == PARTS_SEAL && record->index == parts->number;
		check_sealed(parts);
		return;
	case HOLD_GIVEN:
		h->due -= h->due > 0;
		return;
	case HOLD_CANNOT:
		problem(&why, "%.*s", (int)record->bytes, data);
		give_up(h, why.line);
		return;
	default:
		give_up(h, "what it says is nothing that a holder says");
	}
}

static bool is_read(const struct holder *h)
{
	return h->parts->state == PARTS_READ && h->due == 1;
}

/* Takes answers at once.  A part waits until parts_next() takes it; unless nobody reads it any
 * more. */
static void take_all(struct holder *h, struct evbuffer *input)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	const struct bufferevent *from = h->ssh.from;
	struct snapfile_record record;

	while (h->ssh.from == from && !is_read(h) && take_record(h, input, &record, data))
		if (!part_takes(&record) || !h->due)
			take_answer(h, &record, (const char *)data);
}

static void on_bytes(void *context, struct evbuffer *input)
{
	struct holder *h = context;

	h->still_looks = 0;
	take_all(h, input);
	if (is_read(h))
		h->parts->has_more(h->parts->context);
}

static void on_end(void *context)
{
	struct holder *h = context;

	give_up(h, h->ssh.said[0] ? h->ssh.said : "its connection ended");
}

static void on_room(void *context)
{
	struct holder *h = context;
	struct parts *parts = h->parts;

	if (!parts->was_full)
		return;
	parts->was_full = false;
	if (!parts_is_full(parts))
		parts->has_room(parts->context);
}

/* Something should come from a holder, or go to it. */
static bool is_awaited(const struct holder *h)
{
	return h->state == HOLDER_STARTS || queued(h) || is_read(h) ||
	       (h->parts->state == PARTS_SEAL && !h->sealed &&
		place_in(h->parts, &h->parts->comes, h) >= 0);
}

/* What has come and was not taken yet is no reason to give a holder up. */
static bool has_moved(struct holder *h)
{
	size_t before = h->queued;

	h->queued = queued(h);
	return h->queued < before || !is_awaited(h) ||
	       evbuffer_get_length(bufferevent_get_input(h->ssh.from));
}

static void on_look(void *context)
{
	struct parts *parts = context;

	for (unsigned i = 0; i < MAX_HOLDERS; i++) {
		struct holder *h = &parts->holder[i];

		if (h->state == HOLDER_OFF)
			continue;
		h->still_looks = has_moved(h) ? 0 : h->still_looks + 1;
		if (h->still_looks > STILL_LOOKS)
			give_up(h, "nothing was heard of it for a while");
	}
	loop_after(parts->look, parts->look_ms * (uint64_t)LOOP_MS);
}

/* ---- start and end ---- */

int parts_open(struct parts *parts)
{
	/* so that no two owners give the same number */
	if (getrandom(&parts->number, sizeof parts->number, 0) != sizeof parts->number)
		return -1;
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		parts->holder[i].parts = parts;
	parts->look = loop_timer(&parts->loop, on_look, parts);
	return parts->look ? loop_after(parts->look, parts->look_ms * (uint64_t)LOOP_MS) : -1;
}

void parts_close(struct parts *parts)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state != HOLDER_OFF)
			turn_off(&parts->holder[i]);
	loop_remove(parts->look);
	parts->look = NULL;
	parts->is.n = parts->comes.n = parts->before.n = 0;
	parts->state = PARTS_IDLE;
}

static bool is_off(const struct parts *parts)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state != HOLDER_OFF)
			return false;
	return true;
}

static void on_limit(void *context) { (void)context; }

void parts_end(struct parts *parts)
{
	struct loop_event *limit = loop_timer(&parts->loop, on_limit, NULL);

	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		put(&parts->holder[i], HOLD_END, 0, NULL, 0);
	if (limit && !loop_after(limit, END_MS * (uint64_t)LOOP_MS))
		while (!is_off(parts) && loop_is_armed(limit))
			event_base_loop(parts->base, EVLOOP_ONCE);
	loop_remove(limit);
}

/* Returns the slot of a holder whose part of the last checkpoint is not connected. */
static struct holder *find_lacking(struct parts *parts, const char *host)
{
	for (uint32_t i = 0; i < parts->is.n; i++) {
		struct holder *h = &parts->holder[parts->is.holder[i]];

		if (h->state == HOLDER_OFF && !strcmp(h->host.name, host))
			return h;
	}
	return NULL;
}

bool parts_lacks(const struct parts *parts, const char *host)
{
	return find_lacking((struct parts *)parts, host);
}

/* Returns a holder that is off, and that no layout needs. */
static struct holder *find_free(struct parts *parts)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state == HOLDER_OFF && !is_needed(parts, &parts->holder[i]))
			return &parts->holder[i];
	return NULL;
}

int parts_hold(struct parts *parts, const struct cluster_host *host, const char *hash, uint32_t mib,
	       struct problem *p)
{
	struct hold_hello hello = { .mib = mib, .lingers = parts->lingers };
	struct holder *h = find_lacking(parts, host->name);
	struct ssh ssh;

	if (!h)
		h = find_free(parts);
	if (!h)
		return problem(p, "too many hosts have come and gone since the last checkpoint");
	if (holder_start(&ssh, host, hash))
		return problem(p, "no process can be started: too many, or too many open files?");
	*h = (struct holder){ .parts = parts, .host = *host, .state = HOLDER_STARTS,
			      .ssh = { .base = parts->base, .log_fd = parts->log_fd,
				       .low_bytes = FULL_BYTES / 2, .context = h,
				       .on_bytes = on_bytes, .on_room = on_room,
				       .on_end = on_end } };
	if (ssh_streams_open(&h->ssh, &ssh)) {
		h->state = HOLDER_OFF;
		return problem(p, "no memory");
	}
	bufferevent_setwatermark(h->ssh.from, EV_READ, 0, AHEAD_BYTES);
	hello.place = (uint32_t)(h - parts->holder);
	if (parts->id[0])
		presence_name(hello.name, parts->id, host->name);
	put(h, HOLD_HELLO, 0, &hello, sizeof hello);
	return 0;
}

bool parts_has(const struct parts *parts, const char *host)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state != HOLDER_OFF && !parts->holder[i].retires &&
		    !strcmp(parts->holder[i].host.name, host))
			return true;
	return false;
}

void parts_retire(struct parts *parts, bool (*is_host)(void *context, const char *host))
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state != HOLDER_OFF)
			parts->holder[i].retires =
				!is_host(parts->context, parts->holder[i].host.name);
	end_unneeded(parts);
}

void parts_lose(struct parts *parts, bool (*is_host)(void *context, const char *host))
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++) {
		struct holder *h = &parts->holder[i];

		if (h->state == HOLDER_OFF || h->retires || is_host(parts->context, h->host.name))
			continue;
		say_end(h);
		turn_off(h);
	}
}

void parts_processes(const struct parts *parts, pid_t pids[MAX_HOLDERS + 1])
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state != HOLDER_OFF)
			pids[n++] = parts->holder[i].ssh.pid;
	pids[n] = 0;
}

/* ---- a checkpoint comes ---- */

/* Returns the layout of a whole checkpoint that begins now. */
static struct parts_layout new_layout(const struct parts *parts)
{
	struct parts_layout layout = { 0 };

	for (unsigned i = 0; i < MAX_HOLDERS && layout.n < MAX_NODES; i++)
		if (parts->holder[i].state == HOLDER_READY && !parts->holder[i].retires)
			layout.holder[layout.n++] = (uint8_t)i;
	return layout;
}

bool parts_settle(const struct parts *parts)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (parts->holder[i].state == HOLDER_STARTS && !parts->holder[i].retires)
			return true;
	return false;
}

bool parts_are_ready(const struct parts *parts)
{
	return !parts_settle(parts) && !parts->has_before && new_layout(parts).n;
}

/* Returns the set of places of the last checkpoint whose holders have their parts. */
static uint32_t alive(const struct parts *parts)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < parts->is.n; i++) {
		const struct holder *h = &parts->holder[parts->is.holder[i]];

		set |= (uint32_t)(h->state == HOLDER_READY && h->has == parts->is_number) << i;
	}
	return set;
}

bool parts_stay(const struct parts *parts)
{
	struct parts_layout layout = new_layout(parts);

	return parts->is.n && alive(parts) + 1ull == 1ull << parts->is.n &&
	       !memcmp(&layout, &parts->is, sizeof layout);
}

void parts_begin(struct parts *parts, bool changes)
{
	uint32_t word = changes;

	parts->comes = changes ? parts->is : new_layout(parts);
	parts->was_full = false;
	parts->number += parts->number == ~0u ? 2 : 1; /* 0 is none */
	parts->state = PARTS_COME;
	tell_all(parts, &parts->comes, HOLD_BEGIN, parts->number, &word, sizeof word);
}

void parts_add(struct parts *parts, const struct snapfile_record *record, const void *data)
{
	const struct parts_layout *to = &parts->comes;

	for (uint32_t i = 0; i < to->n; i++)
		if (layout_has(to->n, i, record))
			put(&parts->holder[to->holder[i]], record->kind, record->index, data,
			    record->bytes);
}

void parts_seal(struct parts *parts)
{
	parts->state = PARTS_SEAL;
	for (uint32_t i = 0; i < parts->comes.n; i++)
		parts->holder[parts->comes.holder[i]].sealed = false;
	tell_all(parts, &parts->comes, HOLD_SEAL, parts->number, NULL, 0);
}

void parts_commit(struct parts *parts)
{
	parts->before = parts->is;
	parts->has_before = true;
	parts->is = parts->comes;
	parts->is_number = parts->number;
	for (uint32_t i = 0; i < parts->is.n; i++)
		parts->holder[parts->is.holder[i]].has = parts->number;
	parts->comes.n = 0;
	parts->state = PARTS_IDLE;
}

/* (TRICKS: standby-knows-late) */
void parts_forget_before(struct parts *parts)
{
	uint32_t set = alive(parts);

	if (!parts->has_before)
		return;
	for (uint32_t i = 0; i < parts->is.n; i++)
		if (set >> i & 1)
			put(&parts->holder[parts->is.holder[i]], HOLD_COMMIT, parts->is_number,
			    NULL, 0);
	parts->has_before = false;
	parts->before.n = 0;
	end_unneeded(parts);
}

/* What is being given is not read any more: a holder stops when it hears anything. */
static void stop_reading(struct parts *parts)
{
	parts->state = PARTS_IDLE;
	for (unsigned i = 0; i < MAX_HOLDERS; i++) {
		struct holder *h = &parts->holder[i];

		if (h->state == HOLDER_OFF || !h->due)
			continue;
		put(h, HOLD_ABANDON, parts->number, NULL, 0);
		take_all(h, bufferevent_get_input(h->ssh.from));
	}
}

void parts_abandon(struct parts *parts)
{
	if (parts->state == PARTS_READ)
		stop_reading(parts);
	if (parts->state != PARTS_COME && parts->state != PARTS_SEAL)
		return;
	tell_all(parts, &parts->comes, HOLD_ABANDON, parts->number, NULL, 0);
	parts->comes.n = 0;
	parts->state = PARTS_IDLE;
	end_unneeded(parts);
}

bool parts_is_full(struct parts *parts)
{
	for (uint32_t i = 0; i < parts->comes.n && !parts->was_full; i++) {
		const struct holder *h = &parts->holder[parts->comes.holder[i]];

		parts->was_full = h->state != HOLDER_OFF && queued(h) > FULL_BYTES;
	}
	return parts->was_full;
}

/* ---- reading the last one ---- */

int parts_check(const struct parts *parts, struct problem *p)
{
	const struct parts_layout *is = &parts->is;
	unsigned lost;

	if (!is->n)
		return problem(p, "is in no holder");
	if (layout_is_whole(is->n, alive(parts), &lost))
		return 0;
	return problem(p, "lacks the part that was on %s and %s, which are both lost",
		       parts->holder[is->holder[lost]].host.name,
		       parts->holder[is->holder[(lost + 1) % is->n]].host.name);
}

void parts_read(struct parts *parts)
{
	struct hold_give give = { .holders = parts->is.n, .alive = alive(parts) };

	parts->state = PARTS_READ;
	for (; give.you < parts->is.n; give.you++) {
		struct holder *h = &parts->holder[parts->is.holder[give.you]];

		if (!(give.alive >> give.you & 1))
			continue;
		h->due++;
		put(h, HOLD_GIVE, parts->is_number, &give, sizeof give);
	}
}

int parts_next(struct parts *parts, struct snapfile_record *record, void *data)
{
	bool more = false;

	for (uint32_t i = 0; i < parts->is.n && parts->state == PARTS_READ; i++) {
		struct holder *h = &parts->holder[parts->is.holder[i]];

		while (is_read(h) &&
		       take_record(h, bufferevent_get_input(h->ssh.from), record, data)) {
			if (part_takes(record))
				return 1;
			take_answer(h, record, data);
		}
		more |= h->due > 0;
	}
	if (more || parts->state != PARTS_READ)
		return PARTS_LATER;
	parts->state = PARTS_IDLE;
	return 0;
}
