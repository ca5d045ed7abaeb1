/* fpstate.c - see fpstate.h. The layout of an XSAVE area: SDM 1, 13.4. */
#include "monitor/fpstate.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum {
	LEGACY_BYTES = 512,
	XSAVE_HEADER_BYTES = 64,
	AT_XSTATE_BV = LEGACY_BYTES,
	AT_MXCSR = 24,
	AT_MXCSR_MASK = 28,
	AT_SOFTWARE = 464 /* the legacy bytes behind it are the host's, or unused */,
	XSAVE_LEAF = 0xd,
	LEGACY_COMPONENTS = 3,
	FIRST_EXTENDED = 2,
	MXCSR_ALWAYS = 0xffbf
};
#define MAGIC 0x75706676u /* "vfpu" */

struct head { uint32_t magic; uint16_t version, components; };
struct part { uint32_t component, bytes; };
_Static_assert(sizeof(struct head) == FPSTATE_LEGACY_AT, "the legacy bytes follow it");

static const char *const component_names[XSAVE_COMPONENTS] = {
	"x87", "SSE", "AVX", "MPX", "MPX", "AVX-512", "AVX-512", "AVX-512",
};

void fpstate_layout(struct xsave_layout *layout)
{
	uint32_t low = 0, high = 0, regs[4];

	memset(layout, 0, sizeof *layout);
	if (!__get_cpuid(1, &regs[0], &regs[1], &regs[2], &regs[3]) || !(regs[2] & bit_OSXSAVE))
		return;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	for (unsigned n = FIRST_EXTENDED; n < XSAVE_COMPONENTS; n++) {
		if (!(low >> n & 1))
			continue;
		__cpuid_count(XSAVE_LEAF, n, regs[0], regs[1], regs[2], regs[3]);
		layout->bytes[n] = regs[0];
		layout->offset[n] = regs[1];
	}
}

int fpstate_pack(const struct xsave_layout *layout, const uint8_t *xsave, size_t bytes, uint8_t *to)
{
	struct head head = { .magic = MAGIC, .version = FPSTATE_VERSION };
	uint8_t *at = to + sizeof head + AT_SOFTWARE;
	uint64_t in_use;

	if (bytes < LEGACY_BYTES + XSAVE_HEADER_BYTES)
		return -EINVAL;
	memcpy(&in_use, xsave + AT_XSTATE_BV, sizeof in_use);
	memcpy(to + sizeof head, xsave, AT_SOFTWARE);
	for (unsigned n = FIRST_EXTENDED; n < XSAVE_COMPONENTS; n++) {
		struct part part = { .component = n, .bytes = layout->bytes[n] };

		if (!(in_use >> n & 1))
			continue;
		if (!part.bytes || layout->offset[n] > bytes ||
		    part.bytes > bytes - layout->offset[n] ||
		    at + sizeof part + part.bytes > to + FPSTATE_MAX_BYTES)
			return -EINVAL;
		memcpy(at, &part, sizeof part);
		memcpy(at + sizeof part, xsave + layout->offset[n], part.bytes);
		at += sizeof part + part.bytes;
		head.components |= 1 << n;
	}
	memcpy(to, &head, sizeof head);
	return (int)(at - to);
}

/* Write the state after a reset: FINIT's control word and the initial MXCSR (SDM 1, 8.1.5 and
 * 10.2.3). */
int fpstate_at_reset(uint8_t *to)
{
	static const uint16_t control = 0x037f;
	static const uint32_t mxcsr = 0x1f80;
	struct xsave_layout legacy = { { 0 }, { 0 } };
	uint8_t xsave[LEGACY_BYTES + XSAVE_HEADER_BYTES] = { 0 };

	memcpy(xsave, &control, sizeof control);
	memcpy(xsave + AT_MXCSR, &mxcsr, sizeof mxcsr);
	return fpstate_pack(&legacy, xsave, sizeof xsave, to);
}

static int refuse(char *why, size_t why_bytes, const char *text, const char *what)
{
	snprintf(why, why_bytes, text, what);
	return -1;
}

/* Unpack one component.  Returns the bytes used, or -1. */
static int unpack_part(const struct xsave_layout *layout, const uint8_t *from, size_t bytes,
		       uint8_t *xsave, size_t xsave_bytes, uint64_t *in_use, char *why,
		       size_t why_bytes)
{
	struct part part;

	if (bytes < sizeof part)
		return refuse(why, why_bytes, "the FPU state is %s", "cut short");
	memcpy(&part, from, sizeof part);
	if (part.component < FIRST_EXTENDED || part.component >= XSAVE_COMPONENTS ||
	    *in_use >> part.component & 1 || part.bytes > bytes - sizeof part)
		return refuse(why, why_bytes, "the FPU state is %s", "damaged");
	if (layout->bytes[part.component] != part.bytes ||
	    layout->offset[part.component] > xsave_bytes ||
	    part.bytes > xsave_bytes - layout->offset[part.component])
		return refuse(why, why_bytes, "this processor has no %s, which the guest uses",
			      component_names[part.component]);
	memcpy(xsave + layout->offset[part.component], from + sizeof part, part.bytes);
	*in_use |= 1ull << part.component;
	return (int)(sizeof part + part.bytes);
}

int fpstate_unpack(const struct xsave_layout *layout, const uint8_t *from, size_t bytes,
		   uint8_t *xsave, size_t xsave_bytes, char *why, size_t why_bytes)
{
	uint64_t in_use = LEGACY_COMPONENTS;
	uint32_t mxcsr, mask;
	struct head head;
	size_t at = sizeof head + AT_SOFTWARE;
	int used;

	if (bytes < at || xsave_bytes < LEGACY_BYTES + XSAVE_HEADER_BYTES)
		return refuse(why, why_bytes, "the FPU state is %s", "cut short");
	memcpy(&head, from, sizeof head);
	if (head.magic != MAGIC || head.version != FPSTATE_VERSION)
		return refuse(why, why_bytes, "the FPU state is %s", "of another version of vmp");
	memcpy(&mask, xsave + AT_MXCSR_MASK, sizeof mask); /* the processor's own */
	memcpy(xsave, from + sizeof head, AT_SOFTWARE);
	memcpy(xsave + AT_MXCSR_MASK, &mask, sizeof mask);
	memcpy(&mxcsr, xsave + AT_MXCSR, sizeof mxcsr);
	if (mxcsr & ~(mask ? mask : MXCSR_ALWAYS))
		return refuse(why, why_bytes, "the FPU state is %s",
			      "damaged, or needs another processor");
	memset(xsave + LEGACY_BYTES, 0, XSAVE_HEADER_BYTES);
	for (; at < bytes; at += used) {
		used = unpack_part(layout, from + at, bytes - at, xsave, xsave_bytes, &in_use, why,
				   why_bytes);
		if (used < 0)
			return -1;
	}
	if ((in_use & ~(uint64_t)LEGACY_COMPONENTS) != head.components)
		return refuse(why, why_bytes, "the FPU state is %s", "cut short");
	memcpy(xsave + AT_XSTATE_BV, &in_use, sizeof in_use);
	return 0;
}

int fpstate_save(pid_t pid, uint8_t *to)
{
	static uint8_t xsave[XSAVE_MAX_BYTES];
	struct iovec area = { xsave, sizeof xsave };
	struct xsave_layout layout;

	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &area))
		return -errno;
	fpstate_layout(&layout);
	return fpstate_pack(&layout, xsave, area.iov_len, to);
}

int fpstate_load(pid_t pid, const uint8_t *from, size_t bytes, char *why, size_t why_bytes)
{
	static uint8_t xsave[XSAVE_MAX_BYTES];
	struct iovec area = { xsave, sizeof xsave };
	struct xsave_layout layout;

	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &area))
		return refuse(why, why_bytes, "the host gives no FPU state: %s", strerror(errno));
	fpstate_layout(&layout);
	if (fpstate_unpack(&layout, from, bytes, xsave, area.iov_len, why, why_bytes))
		return -1;
	if (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &area))
		return refuse(why, why_bytes, "the host refuses the FPU state: %s",
			      strerror(errno));
	return 0;
}
