/* changes.c - commands that change a machine: down, cpu move, host add, host remove, policy.  Each
 * ends when node 0 answers. */
#include "vmm/cli/query/query_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/shared/placement.h"

/* ---- down ---- */

void change_start_down(struct query *q)
{
	struct msg_machine_end end = { .reason = END_USER, .status = EXIT_VMP_FAILURE };
	static const char line[] = "the machine was taken down by vmp down";

	q->until_end = true;
	client_send(&q->client, MSG_MACHINE_END, VNODE_CLI, &end, sizeof end, line, strlen(line));
}

/* ---- hosts by name ---- */

/* Finds the number of a host that the user named.  Returns 0, or -1 with q->why. */
int change_find_host(struct query *q)
{
	const char *name = q->o->host;
	int host;

	names_read(&q->names, q->rundir.path);
	q->to_host = q->o->to_host;
	if (!name || q->o->add)
		return 0;
	host = names_find(&q->names, name);
	if (host < 0)
		return problem(&q->why, "this machine has no host %s; see vmp status", name);
	q->to_host = (uint32_t)host;
	return 0;
}

static const char *host_text(const struct query *q, uint32_t host)
{
	static char text[MAX_HOST_NAME + 32];
	char number[32];

	snprintf(number, sizeof number, "host %u", host);
	names_explain(&q->names, number, text, sizeof text);
	return text;
}

/* ---- cpu move ---- */

void change_start_move(struct query *q)
{
	struct msg_cpu_move move = { .cpu = q->o->cpu, .host = q->to_host };

	event_del(q->limit); /* no limit: a move may have to wait for others */
	client_send(&q->client, MSG_CPU_MOVE, VNODE_CLI, &move, sizeof move, NULL, 0);
}

void change_on_moved(struct query *q, const struct message *m, const struct msg_cpu_moved *moved)
{
	struct problem p, explained;

	if (q->done)
		return;
	problem(&p, "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	if (!moved->error)
		printf("CPU %u runs on %s; it stood still for %.3f ms\n", moved->cpu,
		       host_text(q, q->to_host), moved->pause_us / 1e3);
	names_explain(&q->names, p.line, explained.line, sizeof explained.line);
	query_end(q, moved->error ? EXIT_VMP_FAILURE : 0, explained.line);
}

/* ---- host add, host remove ---- */

void change_start_host(struct query *q)
{
	struct msg_host host = { .host = q->to_host, .op = q->o->add ? HOST_ADD : HOST_REMOVE };

	event_del(q->limit); /* no limit: changes of hosts are made one after the other */
	q->yields_ns = !q->o->add && !q->to_host ? clock_now_ns() : 0;
	client_send(&q->client, MSG_HOST, VNODE_CLI, &host, sizeof host, q->o->host,
		    q->o->add ? strlen(q->o->host) : 0);
}

void change_hide_progress(struct query *q)
{
	if (q->progress_shown && write(2, "\r\033[K", 4) < 0) {
		/* if the terminal is gone, nothing needs cleaning */
	}
	q->progress_shown = false;
}

/* Shows the progress of a change that takes long in one line of the terminal, which is redrawn. */
void change_on_host(struct query *q, const struct message *m, const struct msg_host *host)
{
	struct problem inner, p;

	if (q->done) /* the machine has ended before this message */
		return;
	problem(&inner, "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	if (q->o->add) /* the new host has a name now; a host that goes has lost its name already */
		names_read(&q->names, q->rundir.path);
	names_explain(&q->names, inner.line, p.line, sizeof p.line);
	if (host->op == HOST_PROGRESS && isatty(2)) {
		q->progress_shown = dprintf(2, "\r\033[Kvmp: %s", p.line) > 0;
	} else if (host->op == HOST_DONE) {
		change_hide_progress(q);
		if (!host->error)
			printf("%s\n", p.line);
		query_end(q, host->error ? EXIT_VMP_FAILURE : 0, host->error ? p.line : "");
	}
}

static unsigned long long yield_ms(const struct query *q)
{
	return (clock_now_ns() - q->yields_ns) / 1000000;
}

void change_has_yielded(struct query *q)
{
	struct machine_info now;
	struct problem p;

	change_hide_progress(q);
	if (rundir_read_info(&q->rundir, &now, &p) || now.yielded == q->info.yielded) {
		query_end(q, EXIT_VMP_FAILURE, "host 0 stays: the machine had to come back to it; "
			  "its log (--log) says why");
		return;
	}
	printf("host 0 is gone after %llu ms; the others have new numbers (vmp status)\n",
	       yield_ms(q));
	query_end(q, 0, "");
}

void change_has_gone(struct query *q, const char *where)
{
	change_hide_progress(q);
	printf("host 0 is gone after %llu ms; the machine goes on on %s\n", yield_ms(q), where);
	query_end(q, 0, "");
}

/* ---- policy ---- */

void change_start_policy(struct query *q)
{
	struct msg_policy policy = { .policy = q->o->machine.policy };

	event_del(q->limit); /* no limit: the answer comes when all processors have moved */
	client_send(&q->client, MSG_POLICY, VNODE_CLI, &policy, sizeof policy, NULL, 0);
}

void change_on_policy(struct query *q, const struct message *m, const struct msg_policy *policy)
{
	struct problem p;

	problem(&p, "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	if (q->done)
		return;
	if (!policy->error)
		printf("%s\n", p.line);
	query_end(q, policy->error ? EXIT_VMP_FAILURE : 0, policy->error ? p.line : "");
}
