/* direct_bare.c - the bare host address space, for a program that computes for long without a
 * trap.  The guest kernel is not mapped there.
 *
 * In other spaces user data segments end where the guest kernel begins, so that no wild pointer
 * reaches it.  Such a segment slows the stack down (TRICKS: bare-space).  Here the kernel's half is
 * empty, and so is the CPU window.  Segments reach 4 GiB, and a wild pointer is a page fault.  The
 * price: each entry into the guest kernel passes the CPU to another process, and each return passes
 * it back.  So it pays only for programs that nothing but ticks interrupts (vcpu/computing.h).
 *
 * Every entry into the guest kernel stops the program: a system call's far call, which in other
 * spaces runs the window's code, finds no page.  The kernel's return to the program must be
 * noticed too: direct_bare_awaits().
 */
#include <linux/mman.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include "vmproc/direct_env.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

bool direct_bare_awaits(const struct vcpu *v)
{
	const struct direct_shared *s = direct.shared;

	return !direct.strict && (computing_is(&s->computing, v->cr3) || s->always_bare) &&
	       !(s->refused >> DIRECT_BARE_SPACE & 1) && !s->debug.attached;
}

bool direct_bare_wanted(const struct vcpu *v) { return v->cpl == 3 && direct_bare_awaits(v); }

void direct_bare_stopped(const struct vcpu *v, bool was_user, bool tick)
{
	struct computing *c = &direct.shared->computing;

	if (direct.strict)
		return;
	if (tick && was_user)
		computing_tick(c, v->cr3);
	else if (v->cpl == 0 && (was_user || direct_is_bare()))
		computing_trap(c, direct_is_bare());
}

static uint64_t host_tick_ns(void)
{
	struct __kernel_timespec resolution;

	if (host_call(__NR_clock_getres, CLOCK_MONOTONIC_COARSE, (long)&resolution, 0, 0, 0, 0) < 0)
		return 0;
	return resolution.tv_nsec;
}

long direct_bare_set_up(void)
{
	static struct cpu_window own;

	direct.host_tick_ns = host_tick_ns();
	direct.space.bare = true;
	direct.window = &own;
	host_call(__NR_munmap, VMP_STUB_SYSCALL, PAGE_BYTES, 0, 0, 0, 0);
	return host_call(__NR_mmap, VMP_WINDOW, PAGE_BYTES, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void direct_bare_window(bool open)
{
	host_call(__NR_mprotect, VMP_WINDOW, PAGE_BYTES, open ? PROT_READ | PROT_WRITE : PROT_NONE,
		  0, 0, 0);
}

/* Return the descriptor for the bare space: user data segments, which vmproc_descriptor() has
 * shortened, have their full length again. (TRICKS: bare-space) */
struct user_desc direct_bare_descriptor(struct user_desc d)
{
	if (d.limit_in_pages && d.limit == (VMP_USER_LIMIT - 1) >> PAGE_BITS)
		d.limit = UINT32_MAX >> PAGE_BITS;
	return d;
}
