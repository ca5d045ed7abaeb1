/* cpu_state.c - see cpu_state.h. */
#include "monitor/cpu_state.h"

#include <stdio.h>
#include <string.h>
#include "monitor/monitor.h"

#define MAGIC 0x75706d76u /* "vmpu" */

struct head { uint32_t magic; uint16_t version, started; uint32_t vcpu_bytes, fpu_bytes, crc; };
_Static_assert(sizeof(struct head) == CPU_STATE_HEAD, "layout");

int state_save(struct monitor *m, bool started, uint8_t *to)
{
	struct head head = { .magic = MAGIC, .version = CPU_STATE_VERSION, .started = started,
			     .vcpu_bytes = VCPU_STATE_BYTES };
	int fpu_bytes = process_fpu_save(m, to + sizeof head + VCPU_STATE_BYTES);

	if (fpu_bytes < 0)
		return fpu_bytes;
	head.fpu_bytes = fpu_bytes;
	vcpu_state_save(&m->vcpu, to + sizeof head);
	head.crc = vcpu_crc32(vcpu_crc32(0, &head, offsetof(struct head, crc)), to + sizeof head,
			      VCPU_STATE_BYTES + fpu_bytes);
	memcpy(to, &head, sizeof head);
	return (int)sizeof head + VCPU_STATE_BYTES + fpu_bytes;
}

static int refuse(char *why, size_t why_bytes, const char *reason)
{
	snprintf(why, why_bytes, "the state of a CPU %s", reason);
	return -1;
}

int state_check(const uint8_t *from, size_t bytes, char *why, size_t why_bytes)
{
	struct head head;

	if (bytes < sizeof head)
		return refuse(why, why_bytes, vcpu_state_fault_text(VCPU_STATE_CUT));
	memcpy(&head, from, sizeof head);
	if (head.magic != MAGIC)
		return refuse(why, why_bytes, vcpu_state_fault_text(VCPU_STATE_FOREIGN));
	if (head.version != CPU_STATE_VERSION || head.vcpu_bytes != VCPU_STATE_BYTES)
		return refuse(why, why_bytes, vcpu_state_fault_text(VCPU_STATE_VERSIONED));
	if (head.fpu_bytes != bytes - sizeof head - VCPU_STATE_BYTES ||
	    head.fpu_bytes > FPSTATE_MAX_BYTES)
		return refuse(why, why_bytes, vcpu_state_fault_text(VCPU_STATE_CUT));
	if (head.started > 1 ||
	    head.crc != vcpu_crc32(vcpu_crc32(0, &head, offsetof(struct head, crc)),
				   from + sizeof head, bytes - sizeof head))
		return refuse(why, why_bytes, vcpu_state_fault_text(VCPU_STATE_DAMAGED));
	return 0;
}

/* (TRICKS: selectors-as-held, told-of-its-host) */
int state_load(struct monitor *m, const uint8_t *from, size_t bytes, bool *started, char *why,
	       size_t why_bytes)
{
	const uint8_t *vcpu = from + CPU_STATE_HEAD, *fpu = vcpu + VCPU_STATE_BYTES;
	enum vcpu_state_fault fault;
	struct head head;
	struct vcpu loaded = m->vcpu;

	if (state_check(from, bytes, why, why_bytes))
		return -1;
	memcpy(&head, from, sizeof head);
	fault = vcpu_state_load(&loaded, vcpu, head.vcpu_bytes);
	if (fault)
		return refuse(why, why_bytes, vcpu_state_fault_text(fault));
	if (process_fpu_load(m, fpu, head.fpu_bytes, why, why_bytes))
		return -1;
	m->vcpu = loaded;
	if (head.started)
		apic_post(&m->vcpu.apic, VMP_HOST_VECTOR);
	m->state_came = true;
	*started = head.started;
	/* The selectors that this VM process has loaded are not the guest's: load all of them
	 * again, with their bases. */
	m->vm.regs.ds = m->vm.regs.es = m->vm.regs.fs = m->vm.regs.gs = UINT16_MAX;
	return 0;
}

void state_resume(struct monitor *m)
{
	if (m->direct_engine)
		m->direct_loaded = true; /* the VM process loads them */
	else
		vcpu_state_rebuild(&m->vcpu);
}
