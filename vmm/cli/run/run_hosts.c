/* run_hosts.c - hosts that are added, removed, or on other computers (vmm/cli/cluster/).  This
 * process is the daemons' parent. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void answer_host(struct run *run, uint32_t host, enum host_op op, int error,
			const char *line)
{
	struct msg_host answer = { .host = host, .op = op, .error = error };

	client_send(&run->client, MSG_HOST, VNODE_CLI, &answer, sizeof answer, line, strlen(line));
}

/* Reports the end of daemons that are not part of the machine yet, or not any more. */
void run_tell_ends(struct run *run)
{
	struct problem p;
	int host;

	while ((host = launch_take_loose(&run->launch, &p)) >= 0) {
		answer_host(run, host, HOST_ENDED, 0, p.line);
		if (run->o->cluster)
			cluster_forget(&run->cluster, (unsigned)host);
	}
}

void run_tell_where(struct run *run, unsigned host)
{
	char where[256];

	if (run->connected && *cluster_where(&run->cluster, host, where, sizeof where))
		answer_host(run, host, HOST_AT, 0, where);
}

static void refuse_host(struct run *run, unsigned host, const char *why)
{
	answer_host(run, host, HOST_LAUNCHED, EAGAIN, why);
	cluster_forget(&run->cluster, host);
	run->adding = 0;
}

/* A host that is being added is prepared, runs, or has failed; or a host that runs says where it
 * listens. */
static void on_cluster_changed(void *context, unsigned host)
{
	struct run *run = context;
	const struct far *far = run->cluster.far[host];
	bool is_new = run->adding == host;
	struct problem p;

	if (run->ended)
		return;
	if (run->life == OWNER_GATHERS) {
		run_look_at_regrouped(run);
		return;
	}
	if (is_new && far->state == FAR_OVER && !run->launch.node[host]) {
		refuse_host(run, host, far->why);
	} else if (is_new && far->state == FAR_READY) {
		if (cluster_admit(&run->cluster, host, &p) ||
		    launch_add(&run->launch, &run->plan, host, run->joins, &p))
			refuse_host(run, host, p.line);
	} else if (far->state == FAR_RUNS) {
		run_tell_where(run, host);
		if (is_new)
			answer_host(run, host, HOST_LAUNCHED, 0, "");
		run->adding = is_new ? 0 : run->adding;
		run_parts_look(run);
	}
}

/* ---- one more peer ---- */

/* The daemon of the user's network has said whether the computer is lent. */
static void on_asked(void *context)
{
	struct run *run = context;
	struct problem p;
	int result = peers_read(&run->asked, false, &p);

	if (!result)
		return;
	if (!*run->asked_for)	/* the network has chosen: its line begins with the nickname */
		snprintf(run->asked_for, sizeof run->asked_for, "%.*s",
			 (int)strcspn(run->asked.text, " \n"), run->asked.text);
	loop_remove(run->on_asked);
	run->on_asked = NULL;
	if (result < 0 || run->ended ||
	    cluster_add_peer(&run->cluster, run->adding, run->asked_for, run->asked.text,
			     run->asked.held, &p)) {
		answer_host(run, run->adding, HOST_LAUNCHED, EAGAIN, p.line);
		run->adding = 0;
	}
}

/* Writes what asks for a computer that is no host of the machine yet: "!NICK,NICK..." */
static void name_all_but_hosts(const struct host_names *names, char *text, size_t room)
{
	size_t n = (size_t)snprintf(text, room, "!");

	for (unsigned i = 0; i < MAX_NODES && n < room; i++)
		if (names->name[i][0])
			n += (size_t)snprintf(text + n, room - n, "%s,", names->name[i]);
}

static bool is_host(void *context, const char *nick)
{
	struct run *run = context;

	return names_find(&run->cluster.names, nick) >= 0;
}

static void say_of_peers(void *context, const char *line)
{
	struct run *run = context;

	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: %s\n", line);
}

void run_reserve(struct run *run)
{
	const struct machine *m = &run->o->machine;
	struct problem p;

	if (!run->cluster.given)
		return;
	run->reserve = (struct reserve){ .loop = &run->loop, .held = &run->cluster.held,
					 .context = run, .is_host = is_host,
					 .say = say_of_peers, .again_ms = RESERVE_AGAIN_MS };
	if (reserve_begin(&run->reserve, run->cluster.host, m->hosts,
			  m->host_mem_mib ? m->host_mem_mib : m->mem_mib, &p))
		say_of_peers(run, p.line);
}

/* Asks the user's network for one more computer.  name "": for any, the nearest first. */
static int ask_for_peer(struct run *run, const char *name, struct problem *p)
{
	const struct machine *m = &run->o->machine;
	char others[1 + MAX_NODES * (MAX_HOST_NAME + 1)];
	const struct peers_wish wish = {
		.others = 1, .cpus = 1, .how = "near", .nick = *name ? name : others,
		.mem_mib = (uint32_t)hostmem_needed_mib(
			m->host_mem_mib ? m->host_mem_mib : m->mem_mib, 1, 1)
	};

	name_all_but_hosts(&run->cluster.names, others, sizeof others);
	if (*name && names_find(&run->cluster.names, name) >= 0)
		return problem(p, "%s is a host of this machine already", name);
	if (run->on_asked)
		return problem(p, "another host is being added");
	if (peers_ask(&run->asked, &wish, p))
		return -1;
	snprintf(run->asked_for, sizeof run->asked_for, "%s", name);
	run->on_asked = loop_add(&run->loop, LOOP_READ, run->asked.fd, on_asked, run);
	return run->on_asked && !loop_watch(run->on_asked) ? 0 : problem(p, "no memory");
}

/* Starts to add a host.  `name`: "" for a daemon on this computer.  Returns 0 if it is there, or if
 * its result comes later. */
static int add_host(struct run *run, const struct msg_host *host, const char *name,
		    struct problem *p)
{
	bool by_peer = !strcmp(name, HOST_ANY_PEER);

	if (by_peer && !run->cluster.given)
		return problem(p, "this machine was not started with --peers: vmp host add, "
			       "without --peer");
	if (!run->o->cluster && *name)
		return problem(p, "this machine was not started with --cluster: vmp host add "
			       "without a name adds a host on this computer");
	if (!run->o->cluster)
		return launch_add(&run->launch, &run->plan, host->host, host->nodes, p);
	run->joins = host->nodes;
	if (run->cluster.given ? ask_for_peer(run, by_peer ? "" : name, p)
			       : cluster_add(&run->cluster, host->host, name, p))
		return -1;
	run->adding = host->host;
	return 0;
}

int run_begin_cluster(struct run *run, struct problem *p)
{
	struct cluster *c = &run->cluster;

	c->base = run->base;
	c->changed = on_cluster_changed;
	c->context = run;
	c->rundir = run->rundir.path;
	c->mem_mib = run->o->machine.mem_mib;
	c->host_mem_mib = run->o->machine.host_mem_mib;
	c->log_fd = run->log_fd;
	run->launch.cluster = c;
	return cluster_prepare(c, run->o->machine.hosts, p);
}

/* Waits until all hosts are ready, one has failed, or the user ends it. */
int run_prepare_cluster(struct run *run, struct problem *p)
{
	struct cluster *c = &run->cluster;

	if (isatty(2))
		loop_after(run->tick, PROGRESS_MS * (uint64_t)LOOP_MS);
	if (run_begin_cluster(run, p))
		return -1;
	while (!run->ended && !cluster_settled(c))
		event_base_loop(run->base, EVLOOP_ONCE);
	run_hide_progress(run);
	loop_disarm(run->tick);
	if (run->ended)
		return 0;
	return cluster_agree(c, p) || run_hosts_hold(run, c->host, run->o->machine.hosts, p) ? -1
											      : 0;
}

/* Node 0 leads changes of hosts (vmm/node/hosts/hosts.h); this process starts and reaps the
 * daemons.  (TRICKS: counted-early) */
void run_on_host(struct run *run, const struct message *m, const struct msg_host *host)
{
	struct problem p = { "" };
	char name[MAX_HOST_NAME];
	int error;

	if (host->host >= MAX_NODES || run->ended)
		return;
	switch (host->op) {
	case HOST_LAUNCH:
		snprintf(name, sizeof name, "%.*s", (int)m->payload_bytes,
			 (const char *)m->payload);
		error = add_host(run, host, name, &p);
		if (error || !run->o->cluster)
			answer_host(run, host->host, HOST_LAUNCHED, error ? EAGAIN : 0, p.line);
		break;
	case HOST_YIELD:
		run_yield(run);
		break;
	/* if the others are lost from here on, the machine can go back on this one */
	case HOST_INCLUDED:
		run->launch.loose &= ~(1u << host->host);
		run->hosts |= 1u << host->host;
		break;
	case HOST_RETIRE:
		run->hosts &= ~(1u << host->host);
		launch_let_go(&run->launch, host->host, host->error);
		answer_host(run, host->host, HOST_RETIRED, 0, "");
		break;
	}
	launch_reap(&run->launch);
	run_tell_ends(run);
}

void run_on_hosts(struct run *run, const struct message *m, const struct msg_hosts *hosts)
{
	(void)m;
	run->hosts = hosts->present;
	checkpoint_hosts(&run->checkpoint, hosts->present);
	report_keep_hosts(&run->report, hosts->present);
	run_standby_look(run);
	run_parts_look(run);
	run_proceed_to_end(run);
}
