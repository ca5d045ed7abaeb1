/* monitor_engine.c - both engines with a guest of one page (monitor_guest.S); this test replaces
 * the daemon.
 *
 * Checks the paths that need no kernel: segments, markers, paging, user mode, system calls in both
 * ways, wild pointers and jumps that are caught at the segment limit, exceptions.  Then the deaths:
 * a triple fault, and a VM process that is killed; and attacks.  Moves are in monitor_moves.c, a
 * debugger's requests in monitor_debug.c, the machine in monitor_machine.c.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "tests/unit/monitor_machine.h"
#include "vmproc/direct.h"
#include "vmproc/vmproc.h"

static void each_step_of_the_guest(void)
{
	struct machine t;

	machine_start(&t, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	CU_ASSERT(machine_play(&t, true));
	CU_ASSERT_EQUAL(t.end.reason, END_POWEROFF);
	for (unsigned step = 0; step < STEPS; step++)
		if (!(t.end.status >> step & 1))
			fprintf(stderr, "step %u of the guest failed (%s)\n", step, t.why);
	CU_ASSERT_EQUAL(t.end.status, (1u << STEPS) - 1);
	CU_ASSERT_STRING_EQUAL(t.log, "hello from the guest\n");
	machine_stop(&t);
}

static void a_triple_fault_ends_the_machine(void)
{
	static const uint8_t code[] = { 0x0f, 0x0b }; /* ud2 without an IDT */
	struct machine t;

	machine_start(&t, code, sizeof code);
	CU_ASSERT(machine_play(&t, true));
	CU_ASSERT_EQUAL(t.end.reason, END_GUEST_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "triple fault"));
	machine_stop(&t);
}

static void host_system_calls_are_refused(void)
{
	/* ljmp $0x33, next; next: mov $39, %eax; syscall: getpid in the host's 64-bit mode */
	static const uint8_t code[] = { 0xea, 7, 0, 0x10, 0,	0x33, 0,    0xb8,
					39,   0, 0, 0,	  0x0f, 0x05, 0xeb, 0xfe };
	struct machine t;

	machine_start(&t, code, sizeof code);
	CU_ASSERT(machine_play(&t, true));
	CU_ASSERT_EQUAL(t.end.reason, END_GUEST_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "host system call 39"));
	machine_stop(&t);
}

/* Starts a machine, and waits until it has a VM process, which has run for so long. */
static void start_and_run(struct machine *t, const void *code, size_t bytes, useconds_t us)
{
	machine_start(t, code, bytes);
	CU_ASSERT(machine_play(t, false));
	t->shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(t->shm, 0, POST_START);
	while (!t->shm->vm_pid[0][0])
		usleep(1000);
	usleep(us);
}

static void a_killed_vm_process_is_named(void)
{
	static const uint8_t code[] = { 0xeb, 0xfe };
	struct machine t;

	start_and_run(&t, code, sizeof code, 50000);
	if (direct) /* in the middle of an emulated instruction, so to speak */
		atomic_store(&t.shm->slot[0].pin[1], 5 + 1);
	kill(t.shm->vm_pid[0][0], SIGKILL);
	CU_ASSERT(machine_play(&t, true));
	CU_ASSERT_EQUAL(atomic_load(&t.shm->slot[0].pin[1]), 0);
	CU_ASSERT_EQUAL(t.shm->vm_pid[0][0], 0); /* nobody kicks who gets its number */
	CU_ASSERT_EQUAL(t.end.reason, END_PART_DIED);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "VM process of CPU 0"));
	machine_stop(&t);
}

/* Between a stop's report and the reading of its cause, too, a VM process may be killed. */
static void a_vm_process_killed_at_a_stop_is_named(void)
{
	static const uint8_t code[] = { 0x0f, 0x20, 0xc0, 0xeb, 0xfb }; /* mov %cr0, %eax; jmp */
	struct machine t;

	for (unsigned i = 0; i < 60; i++) {
		start_and_run(&t, code, sizeof code, 3000 + 37 * i);
		kill(t.shm->vm_pid[0][0], SIGKILL);
		CU_ASSERT(machine_play(&t, true));
		CU_ASSERT_EQUAL(t.end.reason, END_PART_DIED);
		if (!strstr(t.why, "VM process of CPU 0"))
			CU_FAIL(t.why);
		machine_stop(&t);
	}
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
	machine_start(&t, attack_start, (size_t)(attack_end - attack_start));
	done = (const volatile uint32_t *)(t.ram + ATTACK_DONE);
	CU_ASSERT(machine_play(&t, false));
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
	machine_stop(&t);
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

	machine_start(&t, store_start, (size_t)(store_end - store_start));
	frame = t.ram + ((size_t)STORE_FRAME << PAGE_BITS);
	CU_ASSERT(machine_play(&t, true));
	memcpy(&written, frame + STORE_LIST + STORE_RESULT, sizeof written);
	CU_ASSERT_EQUAL(written, 0);
	CU_ASSERT_EQUAL(t.end.reason, END_GUEST_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "guest code left its segments: code segment 33"));
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "(signal 5)"));
	machine_stop(&t);
}

static void direct_each_step_of_the_guest(void) { on_the_direct_engine(each_step_of_the_guest); }
static void direct_triple_fault(void) { on_the_direct_engine(a_triple_fault_ends_the_machine); }
static void direct_host_system_calls(void) { on_the_direct_engine(host_system_calls_are_refused); }
static void direct_killed_vm_process(void) { on_the_direct_engine(a_killed_vm_process_is_named); }

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_step_of_the_guest),
		UNIT_TEST(a_triple_fault_ends_the_machine),
		UNIT_TEST(host_system_calls_are_refused),
		UNIT_TEST(a_killed_vm_process_is_named),
		UNIT_TEST(a_vm_process_killed_at_a_stop_is_named),
		UNIT_TEST(the_stub_writes_into_no_guest_page),
		UNIT_TEST(direct_each_step_of_the_guest),
		UNIT_TEST(direct_triple_fault),
		UNIT_TEST(direct_host_system_calls),
		UNIT_TEST(direct_killed_vm_process),
		UNIT_TEST(direct_a_new_space_maps_its_own),
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
	machine_monitor = path;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return UNIT_RUN("the ptrace engine", tests, tests_of_moves, tests_of_debugger);
}
