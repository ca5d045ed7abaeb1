/* fpstate.h - the serialised FPU and vector registers of a stopped, traced process.
 *
 * The host's own form (PTRACE_GETREGSET, NT_X86_XSTATE) depends on its processor: which components
 * exist, and where they are.  The form here does not: the 512 legacy bytes, then each component in
 * use with number and size.  So it can be loaded on any processor that has these components; on
 * another one, loading fails and names the missing component.
 */
#ifndef MONITOR_FPSTATE_H
#define MONITOR_FPSTATE_H

#include <sys/types.h>
#include "base/types.h"

enum {
	FPSTATE_VERSION = 1,
	FPSTATE_MAX_BYTES = 3072,
	FPSTATE_LEGACY_AT = 8,	 /* offset of the legacy bytes in it */
	XSAVE_MAX_BYTES = 16384, /* the host's form, with all components of today's processors */
	XSAVE_COMPONENTS = 8,	 /* the components a guest can have: up to AVX-512 (vcpu/cpuid.c) */
};

/* Offset and size of each component on this processor; bytes 0: the processor lacks it. */
struct xsave_layout { uint32_t offset[XSAVE_COMPONENTS], bytes[XSAVE_COMPONENTS]; };
void fpstate_layout(struct xsave_layout *layout);

/* Pure: convert the host's form (`bytes` of it) into `to` (FPSTATE_MAX_BYTES).  Returns bytes
 * written, or -EINVAL. */
int fpstate_pack(const struct xsave_layout *layout, const uint8_t *xsave, size_t bytes,
		 uint8_t *to);
/* Pure: write the state of a processor that has not run yet.  Returns bytes written. */
int fpstate_at_reset(uint8_t *to);
/* Pure: convert into the host's form; components that `from` lacks keep their values there.
 * Returns 0, or -1 with the reason in `why`. */
int fpstate_unpack(const struct xsave_layout *layout, const uint8_t *from, size_t bytes,
		   uint8_t *xsave, size_t xsave_bytes, char *why, size_t why_bytes);

/* Save or load the registers of a process stopped by ptrace.  Returns bytes written, or -errno; 0,
 * or -1 with the reason. */
int fpstate_save(pid_t pid, uint8_t *to);
int fpstate_load(pid_t pid, const uint8_t *from, size_t bytes, char *why, size_t why_bytes);

#endif
