/* watch.c - watchpoints: the debug registers of this CPU's VM processes.  They are the guest's own
 * (a debugger that runs in the guest), or those of the machine's debugger while that has any.
 *
 * A guest address is an address of the VM process.  So the host's processor reports what guest code
 * accesses there: by a SIGTRAP with si_code TRAP_HWBKPT, behind the instruction.  Only ptrace sets
 * debug registers, and they keep their values when the tracer detaches.  Therefore the monitor of a
 * direct engine attaches to its sleeping VM processes for a moment.  The signal later arrives at
 * the VM process's own handler, which calls the monitor.  An engine's own accesses on behalf of the
 * guest use another mapping; they trigger no watchpoint.
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "base/log.h"

enum { STATUS = 6, CONTROL = 7 };

static void *place(unsigned number)
{
	return (void *)(offsetof(struct user, u_debugreg) + number * sizeof(long));
}

static int set_register(pid_t pid, unsigned number, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, pid, place(number), value) ? -errno : 0;
}

/* Attach to a VM process that has no tracer and sleeps, or soon will, and wait until it has
 * stopped.  Returns the signal to deliver at the detach, or -errno.  A dead process is not reaped:
 * the caller of waitpid() elsewhere reads how it died. */
static int seize(pid_t pid)
{
	siginfo_t child;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		return -errno;
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	while (waitid(P_PID, pid, &child, WSTOPPED | WEXITED | WNOWAIT | __WALL))
		if (errno != EINTR)
			return -errno;
	if (child.si_code != CLD_TRAPPED && child.si_code != CLD_STOPPED)
		return -ESRCH;
	waitpid(pid, &status, __WALL);
	return status >> 16 ? 0 : WSTOPSIG(status);
}

/* The host refuses an address that does not fit its length in DR7.  So DR7 is 0 while the addresses
 * change. */
static int set_registers(pid_t pid, const struct debug_watch *watch)
{
	int error = set_register(pid, CONTROL, 0);

	for (unsigned i = 0; i < DEBUG_WATCHES && !error; i++)
		if (watch->control >> 2 * i & 1)
			error = set_register(pid, i, watch->address[i]);
	return error ? error : set_register(pid, CONTROL, watch->control);
}

typedef int act_on(pid_t pid, const struct debug_watch *watch);
/* Call `act` as the tracer of `pid`.  The ptrace engine's monitor is its tracer already; the direct
 * engine's attaches for the call.  Returns the result of `act`, or -errno.
 * (TRICKS: watch-needs-tracer) */
static int as_tracer(struct monitor *m, pid_t pid, act_on *act, const struct debug_watch *watch)
{
	int signal = m->direct_engine ? seize(pid) : 0, result;

	if (signal < 0)
		return signal;
	result = act(pid, watch);
	if (m->direct_engine)
		ptrace(PTRACE_DETACH, pid, 0, signal);
	return result;
}

/* The watchpoints that are in force. */
static const struct debug_watch *in_force(const struct monitor *m)
{
	return m->debug.watch.control ? &m->debug.watch : &m->debug.told.guest;
}

int watch_start(struct monitor *m, pid_t pid)
{
	const struct debug_watch *watch = in_force(m);

	return watch->control ? as_tracer(m, pid, set_registers, watch) : 0;
}

/* Set the watchpoints in all VM processes: 0 or -errno. */
static int set_all(struct monitor *m, const struct debug_watch *watch)
{
	int error = 0;

	if (!m->direct_engine)
		return as_tracer(m, m->vm.pid, set_registers, watch);
	for (unsigned space = 0; space < MAX_SPACES && !error; space++)
		if (m->vm.space[space].pid)
			error = as_tracer(m, m->vm.space[space].pid, set_registers, watch);
	for (unsigned space = 0; space < MAX_SPACES && !error; space++)
		if (m->vm.user[space].pid)
			error = as_tracer(m, m->vm.user[space].pid, set_registers, watch);
	return error;
}

int watch_set(struct monitor *m, const struct debug_watch *watch)
{
	int error;

	if (!watch->control && !m->debug.watch.control)
		return 0;
	error = set_all(m, watch->control ? watch : &m->debug.told.guest);
	m->debug.watch = error ? (struct debug_watch){ 0 } : *watch;
	m->debug.told.watches = m->debug.watch.control != 0;
	m->direct->debug = m->debug.told;
	return error;
}

void watch_set_guest(struct monitor *m, const struct debug_watch *watch)
{
	int error = m->debug.watch.control ? 0 : set_all(m, watch);

	if (error)
		log_info("CPU %u: the host refuses the guest's debug registers: %s", m->cpu,
			 strerror(-error));
	m->debug.told.guest = *watch;
	m->direct->debug = m->debug.told;
}

/* Read and clear which of the four watchpoints were triggered: one bit each, or -errno. */
static int take_status(pid_t pid, const struct debug_watch *watch)
{
	long status;

	(void)watch;
	errno = 0;
	status = ptrace(PTRACE_PEEKUSER, pid, place(STATUS), 0);
	if (errno)
		return -errno;
	set_register(pid, STATUS, 0xffff0ff0); /* DR6 as at reset */
	return status & 0xf;
}

/* The same for the VM process that has the CPU, and with --strict for its programs' process. */
static int take_hits(struct monitor *m)
{
	pid_t user = m->vm.user[atomic_load(&m->slot->space) % MAX_SPACES].pid;
	int hits = as_tracer(m, m->vm.pid, take_status, NULL),
	    more = user ? as_tracer(m, user, take_status, NULL) : 0;

	return hits < 0 || more < 0 ? -1 : hits | more;
}

uint32_t watch_guest_hits(struct monitor *m)
{
	int hits = in_force(m) == &m->debug.told.guest && m->debug.told.guest.control
			   ? take_hits(m)
			   : 0;

	return hits > 0 ? (uint32_t)hits : 0;
}

bool watch_hit(struct monitor *m)
{
	int hits = m->debug.watch.control ? take_hits(m) : 0;

	if (hits <= 0)
		return false;
	m->debug.watched = m->debug.watch.address[__builtin_ctz(hits)];
	return true;
}
