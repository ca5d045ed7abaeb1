/* process.c - the VM process under ptrace: its start, its registers, and the system calls that its
 * stub makes.
 *
 * Prices (AMD EPYC guest, 2026-11): a stop and resume with registers both ways takes 4-11 us,
 * nearly all of it for the switches of processes.  A queued system call in the stub takes about 1
 * us, and a batch one stop.  That is why mappings are queued.
 */
#include "monitor/monitor.h"

#include <asm/unistd_64.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/killed.h"
#include "base/log.h"
#include "base/schedule.h"

_Static_assert(sizeof(struct direct_shared) <= STUB_FD_MAIL - STUB_FD_DIRECT,
	       "the memory shared with the VM process");

enum {
	GUEST_FLAGS_NATIVE = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF | EFLAGS_TF |
			     EFLAGS_DF | EFLAGS_OF | EFLAGS_AC
};

/* In the child: the descriptors by which a kernel process and its user process know each other; for
 * another VM process nothing is left in their places. */
static void place_pipes(const struct monitor *m, enum vmproc_strict strict)
{
	const struct user_pipes *p = &m->vm.pipes;
	bool user = strict == VMPROC_USER;
	/* not yet opened where there is no user process: the results are not used */
	int order = fcntl(p->order[user ? 0 : 1], F_DUPFD, 16),
	    report = fcntl(p->report[user ? 1 : 0], F_DUPFD, 16),
	    pidfd = user ? -1 : fcntl(p->pidfd, F_DUPFD, 16),
	    fault = user || !m->many_hosts ? -1 : fcntl(p->userfault_fd, F_DUPFD, 16);

	close(VMPROC_USER_FD);
	close(VMPROC_USER_FAULT_FD);
	if (strict == VMPROC_TOGETHER)
		return;
	if (dup2(order, VMPROC_ORDER_FD) < 0 || dup2(report, VMPROC_REPORT_FD) < 0 ||
	    (!user && dup2(pidfd, VMPROC_USER_FD) < 0) ||
	    (!user && m->many_hosts && dup2(fault, VMPROC_USER_FAULT_FD) < 0))
		_exit(1);
}

/* With --strict the user process stands behind its kernel process. (TRICKS: kernel-preempts) */
static int nice_of(const struct monitor *m, enum vmproc_strict strict)
{
	return (m->many_hosts ? NICE_FAR_BEHIND : NICE_BEHIND) -
	       (strict == VMPROC_KERNEL ? NICE_APART : 0);
}

/* In the child: put descriptors in their places, close all others, be traced (on the ptrace
 * engine), be killed when the monitor dies, and execute vmproc. */
static void become_vm_process(struct monitor *m, const char *path, unsigned space,
			      enum vmproc_strict strict, pid_t monitor)
{
	const struct vmproc_start start = {
		.direct = m->direct_engine,
		.userfault = m->many_hosts,
		.strict = strict,
		.space = space,
		.ram_pages = m->shm->ram_pages,
		.slot_offset = offsetof(struct host_shm, slot) + m->cpu * sizeof(struct vcpu_slot) -
			       HOSTSHM_HEAD_BYTES,
		.bells_offset = offsetof(struct host_shm, doorbell) - HOSTSHM_HEAD_BYTES,
		.rights_offset = offsetof(struct host_shm, page_right) - HOSTSHM_HEAD_BYTES,
	};
	char words[VMPROC_START_WORDS][24], *arguments[VMPROC_START_WORDS + 2] = { "vmproc" };
	struct rlimit none = { 0, 0 };
	int ram = fcntl(m->ram_fd, F_DUPFD, 16), stub = fcntl(m->vm.stub_fd, F_DUPFD, 16),
	    cpus = fcntl(m->cpus_fd, F_DUPFD, 16);
	int bell = fcntl(m->bell_fd, F_DUPFD, 16);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != monitor) /* it died before prctl() */
		_exit(1);
	setrlimit(RLIMIT_CORE, &none);
	schedule_behind(nice_of(m, strict));
	place_pipes(m, strict);
	if (ram < 0 || stub < 0 || dup2(ram, VMPROC_RAM_FD) < 0 || dup2(stub, VMPROC_STUB_FD) < 0)
		_exit(1);
	close(VMPROC_BELL_FD);
	close(VMPROC_FAULT_FD);
	if (m->direct_engine && (dup2(cpus, VMPROC_CPUS_FD) < 0 || dup2(bell, VMPROC_BELL_FD) < 0))
		_exit(1);
	syscall(SYS_close_range, (m->direct_engine ? VMPROC_CPUS_FD : VMPROC_STUB_FD) + 1, ~0u, 0);
	signal(SIGUSR1, SIG_DFL);
	if (!m->direct_engine && ptrace(PTRACE_TRACEME, 0, 0, 0))
		_exit(1);
	for (unsigned i = 0; i < VMPROC_START_WORDS; i++) {
		snprintf(words[i], sizeof words[i], "%llu",
			 (unsigned long long)((const uint64_t *)&start)[i]);
		arguments[i + 1] = words[i];
	}
	execv(path, arguments);
	_exit(1);
}

static void wait_for_trap(struct monitor *m, const char *step)
{
	int status;

	for (;;) {
		if (waitpid(m->vm.pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			die("waiting for the VM process: %s", strerror(errno));
		}
		if (!WIFSTOPPED(status))
			die("the VM process died while starting (%s, status 0x%x)", step, status);
		if (WSTOPSIG(status) == SIGTRAP)
			return;
		ptrace(PTRACE_CONT, m->vm.pid, 0, 0);
	}
}

int process_claimed_error(int32_t claimed)
{
	enum { ERRNO_MOST = 4095 };

	return claimed >= -ERRNO_MOST && claimed <= 0 ? claimed : -EPROTO;
}

void process_fetch_userfaultfd(struct monitor *m)
{
	int fd = m->vm.stub->userfault_fd, pidfd;

	m->vm.userfault_fd = -1;
	if (!m->many_hosts)
		return;
	if (fd < 0)
		die("no userfaultfd with shared-memory support here (%s): several hosts need Linux "
		    "6.4 or newer",
		    strerror(-process_claimed_error(m->vm.stub->userfault_error)));
	pidfd = syscall(SYS_pidfd_open, m->vm.pid, 0);
	m->vm.userfault_fd = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (m->vm.userfault_fd < 0)
		die("cannot take over the VM process's userfaultfd: %s", strerror(errno));
	close(pidfd);
}

void process_prepare(struct monitor *m)
{
	m->vm.stub_fd = memfd_create("vmp-stub", MFD_CLOEXEC);
	if (m->vm.stub_fd < 0 || ftruncate(m->vm.stub_fd, STUB_FD_BYTES))
		die("cannot prepare the VM process: %s", strerror(errno));
	m->vm.stub =
		mmap(NULL, STUB_FD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->vm.stub_fd, 0);
	if (m->vm.stub == MAP_FAILED)
		die("cannot map the stub page: %s", strerror(errno));
	m->vm.window = (struct cpu_window *)((char *)m->vm.stub + STUB_FD_WINDOW);
	memcpy((char *)m->vm.window + PAGE_BYTES, window_code, window_code_end - window_code);
	m->direct = (struct direct_shared *)((char *)m->vm.stub + STUB_FD_DIRECT);
}

pid_t process_spawn(struct monitor *m, unsigned space, enum vmproc_strict strict)
{
	char path[4096];
	pid_t monitor = getpid(), pid;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);

	if (n < 0)
		return -errno;
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, "vmproc");
	pid = fork();
	if (!pid)
		become_vm_process(m, path, space, strict, monitor);
	return pid < 0 ? -errno : pid;
}

void process_start(struct monitor *m)
{
	process_prepare(m);
	m->vm.pid = process_spawn(m, 0, VMPROC_TOGETHER);
	if (m->vm.pid < 0)
		die("its VM process cannot be started: %s; too many processes?",
		    strerror(-m->vm.pid));
	wait_for_trap(m, "exec");
	if (ptrace(PTRACE_SETOPTIONS, m->vm.pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP))
		die("ptrace: %s", strerror(errno));
	ptrace(PTRACE_CONT, m->vm.pid, 0, 0);
	wait_for_trap(m, "setup");
	process_fetch_userfaultfd(m);
	m->vm.stub_entry = m->vm.stub->stub_entry;
	m->vm.cpuid_faulting = m->vm.stub->cpuid_faulting;
	ptrace(PTRACE_CONT, m->vm.pid, 0, 0);
	wait_for_trap(m, "jail");
	if (m->vm.stub->setup_error)
		die("the VM process has no jail: seccomp: %s", strerror(-m->vm.stub->setup_error));
	if (ptrace(PTRACE_GETREGS, m->vm.pid, 0, &m->vm.regs))
		die("ptrace: %s", strerror(errno));
	atomic_store(&m->shm->vm_pid[m->cpu][0], m->vm.pid);
}

/* --- registers -------------------------------------------------------------------------------- */

static uint64_t segment_base(struct monitor *m, uint16_t selector)
{
	unsigned index = selector >> 3;

	return index && index < VMP_GDT_ENTRIES ? m->vm.descriptor[index].base_addr : 0;
}

/* The flags that are in the host's EFLAGS while the guest runs.  User code has its own ID; ptrace
 * cannot change that flag, so a change takes effect at the next return to user mode through the
 * window.  A real processor checks alignment at privilege level 3 only.  So a guest kernel that was
 * entered with AC set runs without AC, which takes effect again in user mode.
 * (TRICKS: flags-by-iret, user-ac) */
static uint32_t native_flags(const struct vcpu *v)
{
	return v->cpl == 3 ? GUEST_FLAGS_NATIVE | EFLAGS_ID
			   : GUEST_FLAGS_NATIVE & ~(uint32_t)EFLAGS_AC;
}

/* (TRICKS: fs-base, orig-rax) */
static void registers_to_host(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;
	struct user_regs_struct *r = &m->vm.regs;

	r->rax = v->gpr[EAX], r->rcx = v->gpr[ECX], r->rdx = v->gpr[EDX], r->rbx = v->gpr[EBX];
	r->rsp = v->gpr[ESP], r->rbp = v->gpr[EBP], r->rsi = v->gpr[ESI], r->rdi = v->gpr[EDI];
	r->r8 = r->r9 = r->r10 = r->r11 = r->r12 = r->r13 = r->r14 = r->r15 = 0;
	r->rip = v->eip;
	window_open(m->vm.window, v, window_trap_gate(), atomic_load(&m->slot->spins),
		    m->shm->node);
	if (m->strict)
		window_restrict(m->vm.window, v);
	r->eflags = (v->eflags & (native_flags(v) | EFLAGS_RF)) | EFLAGS_FIXED | EFLAGS_IF;
	r->orig_rax = ~0ull; /* no system call to restart */
	r->cs = vmproc_selector(v->seg[SEG_CS]);
	r->ss = vmproc_selector(v->seg[SEG_SS]);
	if (v->seg[SEG_DS] != (uint16_t)r->ds)
		r->ds = vmproc_selector(v->seg[SEG_DS]);
	if (v->seg[SEG_ES] != (uint16_t)r->es)
		r->es = vmproc_selector(v->seg[SEG_ES]);
	if (v->seg[SEG_FS] != (uint16_t)r->fs) {
		r->fs = vmproc_selector(v->seg[SEG_FS]);
		r->fs_base = segment_base(m, v->seg[SEG_FS]);
	}
	if (v->seg[SEG_GS] != (uint16_t)r->gs) {
		r->gs = vmproc_selector(v->seg[SEG_GS]);
		r->gs_base = segment_base(m, v->seg[SEG_GS]);
	}
}

/* The guest may have changed its privilege level without a stop, through the window. */
static void level_from_host(struct vcpu *v, const struct user_regs_struct *r)
{
	if (!(r->cs & VMPROC_SEL_TABLE)) /* a host selector: engine/traps.c handles it */
		return;
	v->cpl = r->cs >> 3 == VMP_GDT_USER_CS ? 3 : 0;
	v->seg[SEG_CS] = v->cpl ? r->cs : r->cs & ~VMPROC_SEL_RPL;
	v->seg[SEG_SS] = r->ss;
}

/* True if a guest program may have this stack segment: one of the guest's but not the kernel's, or
 * a TLS segment; none of the host's own. */
static bool is_program_stack(uint32_t ss)
{
	uint32_t index = ss >> 3;

	if (!(ss & 4))
		return index >= VMP_GDT_TLS_MIN && index < VMP_GDT_TLS_MIN + 3;
	return index != VMP_GDT_KERNEL_DS && index != VMP_GDT_BOOT_DS;
}

static void registers_from_host(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;
	const struct user_regs_struct *r = &m->vm.regs;
	bool level_is_ours = m->strict && v->cpl == 3;
	uint32_t native;

	if (!level_is_ours)
		level_from_host(v, r);
	else if (is_program_stack(r->ss))
		v->seg[SEG_SS] = r->ss;
	native = native_flags(v) | EFLAGS_RF;
	v->gpr[EAX] = r->rax, v->gpr[ECX] = r->rcx, v->gpr[EDX] = r->rdx, v->gpr[EBX] = r->rbx;
	v->gpr[ESP] = r->rsp, v->gpr[EBP] = r->rbp, v->gpr[ESI] = r->rsi, v->gpr[EDI] = r->rdi;
	v->eip = r->rip;
	v->eflags = (v->eflags & ~native) | (r->eflags & native) | EFLAGS_FIXED;
	if (!level_is_ours)
		window_close(m->vm.window, v);
	v->seg[SEG_DS] = r->ds, v->seg[SEG_ES] = r->es, v->seg[SEG_FS] = r->fs,
	v->seg[SEG_GS] = r->gs;
	if (r->fs_base >> 32 || r->gs_base >> 32) /* 64-bit code alone can set such a base */
		vcpu_kill(v, "guest code left its segments: base of fs %lx, of gs %lx",
			  (unsigned long)r->fs_base, (unsigned long)r->gs_base);
}

struct stop {
	enum { STOP_SIGNAL, STOP_SECCOMP, STOP_DIED } kind;
	int signal;	/* STOP_SIGNAL: its number; STOP_DIED: what killed it, 0 if it exited */
	siginfo_t info; /* STOP_SIGNAL */
};

static bool in_window(const struct monitor *m)
{
	const struct user_regs_struct *r = &m->vm.regs;

	if (r->cs == VMP_SEL_USER_CS)
		return false;
	return m->strict && m->vcpu.cpl == 3 ? window_holds_syscall(r->rip) : window_holds(r->rip);
}

/* Convert the stop for the engine; m->vm.regs and the struct vcpu have the registers.  The vector
 * stays 0: the host does not tell it to a tracer. (TRICKS: orig-rax) */
static void translate(struct monitor *m, const struct stop *why, struct engine_stop *s)
{
	const struct user_regs_struct *r = &m->vm.regs;

	*s = (struct engine_stop){
		.signal = why->signal,
		.cs = r->cs,
		.in_guest = r->cs & VMPROC_SEL_TABLE,
		.in_window = in_window(m),
		.at = { .rip = r->rip,
			.esp = r->rsp,
			.r8 = r->r8,
			.r10 = r->r10,
			.eflags = r->eflags },
	};
	if (why->kind == STOP_SECCOMP) {
		s->signal = SIGSYS;
		s->call = r->orig_rax;
		m->vcpu.gpr[EAX] = r->orig_rax; /* the host has put -ENOSYS there */
	} else if (why->signal != SIGUSR1) {
		s->code = why->info.si_code;
		s->address = (uintptr_t)why->info.si_addr;
	}
	/* The step ended at a system call that seccomp had stopped: no instruction has run. */
	if (m->engine.stepping && why->signal == SIGTRAP && s->code == TRAP_BRKPT &&
	    m->vcpu.eip == m->engine.left_eip)
		s->signal = SIGUSR1;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Wait until the process stops or has died, and read why it stopped.  A stopped process that ptrace
 * does not know any more has been killed since: the next waitpid() reports that. */
static void wait_for_stop(struct monitor *m, struct stop *why)
{
	int status;

	for (;;) {
		while (waitpid(m->vm.pid, &status, __WALL) < 0)
			if (errno != EINTR)
				bug("waitpid: %s", strerror(errno));
		if (!WIFSTOPPED(status)) {
			/* another process may get its number, which must not be kicked */
			atomic_store(&m->shm->vm_pid[m->cpu][0], 0);
			*why = (struct stop){ .kind = STOP_DIED };
			why->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
			return;
		}
		*why = (struct stop){ .signal = WSTOPSIG(status) };
		why->kind = status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) ? STOP_SECCOMP :
										   STOP_SIGNAL;
		if (why->kind == STOP_SECCOMP || why->signal == SIGUSR1 ||
		    !ptrace(PTRACE_GETSIGINFO, m->vm.pid, 0, &why->info) || errno != ESRCH)
			return;
	}
}

static void resume_once(struct monitor *m, int request, struct stop *why)
{
	if (ptrace(request, m->vm.pid, 0, 0) && errno != ESRCH)
		bug("ptrace(%d): %s", request, strerror(errno));
	wait_for_stop(m, why);
}

static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGTRAP || signal == SIGILL ||
	       signal == SIGFPE || signal == SIGSYS;
}

/* True if another process sent the signal: it is not the result of an instruction, and not the
 * monitor's own kick (SIGUSR1). */
static bool was_sent(const struct stop *why)
{
	return why->kind == STOP_SIGNAL && why->signal != SIGUSR1 &&
	       (why->info.si_code <= 0 || !is_fault(why->signal));
}

void process_signal_ignored(struct monitor *m, int signal, pid_t sender)
{
	uint64_t bit = 1ull << (signal - 1) % 64;

	if (m->vm.signals_ignored & bit)
		return;
	m->vm.signals_ignored |= bit;
	log_warn("CPU %u: signal %d to its VM process is ignored (sender: process %d)", m->cpu,
		 signal, sender);
}

static void resume_and_wait(struct monitor *m, int request, struct stop *why)
{
	resume_once(m, request, why);
	while (was_sent(why)) {
		process_signal_ignored(m, why->signal, why->info.si_pid);
		resume_once(m, request, why);
	}
}

/* False: the host refuses them, and the machine ends. */
static bool set_registers(struct monitor *m, const struct user_regs_struct *r)
{
	if (!ptrace(PTRACE_SETREGS, m->vm.pid, 0, r) || errno == ESRCH)
		return true;
	monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "CPU %u: the host refuses registers: cs "
		    "%llx ss %llx ds %llx es %llx fs %llx at %llx gs %llx at %llx: %s", m->cpu,
		    r->cs, r->ss, r->ds, r->es, r->fs, r->fs_base, r->gs, r->gs_base,
		    strerror(errno));
	return false;
}

/* A program can load a selector with any RPL.  The host lets a tracer set no data segment's but 0
 * and those with RPL 3. (TRICKS: shadow-ldt) */
static void make_settable(struct user_regs_struct *r)
{
	unsigned long long *const selector[] = { &r->ds, &r->es, &r->fs, &r->gs };

	for (unsigned i = 0; i < ARRAY_LEN(selector); i++)
		*selector[i] = *selector[i] >> 3 ? *selector[i] | VMPROC_SEL_RPL : 0;
}

bool process_enter(struct monitor *m, struct engine_stop *stop)
{
	struct stop why;

	registers_to_host(m);
	if (!set_registers(m, &m->vm.regs)) {
		*stop = (struct engine_stop){ .signal = 0 };
		return false;
	}
	resume_and_wait(m, m->engine.stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, &why);
	while (why.kind != STOP_DIED && ptrace(PTRACE_GETREGS, m->vm.pid, 0, &m->vm.regs)) {
		if (errno != ESRCH)
			bug("ptrace gives no registers: %s", strerror(errno));
		wait_for_stop(m, &why);
	}
	if (why.kind == STOP_DIED) {
		*stop = (struct engine_stop){ .signal = why.signal };
		return false;
	}
	make_settable(&m->vm.regs);
	registers_from_host(m);
	translate(m, &why, stop);
	return true;
}

/* --- the stub --------------------------------------------------------------------------------- */

void process_stub_queue(struct monitor *m, long number, uint64_t a, uint64_t b, uint64_t c,
			uint64_t d, uint64_t e, uint64_t f)
{
	if (m->vm.queued == STUB_OPS)
		process_stub_flush(m);
	m->vm.op[m->vm.queued] =
		(struct stub_op){ .number = number, .argument = { a, b, c, d, e, f } };
	m->vm.stub->op[m->vm.queued] = m->vm.op[m->vm.queued];
	m->vm.queued++;
}

static void check_results(struct monitor *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct stub_op *op = &m->vm.op[i];
		int64_t result = m->vm.stub->op[i].result;

		if (result < 0 && result >= -4095)
			bug("stub: call %ld(%lx, %lx, %lx, %lx): %s", (long)op->number,
			    (long)op->argument[0], (long)op->argument[1], (long)op->argument[2],
			    (long)op->argument[5], strerror(-result));
		if (op->number == __NR_mmap && m->vm.userfault_fd >= 0)
			pages_mapped(m, op->argument[0], op->argument[1],
				     &m->shadow.entry[op->argument[0] >> PAGE_BITS]);
	}
}

bool process_stub_flush(struct monitor *m)
{
	struct user_regs_struct regs = m->vm.regs;
	unsigned count = m->vm.queued;
	struct stop why;

	if (!count)
		return false;
	m->vm.queued = 0;
	engine_count(&m->engine, TRAP_STUB);
	regs.rip = m->vm.stub_entry;
	regs.cs = 0x33;
	regs.ss = 0x2b;
	regs.ds = regs.es = 0;
	regs.rsp = 0;
	regs.eflags = EFLAGS_FIXED | EFLAGS_IF;
	regs.orig_rax = ~0ull;
	regs.rbx = STUB_PAGE_ADDRESS + offsetof(struct stub_page, op);
	regs.rbp = count;
	if (!set_registers(m, &regs))
		return true;
	do { /* a kick is lost here: the caller checks its posts again before guest code runs */
		resume_and_wait(m, PTRACE_CONT, &why);
	} while (why.kind == STOP_SIGNAL && why.signal != SIGTRAP && why.signal != SIGSEGV &&
		 why.signal != SIGBUS);
	if (why.kind == STOP_DIED) {
		monitor_end(m, END_PART_DIED, 0,
			    "the VM process of CPU %u was killed by signal %d%s", m->cpu,
			    why.signal, killed_why(why.signal));
		return true;
	}
	if (why.kind != STOP_SIGNAL || why.signal != SIGTRAP)
		bug("the stub of CPU %u stopped by signal %d (kind %d)", m->cpu, why.signal,
		    why.kind);
	check_results(m, count);
	return true;
}

void process_set_segment(struct monitor *m, unsigned index, const struct vcpu_segment *s)
{
	struct user_desc d;
	bool tls;

	if (!vmproc_descriptor(index, s, &d, &tls))
		return;
	if (!memcmp(&d, &m->vm.descriptor[index], sizeof d))
		return;
	m->vm.descriptor[index] = d;
	if (tls) {
		if (ptrace(PTRACE_SET_THREAD_AREA, m->vm.pid, (void *)(uintptr_t)index, &d) &&
		    errno != ESRCH)
			log_warn_rarely("the host refuses TLS descriptor %u (base %x): %s", index,
					d.base_addr, strerror(errno));
		return;
	}
	process_stub_flush(m);
	m->vm.stub->descriptor = d;
	process_stub_queue(m, __NR_modify_ldt, 0x11,
			   STUB_PAGE_ADDRESS + offsetof(struct stub_page, descriptor), sizeof d, 0,
			   0, 0);
	process_stub_flush(m);
}
