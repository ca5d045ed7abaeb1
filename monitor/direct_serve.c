/* direct_serve.c - the monitor of a VM process that runs its virtual CPU itself (vmproc/direct.h): serves its calls.
 *
 * The monitor sleeps on the turn word.  Whatever the VM process has written is copied before it is looked at; an argument
 * out of range is the guest's end.  A VM process that dies, or that somebody stops, interrupts the sleep by SIGCHLD; one that has
 * not got the CPU is not missed before the CPU is to go there, so the signal is remembered.
 */
#include "monitor/monitor.h"

#include <errno.h>
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

/* A call's arguments, as they were when it came. */
struct asked { uint64_t arg[6]; };
typedef int64_t call_handler(struct monitor *m, const struct asked *a);

static void refuse(struct monitor *m, const char *what)
{
	monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "the VM process of CPU %u asked for %s", m->cpu, what);
}

/* The virtual CPU as the VM process has it.  False: it is none that could be, and the machine ends. */
static bool take_vcpu(struct monitor *m)
{
	if (!vcpu_state_take(&m->vcpu, &m->direct->vcpu))
		return true;
	refuse(m, "something for a virtual CPU that cannot be");
	return false;
}

/* And back, with the VM process's own env: no address of the monitor's is shown to it. */
static void give_vcpu(struct monitor *m)
{
	struct vcpu given = m->vcpu;

	given.env = m->direct->vcpu.env;
	m->direct->vcpu = given;
}

/* --- VM processes --------------------------------------------------------------------------------------------------- */

/* Those that its handler has seen. */
static void check_signals(struct monitor *m)
{
	uint64_t sent = atomic_load_explicit(&m->direct->sent, memory_order_relaxed);

	if (!sent)
		return;
	for (sent = atomic_exchange(&m->direct->sent, 0); sent; sent &= sent - 1)
		process_signal_ignored(m, __builtin_ctzll(sent) + 1, atomic_load(&m->direct->sender));
}

/* They are this process's only children. One that somebody has stopped goes on.
 * (TRICKS: death-is-noted) */
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
	if (waitpid(-1, &status, WNOHANG) <= 0)
		return;
	hostshm_forget_pins(m->slot); /* the daemon may be waiting for one, before it hears of this */
	if (WIFSIGNALED(status))
		monitor_end(m, END_PART_DIED, EXIT_VMP_FAILURE, "the VM process of CPU %u was killed by signal %d%s", m->cpu,
			    WTERMSIG(status), killed_why(WTERMSIG(status)));
	else
		monitor_end(m, END_PART_DIED, EXIT_VMP_FAILURE, "the VM process of CPU %u ended with status %d", m->cpu,
			    WEXITSTATUS(status));
}

static const struct timespec second = { .tv_sec = 1 }; /* the limit of a sleep, for a death just before it */

/* False: it has died. */
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

/* From its start to the jail: 0, or -errno. */
static int set_up(struct monitor *m, pid_t pid)
{
	struct direct_shared *s = m->direct;

	if (!wait_for_setup(m, pid, SETUP_MAPPED))
		return -ECHILD;
	if (s->setup_error)
		return s->setup_error;
	process_fetch_userfaultfd(m);
	atomic_store(&s->setup, SETUP_TAKEN);
	syscall(SYS_futex, &s->setup, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (!wait_for_setup(m, pid, SETUP_JAILED))
		return s->setup_error ? s->setup_error : -ECHILD; /* for the message alone: others may have written it */
	return 0;
}

/* The VM process of a host address space: 0, or -errno and nothing is left of it. */
static int start_space(struct monitor *m, unsigned space)
{
	int error;

	atomic_store(&m->direct->setup, SETUP_BEGUN);
	m->vm.pid = process_spawn(m, space);
	if (m->vm.pid < 0)
		return m->vm.pid;
	error = set_up(m, m->vm.pid);
	if (!error)
		error = watch_start(m, m->vm.pid);
	if (error) {
		kill(m->vm.pid, SIGKILL);
		waitpid(m->vm.pid, NULL, 0);
		return error;
	}
	m->vm.space[space].pid = m->vm.pid;
	m->vm.space[space].userfault_fd = m->vm.userfault_fd;
	atomic_store(&m->shm->vm_pid[m->cpu][space], m->vm.pid);
	return 0;
}

static void start_first_space(struct monitor *m)
{
	int error;

	process_prepare(m);
	atomic_store(&m->slot->space, 0); /* the CPU may have been on this host before, and left in another one */
	*m->direct = (struct direct_shared){
		.turn = TURN_VM, .cpu = m->cpu, .n_cpus = m->shm->n_cpus, .ram_pages = m->shm->ram_pages,
		.first_page = m->shadow.first_page, .area_limit = m->shadow.area_limit, .many_hosts = m->many_hosts,
		.always_bare = fault_on(FAULT_ALWAYS_BARE),
		.host_tsc_khz = 1,
		.has_cpu = { 1 }, .started = 1, .spaces = { .n = DIRECT_GUEST_SPACES },
	};
	error = start_space(m, 0);
	if (error)
		die("its VM process cannot be set up: %s; too many processes, or not enough memory?", strerror(-error));
}

/* --- calls ---------------------------------------------------------------------------------------------------------- */

static bool valid_size(uint64_t size) { return size == 1 || size == 2 || size == 4; }

static bool valid_string(uint64_t size, uint64_t count)
{
	return valid_size(size) && count && count <= PAGE_BYTES / size;
}

static int64_t call_WAIT_START(struct monitor *m, const struct asked *a)
{
	(void)a;
	process_announce(m);
	wait_for_start(m);
	if (m->debug.stop_wanted)
		debug_stand(m, WHY_ASKED);
	/* known only now */
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
		log_warn("CPU %u makes do with %s: %s; too many processes?", m->cpu,
			 a->arg[0] == DIRECT_BARE_SPACE ? "slower computing" : "one host address space", strerror(-error));
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
	m->env.print(m, (const char *)m->direct->data, a->arg[0] < PAGE_BYTES ? a->arg[0] : PAGE_BYTES);
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
	if (m->freeze_wanted)
		freeze_guest(m);
	if (m->handover.give_wanted)
		give_away(m);
	if (m->debug.stop_wanted)
		debug_stand(m, WHY_ASKED);
	give_vcpu(m); /* with the interrupts that have come meanwhile */
	return 0;
}

static int64_t call_DEBUG(struct monitor *m, const struct asked *a)
{
	bool handled = true;

	if (!m->debug.attached || !take_vcpu(m))
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

static int64_t call_LOAD_FPU(struct monitor *m, const struct asked *a)
{
	static uint8_t xsave[DIRECT_XSAVE_BYTES];
	struct xsave_layout layout;
	uint32_t bytes = m->direct->xsave_bytes;
	char why[160] = "the VM process's own FPU state is malformed";

	(void)a;
	memcpy(xsave, m->direct->xsave, sizeof xsave);
	fpstate_layout(&layout);
	if (bytes > sizeof xsave || fpstate_unpack(&layout, m->direct_fpu, m->direct_fpu_bytes, xsave, bytes, why, sizeof why))
		monitor_end(m, END_FAILURE, EXIT_VMP_FAILURE, "CPU %u cannot be loaded: %s", m->cpu, why);
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
	memcpy(m->direct->vcpu.gpr, m->vcpu.gpr, sizeof m->vcpu.gpr); /* a jump has been carried out */
	m->direct->vcpu.eip = m->vcpu.eip;
	m->direct->arg[0] = gva;
	m->direct->arg[1] = access;
	return found;
}

static int64_t call_PAGE_WANT(struct monitor *m, const struct asked *a)
{
	if (a->arg[0] >= m->shm->ram_pages || a->arg[1] > PAGE_WRITE)
		return refuse(m, "a page that does not exist"), 0;
	guestmem_ask(m, a->arg[0], a->arg[1]);
	return 0;
}

static uint32_t entry_of(gpa_t gpa, bool writable)
{
	return (gpa & ~(uint32_t)PAGE_MASK) | SHADOW_VALID | (writable ? SHADOW_WRITE : 0);
}

static int64_t call_PAGE_MAPPED(struct monitor *m, const struct asked *a)
{
	uint32_t entry[SHADOW_RUN];
	uint64_t frame = gpa_to_gfn(a->arg[2]);

	if (!m->many_hosts || a->arg[0] >= VMP_WINDOW || a->arg[1] > VMP_WINDOW - a->arg[0] ||
	    frame + (a->arg[1] >> PAGE_BITS) > m->shm->ram_pages)
		return refuse(m, "pages that do not exist"), 0;
	for (unsigned i = 0; i < SHADOW_RUN; i++)
		entry[i] = entry_of(gfn_to_gpa(frame + i), false);
	pages_mapped(m, a->arg[0], a->arg[1], entry);
	return 0;
}

static int64_t call_PAGE_ADMIT(struct monitor *m, const struct asked *a)
{
	if (!m->many_hosts || a->arg[0] >= VMP_WINDOW || gpa_to_gfn(a->arg[1]) >= m->shm->ram_pages)
		return refuse(m, "pages that do not exist"), 0;
	pages_admit(m, a->arg[0], entry_of(a->arg[1], a->arg[3]), a->arg[2]);
	return 0;
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
		return; /* the guest does not go on */
	atomic_store(&s->turn, TURN_VM);
	syscall(SYS_futex, &s->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void direct_run(struct monitor *m)
{
	start_first_space(m);
	while (!m->ending) {
		if (m->child_changed) {
			check_alive(m);
			continue;
		}
		if (atomic_load(&m->direct->turn) == TURN_MONITOR) {
			serve(m);
			continue;
		}
		syscall(SYS_futex, &m->direct->turn, FUTEX_WAIT, TURN_VM, &second, NULL, 0);
		check_signals(m);
	}
}
