/* cpu.c - fuzzes what a CPU is loaded from: its state as bytes (vcpu/state.c), a struct vcpu that
 * hostile code has written, and the form of the FPU's and vector registers (monitor/fpstate.c).
 *
 * A good state of each is kept.  Operations change bytes of it, correct the checksum, and load it.
 * Whatever is accepted is a CPU that can be saved, and loaded again as the same.
 */
#include <string.h>
#include "monitor/fpstate.h"
#include "tests/fuzz/fuzz.h"
#include "vcpu/state.h"

enum { RAM = 16 << 20, CPUS = 4 };
enum op { POKE_STATE, LOAD_STATE, POKE_VCPU, TAKE_VCPU, POKE_FPU, LOAD_FPU, LAYOUT, OPS };

static const struct vcpu_env env;
static struct { const uint8_t *at; size_t left; } w;
static uint8_t state[VCPU_STATE_BYTES], fpu[FPSTATE_MAX_BYTES];
static struct xsave_layout layout;

static uint32_t number(unsigned bytes)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < bytes && w.left; i++, w.left--)
		value |= (uint32_t)*w.at++ << 8 * i;
	return value;
}

/* Checks that the CPU could have run. */
static void check(const struct vcpu *v)
{
	uint8_t saved[VCPU_STATE_BYTES], again[VCPU_STATE_BYTES];
	static struct vcpu other;

	FUZZ_CHECK(v->cpl == 0 || v->cpl == 3);
	FUZZ_CHECK(v->env == &env && v->number == 1 && v->n_cpus == CPUS &&
		   v->ram_pages == RAM >> PAGE_BITS);
	vcpu_state_save(v, saved);
	vcpu_init(&other, 1, CPUS, RAM >> PAGE_BITS, &env);
	FUZZ_CHECK(vcpu_state_load(&other, saved, sizeof saved) == VCPU_STATE_GOOD);
	vcpu_state_save(&other, again);
	FUZZ_CHECK(!memcmp(saved, again, sizeof saved));
}

static void load_state(struct vcpu *v)
{
	uint32_t crc = vcpu_crc32(0, state, sizeof state - sizeof crc);
	struct vcpu before = *v;

	memcpy(state + sizeof state - sizeof crc, &crc, sizeof crc);
	if (vcpu_state_load(v, state, sizeof state) == VCPU_STATE_GOOD)
		check(v);
	else
		FUZZ_CHECK(!memcmp(v, &before, sizeof before));
}

static void take(struct vcpu *v, const struct vcpu *theirs)
{
	if (vcpu_state_take(v, theirs) == VCPU_STATE_GOOD) {
		check(v);
		FUZZ_CHECK((unsigned)v->dead <= VCPU_KILLED &&
			   memchr(v->dead_reason, 0, sizeof v->dead_reason));
	}
}

/* Nothing may be written behind the end of the host's form; the sanitizer checks that. */
static void load_fpu(size_t bytes)
{
	size_t room = 512 + 64 + number(2) % (XSAVE_MAX_BYTES - 576 + 1);
	uint8_t *xsave = calloc(1, room), *exact = malloc(bytes ? bytes : 1),
		packed[FPSTATE_MAX_BYTES];
	char why[200] = "";

	FUZZ_CHECK(xsave && exact);
	memcpy(exact, fpu, bytes);
	if (fpstate_unpack(&layout, exact, bytes, xsave, room, why, sizeof why))
		FUZZ_CHECK(why[0]);
	else
		FUZZ_CHECK(fpstate_pack(&layout, xsave, room, packed) <= (int)sizeof packed);
	free(xsave);
	free(exact);
}

/* Sets the layout that a processor reports: components one behind the other, or as the input
 * says. */
static void set_layout(void)
{
	unsigned n = number(1) % XSAVE_COMPONENTS;

	layout.offset[n] = number(2) % XSAVE_MAX_BYTES;
	layout.bytes[n] = number(2) % 1100;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vcpu v, theirs;
	int fpu_bytes;

	w.at = data;
	w.left = size;
	vcpu_init(&v, 1, CPUS, RAM >> PAGE_BITS, &env);
	vcpu_state_save(&v, state);
	theirs = v;
	memset(fpu, 0, sizeof fpu);
	fpu_bytes = fpstate_at_reset(fpu);
	layout = (struct xsave_layout){ .offset = { [2] = 576 }, .bytes = { [2] = 256 } };
	while (w.left)
		switch ((enum op)(number(1) % OPS)) {
		case POKE_STATE: state[number(2) % sizeof state] = (uint8_t)number(1); break;
		case LOAD_STATE: load_state(&v); break;
		case POKE_VCPU:
			((uint8_t *)&theirs)[number(2) % sizeof theirs] = (uint8_t)number(1);
			break;
		case TAKE_VCPU: take(&v, &theirs); break;
		case POKE_FPU: fpu[number(2) % 600] = (uint8_t)number(1); break;
		case LOAD_FPU:
			load_fpu(number(1) & 1 ? (size_t)fpu_bytes : number(2) % sizeof fpu);
			break;
		case LAYOUT: set_layout(); break;
		case OPS: break;
		}
	return 0;
}
