/* direct_space.c - passing the virtual CPU from one VM process to another, when the guest loads
 * a CR3 that belongs to another host address space, or a program goes to the bare one and comes
 * back (direct_bare.c); and what the receiving process updates: mappings (vcpu/spaces.h),
 * registers in the signal frame, and descriptors.
 *
 * It costs two futex calls and the host's change of address space.  The CPU changes hands in the
 * middle of a signal handler, where struct vcpu holds all registers but the FPU's; the receiving
 * process continues in its own handler, where it slept.
 *
 * TLS descriptors are expensive (the host's only call for them is an i386 one) and mostly
 * correct already.  The guest kernel loads those of the next task just after CR3, and this space
 * had the same ones.  So they are updated only when user code is about to run, or when a
 * selector in use would not load.
 */
#include <linux/futex.h>
#include "vmproc/direct_env.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

/* --- FPU -------------------------------------------------------------------------------------- */

/* The signal frame's FPU area; the legacy part's last 48 bytes are the host's own. */
enum {
	XSAVE_LEGACY_BYTES = 512, XSAVE_SOFTWARE_AT = 464,
	SOFTWARE_SIZE_AT = XSAVE_SOFTWARE_AT + 16,
};

void direct_fpu_size(void)
{
	uint32_t bytes = *(uint32_t *)(direct.fpu + SOFTWARE_SIZE_AT);

	direct.shared->xsave_bytes = bytes < DIRECT_XSAVE_BYTES ? bytes : DIRECT_XSAVE_BYTES;
}

void direct_fpu_take(uint8_t *frame)
{
	const uint64_t pkru = 1 << 9;
	uint64_t present;

	direct.fpu = frame;
	if (*(uint32_t *)(frame + SOFTWARE_SIZE_AT) <= XSAVE_LEGACY_BYTES)
		return; /* there is no such register */
	__builtin_memcpy(&present, frame + XSAVE_LEGACY_BYTES, sizeof present);
	if (!(present & pkru))
		return;
	present &= ~pkru;
	__builtin_memcpy(frame + XSAVE_LEGACY_BYTES, &present, sizeof present);
}

void direct_fpu_copy(uint8_t *xsave)
{
	const uint8_t *from = direct.fpu_away ? direct.shared->xsave : direct.fpu;

	if (from)
		__builtin_memcpy(xsave, from, direct.shared->xsave_bytes);
	else
		__asm__ volatile("xsave64 (%0)" : : "r"(xsave), "a"(-1), "d"(-1) : "memory");
}

void direct_fpu_out(void)
{
	if (!direct.fpu_away)
		direct_fpu_copy(direct.shared->xsave);
}

void direct_fpu_in(void)
{
	direct.fpu_away = false;
	if (!direct.fpu) {
		__asm__ volatile("xrstor %0" : : "m"(direct.shared->xsave), "a"(-1), "d"(-1));
		return;
	}
	__builtin_memcpy(direct.fpu, direct.shared->xsave, XSAVE_SOFTWARE_AT);
	__builtin_memcpy(direct.fpu + XSAVE_LEGACY_BYTES, direct.shared->xsave + XSAVE_LEGACY_BYTES,
			 direct.shared->xsave_bytes - XSAVE_LEGACY_BYTES);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Write a descriptor to the host's tables.  A TLS entry needs set_thread_area, which only i386 has,
 * with its argument below 4 GiB; the others are in the LDT. (TRICKS: tls-call) */
static void give_descriptor(const struct user_desc *d, bool tls)
{
	struct user_desc *low = (struct user_desc *)DIRECT_TLS_ARGUMENT;
	struct stub_page *stub = (struct stub_page *)STUB_PAGE_ADDRESS;
	long result;

	if (!tls) {
		stub->descriptor = direct_is_bare() ? direct_bare_descriptor(*d) : *d;
		host_call(__NR_modify_ldt, 0x11, (long)&stub->descriptor, sizeof *d, 0, 0, 0);
		return;
	}
	if (direct_is_bare())
		direct_bare_window(true);
	*low = *d;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(243L), "b"(low)
			 : "memory", "r8", "r9", "r10", "r11");
	if (direct_is_bare())
		direct_bare_window(false);
}

static bool is_given(unsigned index)
{
	return direct.given_entries >> index & 1 &&
	       !__builtin_memcmp(&direct.given[index], &direct.shared->segment[index],
				 sizeof direct.given[index]);
}

static void give_this(const struct user_desc *d)
{
	unsigned index = d->entry_number;

	direct.given[index] = *d;
	direct.given_entries |= 1u << index;
	give_descriptor(d, vmproc_is_tls(index));
}

static void give(unsigned index)
{
	if (direct.shared->segments >> index & 1 && !is_given(index))
		give_this(&direct.shared->segment[index]);
}

static void look_for_stale_tls(void)
{
	direct.tls_stale = false;
	for (unsigned i = VMP_GDT_TLS_MIN; i < VMP_GDT_TLS_MIN + VMPROC_TLS_ENTRIES; i++)
		direct.tls_stale |= direct.shared->segments >> i & 1 && !is_given(i);
}

void direct_segment_changed(unsigned index, const struct vcpu_segment *s)
{
	struct user_desc d;
	bool tls;

	if (!vmproc_descriptor(index, s, &d, &tls))
		return;
	direct.shared->segment[index] = d;
	direct.shared->segments |= 1u << index;
	/* an idle processor empties them, and mostly the same program goes on after it
	 * (TRICKS: late-tls) */
	if (!tls || !d.seg_not_present)
		give(index);
	if (tls)
		look_for_stale_tls();
}

static bool loads_here(unsigned index)
{
	return direct.given_entries >> index & 1 && !direct.given[index].seg_not_present;
}

/* Update the entry of a selector in use, so that it can be loaded here.  A processor that has it
 * loaded does not notice when its entry is removed. (TRICKS: late-tls) */
static void make_loadable(unsigned index)
{
	if (!loads_here(index))
		give(index);
	if (!loads_here(index))
		give_this(
			&(struct user_desc){ .entry_number = index, .seg_32bit = 1, .useable = 1 });
}

/* Update the segments after the CPU has arrived from another process. */
static void catch_up_segments(void)
{
	for (unsigned i = 0; i < VMP_GDT_ENTRIES; i++)
		if (!vmproc_is_tls(i))
			give(i);
	look_for_stale_tls();
}

/* Update the TLS entries before user code runs, which can see them. (TRICKS: late-tls) */
static void settle_tls(struct vcpu *v)
{
	for (unsigned i = VMP_GDT_TLS_MIN; i < VMP_GDT_TLS_MIN + VMPROC_TLS_ENTRIES; i++)
		give(i);
	for (unsigned i = 0; i < SEG_COUNT; i++)
		if (vmproc_is_tls(v->seg[i] >> 3)) {
			v->seg[i] = loads_here(v->seg[i] >> 3) ? v->seg[i] : 0;
			direct.entered_with[i] = UINT16_MAX; /* load it again */
		}
	direct.tls_stale = false;
}

/* (TRICKS: host-selector) */
void direct_settle_segments(struct vcpu *v)
{
	if (direct.tls_stale && v->cpl == 3)
		settle_tls(v);
	for (unsigned i = 0; i < SEG_COUNT; i++) {
		unsigned index = v->seg[i] >> 3;

		if (v->seg[i] == direct.entered_with[i])
			continue;
		if (vmproc_is_tls(index))
			make_loadable(index);
		else if (index && !loads_here(index) && i != SEG_CS &&
			 i != SEG_SS) /* one of the host's own */
			v->seg[i] = 0;
	}
}

/* --- passing the CPU on ----------------------------------------------------------------------- */

void direct_wait_for_cpu(void)
{
	_Atomic uint32_t *mine = &direct.shared->has_cpu[direct.number];

	while (!atomic_load(mine))
		host_call(__NR_futex, (long)mine, FUTEX_WAIT, 0, 0, 0, 0);
	direct.time_mark = __builtin_ia32_rdtsc();
	direct.time_kind = TIME_EMULATION;
}

/* (TRICKS: whose-state) */
void direct_take_cpu(void)
{
	direct_fpu_in();
	catch_up_segments();
}

static void pass_cpu(unsigned to)
{
	struct direct_shared *s = direct.shared;

	direct_fpu_out();
	direct_time_switch(TIME_EMULATION);
	if (to == DIRECT_BARE_SPACE || direct_is_bare())
		direct_disarm_timer(); /* it would wake this process at every tick */
	atomic_store(&direct.slot->space, to);
	atomic_store(&s->has_cpu[direct.number], 0);
	atomic_store(&s->has_cpu[to], 1);
	host_call(__NR_futex, (long)&s->has_cpu[to], FUTEX_WAKE, 1, 0, 0, 0);
	direct_wait_for_cpu();
	direct_take_cpu();
}

static unsigned wanted_space(const struct vcpu *v)
{
	return direct_bare_wanted(v)
		? DIRECT_BARE_SPACE : spaces_wanted(&direct.shared->spaces, v->cr3);
}

bool direct_is_in_place(const struct vcpu *v) { return wanted_space(v) == direct.number; }

/* Start the VM process of a space.  If that fails, the CPU uses the first space instead, or no
 * bare one. */
static void start_space(struct direct_shared *s, unsigned wanted)
{
	if ((s->started | s->refused) >> wanted & 1)
		return;
	if (direct_call(DIRECT_NEW_SPACE, wanted, 0, 0, 0) == 0) {
		s->started |= 1u << wanted;
		return;
	}
	s->refused |= 1u << wanted;
	if (wanted != DIRECT_BARE_SPACE)
		s->spaces.n = 1;
}

void direct_enter_space(struct vcpu *v)
{
	struct direct_shared *s = direct.shared;

	start_space(s, wanted_space(v));
	if (!direct_is_in_place(v))
		pass_cpu(wanted_space(v));
	spaces_enter(&s->spaces, &direct.space, v);
	if (direct.strict && v->cpl == 3)
		direct_user_enter_space(v);
}
