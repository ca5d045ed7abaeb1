/* vcpu_fake.h - a machine of arrays around one virtual CPU, for the unit tests of vcpu/.
 *
 * RAM is an array with a GDT, an IDT with a handler per vector, a TSS and identity page tables at
 * fixed places.  Every call to the environment is counted and remembered.  The rules of vcpu.h
 * about pins are asserted: at most one is held at a time, and nothing else is called meanwhile.
 */
#ifndef TESTS_UNIT_VCPU_FAKE_H
#define TESTS_UNIT_VCPU_FAKE_H

#include <string.h>

#include "tests/unit/unit.h"
#include "vcpu/vcpu.h"

enum {
	RAM_BYTES = 4 << 20,
	GDT = 0x1000,
	IDT = 0x2000,
	TSS = 0x3000,
	PAGE_DIR = 0x4000,
	PAGE_TABLE = 0x5000,
	CODE = 0x10000,
	KERNEL_STACK = 0x20000 /* its top */,
	USER_STACK = 0x30000,
	DATA = 0x40000,
	ENTRY_STACK = 0x50000, /* esp0 */
	HANDLERS = 0x60000, /* vector n is handled at HANDLERS + 16 n */
	DEVICE = 0xfec00000,
	TSS_BASE = TSS,
	SEL_TSS = VMP_GDT_TSS * 8,
	SEL_LDT = VMP_GDT_LDT * 8,
	/* odd entries, for the checks */
	GDT_ABSENT = 5,
	GDT_CODE_EXECUTE_ONLY = 26,
	GDT_READ_ONLY = 7,
	GDT_ABSENT_CODE = 8,
	GDT_CALL_GATE = 9,
	GDT_BASED_DATA = 10,
	GDT_CONFORMING = 11,
	GDT_ABSENT_TSS = 13,
	GDT_SMALL_CODE = 14,
	GDT_FREE = 15,
	BASED_AT = 0x1234,
};
enum { P = 1, W = 2, U = 4, A = 0x20, D = 0x40, PS = 0x80, G = 0x100 }; /* page table bits */

enum { FETCHES_MOST = 16 };
struct fake {
	struct vcpu v;
	struct vcpu_env env;
	uint8_t ram[RAM_BYTES];
	unsigned pins, pin_calls, write_pins, fetches;
	struct fake_fetch { gfn_t first; unsigned count; bool write; } fetched[FETCHES_MOST];
	/* calls, by kind, with the last arguments */
	unsigned flush_page, flush_all, switch_space, yields, crowds, prints, port_ins, port_outs,
		string_ins, string_outs;
	struct barrier_call barrier;
	int reached;
	unsigned segments_changed, starts, ends, sends, mmio_reads, mmio_writes;
	gva_t flushed;
	uint32_t flushed_pages, tsc_khz;
	bool kept_space;
	uint16_t port;
	unsigned size, count, end_why;
	uint32_t value, port_value, end_status, start_cpu, start_eip, sent_cpus;
	uint8_t sent_vector;
	bool sent_nmi;
	gpa_t mmio_gpa;
	uint32_t mmio_value;
	struct vcpu_segment segment[VMP_GDT_ENTRIES];
	/* what string input returns, in order; what string output wrote */
	uint8_t port_data[16384];
	unsigned port_data_at;
	char printed[512];
	unsigned printed_bytes;
	uint64_t now_ns, tsc, xcr0;
	/* a race: what another CPU does meanwhile */
	void (*on_pin)(struct fake *f, gpa_t gpa, bool write);
	void (*host_cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
};
extern struct fake fake;

/* Kernel mode, paging on, interrupts off, EIP at CODE, everything mapped identically (user too). */
void fake_reset(void);
void fake_user(void); /* then: CPL 3 on USER_STACK, interrupts on */
uint32_t ram32(gpa_t gpa);
uint16_t ram16(gpa_t gpa);
void set32(gpa_t gpa, uint32_t value);
void set_pte(gva_t gva, uint32_t pte);
uint32_t get_pte(gva_t gva);
void set_descriptor(unsigned index, uint32_t base, uint32_t limit, uint8_t access, uint8_t flags);
void set_gate(unsigned vector, uint16_t selector, uint32_t offset, uint8_t access);
enum { GATE_INTERRUPT = 0x8e, GATE_TRAP = 0x8f, GATE_USER = 0x60 };

/* Emulates the bytes at `eip` once. */
enum vcpu_result fake_run_at(uint32_t eip, const uint8_t *code, unsigned bytes);
#define RUN_AT(eip, ...) \
	fake_run_at(eip, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
#define RUN(...) RUN_AT(CODE, __VA_ARGS__)
#define MARKER 0xcd, VMP_INT_MARKER

/* Checks that the guest is in the handler of `vector`; frame words by index (0: error code or
 * EIP). */
bool in_handler(unsigned vector);
uint32_t frame(unsigned word);
/* Checks that a fault was delivered that points at `eip`, with this error code (-1: none). */
bool faulted(unsigned vector, int64_t error, uint32_t eip);
#define CHECK_FAULT(result, vector, error) \
	do { \
		CU_ASSERT_EQUAL(result, VCPU_RAISED); \
		CU_ASSERT_TRUE(faulted(vector, error, CODE)); \
	} while (0)

#endif
