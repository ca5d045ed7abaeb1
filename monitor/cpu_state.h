/* cpu_state.h - the serialised state of one CPU: the virtual CPU (vcpu/state.h) and the FPU and
 * vector registers of its VM process (fpstate.h), behind a header with a checksum.  It fits into
 * one message.
 *
 * Rules of use:
 *  - The CPU is at an instruction boundary: between two rounds of the trap loop, posts collected,
 *    no mapping queued.
 *  - state_load() is for a monitor whose CPU does not run. Its guest memory need not be there yet;
 *    state_resume() reads it, and must come before guest code runs.
 */
#ifndef MONITOR_CPU_STATE_H
#define MONITOR_CPU_STATE_H

#include "monitor/fpstate.h"
#include "vcpu/state.h"

struct monitor;

enum { CPU_STATE_VERSION = 1, CPU_STATE_HEAD = 20, CPU_STATE_MAX_BYTES = 4096 };
_Static_assert(CPU_STATE_HEAD + VCPU_STATE_BYTES + FPSTATE_MAX_BYTES <= CPU_STATE_MAX_BYTES,
	       "room");

/* Save the CPU.  Returns bytes written (at most CPU_STATE_MAX_BYTES), or -errno.  `started`: the
 * CPU has been started. */
int state_save(struct monitor *m, bool started, uint8_t *to);
/* Load the CPU.  Returns 0, or -1 with the reason in `why`; the virtual CPU is then unchanged. */
int state_load(struct monitor *m, const uint8_t *from, size_t bytes, bool *started, char *why,
	       size_t why_bytes);
void state_resume(struct monitor *m);

/* Pure: check that a state is complete and undamaged.  Returns 0, or -1 with the reason. */
int state_check(const uint8_t *from, size_t bytes, char *why, size_t why_bytes);

#endif
