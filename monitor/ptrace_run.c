/* ptrace_run.c - the ptrace engine: how it enters guest code, and its operations for the loop of
 * both engines (struct engine_ops, engine/engine.h).
 *
 * The host tells a tracer less about a stop than it tells a signal handler.  The rest is decoded
 * from the instruction (insn.c).
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/killed.h"
#include "base/log.h"

enum time_kind time_switch(struct monitor *m, enum time_kind to)
{
	uint64_t now = clock_now_ns();
	enum time_kind from = m->time_kind;

	if (!m->direct_engine) /* the direct engine keeps its own account of time */
		atomic_fetch_add_explicit(&m->slot->time_ns[from], now - m->time_mark_ns,
					  memory_order_relaxed);
	m->time_mark_ns = now;
	m->time_kind = to;
	return from;
}

/* True if a VM process has died.  A failure after that is a consequence of the death and is
 * reported as such, so that a machine with checkpoints returns to one. */
static bool vm_process_died(void)
{
	siginfo_t child = { 0 };

	return !waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) && child.si_pid;
}

void monitor_end(struct monitor *m, enum end_reason reason, unsigned status, const char *format,
		 ...)
{
	bool died = reason == END_FAILURE && vm_process_died();
	struct msg_machine_end end = { .reason = died ? END_PART_DIED : reason,
				       .status = status,
				       .node = m->shm->node };
	char line[512];
	va_list args;
	int n;

	if (m->ending)
		return;
	m->ending = true;
	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n >= (int)sizeof line)
		n = sizeof line - 1;
	channel_send(m, MSG_MACHINE_END, VNODE_DAEMON(m->shm->node), &end, sizeof end, line, n);
}

/* Send the dead CPU's registers to the machine's owner, which has the guest kernel's symbols. */
static void tell_state(struct monitor *m)
{
	static char text[MAX_MSG_PAYLOAD];
	struct msg_log line = { .level = LOG_ERROR, .node = m->shm->node, .cpu = m->cpu };

	channel_send(m, MSG_LOG, VNODE_CLI, &line, sizeof line, text,
		     vcpu_dump(&m->vcpu, text, sizeof text));
}

/* --- requests from outside -------------------------------------------------------------------- */

void send_dump(struct monitor *m)
{
	static char text[3 * MAX_MSG_PAYLOAD];
	struct msg_dump dump = { .cpu = m->cpu, .seq = m->dump_seq };
	unsigned n = m->started ? vcpu_dump(&m->vcpu, text, sizeof text) : 0, at = 0, part;

	m->dump_wanted = false;
	for (; at < n; at += part) {
		part = n - at < MAX_MSG_PAYLOAD ? n - at : MAX_MSG_PAYLOAD;
		channel_send(m, MSG_DUMP, VNODE_CLI, &dump, sizeof dump, text + at, part);
	}
	channel_send(m, MSG_DUMP, VNODE_CLI, &dump, sizeof dump, NULL, 0);
}

void send_frames(struct monitor *m)
{
	static uint8_t page[PAGE_BYTES];
	const struct vcpu_env *env = m->vcpu.env;
	struct msg_frame frame[ARRAY_LEN(m->frame)]; /* others may arrive while a page is fetched */
	unsigned n = m->frames;

	memcpy(frame, m->frame, sizeof frame);
	m->frames = 0;
	for (unsigned i = 0; i < n; i++) {
		gpa_t gpa = gfn_to_gpa((gfn_t)frame[i].gfn);
		const uint8_t *at = ram_has(m->shm->ram_pages, frame[i].gfn) ?
				    env->pin(env->ctx, gpa, false) : NULL;

		if (at) {
			memcpy(page, at, sizeof page);
			env->unpin(env->ctx, gpa);
		}
		channel_send(m, MSG_FRAME, VNODE_CLI, &frame[i], sizeof frame[i], page,
			     at ? sizeof page : 0);
	}
}

void serve_posts(struct monitor *m, uint32_t posts)
{
	if (posts & POST_MESSAGE)
		channel_drain(m);
	rings_serve(m);
	if (m->dump_wanted)
		send_dump(m);
	if (m->frames)
		send_frames(m);
}

/* Process all posts to this CPU, and its timer. */
void collect_posts(struct monitor *m)
{
	uint32_t posts = engine_take_posts(&m->engine);

	if (posts)
		serve_posts(m, posts);
	engine_tick(&m->engine);
}

/* Move this CPU to another host.  The slot becomes absent before the posts are collected: a sender
 * either sees that, or its post is collected here. */
void give_away(struct monitor *m)
{
	enum time_kind before = time_switch(m, TIME_IDLE);
	bool has_left = rings_leave(m);

	atomic_store(&m->bell->state, SLOT_ABSENT);
	collect_posts(m);
	handover_give(m);
	atomic_store(&m->bell->state, SLOT_MONITOR);
	if (has_left)
		rings_back(m);
	time_switch(m, before);
}

void stand_still(struct monitor *m)
{
	while (!m->ending) {
		if (m->freeze_wanted)
			freeze_guest(m);
		else if (m->handover.give_wanted)
			give_away(m);
		else if (m->debug.stop_wanted)
			debug_stand(m, WHY_ASKED);
		else
			return;
	}
}

void report_death(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;

	trace_dump(-1);
	tell_state(m);
	if (m->debug.told.attached)
		debug_stand(m, WHY_DEAD);
	if (v->dead == VCPU_TRIPLE_FAULT)
		monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "triple fault on CPU %u at %x",
			    m->cpu, v->eip);
	else
		monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "CPU %u: %s", m->cpu,
			    v->dead_reason);
}

/* --- what the loop asks of this engine (engine/engine.h) -------------------------------------- */

static struct monitor *monitor_of(struct cpu_engine *e)
{
	return (struct monitor *)((char *)e - offsetof(struct monitor, engine));
}

static bool op_prepare(struct cpu_engine *e)
{
	struct monitor *m = monitor_of(e);

	stand_still(m);
	process_stub_flush(m);
	return !m->ending;
}

static bool op_is_prepared(struct cpu_engine *e)
{
	struct monitor *m = monitor_of(e);

	if (m->strict && m->vcpu.cpl == 3)
		shadow_drop_kernel(&m->shadow);
	return !m->vm.queued;
}

static void op_serve(struct cpu_engine *e, uint32_t posts)
{
	serve_posts(monitor_of(e), posts);
	stand_still(monitor_of(e));
}

static void op_died(struct cpu_engine *e) { report_death(monitor_of(e)); }

static bool op_debugger(struct cpu_engine *e, enum debug_why why)
{
	struct monitor *m = monitor_of(e);

	if (why == WHY_BREAKPOINT)
		return debug_breakpoint(m);
	if (why == WHY_WATCH)
		return debug_watchpoint(m);
	debug_stand(m, why);
	return true;
}

static void op_watch(struct cpu_engine *e, const struct debug_watch *watch)
{
	watch_set_guest(monitor_of(e), watch);
}

static uint32_t op_watch_hits(struct cpu_engine *e) { return watch_guest_hits(monitor_of(e)); }

static enum time_kind op_time_switch(struct cpu_engine *e, enum time_kind to)
{
	return time_switch(monitor_of(e), to);
}

static uint64_t op_stamp_ns(struct cpu_engine *e)
{
	(void)e;
	return clock_now_ns();
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

static void op_sleep(struct cpu_engine *e, uint32_t wake, uint64_t at_most_ns)
{
	struct timespec limit = timespec_of(at_most_ns);

	if (atomic_load(&e->slot->halted_for_good)) {
		monitor_sleep(monitor_of(e), &e->bell->wake, wake);
		return;
	}
	syscall(SYS_futex, &e->bell->wake, FUTEX_WAIT, wake,
		at_most_ns == UINT64_MAX ? NULL : &limit, NULL, 0);
}

static void op_set_timer(struct cpu_engine *e, uint64_t deadline)
{
	struct monitor *m = monitor_of(e);
	struct itimerspec when = { 0 };

	if (deadline != UINT64_MAX)
		when.it_value = timespec_of(hostclock_when(&m->shm->clock, clock_now_ns, deadline));
	timer_settime(m->timer, TIMER_ABSTIME, &when, NULL);
}

static void op_map(struct cpu_engine *e, gva_t gva, const struct vcpu_walk *walk,
		   enum vcpu_access access)
{
	shadow_map(e->shadow, e->vcpu, gva, walk, access);
}

static void op_admit(struct cpu_engine *e, gva_t gva, uint32_t entry, bool write)
{
	pages_admit(monitor_of(e), gva, entry, write);
}

static bool op_beyond_user_limit(struct cpu_engine *e, gva_t *gva, enum vcpu_access *access)
{
	return insn_beyond_user_limit(monitor_of(e), gva, access);
}

/* (TRICKS: read-or-write) */
static enum vcpu_access op_guess_access(struct cpu_engine *e, gva_t gva)
{
	const struct vcpu *v = e->vcpu;
	uint32_t entry = shadow_entry(e->shadow, gva);

	/* A readable page faults only if it is executed or written to. */
	if (v->cpl == 0 && !(entry & SHADOW_EXECUTE) && gva - v->eip < INSN_MAX_BYTES)
		return ACCESS_FETCH;
	if (entry && !(entry & SHADOW_WRITE))
		return ACCESS_WRITE;
	return insn_writes(monitor_of(e), gva) ? ACCESS_WRITE : ACCESS_READ;
}

static bool op_guess_write(struct cpu_engine *e, gva_t gva)
{
	return insn_writes(monitor_of(e), gva);
}

/* (TRICKS: trap-without-name) */
static unsigned op_guess_vector(struct cpu_engine *e, int signal)
{
	struct monitor *m = monitor_of(e);

	if (signal == SIGFPE)
		return insn_is_sse(m) ? VECTOR_XM : VECTOR_MF;
	if (insn_is_bound(m))
		return VECTOR_BR;
	return insn_was_into(m) ? VECTOR_OF : 0;
}

static const struct engine_ops ops = { ENGINE_OPS(op_) ENGINE_GUESSES(op_) };

void ptrace_run_prepare(struct monitor *m)
{
	m->engine = (struct cpu_engine){
		.ops = &ops,
		.vcpu = &m->vcpu,
		.slot = m->slot,
		.bell = m->bell,
		.shadow = &m->shadow,
		.debug = &m->debug.told,
		.ram_pages = m->shm->ram_pages,
		.many_hosts = m->many_hosts,
		.timer_armed_ns = UINT64_MAX,
	};
}

/* --- running ---------------------------------------------------------------------------------- */

void run_guest(struct monitor *m)
{
	struct engine_stop stop;

	m->time_mark_ns = clock_now_ns();
	m->time_kind = TIME_EMULATION;
	while (engine_until_ready(&m->engine)) {
		bool alive;

		engine_leave(&m->engine);
		time_switch(m, TIME_NATIVE);
		alive = process_enter(m, &stop);
		time_switch(m, TIME_EMULATION);
		atomic_store(&m->bell->state, SLOT_MONITOR);
		trace("stop: signal %lu at %lx, code %lx, address %lx", stop.signal, m->vcpu.eip,
		      stop.code, stop.address);
		if (alive)
			engine_on_stop(&m->engine, &stop);
		else
			monitor_end(m, END_PART_DIED, EXIT_VMP_FAILURE,
				    "the VM process of CPU %u was killed by signal %d%s", m->cpu,
				    stop.signal, killed_why(stop.signal));
	}
}
