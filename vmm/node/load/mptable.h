/* mptable.h - the table by which Linux finds processors and I/O APIC (Intel MultiProcessor
 * Specification 1.4).  Pure. */
#ifndef VMM_NODE_LOAD_MPTABLE_H
#define VMM_NODE_LOAD_MPTABLE_H

#include "base/types.h"

enum { MPTABLE_ROOM = 1024 };

/* Writes the table for VMP_MP_TABLE_GPA. CPU n has APIC id n; the I/O APIC's id is n_cpus; ISA line
 * n is its pin n.  Returns its size in bytes, at most MPTABLE_ROOM. */
uint32_t mptable_build(void *table, unsigned n_cpus);

#endif
