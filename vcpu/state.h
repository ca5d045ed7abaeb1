/* state.h - the serialised state of a virtual CPU, for snapshots and for moving it to another
 * host: flat, versioned, of one size, with a checksum at the end.  state.def lists the fields.
 *
 * Rules of use:
 *  - The CPU is at an instruction boundary and alive; interrupts posted outside it have been
 *    collected.
 *  - Not included: state that the host keeps (FPU and vector registers: monitor/fpstate.h) and
 *    state that follows from guest memory (the host's descriptors and mappings:
 *    vcpu_state_rebuild()).
 */
#ifndef VCPU_STATE_H
#define VCPU_STATE_H

#include "vcpu/vcpu.h"

enum {
	VCPU_STATE_VERSION = 5,
	VCPU_STATE_HEAD = 8, /* magic, version, bytes */
	VCPU_STATE_BYTES = 429,
};

enum vcpu_state_fault {
	VCPU_STATE_GOOD,
	VCPU_STATE_FOREIGN,	/* not the state of a CPU */
	VCPU_STATE_VERSIONED,	/* of another version */
	VCPU_STATE_CUT,		/* too short, or too long */
	VCPU_STATE_DAMAGED,	/* the checksum does not fit, or a value is impossible */
	VCPU_STATE_MISPLACED,	/* of another CPU number, number of CPUs or size of RAM */
};

/* Writes VCPU_STATE_BYTES bytes. */
void vcpu_state_save(const struct vcpu *v, void *to);

/* `v` is initialised (vcpu_init). Nothing changes unless the result is VCPU_STATE_GOOD. */
enum vcpu_state_fault vcpu_state_load(struct vcpu *v, const void *from, uint32_t bytes);
/* Load from a struct vcpu that another process, which has this CPU, can write: `from` is copied
 * once, then checked.  Fields outside state.def are taken too, within their limits; env stays.
 * Returns GOOD; or DAMAGED or MISPLACED, and nothing changes. */
enum vcpu_state_fault vcpu_state_take(struct vcpu *v, const volatile struct vcpu *from);
/* Return the words for an error message: "is damaged", ... */
const char *vcpu_state_fault_text(enum vcpu_state_fault fault);

/* Called after a load, once guest memory can be read: the engine drops all mappings and is
 * notified of every descriptor. */
void vcpu_state_rebuild(struct vcpu *v);

/* CRC-32 (IEEE 802.3, as zlib's); `crc` is 0 or the result for the bytes before. */
uint32_t vcpu_crc32(uint32_t crc, const void *bytes, uint32_t count);

#endif
