/* fpregs.h - converts the FPU's and SSE's registers between a debugger's form and the first 512
 * bytes of an XSAVE area.
 *
 * Pure.  Source: SDM 1, 10.5.1 (the FXSAVE area), 8.1.7 (the tag word, of which the area keeps
 * "empty" alone).
 */
#ifndef MONITOR_FPREGS_H
#define MONITOR_FPREGS_H

#include "base/wire.h"

void fpregs_get(const uint8_t *area, struct debug_registers *r);
/* Set the registers; the fields about the last FPU instruction keep their values. */
void fpregs_set(uint8_t *area, const struct debug_registers *r);
/* True if both have the same values of the registers that fpregs_set() sets. */
bool fpregs_same(const struct debug_registers *a, const struct debug_registers *b);

#endif
