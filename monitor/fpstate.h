/* fpstate.h - the FPU and vector registers of a stopped, traced process as bytes.
 *
 * The host's own form (PTRACE_GETREGSET, NT_X86_XSTATE) depends on its processor: where a component lies, and which exist.
 * The form here does not: the 512 legacy bytes, then each component in use by number and size.  So it can be loaded
 * on any processor that has these components; another one is refused by name.
 */
#ifndef MONITOR_FPSTATE_H
#define MONITOR_FPSTATE_H

#include <sys/types.h>
#include "base/types.h"

enum {
	FPSTATE_VERSION = 1,
	FPSTATE_MAX_BYTES = 3072,
	FPSTATE_LEGACY_AT = 8,	 /* where the legacy bytes stand in it */
	XSAVE_MAX_BYTES = 16384, /* the host's form, with all that any processor has today */
	XSAVE_COMPONENTS = 8,	 /* what a guest can have: up to AVX-512 (vcpu/cpuid.c) */
};

/* Where this processor keeps each component: bytes 0 = it has not got it. */
struct xsave_layout { uint32_t offset[XSAVE_COMPONENTS], bytes[XSAVE_COMPONENTS]; };
void fpstate_layout(struct xsave_layout *layout);

/* Pure: from the host's form (`bytes` of it) into `to` (FPSTATE_MAX_BYTES): bytes written, or -EINVAL. */
int fpstate_pack(const struct xsave_layout *layout, const uint8_t *xsave, size_t bytes, uint8_t *to);
/* Pure: of a processor that has not run yet: bytes written. */
int fpstate_at_reset(uint8_t *to);
/* Pure: into the host's form, whose area holds what the processor had. 0, or -1 with the reason in `why`. */
int fpstate_unpack(const struct xsave_layout *layout, const uint8_t *from, size_t bytes, uint8_t *xsave, size_t xsave_bytes,
		   char *why, size_t why_bytes);

/* Of a process stopped by ptrace. save: bytes written, or -errno. load: 0, or -1 with the reason. */
int fpstate_save(pid_t pid, uint8_t *to);
int fpstate_load(pid_t pid, const uint8_t *from, size_t bytes, char *why, size_t why_bytes);

#endif
