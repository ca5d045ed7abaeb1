/* hostcomes.c - node 0 adds a host to the machine; hosts.h describes the steps. */
#include "vmm/node/hosts/hostlead.h"

#include <errno.h>
#include <stdio.h>
#include "base/faultpoint.h"
#include "base/guest_abi.h"
#include "base/log.h"

void hosts_begin_add(struct node *node)
{
	struct hosts *h = node->hosts_state;
	int host = hostplan_free(node->hosts);

	if (!node->dsm)
		return hosts_fail(node, EINVAL, "this machine was started for one host: start it "
				  "with vmp up, or with more hosts");
	if (host < 0)
		return hosts_fail(node, EINVAL, "this machine has %d hosts, and cannot have more",
				  MAX_NODES);
	h->host = (unsigned)host;
	h->connected = false;
	if (fault_on(FAULT_HOST_NO_DAEMON))
		return hosts_fail(node, EAGAIN, "host %d does not come: its daemon could not be "
				  "started", host);
	h->stage = STAGE_LAUNCH;
	hosts_tell_owner(node, HOST_LAUNCH, 0);
}

/* Drops the new host.  Until all hosts have been told of it, this leaves no trace. */
void hosts_join_failed(struct node *node, unsigned host, const char *line, unsigned line_bytes)
{
	struct hosts *h = node->hosts_state;

	if (!hosts_joins(node, host) || h->stage < STAGE_CONNECT || h->stage > STAGE_START)
		return;
	snprintf(h->why, sizeof h->why, "%.*s", (int)line_bytes, line);
	h->stage = STAGE_CLEAR;
	hosts_tell_owner(node, HOST_RETIRE, EAGAIN);
}

/* Tells the new host about the machine, when it is connected to the others. */
static void introduce(struct node *node)
{
	struct hosts *h = node->hosts_state;
	struct msg_machine_start start = { .start_monotonic_ns = node->start_ns,
					   .entry = node->preloaded.entry,
					   .boot_params = VMP_BOOT_PARAMS_GPA,
					   .host_tsc_khz = node->shm->host_tsc_khz };
	struct msg_host news = { .host = h->host,
				 .op = HOST_NEWS,
				 .nodes = node->hosts | bit_of(h->host),
				 .present = node->hosts | bit_of(h->host) };

	h->stage = STAGE_START;
	moves_tell(node, h->host);
	net_send(node->net, VNODE_DAEMON(h->host), MSG_HOST, &news, sizeof news, h->place,
		 sizeof h->place);
	net_send(node->net, VNODE_DAEMON(h->host), MSG_MACHINE_START, &start, sizeof start, NULL,
		 0);
}

void hosts_on_launched(struct node *node, const struct msg_host *body, const char *line,
		       unsigned bytes)
{
	struct hosts *h = node->hosts_state;

	if (h->stage != STAGE_LAUNCH || body->host != h->host)
		return;
	if (body->error)
		return hosts_fail(node, (int)body->error, "host %u does not come: %.*s", h->host,
				  (int)bytes, line);
	h->stage = STAGE_CONNECT;
	if (h->connected)
		introduce(node);
}

/* Makes the new host a part of the machine: from here on its end ends the machine.  CPUs may have
 * moved since it was introduced, so it is told again where they are. */
static void include(struct node *node)
{
	struct hosts *h = node->hosts_state;

	h->stage = STAGE_TELL;
	node->hosts |= bit_of(h->host);
	hosts_see_who_stays(node, 0);
	hosts_tell_owner(node, HOST_INCLUDED, 0);
	moves_tell(node, h->host);
	hosts_tell_news(node, node->hosts);
}

/* (TRICKS: either-first) */
void hosts_on_ready(struct node *node, const struct msg_node_ready *ready)
{
	struct hosts *h = node->hosts_state;

	if (!hosts_joins(node, ready->node))
		log_error("host %u is ready, whom nobody has called", ready->node);
	else if (h->stage == STAGE_LAUNCH && ready->stage == READY_CONNECTED)
		h->connected = true;
	else if (h->stage == STAGE_CONNECT && ready->stage == READY_CONNECTED)
		introduce(node);
	else if (h->stage == STAGE_START && ready->stage == READY_STARTED)
		include(node);
}
