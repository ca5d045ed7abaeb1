/* direct_user.c - --strict on the direct engine, the kernel process's part (user.h): it orders its
 * user process's mappings and runs the guest's programs there.
 *
 * The user process is stopped for certain from the moment when a byte has come through the report's
 * pipe.  All that stands in the report may be a lie of the program's; it is copied once, and
 * checked (user_take.c).
 */
#include <linux/mman.h>
#include <linux/signal.h>
#include <linux/time_types.h>
#include <asm/poll.h>
#include "vmproc/direct_env.h"
#include "vmproc/host.h"
#include "vmproc/user.h"
#include "vmproc/vmproc.h"

enum { EINTR = 4 };

static const struct user_report *const report = (const struct user_report *)USER_REPORT_ADDRESS;
static struct user_order *const order = (struct user_order *)USER_ORDER_ADDRESS;
#define TLS_ARGUMENT \
	((struct user_desc *)(USER_ORDER_ADDRESS + USER_MAILBOX_BYTES + \
			      (DIRECT_TLS_ARGUMENT - VMP_WINDOW)))

/* --- orders ----------------------------------------------------------------------------------- */

void direct_user_kick(void)
{
	if (direct.user.running)
		host_call(__NR_pidfd_send_signal, VMPROC_USER_FD, SIGUSR1, 0, 0, 0, 0);
}

/* Returns whether a report comes within a tenth of a second. */
static bool reports(void)
{
	struct pollfd report_pipe = { VMPROC_REPORT_FD, POLLIN, 0 };
	long n;

	do {
		struct __kernel_timespec moment = { 0, 100000000 }; /* the host writes to it */

		n = host_call(__NR_ppoll, (long)&report_pipe, 1, (long)&moment, 0, 8, 0);
	} while (n == -EINTR);
	return n;
}

/* How often a kick has found the process waiting for an order, or for a permit. */
static uint32_t waits(void) { return *(const volatile uint32_t *)&report->waited; }

/* A kick has been sent to the program.  Hostile code may wait for an order that does not come;
 * false: it does not stop, and the machine ends.
 *
 * A process that has its order and has not reported waits for no further one, nor for a permit.  A
 * kick may find it in front of those that it has not taken yet, but only once each.
 * (TRICKS: waits-without-report) */
static bool stops(void)
{
	enum { TRIES = 200, WAITS = 3 };
	uint32_t before = waits(), waited = 0;

	for (unsigned try = 0; try < TRIES && waited < WAITS; try++) {
		waited = waits() - before; /* before the pipe is looked at */
		if (reports())
			return true;
		direct_user_kick();
	}
	vcpu_kill(&direct.shared->vcpu, "a guest program's process does not stop");
	return false;
}

/* (TRICKS: stopped-by-pipe, even-and-odd) */
static void wait_for_report(void)
{
	uint8_t bytes[8], answer = direct.user.serial % 2 ? USER_ODD : USER_EVEN;
	long n;

	do
		n = host_call(__NR_read, VMPROC_REPORT_FD, (long)bytes, sizeof bytes, 0, 0, 0);
	while (n == -EINTR && (!direct.user.running || stops()));
	while (n == 0) /* it is dead; the monitor ends the machine and says how it died */
		host_call(__NR_ppoll, 0, 0, 0, 0, 8, 0);
	if (n > 1 || (n == 1 && bytes[0] != answer))
		vcpu_kill(&direct.shared->vcpu, "a guest program's process has reported twice");
}

/* Send the order, with a permit for each call, and wait until it is carried out.
 * (TRICKS: order-without-byte, calls-or-a-stop) */
static void send(bool run)
{
	uint8_t bytes[USER_CALLS + 1];
	long n = 0;

	if (direct.shared->vcpu.dead) {
		direct.user.calls = 0;
		return;
	}
	order->calls = direct.user.calls;
	order->run = run;
	atomic_store(&order->serial, ++direct.user.serial); /* before it is looked at */
	if (*(const volatile uint32_t *)&report->sleeps)
		bytes[n++] = USER_WAKE;
	for (; direct.user.calls; direct.user.calls--)
		bytes[n++] = USER_PERMIT;
	/* a full pipe wakes, too */
	if (n && host_call(__NR_write, VMPROC_ORDER_FD, (long)bytes, n, 0, 0, 0) != n &&
	    order->calls)
		vcpu_kill(&direct.shared->vcpu, "a guest program's process takes no permits");
	wait_for_report();
	if (!run && report->signal)
		vcpu_kill(&direct.shared->vcpu, "a guest program's process has not made an "
			  "order's calls (signal %u)", report->signal);
	if (report->failed)
		vcpu_kill(&direct.shared->vcpu, "the host cannot map a program's page: error %x",
			  (uint32_t)-report->failed);
}

static unsigned add_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			 uint64_t f)
{
	if (direct.user.calls == USER_CALLS)
		send(false);
	order->call[direct.user.calls] =
		(struct user_call){ (uint64_t)number, { a, b, c, d, e, f }, 0 };
	return direct.user.calls++;
}

static void map(void *ctx, gva_t gva, uint32_t bytes, gpa_t gpa, uint32_t rights)
{
	(void)ctx;
	add_call(__NR_mmap, gva, bytes,
		 PROT_READ | (rights & SHADOW_EXECUTE ? PROT_EXEC : 0) |
			 (rights & SHADOW_WRITE ? PROT_WRITE : 0),
		 MAP_SHARED | MAP_FIXED, VMPROC_RAM_FD, gpa);
	if (!direct.shared->many_hosts)
		return;
	send(false); /* only a mapping that exists can be registered */
	direct_pages_mapped(true, gva, bytes, gpa);
}

static void unmap(void *ctx, gva_t gva, uint32_t bytes)
{
	(void)ctx;
	add_call(__NR_munmap, gva, bytes, 0, 0, 0, 0);
}

/* --- descriptors ------------------------------------------------------------------------------ */

static bool is_given(unsigned index, const struct user_desc *d)
{
	return direct.user.given_entries >> index & 1 &&
	       !__builtin_memcmp(&direct.user.given[index], d, sizeof *d);
}

static void give_tls(const struct user_desc *d)
{
	if (direct.user.calls > USER_CALLS - 3)
		send(false);
	*TLS_ARGUMENT = *d;
	add_call(__NR_mprotect, VMP_WINDOW, PAGE_BYTES, PROT_READ, 0, 0, 0);
	add_call(USER_SET_THREAD_AREA, DIRECT_TLS_ARGUMENT, 0, 0, 0, 0, 0);
	add_call(__NR_mprotect, VMP_WINDOW, PAGE_BYTES, PROT_NONE, 0, 0, 0);
	/* the page holds one argument at a time */
	send(false);
}

static void give(unsigned index)
{
	struct user_desc d = direct.shared->segment[index];
	unsigned call;

	if (!(direct.shared->segments >> index & 1) || vmproc_kernel_needs(index) ||
	    is_given(index, &d))
		return;
	direct.user.given[index] = d;
	direct.user.given_entries |= 1u << index;
	if (vmproc_is_tls(index)) {
		give_tls(&d);
		return;
	}
	call = add_call(__NR_modify_ldt, 0x11, 0, sizeof d, 0, 0, 0);
	order->descriptor[call] = direct_bare_descriptor(d);
	order->call[call].argument[1] =
		USER_ORDER_ADDRESS + offsetof(struct user_order, descriptor[0]) + call * sizeof d;
}

/* True if a program can load this selector. */
static bool loads(uint16_t selector)
{
	unsigned index = selector >> 3;

	return index < VMP_GDT_ENTRIES && direct.user.given_entries >> index & 1 &&
	       !direct.user.given[index].seg_not_present &&
	       vmproc_is_tls(index) == !(selector & VMPROC_SEL_TABLE);
}

/* Give the program's process the guest's descriptors, and take from the program the selectors that
 * it cannot have. */
static void settle_segments(struct vcpu *v)
{
	for (unsigned i = 0; i < VMP_GDT_ENTRIES; i++)
		give(i);
	for (unsigned i = 0; i < SEG_COUNT; i++)
		if (i != SEG_CS && i != SEG_SS && v->seg[i] >> 3 && !loads(v->seg[i]))
			v->seg[i] = 0;
}

/* --- running ---------------------------------------------------------------------------------- */

static void write_registers(const struct vcpu *v)
{
	struct user_order *o = order;

	for (unsigned i = 0; i < ARRAY_LEN(o->gpr); i++)
		o->gpr[i] = v->gpr[i];
	o->rip = v->eip, o->rsp = v->gpr[ESP];
	o->rflags = (v->eflags & (DIRECT_FLAGS_NATIVE | EFLAGS_RF)) | EFLAGS_FIXED | EFLAGS_IF;
	if (direct.engine.stepping)
		o->rflags |= EFLAGS_TF;
	o->cs = vmproc_selector(v->seg[SEG_CS]), o->ss = vmproc_selector(v->seg[SEG_SS]);
	o->ds = vmproc_selector(v->seg[SEG_DS]), o->es = vmproc_selector(v->seg[SEG_ES]);
	o->fs = vmproc_selector(v->seg[SEG_FS]), o->gs = vmproc_selector(v->seg[SEG_GS]);
	o->xsave_bytes = direct.shared->xsave_bytes;
	direct_fpu_copy(o->xsave);
}

static void take_fpu(void)
{
	struct direct_shared *s = direct.shared;

	direct.fpu_away = true;
	__builtin_memcpy(s->xsave, report->xsave, s->xsave_bytes);
	user_take_xsave(s->xsave, direct.user.xcr0, direct.user.mxcsr_mask);
}

void direct_user_run(struct vcpu *v, struct engine_stop *s)
{
	struct direct_user *u = &direct.user;
	static struct user_report r;
	bool stepped = direct.engine.stepping;

	*s = (struct engine_stop){ .signal = SIGUSR1, .cs = VMP_SEL_USER_CS, .in_guest = true };
	settle_segments(v);
	write_registers(v);
	atomic_store(&u->running, 1);
	/* a kick before this has not stopped the program */
	if (atomic_load(&direct_kicked) || v->dead) {
		atomic_store(&u->running, 0);
		return;
	}
	send(true);
	atomic_store(&u->running, 0);
	if (v->dead)
		return;
	__builtin_memcpy(&r, (const void *)report, offsetof(struct user_report, waited));
	if (stepped) /* the flag is not the program's */
		r.rflags &= ~(uint64_t)EFLAGS_TF | (v->eflags & EFLAGS_TF);
	if (!user_take(&r, v, s))
		return;
	u->fs_base = r.fs_base, u->gs_base = r.gs_base;
	take_fpu();
}

void direct_user_bases(uint64_t *fs, uint64_t *gs)
{
	*fs = direct.user.fs_base, *gs = direct.user.gs_base;
}

void direct_user_enter_space(struct vcpu *v)
{
	spaces_enter(&direct.shared->spaces, &direct.user.space, v);
}

/* --- the start -------------------------------------------------------------------------------- */

static uint64_t host_xcr0(void)
{
	uint32_t low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

static uint32_t host_mxcsr_mask(void)
{
	enum { MASK_AT = 28, BEFORE_THERE_WERE_MASKS = 0xffbf };
	static uint8_t area[512] __attribute__((aligned(16)));
	uint32_t mask;

	__asm__ volatile("fxsave %0" : "+m"(area));
	__builtin_memcpy(&mask, area + MASK_AT, sizeof mask);
	return mask ? mask : BEFORE_THERE_WERE_MASKS;
}

void direct_user_init(void)
{
	struct direct_user *u = &direct.user;

	u->space = (struct space){ .shadow = direct.space.shadow, .bare = true };
	u->host = (struct shadow_host){ map, unmap, NULL };
	u->space.shadow.host = &u->host;
	u->space.shadow.entry = (uint32_t *)DIRECT_USER_SHADOW_ADDRESS;
	u->space.shadow.users = true;
	u->xcr0 = host_xcr0();
	u->mxcsr_mask = host_mxcsr_mask();
	wait_for_report(); /* it is in its jail */
}
