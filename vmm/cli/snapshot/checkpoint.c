/* checkpoint.c - see checkpoint.h. */
#include "vmm/cli/snapshot/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
	AGAIN_MS = 100, /* the pause before another try */
	RATE = 64 << 20, /* bytes a second; what comes slower was held up */
};

static void begin_in(struct checkpoint *c, uint64_t ms)
{
	loop_after(c->timer, ms * LOOP_MS);
}

static void on_timer(void *context)
{
	struct checkpoint *c = context;

	if (c->pull.active || c->seals)
		return;
	if ((c->is_in_use && c->is_in_use(c->context)) ||
	    (c->parts && !parts_are_ready(c->parts))) {
		begin_in(c, AGAIN_MS);
		return;
	}
	c->whole |= c->parts && !parts_stay(c->parts);
	c->began_ns = loop_now_ns(&c->loop);
	if (c->last && !c->whole)
		c->last = LAST_UNDER_WAY;
	kept_begin(c->kept, !c->whole);
	if (c->parts)
		parts_begin(c->parts, !c->whole);
	c->on_begin(c->context);
	pull_start(&c->pull, c->whole  ? CHECKPOINT_WHOLE
			     : c->last ? CHECKPOINT_LAST
				       : CHECKPOINT_CHANGES);
}

uint64_t checkpoint_every_ms(uint32_t interval_ms, uint64_t took_ms, uint64_t bytes)
{
	uint64_t pause_ms = bytes * 1000 / RATE;

	if (pause_ms > took_ms)
		pause_ms = took_ms;
	return took_ms + pause_ms < interval_ms ? interval_ms : took_ms + pause_ms;
}

static uint64_t ms_since(const struct checkpoint *c, uint64_t ns)
{
	return (loop_now_ns(&c->loop) - ns) / 1000000;
}

static void set_timer(struct checkpoint *c)
{
	uint64_t every_ms = checkpoint_every_ms(c->interval_ms, c->took_ms, c->last_bytes);
	uint64_t passed_ms = ms_since(c, c->began_ns);

	if (c->last)
		begin_in(c, 0);
	else if (c->interval_ms)
		begin_in(c, passed_ms < every_ms ? every_ms - passed_ms : 0);
}

static void on_cut(void *context)
{
	struct checkpoint *c = context;

	c->cut_ns = loop_now_ns(&c->loop);
	c->on_cut(c->context);
}

static int keep(void *context, const struct snapfile_record *record, const void *data,
		struct problem *p)
{
	struct checkpoint *c = context;
	struct problem inner;

	return kept_add(c->kept, record, data, &inner) ? problem(p, "the checkpoint %s", inner.line)
						       : 0;
}

static void abandon(struct checkpoint *c)
{
	kept_abandon(c->kept);
	if (c->parts)
		parts_abandon(c->parts);
}

static void on_failed(void *context, const char *line, bool nothing_happened)
{
	struct checkpoint *c = context;

	abandon(c);
	if (nothing_happened) {
		begin_in(c, AGAIN_MS);
		return;
	}
	c->whole = true;
	c->last = LAST_NOT;
	c->on_trouble(c->context, line);
	set_timer(c);
}

static void complete(struct checkpoint *c)
{
	size_t bytes = kept_bytes(c->kept);
	struct problem inner, p;

	c->seals = false;
	if (kept_commit(c->kept, &inner)) {
		if (c->last == LAST_UNDER_WAY)
			pull_thaw(&c->pull);
		problem(&p, "the checkpoint %s", inner.line);
		on_failed(c, p.line, false);
		return;
	}
	if (c->parts)
		parts_commit(c->parts);
	c->whole = false;
	c->took_ms = ms_since(c, c->cut_ns);
	c->last_bytes = bytes;
	c->kept_cut_ns = c->cut_ns;
	c->taken++;
	c->bytes += bytes;
	c->pause_ns += kept_machine(c->kept)->machine.pause_ns;
	c->on_kept(c->context);
	if (c->last == LAST_UNDER_WAY)
		c->on_last(c->context);
	else
		set_timer(c);
}

static void on_done(void *context)
{
	struct checkpoint *c = context;

	c->seals = c->parts;
	if (c->seals)
		parts_seal(c->parts);
	else
		complete(c);
}

void checkpoint_sealed(struct checkpoint *c)
{
	if (c->seals)
		complete(c);
}

void checkpoint_fails(struct checkpoint *c, const char *line)
{
	bool stands = c->seals && c->last == LAST_UNDER_WAY;

	if (!c->pull.active && !c->seals)
		return;
	pull_stop(&c->pull);
	c->seals = false;
	if (stands)
		pull_thaw(&c->pull);
	on_failed(c, line, false);
}

static void put_in_parts(void *context, const struct snapfile_record *record, const void *data)
{
	parts_add(context, record, data);
}

static bool is_full(void *context)
{
	struct checkpoint *c = context;

	return c->parts && parts_is_full(c->parts);
}

void checkpoint_use_parts(struct checkpoint *c, struct parts *parts)
{
	c->parts = parts;
	kept_put_elsewhere(c->kept, put_in_parts, parts);
}

int checkpoint_start(struct checkpoint *c, const struct loop *loop, uint32_t interval_ms,
		     struct parts *parts)
{
	c->interval_ms = interval_ms;
	c->loop = *loop;
	c->kept = kept_new();
	if (c->kept && parts)
		checkpoint_use_parts(c, parts);
	c->timer = loop_timer(loop, on_timer, c);
	c->pull = (struct pull){
		.context = c, .cut = on_cut, .keep = keep, .is_full = is_full, .done = on_done,
		.failed = on_failed
	};
	return c->kept && c->timer ? 0 : -ENOMEM;
}

void checkpoint_go(struct checkpoint *c, struct client *client, const char *kernel)
{
	if (!c->timer)
		return;
	c->pull.client = client;
	c->pull.kernel = kernel;
	c->whole = true;
	c->last = LAST_NOT;
	c->took_ms = 0;
	if (c->interval_ms)
		begin_in(c, c->interval_ms);
}

void checkpoint_hosts(struct checkpoint *c, uint32_t hosts) { c->pull.hosts = hosts; }

void checkpoint_on_item(struct checkpoint *c, const void *body, size_t bytes)
{
	if (c->timer)
		pull_on_item(&c->pull, body, bytes);
}

void checkpoint_soon(struct checkpoint *c)
{
	if (c->timer && c->interval_ms && !c->pull.active && !c->seals)
		begin_in(c, 0);
}

void checkpoint_last(struct checkpoint *c)
{
	c->last = LAST_WANTED;
	if (!c->pull.active && !c->seals)
		begin_in(c, 0);
}

void checkpoint_not_last(struct checkpoint *c)
{
	if (c->last != LAST_WANTED)
		return;
	c->last = LAST_NOT;
	if (c->pull.active || c->seals)
		return; /* its end sets the timer */
	loop_disarm(c->timer);
	set_timer(c);
}

void checkpoint_stays(struct checkpoint *c)
{
	pull_thaw(&c->pull);
	c->last = LAST_NOT;
	set_timer(c);
}

void checkpoint_stop(struct checkpoint *c)
{
	c->pull.active = c->seals = false;
	if (c->kept)
		abandon(c);
	if (c->timer)
		loop_disarm(c->timer);
}

void checkpoint_close(struct checkpoint *c)
{
	checkpoint_stop(c);
	loop_remove(c->timer);
	kept_free(c->kept);
	c->timer = NULL;
	c->kept = NULL;
}

const struct saved_machine *checkpoint_machine(const struct checkpoint *c)
{
	return c->kept ? kept_machine(c->kept) : NULL;
}

void checkpoint_report(const struct checkpoint *c)
{
	if (c->taken)
		dprintf(2, "checkpoints: %llu, %.1f MiB each, stood still %.1f ms each\n",
			(unsigned long long)c->taken, c->bytes / 1048576.0 / c->taken,
			c->pause_ns / 1e6 / c->taken);
}
