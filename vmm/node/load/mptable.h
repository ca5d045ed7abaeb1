/* mptable.h - the table by which Linux finds processors and I/O APIC (Intel MultiProcessor Specification 1.4): pure. */
#ifndef VMM_NODE_LOAD_MPTABLE_H
#define VMM_NODE_LOAD_MPTABLE_H

#include "base/types.h"

enum { MPTABLE_ROOM = 1024 };

/* Write the table as it stands at VMP_MP_TABLE_GPA; returns its bytes, at most MPTABLE_ROOM. CPU n has APIC id n; the
 * I/O APIC's id is n_cpus; ISA line n is its pin n. */
uint32_t mptable_build(void *table, unsigned n_cpus);

#endif
