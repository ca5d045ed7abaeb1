/* start.c - what is checked and opened before there is a machine, and the start of its daemons. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "vmm/cli/guest/guestprog.h"
#include "vmm/cli/run/checks.h"
#include "vmm/shared/hostcpu.h"
#include "vmm/shared/placement.h"

int run_open_log(struct run *run, struct problem *p)
{
	const char *path = run->o->log;

	if (!path && !run->o->machine.verbose)
		run->log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	else if (!path || !strcmp(path, "-"))
		run->log_fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
	else
		run->log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (run->log_fd < 0)
		return problem(p, "cannot write the log %s: %s", path ? path : "", strerror(errno));
	if (!hostcpu_has_cpuid_faulting())
		dprintf(run->log_fd, "vmp: this processor cannot make CPUID trap: the guest's programs see the host's own CPUID; "
			"the guest kernel manages all the state that it names\n");
	return 0;
}

/* On several hosts our image's init brings the other processors up: 3,800 pages are asked for until two are there, where a boot with
 * both asks for 10,700 (bench/notebook/boot-over-hosts.md). The kernel's code stays one for several processors meanwhile. */
static const char *for_hosts(const struct options *o)
{
	return o->machine.hosts == 1 ? " vmp_ahead=2" : o->image ? "" : " maxcpus=1 noreplace-smp";
}

/* The guest kernel's command line; guest-patches/README.md says what each word is for. */
static int command_line(const struct run *run, char *line, size_t bytes, struct problem *p)
{
	bool quiet = !run->o->log && !run->o->machine.verbose;
	/* The serial port costs two traps a byte: kernel messages go there only where somebody sees them. */
	/* Linux looks for six disks, a tenth of a second each; there is one at most. */
	int n = snprintf(line, bytes, "pata_legacy.probe_mask=%d%s%s%s%s%s", run->o->machine.disk ? 1 : 0,
			 run->interactive || run->background ? " console=ttyS0" : "", quiet ? " loglevel=3" : "",
			 for_hosts(run->o), run->o->append ? " " : "", run->o->append ? run->o->append : "");

	if (n >= MAX_CMDLINE)
		return problem(p, "--append: the kernel's command line would be longer than %d characters", MAX_CMDLINE - 1);
	return 0;
}

/* Two hosts may always become three. One is a case of its own, which costs less than one of several: what is started in the
 * background can grow, if this computer can have more than one. */
static bool can_grow(const struct run *run, const struct launch_plan *plan)
{
	struct problem ignored;

	return plan->machine.hosts > 1 || run->o->machine.hosts > 1 || run->o->machine.checkpoint_ms ||
	       (run->background && !hostcpu_check(true, &ignored));
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
	struct machine_info info = { .machine = run->o->machine, .pid = getpid(), .yields = run->yield != YIELD_NOT,
				     .yielded = run->yielded };

	info.machine.hosts = hosts;
	snprintf(info.kernel, sizeof info.kernel, "%s", run->kernel);
	run_standby_name(run, info.standby);
	return info;
}

/* The last of the preparations, and the daemons. The plan's strings last as long as the call. */
static int start_daemons(struct run *run, struct launch_plan *plan, struct problem *p)
{
	struct machine_info info = run_info(run, plan->machine.hosts);

	rundir_write_info(&run->rundir, &info);
	plan->rundir = run->rundir.path;
	plan->log_fd = run->log_fd;
	plan->machine.hold = run->held;
	plan->machine.grows = can_grow(run, plan);
	plan->machine.report = run_wants_report(run);
	plan->features = &run->cpu.features;
	plan_cluster(run, plan);
	run->plan = *plan;
	run->plan.kernel = run->plan.image = run->plan.appended = run->plan.command_line = run->plan.machine.disk = NULL;
	run->connect_ns = run_now_ns();
	return launch_start(&run->launch, plan, p);
}

int run_start_saved(struct run *run, uint32_t hosts, struct problem *p)
{
	struct launch_plan plan = { .machine = run->o->machine, .command_line = run->load.saved.command_line };

	plan.machine.hosts = hosts;
	plan.machine.restore = true;
	run->kernel = run->kernel ? run->kernel : run->load.saved.kernel;
	return start_daemons(run, &plan, p);
}

int run_start(struct run *run, const struct host_files *files, struct problem *p)
{
	char line[MAX_CMDLINE], archive[64];
	struct launch_plan plan = {
		.machine = run->o->machine, .kernel = files->kernel, .image = files->image, .appended = archive,
		.command_line = line,
	};

	/* The daemon opens our memory file by this name: nothing is left behind, whoever dies. */
	snprintf(archive, sizeof archive, "/proc/%d/fd/%d", getpid(), run->archive_fd);
	run->kernel = files->kernel;
	return command_line(run, line, sizeof line, p) ? -1 : start_daemons(run, &plan, p);
}

/* The port is taken before anything is started; who is to connect reads where. */
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

/* The cluster's file, or the snapshot's, has said how many hosts there are, and which disk. */
static int check_checkpoint(const struct options *o, struct problem *p)
{
	struct problem why;
	size_t ignored;

	if (!o->machine.checkpoint_ms)
		return 0;
	if (o->machine.hosts < 2)
		return problem(p, "--checkpoint needs --hosts 2 or more: when the only host is lost, none is left to go on");
	if (o->machine.disk && options_disk_mode(o->machine.disk, &ignored) == DISK_READ_WRITE)
		return problem(p, "--checkpoint: the machine writes to its disk's image, %.200s, which cannot be taken back", o->machine.disk);
	if (o->checkpoint_file && keptfile_check(o->checkpoint_file, &why))
		return problem(p, "--checkpoint-file: %s", why.line);
	return 0;
}

int run_hosts_hold(const struct run *run, const struct cluster_host *lines, uint32_t hosts, struct problem *p)
{
	uint32_t each = run->o->machine.host_mem_mib, mib = lines ? cluster_file_memory(lines, hosts, each) : each * hosts;

	if (!mib || mib >= run->o->machine.mem_mib)
		return 0;
	return problem(p, "all hosts together may hold %uM, less than the guest's %uM (--mem)", mib, run->o->machine.mem_mib);
}

/* The machine's hosts are those of the file, or the first of them. */
static int open_cluster(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	uint32_t lines, askers;

	if (!o->cluster)
		return 0;
	if (cluster_open(&run->cluster, o->cluster, &run->cpu, run->load.path != NULL, p) || cluster_begins_here(&run->cluster, p))
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
		return problem(p, "%u hosts are more than %u processors: each host needs one, but for those of cpus=0; see --hosts", askers,
			       o->machine.cpus);
	return run_hosts_hold(run, run->cluster.file.host, o->machine.hosts, p);
}

/* What the machine's end, or its whole life, is written to, and where a debugger is awaited. */
static int open_outputs(struct run *run, const char *kernel, struct problem *p)
{
	return run_open_log(run, p) || report_open(&run->report, run->o, p) || open_gdb(run, kernel, p) ? -1 : 0;
}

int run_prepare(struct run *run, struct host_files *files, struct problem *p)
{
	struct image image;

	hostcpu_look(&run->cpu);
	if (open_cluster(run, p) || check_checkpoint(run->o, p))
		return -1;
	if (checks_before_boot(run->o, files, p) || open_outputs(run, files->kernel, p))
		return -1;
	if (image_load(&image, files->image, p))
		return -1;
	run->archive_fd = guestprog_archive(run->o, &image, p);
	image_free(&image);
	return run->archive_fd < 0 ? -1 : 0;
}

int run_prepare_saved(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	const struct snapshot_machine *cut = &run->load.saved.machine;
	const struct machine *machine = &run->load.saved.was;

	if (load_open(&run->load, o->file, &run->cpu, p))
		return -1;
	if (o->cluster && cut->tsc_khz)
		return problem(p, "%s: the saved guest reads this computer's time-stamp counter as its clock, so it can go on on this "
			       "computer alone; a machine that was started with --cluster can be loaded on any", o->file);
	if (!o->machine.hosts && !o->cluster)
		o->machine.hosts = machine->hosts < machine->cpus ? machine->hosts : machine->cpus; /* some may have had no processor */
	if (!o->cluster && o->machine.hosts > machine->cpus)
		return problem(p, "--hosts %u is more than the saved machine's %u processors: each host needs one", o->machine.hosts,
			       machine->cpus);
	o->machine.cpus = machine->cpus;
	o->machine.mem_mib = machine->mem_mib;
	if (open_cluster(run, p))
		return -1;
	o->machine.disk = saved_disk(&run->load.saved, run->disk, sizeof run->disk);
	run->interactive = saved_is_interactive(&run->load.saved);
	if (check_checkpoint(o, p))
		return -1;
	return checks_before_load(o, p) || open_outputs(run, run->load.saved.kernel, p) ? -1 : 0;
}
