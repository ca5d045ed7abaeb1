/* node.c - vmp-node: a node daemon's start, step by step; node.h tells the story. */
#include "vmm/node/node.h"

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
#include "base/confine.h"
#include "base/faultpoint.h"
#include "base/killed.h"
#include "base/log.h"
#include "base/schedule.h"
#include "dsm/dsm.h"
#include "vmm/node/clock/clock_sync.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/cut/restore.h"
#include "vmm/node/cut/turn.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/poll.h"
#include "vmm/node/wire/conn.h"

static struct node the_node = { .ram_fd = -1, .shm_fd = -1, .cpus_fd = -1 };

uint64_t node_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* --- shared memory -------------------------------------------------------------------------------------------------- */

/* A memfd of a fixed size: sealed, so that nobody's mapping can lose its end. */
static int make_memory(const char *name, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		die("cannot make %zu MiB of shared memory: %s; see ulimit -%c", bytes >> 20, strerror(errno),
		    errno == EMFILE ? 'n' : 'a');
	return fd;
}

static void make_shared_memory(struct node *node)
{
	size_t ram_bytes;

	node->ram_pages = node->o.machine.mem_mib << (20 - PAGE_BITS);
	ram_bytes = (size_t)node->ram_pages << PAGE_BITS;
	node->ram_fd = make_memory("vmp-ram", ram_bytes);
	node->ram = mmap(NULL, ram_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node->ram_fd, 0);
	node->shm_fd = make_memory("vmp-host", HOSTSHM_HEAD_BYTES);
	node->cpus_fd = make_memory("vmp-cpus", hostshm_cpus_bytes(node->ram_pages));
	node->shm = hostshm_map(node->shm_fd, node->cpus_fd, node->ram_pages);
	if (node->ram == MAP_FAILED || !node->shm)
		die("cannot map %zu MiB of shared memory: %s; see ulimit -v", ram_bytes >> 20, strerror(errno));
	madvise(node->ram, ram_bytes, MADV_DONTDUMP);
	node->shm->node = node->o.node;
	node->shm->many_hosts = node_shares_memory(node);
	node->shm->n_cpus = node->o.machine.cpus;
	node->shm->ram_pages = node->ram_pages;
	node->shm->features = node->o.features;
	hostclock_set(&node->shm->clock, (struct clock_line){ node->boot_ns, 0, 0 });
	node->boot_tsc = tsc_mark();
	node->shm->magic = HOSTSHM_MAGIC;
}

/* --- the start ------------------------------------------------------------------------------------------------------ */

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
	node->net = net_new(node->o.node, node->o.machine.hosts, route_deliver, node);
	for (unsigned cpu = 0; cpu < node->o.n_places; cpu++)
		net_cpu_at(node->net, cpu, node->o.place[cpu], 0);
	processors_start(node);
	handover_start(node);
	node->hosts = (uint32_t)((1ull << node->o.machine.hosts) - 1);
	if (node->o.join)
		node->hosts = node->o.join;
	hostpart_start(node);
	freeze_start(node);
	policy_start(node);
	if (node->o.node == 0) {
		moves_start(node);
		hosts_start(node);
		turn_start(node);
	}
	supervise_start(node);
	/* The command line must be able to connect before anything can fail: it is told what failed. */
	if (node->o.node == 0)
		clients_listen(node);
	make_shared_memory(node);
	restore_offer_ram(node);
	pagestore_start(node);
	clock_start(node);
	log_debug("starts");
	overlay_start(node);
	supervise_start_children(node);
	if (node->o.node == 0 && !node->ending && !node->o.machine.restore)
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
		close(node->cpus_fd);
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
	log_open(who, node->o.log_fd, node->o.machine.verbose ? LOG_INFO : LOG_WARN);
	fault_open();
	killed_remember();
	log_on_die(on_die);
	/* No more than that: it opens files and sockets, and starts programs, as long as the machine runs. What it starts has
	 * walls of its own. */
	if (confine_privileges())
		die("cannot give up privileges: %s", strerror(errno));
	/* When `vmp run` dies without a word, an orderly end is better than a sudden one. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	schedule_promptly();
	if (node->o.log_fd > 2)
		fcntl(node->o.log_fd, F_SETFD, FD_CLOEXEC);
	raise_descriptor_limit();
	node->boot_ns = node_now_ns();
	start(node);
	poll_loop(node);
	finish(node);
	return node->failed ? EXIT_VMP_FAILURE : 0;
}
