/* iosrv_ioapic.c - the IO-APIC: registers as Linux touches them, destinations, and no lost edge. */
#include "base/guest_abi.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum { MASKED = 1 << 16, LOGICAL = 1 << 11, LOWEST = 1 << 8, NMI = 4 << 8, LEVEL = 1 << 15 };

static uint32_t get(uint32_t index)
{
	mmio_write(VMP_IOAPIC_GPA, index);
	return mmio_read(VMP_IOAPIC_GPA + 0x10);
}

static void set(uint32_t index, uint32_t value)
{
	mmio_write(VMP_IOAPIC_GPA, index);
	mmio_write(VMP_IOAPIC_GPA + 0x10, value);
}

static void route(unsigned pin, uint32_t low, uint32_t destination)
{
	set(0x11 + 2 * pin, destination << 24); /* Linux's order: the mask falls last */
	set(0x10 + 2 * pin, low);
}

static uint32_t delivered(uint8_t vector)
{
	uint32_t cpus = 0;

	CU_ASSERT(fake.n_interrupts > 0);
	for (unsigned i = 0; i < fake.n_interrupts; i++) {
		CU_ASSERT(fake.interrupts[i].vector == vector);
		cpus |= fake.interrupts[i].cpus;
	}
	fake.n_interrupts = 0;
	return cpus;
}

static void test_registers(void)
{
	fake_reset();
	CU_ASSERT((get(1) & 0xff) == 0x11 && (get(1) >> 16 & 0xff) == 23);
	set(0, 32u << 24 | 0xffffff); /* 32 CPUs: the id behind theirs */
	CU_ASSERT(get(0) == 32u << 24);
	for (unsigned pin = 0; pin < 24; pin++)
		CU_ASSERT(get(0x10 + 2 * pin) == MASKED && get(0x11 + 2 * pin) == 0);
	set(0x10 + 2 * 5, 0xffffffff);
	CU_ASSERT(get(0x10 + 2 * 5) == 0x1afff); /* delivery status and remote IRR are read-only */
	set(0x11 + 2 * 5, 0x07000000);
	CU_ASSERT(get(0x11 + 2 * 5) == 0x07000000);
	CU_ASSERT(get(0x40) == 0 && get(5) == 0);
	set(0x40, 1);
	set(5, 1);
	mmio_write(VMP_IOAPIC_GPA + 0x40, 0x31); /* no EOI register in this version */
	CU_ASSERT(mmio_read(VMP_IOAPIC_GPA + 0x40) == 0 && fake.n_interrupts == 0);
	CU_ASSERT(mmio_read(VMP_IOAPIC_GPA) == 5);
}

static void test_destinations(void)
{
	static const struct { unsigned cpus; uint32_t low, destination, to;
	} rows[] = {
		{ 2, 0x31, 0, 1 },
		{ 2, 0x31, 1, 2 },
		{ 2, 0x31, 2, 0 },
		{ 2, 0x31, 0xff, 3 },
		{ 32, 0x31, 31, 1u << 31 },
		{ 32, 0x31, 0xff, ~0u },
		{ 32, 0x31, 32, 0 },
		{ 8, 0x31 | LOGICAL, 0x81, 0x81 },
		{ 4, 0x31 | LOGICAL, 0xff, 0x0f },
		{ 4, 0x31 | LOGICAL, 0xf0, 0 },
		{ 2, 0x31 | LEVEL, 1, 2 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		fake_reset();
		fake.cpus = rows[i].cpus;
		route(14, rows[i].low, rows[i].destination);
		ioapic_raise(14);
		if (rows[i].to)
			CU_ASSERT(delivered(0x31) == rows[i].to);
		CU_ASSERT(fake.n_interrupts == 0);
	}
}

static void test_round_robin(void)
{
	unsigned count[4] = { 0 };

	fake_reset();
	fake.cpus = 4;
	route(4, 0x41 | LOGICAL | LOWEST, 0x0d);
	for (unsigned i = 0; i < 48; i++) {
		ioapic_raise(4);
		CU_ASSERT_FATAL(fake.n_interrupts == 1);
		count[__builtin_ctz(delivered(0x41))]++;
	}
	CU_ASSERT(count[1] == 0 && count[0] && count[2] && count[3]);
}

static void test_masked_edge_is_kept(void)
{
	fake_reset();
	ioapic_raise(4); /* before the driver came */
	ioapic_raise(4);
	CU_ASSERT(fake.n_interrupts == 0);
	route(4, MASKED | 0x51, 1);
	CU_ASSERT(fake.n_interrupts == 0);
	set(0x10 + 2 * 4, 0x51);
	CU_ASSERT(fake.n_interrupts == 1 && delivered(0x51) == 2);
	set(0x10 + 2 * 4, 0x51); /* once */
	CU_ASSERT(fake.n_interrupts == 0);
	/* moved to another CPU while it is masked, with an edge in between */
	set(0x10 + 2 * 4, 0x51 | MASKED);
	ioapic_raise(4);
	set(0x11 + 2 * 4, 0);
	set(0x10 + 2 * 4, 0x61);
	CU_ASSERT(delivered(0x61) == 1);
}

static void test_nmi_and_bounds(void)
{
	fake_reset();
	route(0, NMI | 0x02, 1);
	ioapic_raise(0);
	CU_ASSERT_FATAL(fake.n_interrupts == 1);
	CU_ASSERT(fake.interrupts[0].nmi && fake.interrupts[0].cpus == 2);
	fake.n_interrupts = 0;
	ioapic_raise(24);
	CU_ASSERT(fake.n_interrupts == 0);
	route(1, 5 << 8 | 0x33, 0); /* INIT, SMI and ExtINT do not exist here */
	route(2, 2 << 8 | 0x33, 0);
	route(3, 7 << 8 | 0x33, 0);
	for (unsigned pin = 1; pin <= 3; pin++)
		ioapic_raise(pin);
	CU_ASSERT(fake.n_interrupts == 0);
}

static void test_route(void)
{
	static const struct { uint32_t low, destination, to;
	} rows[] = {
		{ 0x31, 1, 2 },
		{ 0x31, 0xff, 0 }, /* several CPUs */
		{ 0x31, 9, 0 },
		{ 0x31 | LOGICAL, 0x08, 8 },
		{ 0x31 | LOGICAL | LOWEST, 0x08, 8 },
		{ 0x31 | LOGICAL | LOWEST, 0x0c, 0 },
		{ 0x31 | MASKED, 1, 0 },
		{ 0x31 | NMI, 1, 0 },
		{ 0x31 | 5 << 8, 1, 0 },
	};
	uint32_t vector;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		fake_reset();
		fake.cpus = 4;
		route(14, rows[i].low, rows[i].destination);
		CU_ASSERT_EQUAL(ioapic_route(14, &vector), rows[i].to);
		CU_ASSERT(!rows[i].to || vector == 0x31);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "registers", test_registers },
		{ "destinations", test_destinations },
		{ "round robin", test_round_robin },
		{ "a masked edge is kept", test_masked_edge_is_kept },
		{ "NMI, bounds", test_nmi_and_bounds },
		{ "routes", test_route },
		UNIT_END
	};

	return UNIT_RUN("IO-APIC", tests);
}
