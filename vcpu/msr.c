/* msr.c - the few model-specific registers that the guest's processor has (SDM 4, chapter 2).
 * All others raise #GP, which Linux expects and survives (rdmsr_safe, or an exception-table
 * entry).
 */
#include "vcpu/internal.h"

enum {
	MSR_TSC = 0x10, MSR_PLATFORM_ID = 0x17, MSR_APIC_BASE = 0x1b, MSR_MICROCODE = 0x8b,
	MSR_MISC_ENABLE = 0x1a0, MSR_PAT = 0x277,
	APIC_BASE_BSP = 1 << 8, APIC_BASE_ENABLE = 1 << 11,
};

bool msr_read(struct vcpu *v, uint32_t msr, uint64_t *value)
{
	switch (msr) {
	case MSR_TSC: *value = v->env->tsc(v->env->ctx); return true;
	case MSR_APIC_BASE: *value = v->apic_base_msr; return true;
	case MSR_MISC_ENABLE: *value = v->misc_msr; return true;
	case MSR_PAT: *value = v->pat_msr; return true;
	case MSR_PLATFORM_ID:
	case MSR_MICROCODE: *value = 0; return true;
	default: return false;
	}
}

/* Each byte of the PAT is a memory type: 0, 1, 4, 5, 6 or 7. */
static bool pat_valid(uint64_t value)
{
	for (unsigned entry = 0; entry < 8; entry++) {
		unsigned type = value >> entry * 8 & 0xff;

		if (type > 7 || type == 2 || type == 3)
			return false;
	}
	return true;
}

/* The APIC stays where it is and is never switched off or to x2APIC mode. */
static bool apic_base_valid(const struct vcpu *v, uint64_t value)
{
	return (value & ~(uint64_t)APIC_BASE_BSP) == (v->apic_base_msr & ~(uint64_t)APIC_BASE_BSP);
}

bool msr_write(struct vcpu *v, uint32_t msr, uint64_t value)
{
	switch (msr) {
	case MSR_TSC: /* the counter belongs to the host: a write has no effect */
	case MSR_MICROCODE: return true;
	case MSR_APIC_BASE: return apic_base_valid(v, value);
	case MSR_MISC_ENABLE: v->misc_msr = value; return true;
	case MSR_PAT:
		if (!pat_valid(value))
			return false;
		v->pat_msr = value;
		return true;
	default: return false;
	}
}
