/* monitor_engine.c - both engines with a guest of one page (monitor_guest.S); this test replaces
 * the daemon.
 *
 * Checks the paths that need no kernel: segments, markers, paging, user mode, system calls in both
 * ways, wild pointers and jumps that are caught at the segment limit, exceptions.  Then the deaths:
 * a triple fault, and a VM process that is killed.  Then moves.  Then all of it again in steps of
 * one instruction, where both engines must be at the same places.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/guest_abi.h"
#include "base/hostshm.h"
#include "base/packet.h"
#include "tests/unit/unit.h"
#include "vmproc/direct.h"
#include "vmproc/vmproc.h"

enum { RAM_PAGES = 4096, GUEST_BASE = 0x100000, STEPS = 10 };
extern const char monitor_guest_start[], monitor_guest_end[];

struct machine {
	struct host_shm *shm;
	uint8_t *ram;
	int channel;
	pid_t monitor;
	char log[256];
	struct msg_machine_end end;
	char why[256];
};

static const char *monitor_path;
static bool direct; /* the engine */

static void start_machine(struct machine *t, const void *code, size_t bytes)
{
	int ram = memfd_create("ram", 0), shm = memfd_create("shm", 0),
	    cpus = memfd_create("cpus", 0), pair[2];
	int bell = eventfd(0, EFD_NONBLOCK);
	char argument[5][16];

	memset(t, 0, sizeof *t);
	CU_ASSERT_FATAL(!ftruncate(ram, (off_t)RAM_PAGES << PAGE_BITS) &&
			!ftruncate(shm, HOSTSHM_HEAD_BYTES) &&
			!ftruncate(cpus, (off_t)hostshm_cpus_bytes(RAM_PAGES)));
	t->ram = mmap(NULL, (size_t)RAM_PAGES << PAGE_BITS, PROT_READ | PROT_WRITE, MAP_SHARED, ram,
		      0);
	t->shm = hostshm_map(shm, cpus, RAM_PAGES);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t->shm);
	t->shm->magic = HOSTSHM_MAGIC;
	t->shm->n_cpus = 1;
	t->shm->ram_pages = RAM_PAGES;
	hostclock_set(&t->shm->clock, (struct clock_line){ clock_now_ns(), 0, 0 });
	t->shm->host_tsc_khz = 1000000;
	cpufeatures_look(&t->shm->features);
	for (unsigned i = 0; i < RAM_PAGES; i++)
		t->shm->page_right[i] = PAGE_WRITE;
	memcpy(t->ram + GUEST_BASE, code, bytes);
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	snprintf(argument[0], 16, "%d", pair[1]);
	snprintf(argument[1], 16, "%d", ram);
	snprintf(argument[2], 16, "%d", shm);
	snprintf(argument[3], 16, "%d", cpus);
	snprintf(argument[4], 16, "%d", bell);
	t->monitor = fork();
	if (!t->monitor) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		execl(monitor_path, "vmp-monitor", "--cpu", "0", "--socket", argument[0],
		      "--ram-fd", argument[1], "--shm-fd", argument[2], "--cpus-fd", argument[3],
		      "--bell-fd", argument[4], "--log-fd", "2", "--engine",
		      direct ? "direct" : "ptrace", (char *)NULL);
		_exit(1);
	}
	close(pair[1]);
	close(ram);
	close(shm);
	close(cpus);
	close(bell);
	t->channel = pair[0];
	setsockopt(t->channel, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 60 },
		   sizeof(struct timeval));
}

/* Acts as the daemon until the machine ends.  Returns false if it hangs. */
static bool play(struct machine *t, bool start)
{
	struct { struct msg_header header; char body[MAX_MSG_PAYLOAD + 64]; } p;
	ssize_t n;

	while ((n = recv(t->channel, &p, sizeof p, 0)) > 0)
		switch (p.header.type) {
		case MSG_HELLO:
			if (!start)
				return true;
			t->shm->slot[0].start_eip = GUEST_BASE;
			hostshm_post(t->shm, 0, POST_START);
			break;
		case MSG_LOG:
			snprintf(t->log, sizeof t->log, "%.*s",
				 (int)(p.header.bytes - sizeof(struct msg_log)),
				 p.body + sizeof(struct msg_log));
			break;
		case MSG_MACHINE_END:
			memcpy(&t->end, p.body, sizeof t->end);
			snprintf(t->why, sizeof t->why, "%.*s",
				 (int)(p.header.bytes - sizeof t->end), p.body + sizeof t->end);
			return true;
		}
	return false;
}

static void stop_machine(struct machine *t)
{
	pid_t vm = t->shm->vm_pid[0][0];

	kill(t->monitor, SIGKILL);
	waitpid(t->monitor, NULL, 0);
	if (vm) /* the tracer's death kills it; this process reaps it, unless the monitor has */
		CU_ASSERT(waitpid(vm, NULL, 0) == vm || errno == ECHILD);
	close(t->channel);
	munmap(t->ram, (size_t)RAM_PAGES << PAGE_BITS);
	hostshm_unmap(t->shm, RAM_PAGES);
}

static void each_step_of_the_guest(void)
{
	struct machine t;

	start_machine(&t, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	CU_ASSERT(play(&t, true));
	CU_ASSERT_EQUAL(t.end.reason, END_POWEROFF);
	for (unsigned step = 0; step < STEPS; step++)
		if (!(t.end.status >> step & 1))
			fprintf(stderr, "step %u of the guest failed (%s)\n", step, t.why);
	CU_ASSERT_EQUAL(t.end.status, (1u << STEPS) - 1);
	CU_ASSERT_STRING_EQUAL(t.log, "hello from the guest\n");
	stop_machine(&t);
}

static void a_triple_fault_ends_the_machine(void)
{
	static const uint8_t code[] = { 0x0f, 0x0b }; /* ud2 without an IDT */
	struct machine t;

	start_machine(&t, code, sizeof code);
	CU_ASSERT(play(&t, true));
	CU_ASSERT_EQUAL(t.end.reason, END_GUEST_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "triple fault"));
	stop_machine(&t);
}

static void host_system_calls_are_refused(void)
{
	/* ljmp $0x33, next; next: mov $39, %eax; syscall: getpid in the host's 64-bit mode */
	static const uint8_t code[] = { 0xea, 7, 0, 0x10, 0,	0x33, 0,    0xb8,
					39,   0, 0, 0,	  0x0f, 0x05, 0xeb, 0xfe };
	struct machine t;

	start_machine(&t, code, sizeof code);
	CU_ASSERT(play(&t, true));
	CU_ASSERT_EQUAL(t.end.reason, END_GUEST_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "host system call 39"));
	stop_machine(&t);
}

static void a_killed_vm_process_is_named(void)
{
	static const uint8_t code[] = { 0xeb, 0xfe };
	struct machine t;

	start_machine(&t, code, sizeof code);
	CU_ASSERT(play(&t, false));
	t.shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(t.shm, 0, POST_START);
	while (!t.shm->vm_pid[0][0])
		usleep(1000);
	usleep(50000);
	if (direct) /* in the middle of an emulated instruction, so to speak */
		atomic_store(&t.shm->slot[0].pin[1], 5 + 1);
	kill(t.shm->vm_pid[0][0], SIGKILL);
	CU_ASSERT(play(&t, true));
	CU_ASSERT_EQUAL(atomic_load(&t.shm->slot[0].pin[1]), 0);
	CU_ASSERT_EQUAL(t.end.reason, END_PART_DIED);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "VM process of CPU 0"));
	stop_machine(&t);
}

static void on_the_direct_engine(void (*test)(void))
{
	direct = true;
	test();
	direct = false;
}

/* ---- an attack: 64-bit guest code changes what a new VM process of its CPU might trust ---- */

enum { ATTACK_DONE = 0x2000 };
_Static_assert((uint32_t)DIRECT_RAM_ADDRESS == 0, "the attack has its upper half alone");
extern const char attack_start[], attack_end[];

/* Never called: guest code, with the layout of struct direct_shared.  It clears what the monitor
 * has filled in before the start, asks for one more VM process, writes the answer into guest
 * memory, and waits for its end. */
__attribute__((used, noinline)) static void attack_code(void)
{
	__asm__ volatile(
		".pushsection .rodata\n"
		".globl attack_start, attack_end\n"
		"attack_start:\n"
		"	.code32\n"
		"	ljmp	$0x33, $(%c[base] + 1f - attack_start)\n"
		"	.code64\n"
		"1:	mov	$%c[shared_high], %%ebx\n"
		"	shl	$32, %%rbx\n"
		"	or	$%c[shared_low], %%rbx\n"
		"	lea	%c[first](%%rbx), %%rdi\n"
		"	mov	$%c[words], %%ecx\n"
		"	xor	%%eax, %%eax\n"
		"	rep stosl\n"
		"	movl	$%c[new_space], %c[call](%%rbx)\n"
		"	movq	$1, %c[arg](%%rbx)\n"
		"	movl	$%c[monitors], %c[turn](%%rbx)\n"
		"	lea	%c[turn](%%rbx), %%rdi\n"
		"	mov	$202, %%eax\n" /* futex(&turn, FUTEX_WAKE, 1) */
		"	mov	$1, %%esi\n"
		"	mov	$1, %%edx\n"
		"	syscall\n"
		"2:	pause\n"
		"	cmpl	$%c[vms], %c[turn](%%rbx)\n"
		"	jne	2b\n"
		"	mov	%c[result](%%rbx), %%eax\n"
		"	mov	$%c[ram_high], %%edx\n"
		"	shl	$32, %%rdx\n"
		"	mov	%%eax, %c[done] + 4(%%rdx)\n"
		"	movl	$1, %c[done](%%rdx)\n"
		"3:	jmp	3b\n"
		"attack_end:\n"
		".popsection\n"
		:
		:
		[base] "i"(GUEST_BASE), [shared_high] "i"((int)(DIRECT_SHARED_ADDRESS >> 32)),
		[shared_low] "i"((int)(uint32_t)DIRECT_SHARED_ADDRESS),
		[ram_high] "i"((int)(DIRECT_RAM_ADDRESS >> 32)), [done] "i"(ATTACK_DONE),
		[first] "i"(offsetof(struct direct_shared, cpu)),
		[words] "i"((offsetof(struct direct_shared, sent) -
			     offsetof(struct direct_shared, cpu)) /
			    4),
		[new_space] "i"(DIRECT_NEW_SPACE), [call] "i"(offsetof(struct direct_shared, call)),
		[arg] "i"(offsetof(struct direct_shared, arg)),
		[turn] "i"(offsetof(struct direct_shared, turn)),
		[result] "i"(offsetof(struct direct_shared, result)), [monitors] "i"(TURN_MONITOR),
		[vms] "i"(TURN_VM));
}

/* Returns how often a process maps a memfd of this name from `offset` on, and for writing; ~0 if it
 * is gone. */
static unsigned count_mappings(pid_t pid, const char *name, unsigned long offset, bool writable)
{
	char path[64], line[512], rights[8];
	unsigned long at;
	unsigned n = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return ~0u;
	while (fgets(line, sizeof line, maps))
		n += sscanf(line, "%*s %7s %lx", rights, &at) == 2 && strstr(line, name) &&
		     at == offset && (!writable || rights[1] == 'w');
	fclose(maps);
	return n;
}

static void direct_a_new_space_maps_its_own(void)
{
	const volatile uint32_t *done;
	struct machine t;
	pid_t pid;

	direct = true;
	start_machine(&t, attack_start, (size_t)(attack_end - attack_start));
	done = (const volatile uint32_t *)(t.ram + ATTACK_DONE);
	CU_ASSERT(play(&t, false));
	t.shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(t.shm, 0, POST_START);
	for (unsigned i = 0; i < 1000 && !done[0]; i++)
		usleep(10000);
	CU_ASSERT_EQUAL_FATAL(done[0], 1);
	CU_ASSERT_EQUAL(done[1], 0);
	pid = t.shm->vm_pid[0][1];
	CU_ASSERT(pid > 0);
	CU_ASSERT_EQUAL(count_mappings(pid, "memfd:shm", 0, false), 0);
	CU_ASSERT_EQUAL(count_mappings(pid, "memfd:cpus", 0, true), 0);
	CU_ASSERT_EQUAL(count_mappings(pid, "memfd:cpus",
				       offsetof(struct host_shm, slot) -
					       offsetof(struct host_shm, clock),
				       true),
			1);
	stop_machine(&t);
	direct = false;
}

/* ---- an attack: 64-bit guest code makes a mapping call by the stub's own `syscall`, with its own
 * registers ---- */

_Static_assert((uint32_t)STUB_PAGE_ADDRESS == 0, "the attack has its upper half alone");
enum { STORE_LIST = 0x800, STORE_FRAME = 0x300, STORE_RESULT = offsetof(struct stub_op, result) };
extern const char store_start[], store_end[];

/* Never called: guest code.  The call maps another frame over this page, where the stub would then
 * read its list and write the result. */
__attribute__((used, noinline)) static void store_code(void)
{
	__asm__ volatile(
		".pushsection .rodata\n"
		".globl store_start, store_end\n"
		"store_start:\n"
		"	.code32\n"
		"	ljmp	$0x33, $(%c[base] + 1f - store_start)\n"
		"	.code64\n"
		"1:	mov	$%c[stub_high], %%ecx\n"
		"	shl	$32, %%rcx\n"
		"	mov	%c[end](%%rcx), %%rcx\n"
		"	sub	$2, %%rcx\n"
		"	mov	$%c[base] + %c[list], %%ebx\n"
		"	mov	$1, %%ebp\n"
		/* mmap(base, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, 3, frame) */
		"	mov	$9, %%eax\n"
		"	mov	$%c[base], %%edi\n"
		"	mov	$4096, %%esi\n"
		"	mov	$3, %%edx\n"
		"	mov	$0x11, %%r10d\n"
		"	mov	$%c[ram], %%r8d\n"
		"	mov	$%c[frame] << 12, %%r9d\n"
		"	jmp	*%%rcx\n"
		"store_end:\n"
		".popsection\n"
		:
		: [base] "i"(GUEST_BASE), [stub_high] "i"((int)(STUB_PAGE_ADDRESS >> 32)),
		  [end] "i"(offsetof(struct stub_page, stub_syscall_end)), [list] "i"(STORE_LIST),
		  [ram] "i"(VMPROC_RAM_FD), [frame] "i"(STORE_FRAME));
}

/* Another CPU's code could go on with what is written there, until the machine has ended. */
static void the_stub_writes_into_no_guest_page(void)
{
	const uint8_t *frame;
	struct machine t;
	uint64_t written;

	start_machine(&t, store_start, (size_t)(store_end - store_start));
	frame = t.ram + ((size_t)STORE_FRAME << PAGE_BITS);
	CU_ASSERT(play(&t, true));
	memcpy(&written, frame + STORE_LIST + STORE_RESULT, sizeof written);
	CU_ASSERT_EQUAL(written, 0);
	CU_ASSERT_EQUAL(t.end.reason, END_GUEST_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "guest code left its segments: code segment 33"));
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "(signal 5)"));
	stop_machine(&t);
}

static void direct_each_step_of_the_guest(void) { on_the_direct_engine(each_step_of_the_guest); }
static void direct_triple_fault(void) { on_the_direct_engine(a_triple_fault_ends_the_machine); }
static void direct_host_system_calls(void) { on_the_direct_engine(host_system_calls_are_refused); }
static void direct_killed_vm_process(void) { on_the_direct_engine(a_killed_vm_process_is_named); }

/* ---- the CPU moves to another monitor, in the middle of the guest's steps ---- */

struct packet { struct msg_header header; char body[MAX_MSG_PAYLOAD + 64]; };

static void tell(struct machine *t, enum msg_type type, const void *body, size_t bytes)
{
	struct packet p = { .header = packet_header(type, VNODE_CPU(0), 0, (uint32_t)bytes) };

	memcpy(p.body, body, bytes);
	CU_ASSERT_FATAL(send(t->channel, &p, sizeof p.header + bytes, 0) > 0);
	hostshm_post(t->shm, 0, POST_MESSAGE);
}

/* Returns false if another message arrived, or none. */
static bool hear(struct machine *t, enum msg_type type, struct packet *p)
{
	do
		if (recv(t->channel, p, sizeof *p, 0) <= 0)
			return false;
	while (p->header.type == MSG_LOG || p->header.type == MSG_HELLO);
	return p->header.type == type;
}

/* The second machine is the first one's other host: the same memory at the same time. */
static void start_other_host(struct machine *t, const struct machine *first)
{
	start_machine(t, "", 0);
	memcpy(t->ram, first->ram, (size_t)RAM_PAGES << PAGE_BITS);
	hostclock_set(&t->shm->clock, hostclock_line(&first->shm->clock));
	CU_ASSERT(play(t, false));
}

static void check_steps(struct machine *t)
{
	CU_ASSERT(play(t, false));
	CU_ASSERT_EQUAL(t->end.reason, END_POWEROFF);
	CU_ASSERT_EQUAL(t->end.status, (1u << STEPS) - 1);
}

/* The CPU may be gone before it has noticed that it is to start. */
static void send_start_on(struct machine *first, struct machine *second)
{
	if (!(atomic_load(&first->shm->slot[0].post) & POST_START))
		return;
	second->shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(second->shm, 0, POST_START);
}

/* Lets the guest run for `us`, then sends its CPU; a damaged one comes back.  Returns false if it
 * had ended before. */
static bool steps_with_a_move(unsigned us, bool damage)
{
	struct machine first, second;
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };
	struct msg_cpu_step step;
	struct packet state, answer;
	bool moved;

	start_machine(&first, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	CU_ASSERT(play(&first, false));
	first.shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(first.shm, 0, POST_START);
	usleep(us);
	tell(&first, MSG_CPU_GIVE, &move, sizeof move);
	moved = hear(&first, MSG_CPU_STATE, &state);
	if (moved) {
		CU_ASSERT_EQUAL(first.shm->slot[0].state, SLOT_ABSENT);
		start_other_host(&second, &first);
		state.body[200] ^= damage;
		tell(&second, MSG_CPU_STATE, state.body, state.header.bytes);
		CU_ASSERT(hear(&second, MSG_CPU_STEP, &answer));
		memcpy(&step, answer.body, sizeof step);
		CU_ASSERT_EQUAL(step.step, STEP_TAKEN);
		CU_ASSERT_EQUAL(step.error != 0, damage);
		if (damage)
			tell(&first, MSG_CPU_BACK, &move, sizeof move);
		else
			send_start_on(&first, &second);
		check_steps(damage ? &first : &second);
		stop_machine(&second);
	}
	stop_machine(&first);
	return moved;
}

static void a_cpu_moves_between_any_two_steps(void)
{
	unsigned moved = 0;

	/* On a busy computer the guest may have ended each time before it could be moved; then
	 * tries again, sooner. */
	for (unsigned i = 0; i < 40 || (!moved && i < 2000); i++)
		moved += steps_with_a_move(i < 40 ? i * i * 10 : 0, i % 4 == 3);
	CU_ASSERT(moved > 0);
}

static void a_cpu_moves_before_it_starts(void)
{
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };
	struct machine first, second;
	struct packet state, answer;
	struct msg_cpu_step step;

	start_machine(&first, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	CU_ASSERT(play(&first, false));
	tell(&first, MSG_CPU_GIVE, &move, sizeof move);
	CU_ASSERT_FATAL(hear(&first, MSG_CPU_STATE, &state));
	start_other_host(&second, &first);
	tell(&second, MSG_CPU_STATE, state.body, state.header.bytes);
	CU_ASSERT(hear(&second, MSG_CPU_STEP, &answer));
	memcpy(&step, answer.body, sizeof step);
	CU_ASSERT(step.step == STEP_TAKEN && !step.error);
	hostshm_post(first.shm, 0, POST_START);
	send_start_on(&first, &second);
	check_steps(&second);
	stop_machine(&second);
	stop_machine(&first);
}

/* The other host's clock is behind: the CPU waits for it, but not for a wrong one. */
static void a_cpu_waits_for_its_clock(void)
{
	static const struct {
		uint64_t behind_ns;
		bool taken;
	} cases[] = { { 0, true }, { 50000000, true }, { 10000000000, false } };
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine first, second;
		struct packet packet, answer;
		struct msg_cpu_state state;
		struct msg_cpu_step step;
		struct clock_line line;

		start_machine(&first, monitor_guest_start, monitor_guest_end - monitor_guest_start);
		CU_ASSERT(play(&first, false));
		tell(&first, MSG_CPU_GIVE, &move, sizeof move);
		CU_ASSERT_FATAL(hear(&first, MSG_CPU_STATE, &packet));
		memcpy(&state, packet.body, sizeof state);
		start_other_host(&second, &first);
		/* so that it shows now what it should have shown some time before the CPU was
		 * frozen */
		line = (struct clock_line){ clock_now_ns(), state.frozen_ns - cases[i].behind_ns,
					    0 };
		hostclock_set(&second.shm->clock, line);
		tell(&second, MSG_CPU_STATE, packet.body, packet.header.bytes);
		CU_ASSERT(hear(&second, MSG_CPU_STEP, &answer));
		CU_ASSERT(!cases[i].taken ||
			  clock_line_at(&line, clock_now_ns()) >= state.frozen_ns);
		memcpy(&step, answer.body, sizeof step);
		CU_ASSERT_EQUAL(step.step, STEP_TAKEN);
		CU_ASSERT_EQUAL(step.error, cases[i].taken ? 0 : EAGAIN);
		if (!cases[i].taken)
			CU_ASSERT(!strncmp(answer.body + sizeof step,
					   "the machine's clock there is 9", 30));
		stop_machine(&second);
		stop_machine(&first);
	}
}

static void direct_a_cpu_waits_for_its_clock(void)
{
	on_the_direct_engine(a_cpu_waits_for_its_clock);
}
static void direct_a_cpu_moves_before_it_starts(void)
{
	on_the_direct_engine(a_cpu_moves_before_it_starts);
}
static void direct_a_cpu_moves(void) { on_the_direct_engine(a_cpu_moves_between_any_two_steps); }

/* ---- a debugger's requests ---- */

static void ask(struct machine *t, struct msg_debug request, const void *payload, size_t n)
{
	char message[sizeof request + PAGE_BYTES + 1];

	memcpy(message, &request, sizeof request);
	memcpy(message + sizeof request, payload, n);
	tell(t, MSG_DEBUG, message, sizeof request + n);
}

/* Gets its answer; the payload is in *p behind the body. */
static struct msg_debug answer_to(struct machine *t, struct msg_debug request, const void *payload,
				  size_t n, struct packet *p)
{
	struct msg_debug answer = { .error = ~0u };

	ask(t, request, payload, n);
	CU_ASSERT_FATAL(hear(t, MSG_DEBUG_ANSWER, p));
	memcpy(&answer, p->body, sizeof answer);
	CU_ASSERT_EQUAL(answer.op, request.op == DEBUG_STEP ? DEBUG_STOP : request.op);
	return answer;
}

static struct debug_registers registers_of(struct machine *t)
{
	struct debug_registers r;
	struct packet p;

	answer_to(t, (struct msg_debug){ .op = DEBUG_REGISTERS }, "", 0, &p);
	CU_ASSERT_EQUAL(p.header.bytes, sizeof(struct msg_debug) + sizeof r);
	memcpy(&r, p.body + sizeof(struct msg_debug), sizeof r);
	return r;
}

/* The CPU stands before its first instruction. */
static void start_standing(struct machine *t, const void *code, size_t bytes)
{
	struct msg_debug stop;
	struct packet p;

	start_machine(t, code, bytes);
	CU_ASSERT(play(t, false));
	stop = answer_to(t, (struct msg_debug){ .op = DEBUG_STOP }, "", 0, &p);
	CU_ASSERT(stop.why == WHY_ASKED && stop.bytes & DEBUG_CPU_UNSTARTED);
	t->shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(t->shm, 0, POST_START);
	while (registers_of(t).core[8] != GUEST_BASE)
		;
}

/* Runs all of the guest, one instruction at a time.  Returns a sum over where it stood, and how
 * often. */
struct trail { uint32_t sum, steps; };
static struct trail walk(void)
{
	struct trail trail = { 0 };
	struct machine t;
	struct packet p;

	start_standing(&t, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	for (;; trail.steps++) {
		ask(&t, (struct msg_debug){ .op = DEBUG_STEP }, "", 0);
		if (!hear(&t, MSG_DEBUG_ANSWER, &p))
			break;
		trail.sum = trail.sum * 31 + registers_of(&t).core[8];
	}
	CU_ASSERT_EQUAL_FATAL(p.header.type, MSG_MACHINE_END);
	memcpy(&t.end, p.body, sizeof t.end);
	CU_ASSERT_EQUAL(t.end.reason, END_POWEROFF);
	CU_ASSERT_EQUAL(t.end.status, (1u << STEPS) - 1);
	stop_machine(&t);
	return trail;
}

static void a_guest_is_stepped_through(void)
{
	struct trail ptrace = walk();

	direct = true;
	struct trail same = walk();
	direct = false;
	CU_ASSERT(ptrace.steps > 100 && ptrace.steps == same.steps && ptrace.sum == same.sum);
}

static void a_debugger_asks_for_what_is_wrong(void)
{
	static const uint8_t code[] = { 0xeb, 0xfe };
	static const uint8_t much[PAGE_BYTES + 1];
	static const struct {
		struct msg_debug request;
		size_t payload;
		uint32_t error, bytes;
	} cases[] = {
		{ { .op = DEBUG_READ, .address = GUEST_BASE, .bytes = 2 }, 0, 0, 2 },
		{ { .op = DEBUG_READ, .address = GUEST_BASE, .bytes = 0 }, 0, 0, 0 },
		{ { .op = DEBUG_READ, .address = GUEST_BASE + 4000, .bytes = ~0u }, 0, 0, 96 },
		/* where the kernel was loaded */
		{ { .op = DEBUG_READ, .address = VMP_USER_LIMIT + GUEST_BASE, .bytes = 2 },
		  0,
		  0,
		  2 },
		{ { .op = DEBUG_READ, .address = RAM_PAGES << PAGE_BITS, .bytes = 1 },
		  0,
		  EFAULT,
		  0 },
		{ { .op = DEBUG_READ, .address = ~0u, .bytes = 1 }, 0, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = GUEST_BASE + 4095 }, 1, 0, 0 },
		{ { .op = DEBUG_WRITE, .address = GUEST_BASE + 4095 }, 2, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = GUEST_BASE }, sizeof much, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = RAM_PAGES << PAGE_BITS }, 1, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = ~0u }, 1, EFAULT, 0 },
		{ { .op = DEBUG_SET_REGISTERS }, sizeof(struct debug_registers) - 1, EINVAL, 0 },
		{ { .op = DEBUG_SET_REGISTERS }, 0, EINVAL, 0 },
	};
	struct machine t;
	struct packet p;

	start_standing(&t, code, sizeof code);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct msg_debug answer = answer_to(&t, cases[i].request, much, cases[i].payload,
						    &p);

		CU_ASSERT_EQUAL(answer.error, cases[i].error);
		CU_ASSERT_EQUAL(p.header.bytes - sizeof answer, cases[i].bytes);
	}
	CU_ASSERT_EQUAL(registers_of(&t).core[8], GUEST_BASE);
	ask(&t, (struct msg_debug){ .op = DEBUG_OPS + 7 }, "", 0); /* no answer */
	ask(&t, (struct msg_debug){ .op = DEBUG_GO }, "", 0);
	CU_ASSERT_EQUAL(answer_to(&t,
				  (struct msg_debug){
					  .op = DEBUG_READ, .address = GUEST_BASE, .bytes = 1 },
				  "", 0, &p)
				.error,
			EBUSY);
	CU_ASSERT_EQUAL(answer_to(&t, (struct msg_debug){ .op = DEBUG_STOP }, "", 0, &p).why,
			WHY_ASKED);
	stop_machine(&t);
}

/* The step that leaves the guest's segments is the last one. */
static void a_step_out_of_the_segments_ends_the_machine(void)
{
	/* ljmp $0x33, next; next: jmp . */
	static const uint8_t code[] = { 0xea, 7, 0, 0x10, 0, 0x33, 0, 0xeb, 0xfe };
	struct msg_debug stop = { 0 };
	struct machine t;
	struct packet p;

	start_standing(&t, code, sizeof code);
	ask(&t, (struct msg_debug){ .op = DEBUG_STEP }, "", 0);
	CU_ASSERT(hear(&t, MSG_DEBUG_ANSWER, &p)); /* it stands where it has died */
	memcpy(&stop, p.body, sizeof stop);
	CU_ASSERT_EQUAL(stop.why, WHY_DEAD);
	stop_machine(&t);
}

static uint32_t set_watch(struct machine *t, const struct debug_watch *watch)
{
	struct packet p;

	return answer_to(t, (struct msg_debug){ .op = DEBUG_WATCH }, watch, sizeof *watch, &p)
		.error;
}

/* Runs from `eip` until it stands again.  Returns why, and where it is then. */
struct stood { uint32_t why, touched, eip; };
static struct stood run_from(struct machine *t, uint32_t eip, enum debug_op how)
{
	struct debug_registers r = registers_of(t);
	struct msg_debug stop = { 0 };
	struct packet p;

	r.core[8] = eip;
	answer_to(t, (struct msg_debug){ .op = DEBUG_SET_REGISTERS }, &r, sizeof r, &p);
	ask(t, (struct msg_debug){ .op = how }, "", 0);
	CU_ASSERT_FATAL(hear(t, MSG_DEBUG_ANSWER, &p));
	memcpy(&stop, p.body, sizeof stop);
	return (struct stood){ stop.why, stop.address, registers_of(t).core[8] };
}

/* The guest reads a word, then writes it, and then loops. */
static void a_word_is_watched(void)
{
	enum { WORD = GUEST_BASE + 0x4800, READ = GUEST_BASE, WRITE = READ + 5, CIRCLE = WRITE + 5,
	       ON_WRITE = 1 | 0xd << 16, ON_ACCESS = 1 | 0xf << 16, SECOND_ON_WRITE = 4 | 1 << 20 };
	static const uint8_t code[] = { 0xa1, 0x00, 0x48, 0x10, 0x00, 0xa3,
					0x00, 0x48, 0x10, 0x00, 0xeb, 0xfe };
	static const struct {
		struct debug_watch watch;
		uint32_t from;
		enum debug_op how;
		struct stood stood;
	} cases[] = {
		{ { { WORD }, ON_WRITE }, READ, DEBUG_GO, { WHY_WATCH, WORD, CIRCLE } },
		{ { { WORD }, ON_ACCESS }, READ, DEBUG_GO, { WHY_WATCH, WORD, WRITE } },
		{ { { WORD }, ON_ACCESS }, WRITE, DEBUG_GO, { WHY_WATCH, WORD, CIRCLE } },
		{ { { WORD - 8, WORD + 3 }, 1 << 16 | 1 | SECOND_ON_WRITE },
		  READ,
		  DEBUG_GO,
		  { WHY_WATCH, WORD + 3, CIRCLE } },
		/* a stop tells where it is */
		{ { { WORD }, ON_WRITE }, READ, DEBUG_STEP, { WHY_STEP, WRITE, WRITE } },
		{ { { WORD }, ON_WRITE }, WRITE, DEBUG_STEP, { WHY_WATCH, WORD, CIRCLE } },
		{ { { WORD }, ON_WRITE }, CIRCLE, DEBUG_STEP, { WHY_STEP, CIRCLE, CIRCLE } },
	};
	struct machine t;
	struct packet p;

	start_standing(&t, code, sizeof code);
	CU_ASSERT_EQUAL(answer_to(&t, (struct msg_debug){ .op = DEBUG_WATCH }, code, 3, &p).error,
			EINVAL);
	CU_ASSERT_NOT_EQUAL(set_watch(&t, &(struct debug_watch){ { WORD + 1 }, ON_WRITE }), 0);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct stood stood;

		CU_ASSERT_EQUAL(set_watch(&t, &cases[i].watch), 0);
		stood = run_from(&t, cases[i].from, cases[i].how);
		CU_ASSERT(!memcmp(&stood, &cases[i].stood, sizeof stood));
	}
	CU_ASSERT_EQUAL(set_watch(&t, &(struct debug_watch){ { 0 }, 0 }), 0);
	run_from(&t, READ, DEBUG_STEP);
	CU_ASSERT_EQUAL(run_from(&t, WRITE, DEBUG_STEP).why, WHY_STEP);
	stop_machine(&t);
}

static void direct_a_word_is_watched(void) { on_the_direct_engine(a_word_is_watched); }
static void direct_wrong_requests(void) { on_the_direct_engine(a_debugger_asks_for_what_is_wrong); }

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_step_of_the_guest),
		UNIT_TEST(a_triple_fault_ends_the_machine),
		UNIT_TEST(host_system_calls_are_refused),
		UNIT_TEST(a_killed_vm_process_is_named),
		UNIT_TEST(the_stub_writes_into_no_guest_page),
		UNIT_TEST(direct_each_step_of_the_guest),
		UNIT_TEST(direct_triple_fault),
		UNIT_TEST(direct_host_system_calls),
		UNIT_TEST(direct_killed_vm_process),
		UNIT_TEST(direct_a_new_space_maps_its_own),
		UNIT_TEST(a_cpu_moves_between_any_two_steps),
		UNIT_TEST(direct_a_cpu_moves),
		UNIT_TEST(a_cpu_moves_before_it_starts),
		UNIT_TEST(direct_a_cpu_moves_before_it_starts),
		UNIT_TEST(a_cpu_waits_for_its_clock),
		UNIT_TEST(direct_a_cpu_waits_for_its_clock),
		UNIT_TEST(a_guest_is_stepped_through),
		UNIT_TEST(a_step_out_of_the_segments_ends_the_machine),
		UNIT_TEST(a_debugger_asks_for_what_is_wrong),
		UNIT_TEST(direct_wrong_requests),
		UNIT_TEST(a_word_is_watched),
		UNIT_TEST(direct_a_word_is_watched),
		UNIT_END
	};
	char path[4096], *slash;

	(void)argc;
	/* build/tests/unit/monitor_engine -> build/vmp-monitor */
	snprintf(path, sizeof path - 32, "%s", argv[0]);
	for (int i = 0; i < 3; i++)
		if ((slash = strrchr(path, '/')))
			*slash = 0;
	strcat(path, "/vmp-monitor");
	monitor_path = path;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return UNIT_RUN("the ptrace engine", tests);
}
