/* stages.c - the start of a machine, stage by stage (node.h has the order): counts who is ready,
 * and begins the next stage. */
#include "vmm/node/node.h"

#include "base/guest_abi.h"
#include "base/log.h"
#include "base/mechanisms.h"
#include "dsm/dsm.h"
#include "vmm/node/clock/clock_sync.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/cut/restore.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"

static void tell_ready(struct node *node, enum ready_stage stage)
{
	struct msg_node_ready ready = { .node = node->o.node, .stage = stage };

	net_send(node->net, VNODE_DAEMON(0), MSG_NODE_READY, &ready, sizeof ready, NULL, 0);
}

static bool children_ready(const struct node *node)
{
	if (node->o.node == 0 && !node->iosrv.ready)
		return false;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node_has_cpu(node, cpu) && !node->monitor[cpu].ready)
			return false;
	return true;
}

static bool all_ready(const struct node *node, enum ready_stage stage)
{
	return node->ready[stage] == (uint32_t)((1ull << node->o.machine.hosts) - 1);
}

static void start_machine(struct node *node)
{
	struct msg_machine_start start = {
		.start_monotonic_ns = node_now_ns(node) - node->clock_ns,
		.entry = node->preloaded.entry,
		.boot_params = VMP_BOOT_PARAMS_GPA,
		.ranges = node->preloaded.count,
	};

	node->started = true;
	log_info("all hosts are ready after %llu ms",
		 (unsigned long long)((node_now_ns(node) - node->boot_ns) / 1000000));
	for (unsigned peer = 0; peer < node->o.machine.hosts; peer++)
		net_send(node->net, VNODE_DAEMON(peer), MSG_MACHINE_START, &start, sizeof start,
			 node->preloaded.range,
			 node->preloaded.count * sizeof node->preloaded.range[0]);
}

void node_check_ready(struct node *node)
{
	if (node->ending)
		return;
	if (!node->told_ready && node->outside->reaches_all(node) && children_ready(node) &&
	    clock_known(node)) {
		node->told_ready = true;
		log_debug("ready");
		tell_ready(node, READY_CONNECTED);
	}
	if (node->o.node != 0 || node->started || !all_ready(node, READY_CONNECTED) ||
	    !clients_have_run(node))
		return;
	if (node->o.machine.restore && !node->preloaded.count)
		restore_begin(node);
	else if (!node->o.machine.restore && node->preloaded.count)
		start_machine(node);
}

void node_start_loaded(struct node *node, uint64_t clock_ns)
{
	node->clock_ns = clock_ns;
	start_machine(node);
}

void node_on_ready(struct node *node, const struct msg_node_ready *ready)
{
	if (node->started && ready->node < MAX_NODES && !node_has_host(node, ready->node)) {
		hosts_on_ready(node, ready);
		return;
	}
	if (ready->node >= node->o.machine.hosts || ready->stage >= READY_STAGES) {
		log_error("NODE_READY of host %u, stage %u: ignored", ready->node, ready->stage);
		return;
	}
	node->ready[ready->stage] |= 1u << ready->node;
	if (ready->stage == READY_CONNECTED)
		node_check_ready(node);
	else if (all_ready(node, READY_STARTED) && !node->running) {
		node->running = true;
		if (node->o.machine.hold)
			debug_hold_all(node);
		if (node->o.machine.restore)
			freeze_thaw_all(node);
		else
			route_start_cpu(node, 0, node->preloaded.entry);
	}
}

static bool is_in_ram(const struct node *node, const struct page_range *range)
{
	return range->first_gfn <= node->ram_pages &&
	       range->count <= node->ram_pages - range->first_gfn &&
	       range->owner < node->o.machine.hosts;
}

/* Returns false if the machine ends. */
static bool preload(struct node *node, const struct page_range *ranges, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_in_ram(node, &ranges[i])) {
			node_end(node, END_FAILURE, 0, "the preloaded pages lie outside RAM; this "
				 "is a bug in vmp");
			return false;
		}
	if (mechanism_on(node->o.machine.without, MECHANISM_NEAR) && n) {
		dsm_homes_near(node->dsm, ranges, n);
		hosts_on_homes(node);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (ranges[i].unowned)
			continue;
		if (ranges[i].owner == node->o.node)
			pagestore_preloaded(node, ranges[i].first_gfn, ranges[i].count);
		dsm_preloaded(node->dsm, ranges[i].first_gfn, ranges[i].count, ranges[i].owner);
	}
	return true;
}

void node_on_start(struct node *node, const struct msg_machine_start *start,
		   const struct page_range *ranges)
{
	hostpart_on_start(node);
	node->start_ns = start->start_monotonic_ns;
	clock_begin(node, node->start_ns);
	node->shm->host_tsc_khz = start->host_tsc_khz && !node->o.cluster
					  ? start->host_tsc_khz
					  : node->outside->tsc_khz_since(&node->boot_tsc);
	/* Counters of different computers are not comparable. */
	node->shm->tsc_khz = !node->o.cluster && node->outside->tsc_trusted()
				     ? node->shm->host_tsc_khz : 0;
	if (node->dsm && !preload(node, ranges, start->ranges))
		return;
	tell_ready(node, READY_STARTED);
}
