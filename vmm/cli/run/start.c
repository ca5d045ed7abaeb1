/* start.c - what is checked and opened before there is a machine, and the start of its daemons. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/layout.h"
#include "base/quantity.h"
#include "base/virtio_abi.h"
#include "vmm/cli/guest/guestprog.h"
#include "vmm/cli/image/rootdisk.h"
#include "vmm/cli/run/checks.h"
#include "vmm/shared/hostcpu.h"
#include "vmm/shared/placement.h"
#include "vmm/cli/watch/reportpage.h"

/* On several hosts, the init of our image brings the other processors up: what the kernel sets up
 * before there is a second processor crosses no host (bench/notebook/boot-over-hosts.md).  The
 * kernel's code stays that for several processors meanwhile. */
static const char *for_hosts(const struct options *o)
{
	return o->machine.hosts == 1 ? " vmp_ahead=2" : o->image ? "" : " maxcpus=1 noreplace-smp";
}

/* Writes the words that tell the guest kernel its virtio devices; it looks for no others. */
static void virtio_words(const struct machine *m, bool live, char *words, size_t bytes)
{
	static const uint8_t lines[VIRTIO_SLOTS] = VIRTIO_LINES;
	uint32_t slots = (m->rng ? 1u << VIRTIO_RNG : 0) | (live ? 1u << VIRTIO_SHARE : 0) |
			 (m->console == CONSOLE_VIRTIO ? 1u << VIRTIO_CONSOLE : 0);
	size_t n = 0;

	for (unsigned i = 0; i < m->disk.n; i++)
		if (!options_disk_is_ide(m->disk.item[i]))
			slots |= 1u << (VIRTIO_DISKS + i);
	if (m->net && strcmp(m->net, "none"))
		slots |= 1u << VIRTIO_NET;
	else
		/* IPv6 costs every boot some time */
		n = (size_t)snprintf(words, bytes, " ipv6.disable=1");
	for (; slots; slots &= slots - 1) {
		unsigned slot = __builtin_ctz(slots);

		n += (size_t)snprintf(words + n, bytes - n, " virtio_mmio.device=4K@0x%x:%u",
				      VMP_VIRTIO_GPA + slot * VIRTIO_SLOT_BYTES, lines[slot]);
	}
}

/* An IDE disk reaches 4 GiB; for it alone a kernel with PAE needs 64 MiB to copy through. */
static const char *for_bounces(const struct machine *m)
{
	return ram_needs_pae(ram_pages_of(m->mem_mib)) && !options_ide_disks(m)
		       ? " swiotlb=noforce"
		       : "";
}

/* Writes the guest kernel's command line; guest-patches/README.md explains each word. */
static int command_line(const struct run *run, char *line, size_t bytes, struct problem *p)
{
	bool quiet = !run->o->log && !run->o->machine.verbose;
	/* The serial port costs two traps a byte: kernel messages go there only if somebody sees
	 * them. */
	const char *console = run->o->machine.console == CONSOLE_VIRTIO ? " console=hvc0"
									: " console=ttyS0";
	char virtio[VIRTIO_SLOTS * 48 + 16] = "";
	int n;

	virtio_words(&run->o->machine, run->o->share_live, virtio, sizeof virtio);
	/* Only an IDE disk has a bus, and looking for devices there takes time. */
	n = snprintf(line, bytes, "pci=%s%s%s%s%s%s%s%s%s%s",
		     options_ide_disks(&run->o->machine) ? "conf1,noearly" : "off",
		     run->interactive || run->background ? console : "", virtio,
		     for_bounces(&run->o->machine),
		     quiet ? " loglevel=3" : "", for_hosts(run->o),
		     *run->o->root_device && run->o->hostname ? " systemd.hostname=" : "",
		     *run->o->root_device && run->o->hostname ? run->o->hostname : "",
		     run->o->append ? " " : "", run->o->append ? run->o->append : "");

	if (n >= MAX_CMDLINE)
		return problem(p, "--append: the kernel's command line would be longer than %d "
			       "characters",
			MAX_CMDLINE - 1);
	return 0;
}

/* Returns whether hosts can be added.  Two hosts may always become three.  A machine for one host
 * costs less than one for several.  A machine in the background can grow, if this computer can run
 * more than one host. */
static bool can_grow(const struct run *run, const struct launch_plan *plan)
{
	struct problem ignored;

	return plan->machine.hosts > 1 || run->o->machine.hosts > 1 ||
	       run->o->machine.checkpoint_ms || (run->background && !hostcpu_check(true, &ignored));
}

static void plan_cluster(struct run *run, struct launch_plan *plan)
{
	if (!run->o->cluster)
		return;
	plan->cluster = &run->cluster;
	cluster_file_place(run->cluster.host, plan->machine.hosts, plan->machine.cpus, plan->place);
}

struct machine_info run_info(const struct run *run, uint32_t hosts)
{
	struct machine_info info = { .machine = run->o->machine,
				     .pid = getpid(),
				     .yields = run->leave_asked,
				     .yielded = run->yielded,
				     .background = run->background,
				     .log_fd = (uint32_t)run->log_fd };

	info.machine.hosts = hosts;
	snprintf(info.kernel, sizeof info.kernel, "%s", run->kernel);
	run_standby_name(run, info.standby);
	return info;
}

/* Makes the last preparations, and starts the daemons.  The plan's strings last as long as the
 * call. */
static int start_daemons(struct run *run, struct launch_plan *plan, struct problem *p)
{
	struct machine_info info = run_info(run, plan->machine.hosts);

	rundir_write_info(&run->rundir, &info);
	plan->rundir = run->rundir.path;
	plan->log_fd = run->log_fd;
	plan->machine.hold = run->held;
	plan->machine.grows = can_grow(run, plan);
	plan->machine.report = run_wants_report(run);
	plan->machine.trace = run->o->trace;
	plan->features = &run->cpu.features;
	plan_cluster(run, plan);
	run->plan = *plan;
	run->plan.kernel = run->plan.image = run->plan.appended = run->plan.command_line = NULL;
	run->plan.machine.disk.n = 0;
	run->plan.machine.net = NULL;
	run->plan.machine.live.n = 0;
	run->connect_ns = run_now_ns();
	return launch_start(&run->launch, plan, p);
}

int run_start_saved(struct run *run, uint32_t hosts, struct problem *p)
{
	struct launch_plan plan = { .machine = run->o->machine,
				    .command_line = run->load.saved.command_line };

	plan.machine.hosts = hosts;
	plan.machine.restore = true;
	run->kernel = run->kernel ? run->kernel : run->load.saved.kernel;
	return start_daemons(run, &plan, p);
}

int run_start(struct run *run, const struct host_files *files, struct problem *p)
{
	char line[MAX_CMDLINE], archive[64];
	struct launch_plan plan = {
		.machine = run->o->machine,
		.kernel = files->kernel,
		.image = files->image,
		.appended = archive,
		.command_line = line,
	};

	/* The daemon opens our memory file by this name; so nothing is left behind, whichever
	 * process dies. */
	snprintf(archive, sizeof archive, "/proc/%d/fd/%d", getpid(), run->archive_fd);
	run->kernel = files->kernel;
	return command_line(run, line, sizeof line, p) ? -1 : start_daemons(run, &plan, p);
}

/* Opens the port before anything is started, and prints where to connect. */
static int open_gdb(struct run *run, const char *kernel, struct problem *p)
{
	struct gdb_address address;
	char line[4200];

	if (!run->o->gdb)
		return 0;
	if (gdb_address_parse(run->o->gdb, &address, p) || gdbserver_listen(&run->gdb, &address, p))
		return -1;
	run->held = !address.nowait;
	gdbserver_describe(&run->gdb, kernel, line, sizeof line);
	dprintf(2, "vmp: %s %s\n", run->held ? "waiting for" : "listening for", line);
	return 0;
}

/* Checked here, since the cluster's or the snapshot's file says how many hosts there are, and which
 * disk. */
static int check_checkpoint(const struct options *o, struct problem *p)
{
	const char *written = options_disk_written(&o->machine);
	struct problem why;

	if (!o->machine.checkpoint_ms)
		return 0;
	if (o->machine.hosts < 2)
		return problem(p, "--checkpoint needs --hosts 2 or more: when the only host is "
				  "lost, none is left to go on");
	if (written && o->checkpoint_file)
		return problem(p, "--checkpoint-file: the file does not have what the machine "
			       "writes to its disk's image, %.200s",
			       written);
	if (*o->root_image)
		return problem(p, "--checkpoint: --root %s is packed into an image that has no "
			       "name; make one by: vmp image pack %s FILE, and say --root FILE",
			       o->root, o->root);
	if (o->checkpoint_file && keptfile_check(o->checkpoint_file, &why))
		return problem(p, "--checkpoint-file: %s", why.line);
	return 0;
}

int run_hosts_hold(const struct run *run, const struct cluster_host *lines, uint32_t hosts,
		   struct problem *p)
{
	uint32_t each = run->o->machine.host_mem_mib,
		 mib = lines ? cluster_file_memory(lines, hosts, each) : each * hosts;

	if (!mib || mib >= run->o->machine.mem_mib)
		return 0;
	return problem(p, "all hosts together may hold %uM, less than the guest's %uM (--mem)", mib,
		       run->o->machine.mem_mib);
}

/* How much of a computer's memory the machine may use. */
static uint32_t of_each_mib(const struct machine *m, uint32_t hosts)
{
	return (uint32_t)hostmem_needed_mib(m->host_mem_mib ? m->host_mem_mib : m->mem_mib, 1,
					    (m->cpus + hosts - 1) / hosts);
}

/* --peers: the computers that are borrowed become a cluster's file. */
static int borrow_peers(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	struct peers_wish wish = { .others = o->peers,
				   .cpus = o->machine.cpus,
				   .mem_mib = of_each_mib(&o->machine, o->peers + 1),
				   .how = o->peers_spread	 ? "spread"
					  : o->peers_concentrate ? "concentrate"
								 : "near" };
	static struct peers_asked asked;

	if (o->min_memory)
		quantity_parse_mib(o->min_memory, &wish.min_mib);
	if (peers_use_rsh(p) || peers_ask(&asked, &wish, p) || peers_read(&asked, true, p) < 0 ||
	    cluster_open_peers(&run->cluster, asked.text, asked.held, &run->cpu,
			       run->load.path != NULL, p))
		return -1;
	o->cluster = run->cluster.path;
	return 0;
}

static int read_cluster(struct run *run, struct problem *p)
{
	return cluster_open(&run->cluster, run->o->cluster, &run->cpu, run->load.path != NULL,
			    p) || cluster_begins_here(&run->cluster, p)
		       ? -1
		       : 0;
}

/* The machine's hosts are all hosts of the file, or the first ones. */
static int open_cluster(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	uint32_t lines, askers;

	if (o->peers && borrow_peers(run, p))
		return -1;
	if (!o->cluster)
		return 0;
	if (!o->peers && read_cluster(run, p))
		return -1;
	lines = run->cluster.file.n;
	if (o->machine.hosts > lines)
		return problem(p, "--hosts %u: %s names %u", o->machine.hosts, o->cluster, lines);
	if (!o->machine.hosts)
		o->machine.hosts = lines;
	if (!o->machine.cpus)
		o->machine.cpus = cluster_file_cpus(run->cluster.file.host, o->machine.hosts);
	if (!o->machine.cpus)
		return problem(p, "%s: no host has a processor (cpus=0)", o->cluster);
	if (o->machine.cpus > MAX_CPUS)
		o->machine.cpus = MAX_CPUS;
	askers = cluster_file_askers(run->cluster.file.host, o->machine.hosts);
	if (askers > o->machine.cpus)
		return problem(p, "%u hosts are more than %u processors: each host needs one, but "
			       "for those of cpus=0; see --hosts",
			       askers, o->machine.cpus);
	return run_hosts_hold(run, run->cluster.file.host, o->machine.hosts, p);
}

/* Opens the log, the report, and the port for a debugger. */
static int open_outputs(struct run *run, const char *kernel, struct problem *p)
{
	return run_open_log(run, p) || report_open(&run->report, run->o, p) ||
			       (run->o->report && reportpage_check(run->o->report, p)) ||
			       open_gdb(run, kernel, p)
		       ? -1
		       : 0;
}

/* Writes the path of --share DIR,live for processes that may have another current folder; "" if it
 * was not given. */
static int name_live(const struct options *o, char path[PATH_MAX], struct problem *p)
{
	path[0] = 0;
	if (o->share_live && !realpath(o->share, path))
		return problem(p, "--share %s: %s", o->share, strerror(errno));
	return 0;
}

static int choose_live(struct run *run, struct problem *p)
{
	const struct options *o = run->o;
	char path[PATH_MAX];

	if (!o->share_live)
		return 0;
	if (name_live(o, path, p))
		return -1;
	if (snprintf(run->live, sizeof run->live, "%s%s", path, o->share_read_only ? ",ro" : "") >=
	    (int)sizeof run->live)
		return problem(p, "--share %s: the path is too long", o->share);
	run->loaded.machine.live = (struct machine_list){ .item = { run->live }, .n = 1 };
	return 0;
}

int run_prepare(struct run *run, struct host_files *files, struct problem *p)
{
	struct image image;

	hostcpu_look(&run->cpu);
	if (open_cluster(run, p) || rootdisk_choose(&run->loaded, p) ||
	    check_checkpoint(run->o, p) || choose_live(run, p))
		return -1;
	if (checks_before_boot(run->o, files, p) || open_outputs(run, files->kernel, p))
		return -1;
	if (image_load(&image, files->image, p))
		return -1;
	run->archive_fd = guestprog_archive(run->o, &image, p);
	image_free(&image);
	return run->archive_fd < 0 ? -1 : 0;
}

static bool is_own(const char *file)
{
	struct stat st;

	return !stat(file, &st) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int choose_disks(struct run *run, struct problem *p)
{
	const struct machine_list *given = &run->loaded.machine.disk;
	const struct saved_machine *saved = &run->load.saved;
	unsigned n = saved_disks(saved);
	bool own = is_own(run->loaded.file);

	if (saved_check_disks(saved, given->n, p))
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (saved_choose_disk(&saved->disk[i], given->n ? given->item[i] : NULL, own,
				      run->disk[i], sizeof run->disk[i], p))
			return -1;
	return 0;
}

/* The live folder of a saved machine, which must be there. */
static int choose_folder(struct run *run, struct problem *p)
{
	const struct options *o = run->o;
	const struct saved_machine *saved = &run->load.saved;
	char given[PATH_MAX];

	if (o->share && !o->share_live)
		return problem(p, "--share %s: what was copied is in the saved machine; "
			       "--share DIR,live says where a live folder is", o->share);
	if (name_live(o, given, p) ||
	    saved_choose_folder(saved, *given ? given : NULL, o->share_read_only, is_own(o->file),
				run->live, sizeof run->live, p))
		return -1;
	if (*run->live && !*given && access(saved->folder.path, F_OK))
		return problem(p, "its live folder %.400s: %s; say --share DIR,live with where it "
			       "is now",
			       saved->folder.path, strerror(errno));
	return 0;
}

int run_prepare_saved(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	struct problem inner;
	const struct snapshot_machine *cut = &run->load.saved.machine;
	const struct machine *machine = &run->load.saved.was;

	if (load_open(&run->load, o->file, &run->cpu, p))
		return -1;
	if ((o->cluster || o->peers) && cut->tsc_khz)
		return problem(p, "%s: the saved guest reads this computer's time-stamp counter as "
			       "its clock, so it can go on on this computer alone; a machine that "
			       "was started with --cluster or --peers can be loaded on any",
			o->file);
	if (!o->machine.hosts && !o->cluster && !o->peers)
		/* some hosts may have had no processor */
		o->machine.hosts = machine->hosts < machine->cpus ? machine->hosts : machine->cpus;
	if (!o->cluster && o->machine.hosts > machine->cpus)
		return problem(p, "--hosts %u is more than the saved machine's %u processors: each "
			       "host needs one",
			       o->machine.hosts, machine->cpus);
	if (o->peers >= machine->cpus && !o->peers_concentrate)
		return problem(p, "--peers %u: the saved machine has %u processor%s, and each "
			       "computer gives one; with --concentrate fewer computers are taken",
			       o->peers, machine->cpus, machine->cpus > 1 ? "s" : "");
	o->machine.cpus = machine->cpus;
	o->machine.mem_mib = machine->mem_mib;
	if (open_cluster(run, p))
		return -1;
	if (choose_disks(run, &inner) || choose_folder(run, &inner) ||
	    saved_check_net(&run->load.saved, o->machine.net, &inner))
		return problem(p, "%.150s: %.480s", o->file, inner.line);
	saved_devices(&run->load.saved, &o->machine, run->disk, run->live);
	run->interactive = saved_is_interactive(&run->load.saved);
	if (check_checkpoint(o, p))
		return -1;
	return checks_before_load(o, p) || open_outputs(run, run->load.saved.kernel, p) ? -1 : 0;
}
