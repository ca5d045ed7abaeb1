/* monitor.c - a monitor's life.  The node daemon starts it with the host's shared memory.  The
 * monitor prepares its VM process, waits until its virtual CPU is started (a spare one waits for a
 * CPU from another host), runs the CPU, and ends when the daemon does.
 *
 *   vmp-monitor --cpu I --socket FD --ram-fd FD --shm-fd FD --cpus-fd FD --bell-fd FD --log-fd FD
 *		--device-files FD,FD,...
 *
 * and those options of the machine that a monitor reads (base/machine.def).
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/confine.h"
#include "base/faultpoint.h"
#include "base/killed.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mechanisms.h"
#include "base/schedule.h"
#include "monitor/cpu_state.h"
#include "monitor/localdisk.h"
#include "monitor/localnet.h"

static struct monitor monitor;

static void on_alarm(int signal)
{
	int saved = errno;

	(void)signal;
	monitor.engine.timer_armed_ns = UINT64_MAX;
	if (monitor.vm.pid > 0)
		kill(monitor.vm.pid, SIGUSR1);
	errno = saved;
}

/* Interrupt a sleep.  A monitor that is awake checks child_changed before it sleeps again.
 * (TRICKS: death-is-noted) */
static void on_child(int signal)
{
	(void)signal;
	monitor.child_changed = 1;
}

/* Report the failure to the daemon, which passes it to the user who started the machine. */
static void on_die(const char *line)
{
	monitor_end(&monitor, END_FAILURE, EXIT_VMP_FAILURE, "CPU %u: %s", monitor.cpu, line);
}

/* Take over the files of virtio devices, by slot, -1 for none. */
static void take_files(const char *list)
{
	int file[VIRTIO_SLOTS];

	for (unsigned i = 0; i < VIRTIO_SLOTS; i++) {
		char *end;
		int fd = (int)strtol(list, &end, 10);

		file[i] = end > list && fd >= 0 && !fcntl(fd, F_SETFD, FD_CLOEXEC) ? fd : -1;
		list = *end ? end + 1 : end;
	}
	localdisk_open(file + VIRTIO_DISKS);
	localnet_open(file[VIRTIO_NET]);
}

struct arguments { int cpu, socket, ram, shm, cpus, bell, log; struct machine machine; };

static struct arguments parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cpu", required_argument, NULL, 'c' },
		{ "socket", required_argument, NULL, 's' },
		{ "ram-fd", required_argument, NULL, 'r' },
		{ "shm-fd", required_argument, NULL, 'm' },
		{ "cpus-fd", required_argument, NULL, 'p' },
		{ "bell-fd", required_argument, NULL, 'b' },
		{ "log-fd", required_argument, NULL, 'l' },
		{ "device-files", required_argument, NULL, 'd' },
		{ 0 },
	};
	struct arguments a = { -1, -1, -1, -1, -1, -1, 2, { 0 } };
	char why[200];
	int c;

	machine_defaults(&a.machine);
	if (machine_take_words(&a.machine, MACHINE_MONITOR, &argc, argv, why, sizeof why))
		die("%s", why);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 'c': a.cpu = atoi(optarg); break;
		case 's': a.socket = atoi(optarg); break;
		case 'r': a.ram = atoi(optarg); break;
		case 'm': a.shm = atoi(optarg); break;
		case 'p': a.cpus = atoi(optarg); break;
		case 'b': a.bell = atoi(optarg); break;
		case 'l': a.log = atoi(optarg); break;
		case 'd': take_files(optarg); break;
		default: exit(EXIT_VMP_FAILURE);
		}
	if (a.cpu < 0 || a.cpu >= MAX_CPUS || a.socket < 0 || a.ram < 0 || a.shm < 0 ||
	    a.cpus < 0 || a.bell < 0)
		die("vmp-monitor is started by vmp-node, not by hand");
	return a;
}

static void map_shared(struct monitor *m, const struct arguments *a)
{
	struct host_shm *head = mmap(NULL, HOSTSHM_HEAD_BYTES, PROT_READ, MAP_SHARED, a->shm, 0);

	if (head == MAP_FAILED || head->magic != HOSTSHM_MAGIC)
		die("the host's shared memory is not what this vmp-monitor expects");
	m->shm = hostshm_map(a->shm, a->cpus, head->ram_pages);
	m->ram = mmap(NULL, (size_t)head->ram_pages << PAGE_BITS, PROT_READ | PROT_WRITE,
		      MAP_SHARED, a->ram, 0);
	if (!m->shm || m->ram == MAP_FAILED)
		die("cannot map the guest's RAM: %s", strerror(errno));
	munmap(head, HOSTSHM_HEAD_BYTES);
}

static void prepare_signals(struct monitor *m)
{
	struct sigaction alarm = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };

	sigaction(SIGALRM, &alarm, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit is an error of the guest's disk */
	signal(SIGINT, SIG_IGN); /* the daemon ends us */
	if (timer_create(CLOCK_MONOTONIC, &event, &m->timer))
		die("no timer: %s; see ulimit -i", strerror(errno));
}

/* Flat boot segments are in force until the guest loads a table of its own.
 * (TRICKS: boot-selectors) */
static void prepare_boot_segments(struct monitor *m)
{
	struct vcpu_segment flat = {
		.limit = UINT32_MAX, .present = true, .big = true, .granular = true
	};

	flat.type = 0xb;
	process_set_segment(m, VMP_GDT_BOOT_CS, &flat);
	flat.type = 0x3;
	process_set_segment(m, VMP_GDT_BOOT_DS, &flat);
}

static bool take_post(struct monitor *m, uint32_t bit)
{
	return atomic_fetch_and(&m->slot->post, ~bit) & bit;
}

void monitor_sleep(struct monitor *m, _Atomic uint32_t *word, uint32_t value)
{
	static const struct timespec second = { .tv_sec = 1 };
	const struct msg_cpu_halted body = { .cpu = m->cpu, .started = m->started };

	if (!syscall(SYS_futex, word, FUTEX_WAIT, value, &second, NULL, 0) || errno != ETIMEDOUT ||
	    m->ending || (m->started && !atomic_load(&m->slot->halted_for_good)))
		return;
	channel_send(m, MSG_CPU_HALTED, VNODE_DAEMON(m->shm->node), &body, sizeof body, NULL, 0);
}

/* Wait until the CPU is started, or the state of a running CPU arrives from a file or from another
 * host.  A request that has been read behind that state is for a CPU that runs: the post that is
 * left here makes the engine's loop serve it. */
void monitor_wait_for_start(struct monitor *m)
{
	while (!m->started) {
		uint32_t wake = atomic_load(&m->bell->wake);

		if (take_post(m, POST_MESSAGE))
			channel_drain(m);
		if (m->freeze_wanted && !m->started)
			freeze_guest(m);
		if (m->started) {
			freeze_until_thaw(m);
			/* false: the CPU's start arrived while the machine was frozen */
			if (m->state_came) {
				state_resume(m);
				rings_back(m);
			}
		} else if (m->handover.arrived.state_bytes) {
			handover_take(m);
		} else if (m->handover.give_wanted) {
			handover_give(m);
		} else if (take_post(m, POST_START)) {
			vcpu_start(&m->vcpu, atomic_load(&m->slot->start_eip),
				   m->cpu ? 0 : VMP_BOOT_PARAMS_GPA);
			log_debug("CPU %u starts at %x", m->cpu, m->vcpu.eip);
			m->started = true;
		} else if (m->dump_wanted) {
			send_dump(m);
		} else if (!(atomic_load(&m->slot->post) & (POST_MESSAGE | POST_START))) {
			monitor_sleep(m, &m->bell->wake, wake);
		}
	}
	atomic_fetch_or(&m->slot->post, POST_MESSAGE);
	atomic_store(&m->bell->state, SLOT_MONITOR);
}

void monitor_announce(struct monitor *m)
{
	atomic_store(&m->shm->monitor_pid[m->cpu], getpid());
	channel_send(m, MSG_HELLO, VNODE_DAEMON(m->shm->node),
		     &(struct msg_hello){
			     .wire_version = wire_version, .role = PEER_MONITOR, .index = m->cpu },
		     sizeof(struct msg_hello), NULL, 0);
}

static void run_ptrace_engine(struct monitor *m)
{
	process_start(m);
	prepare_boot_segments(m);
	monitor_announce(m);
	monitor_wait_for_start(m);
	run_guest(m);
}

static void run_direct_engine(struct monitor *m)
{
	signal(SIGCHLD, on_child);
	direct_run(m);
}

/* A second wall: an attacker who takes over a monitor has the guest's memory.  The attacker must
 * not reach the host's files or its network.  The monitor still has to start VM processes while the
 * guest runs, to read what killed them, and to signal those of other CPUs. */
static void confine(bool traced)
{
	char path[4096];
	const struct confine_file files[] = { { path, CONFINE_EXECUTE },
					      { "/proc/vmstat", CONFINE_READ } };
	int error = confine_privileges();

	if (error)
		die("cannot confine the monitor: %s", strerror(-error));
	if (beside_path("vmproc", path, sizeof path))
		die("the path of vmp's programs is too long");
	error = confine_files(files, ARRAY_LEN(files), CONFINE_KEEP_SIGNALS);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		log_info("this kernel has no Landlock; the monitor goes without");
	else if (error)
		die("cannot confine the monitor's files: %s", strerror(-error));
	error = confine_calls_of(CONFINE_MONITOR, traced);
	if (error)
		die("cannot confine the monitor's system calls: %s; is seccomp in this kernel?",
		    strerror(-error));
}

/* A halted CPU may poll if that takes the processor from no other CPU.  On a machine of several
 * hosts it is the daemon that polls. */
static bool halted_cpus_poll(const struct monitor *m)
{
	return !m->many_hosts && mechanism_on(m->shm->without, MECHANISM_HALT_POLL) &&
	       m->shm->n_processors >= m->shm->n_cpus;
}

int main(int argc, char **argv)
{
	struct arguments a = parse(argc, argv);
	struct monitor *m = &monitor;
	char who[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(who, sizeof who, "vmp-monitor %d", a.cpu);
	log_open(who, a.log, LOG_WARN);
	fault_open();
	killed_remember();
	m->cpu = a.cpu;
	m->channel = a.socket;
	m->ram_fd = a.ram;
	m->cpus_fd = a.cpus;
	m->bell_fd = a.bell;
	m->direct_engine = a.machine.engine == ENGINE_DIRECT;
	m->strict = a.machine.strict;
	map_shared(m, &a);
	log_on_die(on_die);
	m->slot = &m->shm->slot[m->cpu];
	m->bell = &m->shm->doorbell[m->cpu];
	m->many_hosts = m->shm->many_hosts;
	m->halt_polls = halted_cpus_poll(m);
	schedule_promptly();
	ptrace_run_prepare(m);
	prepare_signals(m);
	env_init(m);
	vcpu_init(&m->vcpu, m->cpu, m->shm->n_cpus, m->shm->ram_pages, &m->env);
	pages_init(m);
	confine(!m->direct_engine);
	if (m->direct_engine)
		run_direct_engine(m);
	else
		run_ptrace_engine(m);

	/* The daemon has the reason, and ends all processes of the machine. */
	atomic_store(&m->bell->state, SLOT_HALTED);
	for (;;) {
		poll(&(struct pollfd){ .fd = m->channel, .events = POLLIN }, 1, 1000);
		channel_drain(m);
	}
}
