/* direct_serve.c - the monitor on the direct engine: serves the calls of a VM process that runs its
 * virtual CPU itself (vmproc/direct.h).
 *
 * The monitor sleeps on the turn word.  It copies what the VM process has written before it checks
 * and uses it; an argument out of range ends the machine.  SIGCHLD interrupts the sleep when a VM
 * process dies or is stopped.  The death of a VM process that does not have the CPU would show only
 * when the CPU is passed to it, so the signal is recorded (child_changed).
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/killed.h"
#include "base/log.h"
#include "vcpu/state.h"

/* A copy of a call's arguments. */
struct asked { uint64_t arg[6]; };
typedef int64_t call_handler(struct monitor *m, const struct asked *a);

static void refuse(struct monitor *m, const char *what)
{
	monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "the VM process of CPU %u asked for %s",
		    m->cpu, what);
}

/* Copy and check the VM process's virtual CPU.  False: its state is impossible, and the machine
 * ends. */
static bool take_vcpu(struct monitor *m)
{
	if (!vcpu_state_take(&m->vcpu, &m->direct->vcpu))
		return true;
	refuse(m, "something for a virtual CPU that cannot be");
	return false;
}

/* Copy it back, with the VM process's own env pointer: the VM process learns no address of the
 * monitor's. */
static void give_vcpu(struct monitor *m)
{
	struct vcpu given = m->vcpu;

	given.env = m->direct->vcpu.env;
	m->direct->vcpu = given;
}

/* --- VM processes ----------------------------------------------------------------------------- */

/* Other processes of the host read the numbers there, to kick this CPU. */
static void forget_process(struct monitor *m, pid_t pid)
{
	for (unsigned space = 0; space < MAX_SPACES; space++) {
		if (atomic_load(&m->shm->vm_pid[m->cpu][space]) == pid)
			atomic_store(&m->shm->vm_pid[m->cpu][space], 0);
		if (atomic_load(&m->shm->user_pid[m->cpu][space]) == pid)
			atomic_store(&m->shm->user_pid[m->cpu][space], 0);
	}
}

/* Report the signals that the VM process's handler has ignored. */
static void check_signals(struct monitor *m)
{
	uint64_t sent = atomic_load_explicit(&m->direct->sent, memory_order_relaxed);

	if (!sent)
		return;
	for (sent = atomic_exchange(&m->direct->sent, 0); sent; sent &= sent - 1)
		process_signal_ignored(m, __builtin_ctzll(sent) + 1,
				       atomic_load(&m->direct->sender));
}

/* Check the VM processes, which are this process's only children.  Continue those that were
 * stopped; end the machine if one has died.  (TRICKS: death-is-noted) */
static void check_alive(struct monitor *m)
{
	siginfo_t child = { 0 };
	int status;

	m->child_changed = 0;
	while (waitid(P_ALL, 0, &child, WSTOPPED | WNOHANG) == 0 && child.si_pid) {
		process_signal_ignored(m, child.si_status, 0);
		kill(child.si_pid, SIGCONT);
		child.si_pid = 0;
	}
	/* from its reaping on, another process may get its number: no kick goes there any more */
	if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) || !child.si_pid)
		return;
	forget_process(m, child.si_pid);
	if (waitpid(child.si_pid, &status, WNOHANG) <= 0)
		return;
	hostshm_forget_pins(m->slot); /* the daemon may be waiting for one of them */
	if (WIFSIGNALED(status))
		monitor_end(m, END_PART_DIED, EXIT_VMP_FAILURE,
			    "the VM process of CPU %u was killed by signal %d%s", m->cpu,
			    WTERMSIG(status), killed_why(WTERMSIG(status)));
	else
		monitor_end(m, END_PART_DIED, EXIT_VMP_FAILURE,
			    "the VM process of CPU %u ended with status %d", m->cpu,
			    WEXITSTATUS(status));
}

/* The limit of a sleep: SIGCHLD may arrive just before the sleep begins. */
static const struct timespec second = { .tv_sec = 1 };

/* Wait until the VM process has done a step of its start.  False: it has died. */
static bool wait_for_setup(struct monitor *m, pid_t pid, enum direct_setup step)
{
	uint32_t now;

	while ((now = atomic_load(&m->direct->setup)) != step) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return false;
		syscall(SYS_futex, &m->direct->setup, FUTEX_WAIT, now, &second, NULL, 0);
	}
	return true;
}

/* Guide a VM process from its start into its jail: 0, or -errno. */
static int set_up(struct monitor *m, pid_t pid)
{
	struct direct_shared *s = m->direct;
	int error;

	if (!wait_for_setup(m, pid, SETUP_MAPPED))
		return -ECHILD;
	error = process_claimed_error(s->setup_error);
	if (error)
		return error;
	process_fetch_userfaultfd(m);
	atomic_store(&s->setup, SETUP_TAKEN);
	syscall(SYS_futex, &s->setup, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (!wait_for_setup(m, pid, SETUP_JAILED))
		return s->setup_error ? process_claimed_error(s->setup_error) : -ECHILD;
	return 0;
}

/* Start a VM process, m->vm.pid: 0, or -errno and nothing is left of it. */
static int start_process(struct monitor *m, unsigned space, enum vmproc_strict strict)
{
	int error;

	atomic_store(&m->direct->setup, SETUP_BEGUN);
	m->vm.pid = process_spawn(m, space, strict);
	if (m->vm.pid < 0)
		return m->vm.pid;
	error = set_up(m, m->vm.pid);
	if (!error)
		error = watch_start(m, m->vm.pid);
	if (error) {
		kill(m->vm.pid, SIGKILL);
		waitpid(m->vm.pid, NULL, 0);
	}
	return error;
}

static void close_pipes(struct user_pipes *p)
{
	int *fds[] = { &p->order[0], &p->order[1], &p->report[0], &p->report[1], &p->pidfd };

	for (unsigned i = 0; i < ARRAY_LEN(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* --strict: start the user process of a host address space, which its kernel process needs. */
static int start_user(struct monitor *m, unsigned space)
{
	struct user_pipes *p = &m->vm.pipes;
	int error;

	*p = (struct user_pipes){ { -1, -1 }, { -1, -1 }, -1, -1 };
	/* an order never waits for a process that does not read: vmproc/user.h */
	if (pipe2(p->order, O_CLOEXEC) || pipe2(p->report, O_CLOEXEC) ||
	    fcntl(p->order[1], F_SETFL, O_NONBLOCK))
		return -errno;
	error = start_process(m, space, VMPROC_USER);
	if (error)
		return error;
	m->vm.user[space].pid = m->vm.pid;
	atomic_store(&m->shm->user_pid[m->cpu][space], m->vm.pid);
	m->vm.user[space].userfault_fd = p->userfault_fd = m->vm.userfault_fd;
	p->pidfd = (int)syscall(SYS_pidfd_open, m->vm.pid, 0);
	return p->pidfd < 0 ? -errno : 0;
}

/* Start the VM process of a host address space, or both of them: 0, or -errno and nothing is left
 * of it. */
static int start_space(struct monitor *m, unsigned space)
{
	int error = m->strict ? start_user(m, space) : 0;

	if (!error)
		error = start_process(m, space, m->strict ? VMPROC_KERNEL : VMPROC_TOGETHER);
	if (m->strict)
		close_pipes(&m->vm.pipes);
	if (error && m->vm.user[space].pid) {
		forget_process(m, m->vm.user[space].pid);
		kill(m->vm.user[space].pid, SIGKILL);
		waitpid(m->vm.user[space].pid, NULL, 0);
		m->vm.user[space].pid = 0;
	}
	if (error)
		return error;
	m->vm.space[space].pid = m->vm.pid;
	m->vm.space[space].userfault_fd = m->vm.userfault_fd;
	if (fault_on(FAULT_BIND_LATE))
		usleep(3 * fault_on(FAULT_BIND_LATE) * 1000);
	atomic_store(&m->shm->vm_pid[m->cpu][space], m->vm.pid);
	return 0;
}

static void start_first_space(struct monitor *m)
{
	int error;

	process_prepare(m);
	/* the CPU may have been on this host before, and have left it in another space */
	atomic_store(&m->slot->space, 0);
	*m->direct = (struct direct_shared){
		.turn = TURN_VM,
		.cpu = m->cpu,
		.n_cpus = m->shm->n_cpus,
		.host = m->shm->node,
		.ram_pages = m->shm->ram_pages,
		.first_page = m->shadow.first_page,
		.area_limit = m->shadow.area_limit,
		.many_hosts = m->many_hosts,
		.always_bare = fault_on(FAULT_ALWAYS_BARE),
		.halt_polls = m->halt_polls,
		.host_tsc_khz = 1,
		.has_cpu = { 1 },
		.started = 1,
		.spaces = { .n = DIRECT_GUEST_SPACES },
	};
	error = start_space(m, 0);
	if (error)
		die("its VM process cannot be set up: %s; too many processes, or not enough "
		    "memory?",
		    strerror(-error));
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool valid_size(uint64_t size) { return size == 1 || size == 2 || size == 4; }

static bool valid_string(uint64_t size, uint64_t count)
{
	return valid_size(size) && count && count <= PAGE_BYTES / size;
}

static int64_t call_WAIT_START(struct monitor *m, const struct asked *a)
{
	(void)a;
	monitor_announce(m);
	monitor_wait_for_start(m);
	if (m->debug.stop_wanted)
		debug_stand(m, WHY_ASKED);
	/* not known before the start */
	m->direct->host_tsc_khz = m->shm->host_tsc_khz;
	m->direct->tsc_khz = m->shm->tsc_khz;
	give_vcpu(m);
	return m->direct_loaded;
}

static int64_t call_NEW_SPACE(struct monitor *m, const struct asked *a)
{
	int error;

	if (a->arg[0] >= DIRECT_SPACES || m->vm.space[a->arg[0]].pid)
		return refuse(m, "an address space that it cannot have"), 0;
	error = start_space(m, a->arg[0]);
	if (error)
		log_warn_rarely("CPU %u makes do with %s: %s; too many processes?", m->cpu,
				a->arg[0] == DIRECT_BARE_SPACE ? "slower computing"
							       : "one host address space",
				strerror(-error));
	return error;
}

static int64_t call_PORT_IN(struct monitor *m, const struct asked *a)
{
	if (a->arg[0] > 0xffff || !valid_size(a->arg[1]))
		return refuse(m, "a port that does not exist"), 0;
	return m->env.port_in(m, a->arg[0], a->arg[1]);
}

static int64_t call_PORT_OUT(struct monitor *m, const struct asked *a)
{
	if (a->arg[0] > 0xffff || !valid_size(a->arg[1]))
		return refuse(m, "a port that does not exist"), 0;
	m->env.port_out(m, a->arg[0], a->arg[1], a->arg[2]);
	return 0;
}

static int64_t call_PORT_IN_STRING(struct monitor *m, const struct asked *a)
{
	if (a->arg[0] > 0xffff || !valid_string(a->arg[1], a->arg[2]))
		return refuse(m, "a port that does not exist"), 0;
	m->env.port_in_string(m, a->arg[0], a->arg[1], a->arg[2], m->direct->data);
	return 0;
}

static int64_t call_PORT_OUT_STRING(struct monitor *m, const struct asked *a)
{
	if (a->arg[0] > 0xffff || !valid_string(a->arg[1], a->arg[2]))
		return refuse(m, "a port that does not exist"), 0;
	m->env.port_out_string(m, a->arg[0], a->arg[1], a->arg[2], m->direct->data);
	return 0;
}

static int64_t call_MMIO_READ(struct monitor *m, const struct asked *a)
{
	return valid_size(a->arg[1]) ? m->env.mmio_read(m, a->arg[0], a->arg[1]) : 0;
}

static int64_t call_MMIO_WRITE(struct monitor *m, const struct asked *a)
{
	if (valid_size(a->arg[1]))
		m->env.mmio_write(m, a->arg[0], a->arg[1], a->arg[2]);
	return 0;
}

static int64_t call_SEND_INTERRUPT(struct monitor *m, const struct asked *a)
{
	m->env.send_interrupt(m, a->arg[0], a->arg[1], a->arg[2]);
	return 0;
}

static int64_t call_START_CPU(struct monitor *m, const struct asked *a)
{
	return m->env.start_cpu(m, a->arg[0], a->arg[1]);
}

static int64_t call_WALLCLOCK(struct monitor *m, const struct asked *a)
{
	(void)a;
	return m->env.wallclock_ns(m);
}

static int64_t call_HOST_CPUID(struct monitor *m, const struct asked *a)
{
	m->env.host_cpuid(m, a->arg[0], a->arg[1], (uint32_t *)m->direct->data);
	return 0;
}

static int64_t call_HOST_XCR0(struct monitor *m, const struct asked *a)
{
	(void)a;
	return m->env.host_xcr0(m);
}

static int64_t call_PRINT(struct monitor *m, const struct asked *a)
{
	m->env.print(m, (const char *)m->direct->data,
		     a->arg[0] < PAGE_BYTES ? a->arg[0] : PAGE_BYTES);
	return 0;
}

static int64_t call_MACHINE_END(struct monitor *m, const struct asked *a)
{
	m->env.machine_end(m, a->arg[0], a->arg[1]);
	return 0;
}

static int64_t call_POSTS(struct monitor *m, const struct asked *a)
{
	if (!take_vcpu(m))
		return 0;
	serve_posts(m, a->arg[0]);
	stand_still(m);
	give_vcpu(m); /* with the interrupts that have arrived meanwhile */
	return 0;
}

static int64_t call_DEBUG(struct monitor *m, const struct asked *a)
{
	bool handled = true;

	if (!m->debug.told.attached || !take_vcpu(m))
		return 0;
	if (a->arg[0] == WHY_BREAKPOINT)
		handled = debug_breakpoint(m);
	else if (a->arg[0] == WHY_WATCH)
		handled = debug_watchpoint(m);
	else
		debug_stand(m, WHY_STEP);
	give_vcpu(m);
	return handled;
}

static int64_t call_WATCH(struct monitor *m, const struct asked *a)
{
	struct debug_watch watch;

	(void)a;
	if (!take_vcpu(m))
		return 0;
	watch = engine_guest_watch(&m->vcpu);
	watch_set_guest(m, &watch);
	return 0;
}

static int64_t call_WATCH_HITS(struct monitor *m, const struct asked *a)
{
	(void)a;
	return watch_guest_hits(m);
}

static int64_t call_LOAD_FPU(struct monitor *m, const struct asked *a)
{
	static uint8_t xsave[DIRECT_XSAVE_BYTES];
	struct xsave_layout layout;
	uint32_t bytes = m->direct->xsave_bytes;
	char why[160] = "the VM process's own FPU state is malformed";

	(void)a;
	memcpy(xsave, m->direct->xsave, sizeof xsave);
	fpstate_layout(&layout);
	if (bytes > sizeof xsave || fpstate_unpack(&layout, m->direct_fpu, m->direct_fpu_bytes,
						   xsave, bytes, why, sizeof why))
		monitor_end(m, END_FAILURE, EXIT_VMP_FAILURE, "CPU %u cannot be loaded: %s", m->cpu,
			    why);
	memcpy(m->direct->xsave, xsave, sizeof xsave);
	return 0;
}

static int64_t call_DEAD(struct monitor *m, const struct asked *a)
{
	(void)a;
	if (take_vcpu(m))
		report_death(m);
	return 0;
}

static int64_t call_BEYOND_LIMIT(struct monitor *m, const struct asked *a)
{
	enum vcpu_access access = ACCESS_READ;
	gva_t gva = 0;
	bool found;

	if (!take_vcpu(m))
		return 0;
	m->vm.regs.fs_base = a->arg[0];
	m->vm.regs.gs_base = a->arg[1];
	found = insn_beyond_user_limit(m, &gva, &access);
	/* if the instruction is a jump, it has been emulated */
	memcpy(m->direct->vcpu.gpr, m->vcpu.gpr, sizeof m->vcpu.gpr);
	m->direct->vcpu.eip = m->vcpu.eip;
	m->direct->arg[0] = gva;
	m->direct->arg[1] = access;
	return found;
}

static call_handler *const handlers[DIRECT_CALL_COUNT] = {
#define X(name, what) [DIRECT_##name] = call_##name,
	DIRECT_CALLS(X)
#undef X
};

static void serve(struct monitor *m)
{
	struct direct_shared *s = m->direct;
	struct asked asked;
	uint32_t call = s->call, space = atomic_load(&m->slot->space) % MAX_SPACES;

	memcpy(asked.arg, (const void *)s->arg, sizeof asked.arg);
	m->vm.pid = m->vm.space[space].pid;
	m->vm.userfault_fd = m->vm.space[space].userfault_fd;
	if (call >= DIRECT_CALL_COUNT || !m->vm.pid) {
		refuse(m, "what does not exist");
		return;
	}
	s->result = handlers[call](m, &asked);
	if (m->ending)
		return; /* the turn stays here, so the guest does not continue */
	atomic_store(&s->turn, TURN_VM);
	syscall(SYS_futex, &s->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void direct_run(struct monitor *m)
{
	start_first_space(m);
	while (!m->ending) {
		uint32_t turn = atomic_load(&m->direct->turn);

		if (m->child_changed) {
			check_alive(m);
			continue;
		}
		unheard_look(m);
		if (turn == TURN_MONITOR) {
			serve(m);
			continue;
		}
		if (turn != TURN_VM) /* nothing could be slept on */
			refuse(m, "a turn that is nobody's");
		monitor_sleep(m, &m->direct->turn, TURN_VM);
		check_signals(m);
	}
}
