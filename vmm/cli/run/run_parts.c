/* run_parts.c - with --checkpoint-parts: a holder of a part of the last checkpoint on each of the
 * hosts' computers (vmm/cli/parts/parts.h).  They outlive the machine's other processes when it
 * goes back, and this one, where another owner may take the machine over. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdio.h>

enum {
	AGAIN_S = 30, /* hosts that could not have a holder are asked again */
	LOOK_MS = 1000,
	ROOM_MIB = 32, /* for the holder itself, and since runs of pages differ */
};

static void say(const struct run *run, const struct cluster_host *host, const char *why)
{
	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: %s holds no part of the checkpoint: %s\n", host->name,
			why);
}

/* Returns whether it is the name of one of the machine's hosts. */
static bool is_host(void *context, const char *name)
{
	const struct run *run = context;
	int host = names_find(&run->cluster.names, name);

	return host >= 0 && run->hosts >> host & 1;
}

static bool is_not_lost(void *context, const char *name)
{
	const struct run *run = context;
	int host = names_find(&run->cluster.names, name);

	return host >= 0 && !(run->holders.lost >> host & 1);
}

/* Each page is in two holders. */
static uint32_t part_mib(const struct run *run)
{
	uint32_t hosts = (uint32_t)__builtin_popcount(run->hosts);

	return run->o->machine.mem_mib * 2 / (hosts < 2 ? 2 : hosts) + ROOM_MIB;
}

static void hold(struct run *run, unsigned host)
{
	struct cluster_host line = run->cluster.host[host];
	struct problem p;

	snprintf(line.name, sizeof line.name, "%s", run->cluster.names.name[host]);
	snprintf(run->holders.parts.id, sizeof run->holders.parts.id, "%s", run->cluster.votes);
	if (!parts_hold(&run->holders.parts, &line, host ? run->cluster.bundle.hash : NULL,
			part_mib(run), &p))
		return;
	say(run, &line, p.line);
	run->holders.cannot |= 1u << host;
	loop_after(run->holders.again, AGAIN_S * (uint64_t)LOOP_S);
}

/* Whether its ssh gets through now. */
static bool is_reached(const struct run *run, unsigned host)
{
	const struct far *far = run->cluster.far[host];

	return !host || (far && (far->state == FAR_READY || far->state == FAR_RUNS));
}

void run_parts_look(struct run *run)
{
	struct parts *parts = run->checkpoint.parts;

	if (!parts || run->ended || !run_is_there(run))
		return;
	run->holders.owns = true;
	parts_retire(parts, is_host);
	for (unsigned host = 0; host < MAX_NODES; host++)
		if (run->hosts >> host & 1 && !(run->holders.cannot >> host & 1) &&
		    run->cluster.names.name[host][0] &&
		    !parts_has(parts, run->cluster.names.name[host]) &&
		    is_reached(run, host))
			hold(run, host);
}

static void on_again(void *context)
{
	struct run *run = context;

	run->holders.cannot = 0;
	run_parts_look(run);
}

/* ---- what holders do ---- */

static void on_room(void *context)
{
	struct run *run = context;

	pull_go_on(&run->checkpoint.pull);
}

static void on_sealed(void *context)
{
	struct run *run = context;

	checkpoint_sealed(&run->checkpoint);
}

static void on_more(void *context)
{
	struct run *run = context;

	load_go_on(&run->load);
}

/* A checkpoint that is being loaded cannot be loaded without it: the machine goes back again, and
 * the host is taken for lost. */
static void on_lost(void *context, const struct cluster_host *host, const char *why, bool needed)
{
	struct run *run = context;
	int number = names_find(&run->cluster.names, host->name);
	struct problem p;

	if (run->ended)
		return;
	say(run, host, why);
	if (number >= 0)
		run->holders.cannot |= 1u << number;
	loop_after(run->holders.again, AGAIN_S * (uint64_t)LOOP_S);
	if (!needed)
		return;
	problem(&p, "%.100s, which holds a part of it, is lost: %.250s", host->name, why);
	if (run_is_there(run)) {
		checkpoint_fails(&run->checkpoint, p.line);
		return;
	}
	problem(&run->back.said, "its part of the checkpoint cannot be read: %.250s", why);
	run->back.lost |= number >= 0 ? 1u << number : 0;
	loop_after(run->death, 0);
}

/* (TRICKS: standby-knows-late) */
void run_parts_settle(struct run *run, bool lags)
{
	if (run->checkpoint.parts && !lags)
		parts_forget_before(run->checkpoint.parts);
}

/* ---- the way back ---- */

void run_parts_regain(struct run *run)
{
	for (unsigned host = 0; run->checkpoint.parts && host < MAX_NODES; host++)
		if (run->cluster.names.name[host][0] && is_reached(run, host) &&
		    !(run->holders.cannot >> host & 1) &&
		    parts_lacks(run->checkpoint.parts, run->cluster.names.name[host]))
			hold(run, host);
}

bool run_parts_come(const struct run *run)
{
	return run->checkpoint.parts && parts_settle(run->checkpoint.parts);
}

int run_parts_adopt(struct run *run, uint32_t number, const char *text, struct problem *p)
{
	if (!run->o->checkpoint_parts)
		return 0;
	if (run_parts_open(run))
		return problem(p, "no memory");
	checkpoint_use_parts(&run->checkpoint, &run->holders.parts);
	parts_adopt(&run->holders.parts, number, text);
	run_parts_regain(run);
	while (!run->ended && run_parts_come(run))
		event_base_loop(run->base, EVLOOP_ONCE);
	return 0;
}

void run_parts_lose(struct run *run, uint32_t lost)
{
	if (!run->checkpoint.parts)
		return;
	run->holders.lost = lost;
	run->holders.cannot = 0;
	parts_lose(&run->holders.parts, is_not_lost);
}

int run_parts_check(const struct run *run, struct problem *p)
{
	struct problem why;

	if (!run->checkpoint.parts || !parts_check(run->checkpoint.parts, &why))
		return 0;
	return problem(p, "the last checkpoint %s", why.line);
}

void run_but_processes(const struct run *run, pid_t but[MAX_HOLDERS + 2])
{
	unsigned n = 0;

	parts_processes(&run->holders.parts, but);
	while (but[n])
		n++;
	but[n] = run->standby.to.ssh.pid;
	but[n + 1] = 0;
}

/* ---- start and end ---- */

int run_parts_open(struct run *run)
{
	struct parts *parts = &run->holders.parts;

	if (!run->o->checkpoint_parts)
		return 0;
	*parts = (struct parts){ .base = run->base, .loop = run->loop, .look_ms = LOOK_MS,
				 .lingers = run->background, .log_fd = run->log_fd, .context = run,
				 .has_room = on_room, .sealed = on_sealed, .has_more = on_more,
				 .lost = on_lost };
	run->holders.again = loop_timer(&run->loop, on_again, run);
	return run->holders.again ? parts_open(parts) : -ENOMEM;
}

void run_parts_close(struct run *run)
{
	if (!run->holders.again)
		return;
	if (run->holders.owns && !run->holders.left && run->life != OWNER_HANDED &&
	    run->life != OWNER_AWAY)
		parts_end(&run->holders.parts);
	parts_close(&run->holders.parts);
	loop_remove(run->holders.again);
	run->holders.again = NULL;
}
