/* hypercall.c - `call VMP_STUB_HYPERCALL` or `int $0x83` in guest kernel mode: number in EAX,
 * arguments in EBX, ECX, EDX (base/guest_abi.h).  Programs have one call of their own
 * (base/barrier.h). */
#include "vcpu/internal.h"

static void set_result(struct vcpu *v, int32_t result) { v->gpr[EAX] = (uint32_t)result; }

static void set_time(struct vcpu *v, uint64_t ns)
{
	v->gpr[EAX] = (uint32_t)ns;
	v->gpr[EDX] = (uint32_t)(ns >> 32);
}

static void hypercall_print(struct vcpu *v)
{
	gva_t gva = v->gpr[EBX];
	uint32_t left = v->gpr[ECX], cr2 = v->cr2, error;
	char text[256];

	if (left > PAGE_BYTES) {
		set_result(v, ERR_INVALID);
		return;
	}
	set_result(v, 0);
	while (left) {
		unsigned bytes = left < sizeof text ? left : sizeof text;

		if (vcpu_read(v, gva, text, bytes, false, &error)) {
			v->cr2 = cr2; /* the result is an error, not an exception */
			set_result(v, ERR_FAULT);
			return;
		}
		v->env->print(v->env->ctx, text, bytes);
		gva += bytes;
		left -= bytes;
	}
}

static void hypercall_clock(struct vcpu *v) { set_time(v, v->env->now_ns(v->env->ctx)); }
static void hypercall_wallclock(struct vcpu *v) { set_time(v, v->env->wallclock_ns(v->env->ctx)); }

static bool is_ram(const struct vcpu *v, gfn_t gfn) { return ram_has(v->ram_pages, gfn); }

static void hypercall_start_cpu(struct vcpu *v)
{
	uint32_t cpu = v->gpr[EBX], eip = v->gpr[ECX];

	if (cpu >= v->n_cpus || cpu == v->number || !is_ram(v, gpa_to_gfn(eip)))
		set_result(v, ERR_INVALID);
	else
		set_result(v, v->env->start_cpu(v->env->ctx, cpu, eip));
}

static void hypercall_gdt_changed(struct vcpu *v)
{
	segments_announce(v, v->gpr[EBX], v->gpr[ECX]);
	set_result(v, 0);
}

static void hypercall_exit(struct vcpu *v)
{
	if (v->gpr[EBX] > VMP_EXIT_PANIC) {
		set_result(v, ERR_INVALID);
		return;
	}
	v->env->machine_end(v->env->ctx, v->gpr[EBX], v->gpr[ECX]);
	set_result(v, 0);
}

void yield(struct vcpu *v) { v->env->yield(v->env->ctx, ++v->yields); }

static void hypercall_yield(struct vcpu *v)
{
	yield(v);
	set_result(v, 0);
}

/* Halt until the requested vector arrives.  A vector that no interrupt may have would never
 * arrive and is refused; and a CPU whose APIC accepts nothing yet does not halt.
 * (TRICKS: wait-by-vector) */
static void hypercall_wait(struct vcpu *v)
{
	if (v->gpr[EBX] < 16 || v->gpr[EBX] > 255) {
		set_result(v, ERR_INVALID);
		return;
	}
	if (!apic_is_enabled(&v->apic)) {
		hypercall_yield(v);
		return;
	}
	v->halted = true;
	v->awaited = (uint8_t)v->gpr[EBX];
	v->awaits_any = v->gpr[ECX];
	set_result(v, 0);
}

/* Nothing comes between the two steps: an interrupt that is requested ends the halt at once. */
static void hypercall_halt(struct vcpu *v)
{
	v->eflags |= EFLAGS_IF;
	vcpu_halt(v);
	set_result(v, 0);
}

static void hypercall_crowded(struct vcpu *v)
{
	v->env->crowded(v->env->ctx);
	set_result(v, 0);
}

static void hypercall_tsc_khz(struct vcpu *v) { v->gpr[EAX] = v->env->tsc_khz(v->env->ctx); }

static void hypercall_send_ipi(struct vcpu *v)
{
	uint32_t cpus = v->gpr[EBX], vector = v->gpr[ECX];
	uint32_t all = v->n_cpus >= 32 ? 0xffffffff : (1u << v->n_cpus) - 1;

	if (vector > 255 || (vector < 16 && vector != VECTOR_NMI)) {
		set_result(v, ERR_INVALID);
		return;
	}
	apic_send(v, cpus & all, (uint8_t)vector, vector == VECTOR_NMI);
	set_result(v, 0);
}

static void hypercall_flush_range(struct vcpu *v)
{
	v->env->flush_range(v->env->ctx, v->gpr[EBX], v->gpr[ECX]);
	set_result(v, 0);
}

/* The guest kernel counts on the new page tables, so it ends where a mov to CR3 would raise #GP. */
static void write_cr3(struct vcpu *v, uint32_t value)
{
	if (!system_write_cr3(v, value))
		vcpu_kill(v, "the page tables of cr3 %x have reserved bits", value);
	set_result(v, 0);
}

static void hypercall_write_cr3(struct vcpu *v) { write_cr3(v, v->gpr[EBX]); }

static void hypercall_reload_cr3(struct vcpu *v) { write_cr3(v, v->cr3); }

static void hypercall_apic_write(struct vcpu *v)
{
	if (v->gpr[EBX] >= PAGE_BYTES) {
		set_result(v, ERR_INVALID);
		return;
	}
	mmio_device_write(v, VMP_LAPIC_GPA + v->gpr[EBX], 4, v->gpr[ECX]);
	set_result(v, 0);
}

/* The frames of one call; a larger number would keep the CPU from its interrupts. */
enum { CLEAR_MOST = 1024 };

static void clear_frames(struct vcpu *v, gfn_t first, uint32_t count)
{
	v->env->fetch(v->env->ctx, first, count, true);
	for (gfn_t gfn = first; gfn < first + count; gfn++) {
		__builtin_memset(v->env->pin(v->env->ctx, gfn_to_gpa(gfn), true), 0, PAGE_BYTES);
		v->env->unpin(v->env->ctx, gfn_to_gpa(gfn));
	}
}

static void hypercall_clear_frames(struct vcpu *v)
{
	gfn_t first = v->gpr[EBX];
	uint32_t count = v->gpr[ECX];

	if (!count || count > CLEAR_MOST || !is_ram(v, first) || !is_ram(v, first + count - 1)) {
		set_result(v, ERR_INVALID);
		return;
	}
	for (uint32_t done = 0, n; done < count; done += n) {
		n = count - done < MAX_AHEAD ? count - done : MAX_AHEAD;
		clear_frames(v, first + done, n);
	}
	set_result(v, 0);
}

/* In pieces: a CPU that waits for a page of another host may hold no pin. */
static void hypercall_copy_frame(struct vcpu *v)
{
	gpa_t to = gfn_to_gpa(v->gpr[EBX]), from = gfn_to_gpa(v->gpr[ECX]);
	uint8_t piece[1024], *page;

	if (!is_ram(v, v->gpr[EBX]) || !is_ram(v, v->gpr[ECX])) {
		set_result(v, ERR_INVALID);
		return;
	}
	v->env->fetch(v->env->ctx, v->gpr[ECX], 1, false);
	v->env->fetch(v->env->ctx, v->gpr[EBX], 1, true);
	for (unsigned at = 0; at < PAGE_BYTES; at += sizeof piece) {
		page = v->env->pin(v->env->ctx, from, false);
		__builtin_memcpy(piece, page + at, sizeof piece);
		v->env->unpin(v->env->ctx, from);
		page = v->env->pin(v->env->ctx, to, true);
		__builtin_memcpy(page + at, piece, sizeof piece);
		v->env->unpin(v->env->ctx, to);
	}
	set_result(v, 0);
}

void hypercall_barrier(struct vcpu *v)
{
	struct barrier_call call = {
		.key = { v->cr3 >> PAGE_BITS, (uint64_t)v->gpr[EDI] << 32 | v->gpr[EBX] },
		.place = v->gpr[ECX] & ~(uint32_t)BARRIER_TELL, .tell = v->gpr[ECX] & BARRIER_TELL,
		.count = v->gpr[EDX], .sum = v->gpr[ESI],
	};

	set_result(v, barrier_call_is_sound(&call) ? v->env->barrier(v->env->ctx, &call) :
						     ERR_INVALID);
}

void hypercall(struct vcpu *v)
{
	static void (*const calls[VMP_HC_COUNT])(struct vcpu *) = {
		[VMP_HC_PRINT] = hypercall_print,
		[VMP_HC_CLOCK] = hypercall_clock,
		[VMP_HC_WALLCLOCK] = hypercall_wallclock,
		[VMP_HC_START_CPU] = hypercall_start_cpu,
		[VMP_HC_GDT_CHANGED] = hypercall_gdt_changed,
		[VMP_HC_EXIT] = hypercall_exit,
		[VMP_HC_YIELD] = hypercall_yield,
		[VMP_HC_TSC_KHZ] = hypercall_tsc_khz,
		[VMP_HC_SEND_IPI] = hypercall_send_ipi,
		[VMP_HC_FLUSH_RANGE] = hypercall_flush_range,
		[VMP_HC_WRITE_CR3] = hypercall_write_cr3,
		[VMP_HC_RELOAD_CR3] = hypercall_reload_cr3,
		[VMP_HC_WAIT] = hypercall_wait,
		[VMP_HC_APIC_WRITE] = hypercall_apic_write,
		[VMP_HC_CLEAR_FRAMES] = hypercall_clear_frames,
		[VMP_HC_COPY_FRAME] = hypercall_copy_frame,
		[VMP_HC_HALT] = hypercall_halt,
		[VMP_HC_CROWDED] = hypercall_crowded,
	};
	uint32_t number = v->gpr[EAX];

	if (number < VMP_HC_COUNT && calls[number])
		calls[number](v);
	else
		set_result(v, ERR_NO_CALL);
}
