/* node.c - vmp-node: a node daemon's start, step by step; node.h tells the story. */
#include "vmm/node.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/guest_abi.h"
#include "base/killed.h"
#include "base/log.h"
#include "base/schedule.h"
#include "dsm/dsm.h"
#include "vmm/cluster/clock.h"
#include "vmm/conn.h"
#include "vmm/debug.h"
#include "vmm/snapshot/freeze.h"
#include "vmm/snapshot/restore.h"
#include "vmm/hosts.h"
#include "vmm/policy.h"

static struct node the_node = { .ram_fd = -1, .shm_fd = -1 };

uint64_t node_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* --- shared memory -------------------------------------------------------------------------------------------------- */

/* A memfd of a fixed size: sealed, so that nobody's mapping can lose its end. */
static int make_memory(const char *name, size_t bytes, void **mapped)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		die("cannot make %zu MiB of shared memory: %s; see ulimit -a", bytes >> 20, strerror(errno));
	*mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*mapped == MAP_FAILED)
		die("cannot map %zu MiB of shared memory: %s; see ulimit -v", bytes >> 20, strerror(errno));
	return fd;
}

static void make_shared_memory(struct node *node)
{
	void *mapped;
	size_t shm_bytes;

	node->ram_pages = node->o.mem_mib << (20 - PAGE_BITS);
	shm_bytes = (hostshm_bytes(node->ram_pages) + PAGE_MASK) & ~(size_t)PAGE_MASK;
	node->ram_fd = make_memory("vmp-ram", (size_t)node->ram_pages << PAGE_BITS, &mapped);
	node->ram = mapped;
	madvise(node->ram, (size_t)node->ram_pages << PAGE_BITS, MADV_DONTDUMP);
	node->shm_fd = make_memory("vmp-host", shm_bytes, &mapped);
	node->shm = mapped;
	node->shm->bytes = (uint32_t)shm_bytes;
	node->shm->node = node->o.node;
	node->shm->many_hosts = node_shares_memory(node);
	node->shm->n_cpus = node->o.n_cpus;
	node->shm->ram_pages = node->ram_pages;
	node->shm->features = node->o.features;
	hostclock_set(&node->shm->clock, (struct clock_line){ node->boot_ns, 0, 0 });
	node->boot_tsc = tsc_mark();
	node->shm->magic = HOSTSHM_MAGIC;
}

/* --- the start, stage by stage -------------------------------------------------------------------------------------- */

static void tell_ready(struct node *node, enum ready_stage stage)
{
	struct msg_node_ready ready = { .node = node->o.node, .stage = stage };

	net_send(node->net, VNODE_DAEMON(0), MSG_NODE_READY, &ready, sizeof ready, NULL, 0);
}

static bool children_ready(const struct node *node)
{
	if (node->o.node == 0 && !node->iosrv.ready)
		return false;
	for (unsigned cpu = 0; cpu < node->o.n_cpus; cpu++)
		if (node_has_cpu(node, cpu) && !node->monitor[cpu].ready)
			return false;
	return true;
}

static bool all_ready(const struct node *node, enum ready_stage stage)
{
	return node->ready[stage] == (uint32_t)((1ull << node->o.n_nodes) - 1);
}

static void start_machine(struct node *node)
{
	struct msg_machine_start start = {
		.start_monotonic_ns = node_now_ns() - node->clock_ns, .entry = node->preloaded.entry, .boot_params = VMP_BOOT_PARAMS_GPA,
		.ranges = node->preloaded.count,
	};

	node->started = true;
	log_info("all hosts are ready after %llu ms", (unsigned long long)((node_now_ns() - node->boot_ns) / 1000000));
	for (unsigned peer = 0; peer < node->o.n_nodes; peer++)
		net_send(node->net, VNODE_DAEMON(peer), MSG_MACHINE_START, &start, sizeof start, node->preloaded.range,
			 node->preloaded.count * sizeof node->preloaded.range[0]);
}

void node_check_ready(struct node *node)
{
	if (node->ending)
		return;
	if (!node->told_ready && overlay_complete(node) && children_ready(node) && clock_known(node)) {
		node->told_ready = true;
		tell_ready(node, READY_CONNECTED);
	}
	if (node->o.node != 0 || node->started || !all_ready(node, READY_CONNECTED) || !clients_have_run(node))
		return;
	if (node->o.restore && !node->preloaded.count)
		restore_begin(node);
	else if (!node->o.restore && node->preloaded.count)
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
	if (ready->node >= node->o.n_nodes || ready->stage >= READY_STAGES) {
		log_error("NODE_READY of host %u, stage %u: ignored", ready->node, ready->stage);
		return;
	}
	node->ready[ready->stage] |= 1u << ready->node;
	if (ready->stage == READY_CONNECTED)
		node_check_ready(node);
	else if (all_ready(node, READY_STARTED) && !node->running) {
		node->running = true;
		if (node->o.hold)
			debug_hold_all(node);
		if (node->o.restore)
			freeze_thaw_all(node);
		else
			route_start_cpu(node, 0, node->preloaded.entry);
	}
}

void node_on_start(struct node *node, const struct msg_machine_start *start, const struct page_range *ranges)
{
	hostpart_on_start(node);
	node->start_ns = start->start_monotonic_ns;
	clock_begin(node, node->start_ns);
	node->shm->host_tsc_khz = start->host_tsc_khz && !node->o.cluster ? start->host_tsc_khz : tsc_khz_since(&node->boot_tsc);
	/* The counters of several computers have nothing to do with each other. */
	node->shm->tsc_khz = !node->o.cluster && tsc_trusted() ? node->shm->host_tsc_khz : 0;
	for (uint32_t i = 0; i < start->ranges && node->dsm; i++) {
		const struct page_range *range = &ranges[i];

		if (range->first_gfn > node->ram_pages || range->count > node->ram_pages - range->first_gfn ||
		    range->owner >= node->o.n_nodes) {
			node_end(node, END_FAILURE, 0, "the preloaded pages lie outside RAM; this is a bug in vmp");
			return;
		}
		if (range->owner == node->o.node)
			pagestore_preloaded(node, range->first_gfn, range->count);
		dsm_preloaded(node->dsm, range->first_gfn, range->count, range->owner);
	}
	tell_ready(node, READY_STARTED);
}

static void load_guest(struct node *node)
{
	char why[END_LINE];

	if (guest_load(node, why, sizeof why))
		node_end(node, END_FAILURE, 0, "%s", why);
	else
		node_check_ready(node);
}

static void start(struct node *node)
{
	node->base = event_base_new();
	if (!node->base)
		die("no event loop");
	node->net = net_new(node->o.node, node->o.n_nodes, node);
	route_start(node);
	for (unsigned cpu = 0; cpu < node->o.n_places; cpu++)
		net_cpu_at(node->net, cpu, node->o.place[cpu], 0);
	handover_start(node);
	node->hosts = (uint32_t)((1ull << node->o.n_nodes) - 1);
	if (node->o.join)
		node->hosts = node->o.join;
	hostpart_start(node);
	freeze_start(node);
	policy_start(node);
	if (node->o.node == 0) {
		moves_start(node);
		hosts_start(node);
	}
	supervise_start(node);
	/* The command line must be able to connect before anything can fail: it is told what failed. */
	if (node->o.node == 0)
		clients_listen(node);
	make_shared_memory(node);
	pagestore_start(node);
	clock_start(node);
	overlay_start(node);
	supervise_start_children(node);
	if (node->o.node == 0 && !node->ending && !node->o.restore)
		load_guest(node);
}

static void finish(struct node *node)
{
	node_stats_log(node);
	if (node->o.node == 0)
		clients_close(node);
	overlay_close(node);
	log_debug("ends");
}

/* Monitors, peers and clients: a socket each. */
static void raise_descriptor_limit(void)
{
	const rlim_t enough = 2 * (MAX_CPUS + MAX_NODES + MAX_CLIENTS) + 32;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= enough)
		return;
	limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : enough;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Whatever stops this daemon: `vmp run` hears it, directly or through node 0, and prints it. */
static void on_die(const char *line)
{
	struct node *node = &the_node;
	struct msg_machine_end end = { .reason = END_FAILURE, .node = node->o.node };

	if (node->o.node == 0) {
		close(node->ram_fd); /* descriptors may be what there is too little of */
		close(node->shm_fd);
		clients_last_words(node, line);
	} else if (overlay_reaches(node, 0)) {
		net_send(node->net, VNODE_DAEMON(0), MSG_MACHINE_END, &end, sizeof end, line, strlen(line));
		overlay_flush(node);
	}
}

int main(int argc, char **argv)
{
	struct node *node = &the_node;
	char who[32], why[256];

	if (node_options_parse(&node->o, argc, argv, why, sizeof why))
		die("vmp-node: %s (vmp-node is started by vmp run)", why);
	snprintf(who, sizeof who, "vmp-node %u", node->o.node);
	log_open(who, node->o.log_fd, node->o.verbose ? LOG_INFO : LOG_WARN);
	fault_open();
	killed_remember();
	log_on_die(on_die);
	/* When `vmp run` dies without a word, an orderly end is better than a sudden one. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	schedule_promptly();
	if (node->o.log_fd > 2)
		fcntl(node->o.log_fd, F_SETFD, FD_CLOEXEC);
	raise_descriptor_limit();
	node->boot_ns = node_now_ns();
	start(node);
	/* Polling for 200 us while a local CPU waits for a page, with sched_yield() between, was tried against the 58 us that
	 * waking an idle processor costs: with two hosts on a busy two-core machine fetches took 1.3 to 1.9 times as long. */
	event_base_dispatch(node->base);
	finish(node);
	return node->failed ? EXIT_VMP_FAILURE : 0;
}
