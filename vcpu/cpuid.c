/* cpuid.c - the processor that the guest kernel sees: the host's, less the features that need
 * kernel-mode support on the host.
 *
 * A table holds masks for the host's answer.  Then a few leaves are rewritten: one core per package
 * whose APIC id is the CPU's number, XSAVE areas sized for the XCR0 that the guest may use.
 * Leaves and registers not in the table read 0.
 *
 * Shown: what runs natively without emulation.  Hidden: what needs control registers or
 * MSRs that do not exist here (VME, NX, SEP, MCE, MTRR, PAT, SMEP, SMAP, UMIP, PKU,
 * FSGSBASE, PCID, x2APIC, TSC-deadline, SYSCALL, LM, SVM, VMX, SPEC_CTRL, XSAVES, AMX), what
 * leaks the host's topology (HTT, RDPID, RDTSCP), and what may differ between hosts in mid-run
 * (HLE, RTM, invariant TSC).  PAE and its 36 bits are shown where RAM needs them.
 */
#include "vcpu/internal.h"

#define B(n) (1u << (n))
#define ALL 0xffffffffu

enum {
	MAX_BASIC = 0xd,
	XSAVE_LEAF = 0xd,
	XSAVE_LEGACY_BYTES = 576, /* x87 and SSE state, and the header */
};
#define EXTENDED 0x80000000u
#define MAX_EXTENDED 0x80000008u

/* Bits in leaf 1's EDX that AMD repeats in 0x80000001. */
#define EDX_COMMON \
	(B(0) /* FPU */ | B(2) /* DE */ | B(3) /* PSE */ | B(4) /* TSC */ | B(5) /* MSR */ | \
	 B(8) /* CX8 */ | B(9) /* APIC */ | B(13) /* PGE */ | B(15) /* CMOV */ | B(23) /* MMX */ | \
	 B(24) /* FXSR */)

struct policy {
	uint32_t leaf;
	bool subleaves; /* ECX selects one, and passes to the host */
	uint32_t mask[4], force[4]; /* eax ebx ecx edx */
};

static const struct policy policies[] = {
	{ 0x0, false, { 0, ALL, ALL, ALL }, { 0 } },
	{ 0x1, false,
	  { ALL, 0x0000ffff,
	    B(0) /* SSE3 */ | B(1) /* PCLMULQDQ */ | B(9) /* SSSE3 */ | B(12) /* FMA */ |
		    B(19) /* SSE4.1 */ | B(20) /* SSE4.2 */ | B(22) /* MOVBE */ |
		    B(23) /* POPCNT */ | B(25) /* AES */ | B(26) /* XSAVE */ | B(28) /* AVX */ |
		    B(29) /* F16C */ | B(30) /* RDRAND */,
	    EDX_COMMON | B(19) /* CLFLUSH */ | B(25) /* SSE */ | B(26) /* SSE2 */ },
	  { 0, 0, 0, EDX_COMMON & ~(B(23) | B(24) | B(15)) } },
	{ 0x2, false, { ALL, ALL, ALL, ALL }, { 0 } }, /* cache descriptors */
	{ 0x4, true, { 0x000003ff, ALL, ALL, ALL }, { 0 } }, /* caches, shared with nobody */
	{ 0x7, false,
	  { 0,
	    B(3) /* BMI1 */ | B(5) /* AVX2 */ | B(6) /* FDP_EXCPTN_ONLY */ | B(8) /* BMI2 */ |
		    B(9) /* ERMS */ | B(13) /* no FCS/FDS */ | B(16) /* AVX512F */ |
		    B(17) /* AVX512DQ */ | B(18) /* RDSEED */ | B(19) /* ADX */ |
		    B(21) /* AVX512_IFMA */ | B(23) /* CLFLUSHOPT */ | B(24) /* CLWB */ |
		    B(26) /* AVX512PF */ | B(27) /* AVX512ER */ | B(28) /* AVX512CD */ |
		    B(29) /* SHA */ | B(30) /* AVX512BW */ | B(31) /* AVX512VL */,
	    B(1) /* AVX512_VBMI */ | B(6) /* VBMI2 */ | B(8) /* GFNI */ | B(9) /* VAES */ |
		    B(10) /* VPCLMULQDQ */ | B(11) /* VNNI */ | B(12) /* BITALG */ |
		    B(14) /* VPOPCNTDQ */,
	    B(2) /* 4VNNIW */ | B(3) /* 4FMAPS */ | B(4) /* FSRM */ | B(8) /* VP2INTERSECT */ |
		    B(23) /* AVX512_FP16 */ },
	  { 0 } },
	{ XSAVE_LEAF, true, { ALL, ALL, ALL, ALL }, { 0 } }, /* see xsave_leaf() */
	{ EXTENDED, false, { 0, ALL, ALL, ALL }, { 0 } },
	{ EXTENDED + 1, false,
	  { ALL, ALL,
	    B(0) /* LAHF */ | B(5) /* LZCNT */ | B(6) /* SSE4A */ | B(7) /* misaligned SSE */ |
		    B(8) /* PREFETCHW */ | B(11) /* XOP */ | B(16) /* FMA4 */ | B(21) /* TBM */,
	    EDX_COMMON | B(22) /* MMXEXT */ | B(25) /* FFXSR */ | B(30) /* 3DNOWEXT */ |
		    B(31) /* 3DNOW */ },
	  { 0 } },
	{ EXTENDED + 2, false, { ALL, ALL, ALL, ALL }, { 0 } }, /* brand string */
	{ EXTENDED + 3, false, { ALL, ALL, ALL, ALL }, { 0 } },
	{ EXTENDED + 4, false, { ALL, ALL, ALL, ALL }, { 0 } },
	{ EXTENDED + 5, false, { ALL, ALL, ALL, ALL }, { 0 } }, /* caches and TLBs */
	{ EXTENDED + 6, false, { ALL, ALL, ALL, ALL }, { 0 } },
	{ EXTENDED + 8, false, { 0 }, { 32 | 32 << 8 } }, /* address widths */
};

static void host(const struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
	v->env->host_cpuid(v->env->ctx, leaf, subleaf, out);
}

/* Return the XCR0 bits that the guest may set: the host's without MPX (3, 4), PKU (9), AMX (17,
 * 18) and all components that are not defined yet. */
uint64_t cpuid_xcr0_allowed(const struct vcpu *v)
{
	return v->env->host_xcr0(v->env->ctx) & 0xe7;
}

/* Bytes of an XSAVE area that holds `components`; compacted: packed, some aligned to 64 (SDM 1,
 * 13.4). */
static uint32_t xsave_bytes(const struct vcpu *v, uint64_t components, bool compacted)
{
	/* size, offset, flags (bit 1: aligned when compacted) */
	uint32_t end = XSAVE_LEGACY_BYTES, part[4];

	for (uint32_t n = 2; n < 63; n++) {
		uint32_t start;

		if (!(components >> n & 1))
			continue;
		host(v, XSAVE_LEAF, n, part);
		start = compacted ? (part[2] & 2 ? (end + 63) & ~63u : end) : part[1];
		if (start + part[0] > end)
			end = start + part[0];
	}
	return end;
}

static void xsave_leaf(const struct vcpu *v, uint32_t subleaf, uint32_t out[4])
{
	uint64_t allowed = cpuid_xcr0_allowed(v);

	if (subleaf == 0) {
		out[0] = (uint32_t)allowed;
		out[1] = xsave_bytes(v, v->xcr0, false);
		out[2] = xsave_bytes(v, allowed, false);
		out[3] = (uint32_t)(allowed >> 32);
	} else if (subleaf == 1) {
		out[0] &= B(0) /* XSAVEOPT */ | B(1) /* XSAVEC */ | B(2) /* XGETBV with ECX 1 */;
		out[1] = out[0] & B(1) ? xsave_bytes(v, v->xcr0, true) : 0;
		out[2] = out[3] = 0;
	} else if (subleaf > 62 || !(allowed >> subleaf & 1)) {
		out[0] = out[1] = out[2] = out[3] = 0;
	}
}

/* Return the bit of PAE in EDX of leaf 1 and of AMD's 0x80000001. */
static uint32_t pae(const struct vcpu *v) { return ram_needs_pae(v->ram_pages) ? B(6) : 0; }

/* Rewrite the values that depend on the CPU or on other leaves. */
static void rewrite(const struct vcpu *v, uint32_t leaf, uint32_t subleaf, const uint32_t native[4],
		    uint32_t out[4])
{
	switch (leaf) {
	case 0x0:
		out[0] = native[0] < MAX_BASIC ? native[0] : MAX_BASIC;
		break;
	case 0x1:
		out[1] |= (uint32_t)v->number << 24 | 1 << 16; /* APIC id, one logical processor */
		out[3] |= pae(v);
		if ((out[2] & B(26)) && (v->cr4 & CR4_OSXSAVE))
			out[2] |= B(27);
		break;
	case 0x7:
		if (subleaf)
			out[1] = out[2] = out[3] = 0;
		break;
	case XSAVE_LEAF:
		xsave_leaf(v, subleaf, out);
		break;
	case EXTENDED:
		out[0] = native[0] < MAX_EXTENDED ? native[0] : MAX_EXTENDED;
		break;
	case EXTENDED + 1:
		out[3] |= native[3] & pae(v);
		break;
	case EXTENDED + 8:
		if (pae(v))
			out[0] = 36 | 32 << 8;
		break;
	}
}

static bool host_has(const struct vcpu *v, uint32_t leaf)
{
	uint32_t max[4];

	host(v, leaf & EXTENDED, 0, max);
	return leaf <= max[0] && (leaf & EXTENDED) == (max[0] & EXTENDED);
}

void vcpu_cpuid(struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
	const struct policy *p = policies;
	uint32_t native[4];

	while (p < policies + ARRAY_LEN(policies) && p->leaf != leaf)
		p++;
	out[0] = out[1] = out[2] = out[3] = 0;
	if (p == policies + ARRAY_LEN(policies) || !host_has(v, leaf))
		return;
	host(v, leaf, p->subleaves ? subleaf : 0, native);
	for (unsigned r = 0; r < 4; r++)
		out[r] = (native[r] & p->mask[r]) | p->force[r];
	rewrite(v, leaf, subleaf, native, out);
}
