/* node.c - vmp-node: a node daemon's start, step by step; node.h describes it. */
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
#include "base/beside.h"
#include "base/clock.h"
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
#include "vmm/node/pages/hoard.h"
#include "vmm/node/pages/pagetrace.h"
#include "vmm/node/pages/wants.h"
#include "vmm/node/poll.h"
#include "vmm/node/wire/conn.h"
#include "vmm/shared/private_folder.h"

static struct node the_node = {
	.ram_fd = -1, .shm_fd = -1, .cpus_fd = -1, .outside = &outside_real
};

/* ---- shared memory ---- */

/* Makes a memfd of a fixed size, sealed so that no mapping can lose its end. */
static int make_memory(const char *name, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		die("cannot make %zu MiB of shared memory: %s; see ulimit -%c", bytes >> 20,
		    strerror(errno), errno == EMFILE ? 'n' : 'a');
	return fd;
}

static void make_shared_memory(struct node *node)
{
	size_t ram_bytes;

	node->ram_pages = ram_pages_of(node->o.machine.mem_mib);
	ram_bytes = (size_t)node->ram_pages << PAGE_BITS;
	node->ram_fd = make_memory("vmp-ram", ram_bytes);
	node->ram = mmap(NULL, ram_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node->ram_fd, 0);
	node->shm_fd = make_memory("vmp-host", HOSTSHM_HEAD_BYTES);
	node->cpus_fd = make_memory("vmp-cpus", hostshm_cpus_bytes(node->ram_pages));
	node->shm = hostshm_map(node->shm_fd, node->cpus_fd, node->ram_pages);
	if (node->ram == MAP_FAILED || !node->shm)
		die("cannot map %zu MiB of shared memory: %s; see ulimit -v", ram_bytes >> 20,
		    strerror(errno));
	madvise(node->ram, ram_bytes, MADV_DONTDUMP);
	node->shm->node = node->o.node;
	node->shm->many_hosts = node_shares_memory(node);
	atomic_store(&node->shm->without, node->o.machine.without);
	node->shm->n_processors = processors_count(node);
	node->shm->n_cpus = node->o.machine.cpus;
	node->shm->ram_pages = node->ram_pages;
	node->shm->features = node->o.features;
	hostclock_set(&node->shm->clock, (struct clock_line){ node->boot_ns, 0, 0 });
	node->boot_tsc = node->outside->tsc_mark();
	node->shm->magic = HOSTSHM_MAGIC;
}

/* ---- the start ---- */

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
	node->loop = loop_on_event_base(node->base);
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
	/* Listen first: the command line must be able to connect before anything fails, since it is
	 * told what failed. */
	if (node->o.node == 0)
		control_listen(node);
	make_shared_memory(node);
	restore_offer_ram(node);
	wants_start(node);
	trace_start(node);
	pagestore_start(node);
	hoard_start(node);
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
	if (node->o.node == 0) {
		clients_close(node);
		control_close(node);
	}
	overlay_close(node);
	log_debug("ends");
}

/* Each monitor, peer and client has a socket. */
static void raise_descriptor_limit(void)
{
	const rlim_t enough = 2 * (MAX_CPUS + MAX_NODES + MAX_CLIENTS) + 32;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= enough)
		return;
	limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : enough;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Reports whatever stops this daemon: `vmp run` gets it, directly or through node 0, and prints
 * it. */
static void on_die(const char *line)
{
	struct node *node = &the_node;
	struct msg_machine_end end = { .reason = END_FAILURE, .node = node->o.node };

	if (node->o.node == 0) {
		close(node->ram_fd); /* descriptors may be what is missing */
		close(node->shm_fd);
		close(node->cpus_fd);
		control_last_words(node, line);
	} else if (overlay_reaches(node, 0)) {
		net_send(node->net, VNODE_DAEMON(0), MSG_MACHINE_END, &end, sizeof end, line,
			 strlen(line));
		overlay_flush(node);
	}
}

enum { MAX_READ_FILES = 2 * MAX_PHOENIX, MAX_FILE_NAME = 4096, MAX_CONFINED = 24 };

/* What a daemon may open: a list of files, and room for the names that are made for it. */
struct opens {
	struct confine_file file[MAX_CONFINED + MAX_READ_FILES];
	unsigned n;
	char programs[MAX_FILE_NAME], presence[32], lines[MAX_PHOENIX][MAX_FILE_NAME];
};

static void may_open(struct opens *o, const char *path, enum confine_use use)
{
	if (path && o->n < ARRAY_LEN(o->file))
		o->file[o->n++] = (struct confine_file){ path, use };
}

/* A line's "ssl CERT KEY" names files, which TLS reads for each connection. */
static void may_read_files_of(struct opens *o, char text[MAX_FILE_NAME], const char *line)
{
	char *rest, *word;
	unsigned files = 0;

	snprintf(text, MAX_FILE_NAME, "%s", line);
	for (word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		if (!strcmp(word, "ssl"))
			files = 2;
		else if (files && files--)
			may_open(o, word, CONFINE_READ);
}

/* Adds what a daemon of several computers opens: what finds a host's address, what TLS reads when
 * it is first used, the certificate and key that a line of the overlay's configuration names, and
 * the sockets by which a standby hears of an end. */
static void may_reach_others(struct opens *o, const struct node *node)
{
	static const char *const files[] = {
		"/etc/hosts",	    "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf",
		"/etc/gai.conf",    "/etc/services",	"/etc/protocols",
		"/etc/ssl/openssl.cnf", "/dev/urandom",
	};

	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		may_open(o, files[i], CONFINE_READ);
	if (node->o.present) {
		snprintf(o->presence, sizeof o->presence, PRIVATE_TMP_FORMAT, geteuid());
		may_open(o, o->presence, CONFINE_OWN_FOLDER);
	}
	for (unsigned i = 0; i < node->o.n_phoenix; i++)
		may_read_files_of(o, o->lines[i], node->o.phoenix[i]);
}

/* Confines the daemon, when everything is open that it needs until its end.  Later it makes sockets
 * in its run folder, and starts monitors of CPUs that move here.  A daemon of several computers
 * also connects to others; vmp-tunnel starts ssh for it. */
static void confine(const struct node *node)
{
	static struct opens o;
	int error;

	if (beside_folder(o.programs, sizeof o.programs))
		die("the path of vmp's programs is too long");
	may_open(&o, node->o.dir, CONFINE_OWN_FOLDER);
	may_open(&o, o.programs, CONFINE_EXECUTE);
	may_open(&o, "/usr", CONFINE_EXECUTE);
	may_open(&o, "/lib", CONFINE_EXECUTE);
	may_open(&o, "/lib64", CONFINE_EXECUTE);
	may_open(&o, "/etc/ld.so.cache", CONFINE_READ);
	may_open(&o, "/proc", CONFINE_READ);
	may_open(&o, "/sys", CONFINE_READ);
	may_open(&o, "/dev/null", CONFINE_WRITE);
	if (node->o.cluster)
		may_reach_others(&o, node);
	error = confine_files(o.file, o.n,
			      CONFINE_KEEP_SIGNALS |
				      (node->o.cluster ? CONFINE_KEEP_CONNECT : 0));
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		log_info("this kernel has no Landlock; the daemon goes without");
	else if (error)
		die("cannot confine the daemon's files: %s", strerror(-error));
	error = confine_calls_of(node->o.cluster ? CONFINE_FAR_NODE : CONFINE_NODE,
				 node->o.machine.engine != ENGINE_DIRECT);
	if (error)
		die("cannot confine the daemon's system calls: %s; is seccomp in this kernel?",
		    strerror(-error));
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
	if (confine_privileges())
		die("cannot give up privileges: %s", strerror(errno));
	/* If `vmp run` dies suddenly, the machine still ends in order. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	schedule_promptly();
	if (node->o.log_fd > 2)
		fcntl(node->o.log_fd, F_SETFD, FD_CLOEXEC);
	raise_descriptor_limit();
	node->boot_ns = clock_now_ns();
	start(node);
	confine(node);
	poll_loop(node);
	finish(node);
	return node->failed ? EXIT_VMP_FAILURE : 0;
}
