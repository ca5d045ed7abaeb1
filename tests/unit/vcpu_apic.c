/* vcpu_apic.c - the local APIC (vcpu/apic.c): registers, priorities, inter-processor interrupts,
 * timer, errors. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)
#define A_ (&fake.v.apic)

static void fresh(void)
{
	fake_reset();
	apic_write(V, 0xf0, 0x1ff); /* enabled, spurious vector 0xff */
}

static void registers_at_reset(void)
{
	static const struct { uint32_t offset, value;
	} resets[] = {
		{ 0x20, 1 << 24 },  { 0x30, 0x50014 },	  { 0x80, 0 },	      { 0xa0, 0 },
		{ 0xd0, 0 },	    { 0xe0, 0xffffffff }, { 0xf0, 0xff },     { 0x100, 0 },
		{ 0x200, 0 },	    { 0x280, 0 },	  { 0x300, 0 },	      { 0x310, 0 },
		{ 0x320, 0x10000 }, { 0x330, 0x10000 },	  { 0x340, 0x10000 }, { 0x350, 0x10000 },
		{ 0x360, 0x10000 }, { 0x370, 0x10000 },	  { 0x380, 0 },	      { 0x390, 0 },
		{ 0x3e0, 0 },
	};

	fake_reset();
	for (unsigned n = 0; n < ARRAY_LEN(resets); n++)
		CU_ASSERT_EQUAL(apic_read(V, resets[n].offset), resets[n].value);
	CU_ASSERT_EQUAL(apic_deadline(A_), UINT64_MAX);
}

/* Writes all ones, then all zeros: which bits does each register keep? */
static void registers_writable(void)
{
	static const struct { uint32_t offset, ones, zeros;
	} cases[] = {
		{ 0x20, 1 << 24, 1 << 24 },
		{ 0x30, 0x50014, 0x50014 },
		{ 0x80, 0xff, 0 },
		{ 0xd0, 0xff000000, 0 },
		{ 0xe0, 0xffffffff, 0x0fffffff },
		{ 0x310, 0xff000000, 0 },
		{ 0x320, 0x300ff, 0 },
		{ 0x330, 0x107ff, 0 },
		{ 0x340, 0x107ff, 0 },
		{ 0x350, 0x1a7ff, 0 },
		{ 0x360, 0x1a7ff, 0 },
		{ 0x370, 0x100ff, 0 },
		{ 0x380, 0xffffffff, 0 },
		{ 0x3e0, 0xb, 0 },
		{ 0x100, 0, 0 },
		{ 0x180, 0, 0 },
		{ 0x200, 0, 0 },
		{ 0x390, 0, 0 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fresh();
		apic_write(V, cases[n].offset, 0xffffffff);
		if (cases[n].offset != 0x390)
			CU_ASSERT_EQUAL(apic_read(V, cases[n].offset), cases[n].ones);
		apic_write(V, cases[n].offset, 0);
		CU_ASSERT_EQUAL(apic_read(V, cases[n].offset), cases[n].zeros);
	}
}

static void software_enable(void)
{
	fake_reset();
	apic_post(A_, 0x40);
	CU_ASSERT_EQUAL(apic_highest(A_), -1); /* disabled: not accepted */
	apic_write(V, 0x320, 0x30);
	CU_ASSERT_EQUAL(apic_read(V, 0x320), 0x10030); /* and the mask cannot be taken off */
	apic_write(V, 0xf0, 0x1ff);
	apic_write(V, 0x320, 0x30);
	CU_ASSERT_EQUAL(apic_read(V, 0x320), 0x30);
	apic_post(A_, 0x40);
	CU_ASSERT_EQUAL(apic_highest(A_), 0x40);
	apic_write(V, 0xf0, 0xff);
	CU_ASSERT_EQUAL(apic_read(V, 0x320), 0x10030);
	CU_ASSERT_EQUAL(apic_highest(A_), 0x40); /* what was accepted stays */
}

static void every_vector(void)
{
	for (unsigned vector = 0; vector < 256; vector++) {
		fresh();
		apic_post(A_, (uint8_t)vector);
		if (vector < 16) {
			CU_ASSERT_EQUAL(apic_highest(A_), -1);
			apic_write(V, 0x280, 0);
			CU_ASSERT_EQUAL(apic_read(V, 0x280), 1 << 6);
			continue;
		}
		CU_ASSERT_EQUAL(apic_highest(A_), (int)vector);
		CU_ASSERT_EQUAL(apic_read(V, 0x200 + vector / 32 * 16), 1u << vector % 32);
		apic_accept(A_, (uint8_t)vector);
		CU_ASSERT_EQUAL(apic_read(V, 0x200 + vector / 32 * 16), 0);
		CU_ASSERT_EQUAL(apic_read(V, 0x100 + vector / 32 * 16), 1u << vector % 32);
		CU_ASSERT_EQUAL(apic_read(V, 0xa0), vector & 0xf0);
		apic_write(V, 0xb0, 0);
		CU_ASSERT_EQUAL(apic_read(V, 0x100 + vector / 32 * 16), 0);
		CU_ASSERT_EQUAL(apic_read(V, 0xa0), 0);
	}
}

/* An interrupt interrupts the processor only if its class is above TPR's and above the one in
 * service. */
static void priorities(void)
{
	for (unsigned tpr = 0; tpr < 256; tpr += 8)
		for (unsigned serving = 0; serving < 256; serving += 16)
			for (unsigned arriving = 16; arriving < 256; arriving += 8) {
				unsigned limit = (tpr >> 4) > (serving >> 4) ? tpr >> 4
									     : serving >> 4;

				fresh();
				if (serving) {
					apic_post(A_, (uint8_t)serving);
					apic_accept(A_, (uint8_t)serving);
				}
				apic_write(V, 0x80, tpr);
				apic_post(A_, (uint8_t)arriving);
				CU_ASSERT_EQUAL(apic_highest(A_),
						arriving >> 4 > limit ? (int)arriving : -1);
				CU_ASSERT_EQUAL(apic_read(V, 0xa0), (tpr >> 4) >= (serving >> 4)
									    ? tpr
									    : serving & 0xf0);
			}
}

static void end_of_interrupt_order(void)
{
	fresh();
	apic_post(A_, 0x31);
	apic_accept(A_, 0x31);
	apic_post(A_, 0x81);
	apic_accept(A_, 0x81);
	apic_post(A_, 0x31); /* again, while in service */
	apic_write(V, 0xb0, 0); /* ends the higher */
	CU_ASSERT_EQUAL(apic_read(V, 0x100 + 0x40), 0);
	CU_ASSERT_EQUAL(apic_read(V, 0x100 + 0x10), 1 << 17);
	CU_ASSERT_EQUAL(apic_highest(A_), -1);
	apic_write(V, 0xb0, 0);
	CU_ASSERT_EQUAL(apic_highest(A_), 0x31);
	apic_accept(A_, 0x31);
	apic_write(V, 0xb0, 0);
	apic_write(V, 0xb0, 0); /* one too many does nothing */
	CU_ASSERT_EQUAL(apic_highest(A_), -1);
}

/* ---- inter-processor interrupts: this is CPU 1 of 4 */

static void send(uint32_t destination, uint32_t low)
{
	fake.sends = 0;
	fake.sent_cpus = 0;
	apic_write(V, 0x310, destination << 24);
	apic_write(V, 0x300, low);
}

static void ipi_destinations(void)
{
	enum { SELF = 1 << 18, ALL = 2 << 18, OTHERS = 3 << 18, LOGICAL = 1 << 11 };
	static const struct { uint32_t destination, low, others; bool self;
	} cases[] = {
		{ 0, 0, 1, false },
		{ 1, 0, 0, true },
		{ 3, 0, 8, false },
		{ 4, 0, 0, false },
		{ 200, 0, 0, false },
		{ 0xff, 0, 0xd, true },
		{ 0x0f, LOGICAL, 0xd, true },
		{ 0xf5, LOGICAL, 5, false },
		{ 0xff, LOGICAL, 0xd, true },
		{ 0x02, LOGICAL, 0, true },
		{ 0xf0, LOGICAL, 0, false },
		{ 0, SELF, 0, true },
		{ 0, ALL, 0xd, true },
		{ 0, OTHERS, 0xd, false },
		{ 0x0c, LOGICAL | 1 << 8, 4, false },
		{ 0x0e, LOGICAL | 1 << 8, 0, true },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fresh();
		send(cases[n].destination, cases[n].low | 0xfd);
		CU_ASSERT_EQUAL(fake.sent_cpus, cases[n].others);
		CU_ASSERT_EQUAL(fake.sends, cases[n].others != 0);
		CU_ASSERT_EQUAL(apic_highest(A_), cases[n].self ? 0xfd : -1);
		if (cases[n].others) {
			CU_ASSERT_EQUAL(fake.sent_vector, 0xfd);
			CU_ASSERT_FALSE(fake.sent_nmi);
		}
	}
	fresh();
	V->n_cpus = 32;
	send(0xff, 0xfd);
	CU_ASSERT_EQUAL(fake.sent_cpus, 0xfffffffd);
	CU_ASSERT_EQUAL(apic_read(V, 0x300), 0xfd); /* idle at once */
}

static void ipi_modes(void)
{
	fresh();
	send(0, 0x400 | 3 << 18); /* NMI to the others */
	CU_ASSERT_EQUAL(fake.sent_cpus, 0xd);
	CU_ASSERT_TRUE(fake.sent_nmi);
	send(1, 0x402);
	CU_ASSERT_TRUE(V->nmi_pending);
	CU_ASSERT_EQUAL(fake.sends, 0);
	for (unsigned mode = 2; mode < 8; mode++) {
		if (mode == 4)
			continue;
		send(0, mode << 8 | 1 << 14 | 0x9a); /* SMI, INIT, start-up, ...: ignored */
		CU_ASSERT_EQUAL(fake.sends, 0);
	}
	send(0, 0x0f); /* an illegal vector */
	CU_ASSERT_EQUAL(fake.sends, 0);
	apic_write(V, 0x280, 0);
	CU_ASSERT_EQUAL(apic_read(V, 0x280), 1 << 5);
	apic_write(V, 0x280, 0);
	CU_ASSERT_EQUAL(apic_read(V, 0x280), 0);
}

static void error_interrupt(void)
{
	fresh();
	apic_write(V, 0x370, 0xfe);
	apic_write(V, 0x3f0, 1); /* no such register */
	CU_ASSERT_EQUAL(apic_highest(A_), 0xfe);
	CU_ASSERT_EQUAL(apic_read(V, 0x280), 0); /* not before it is latched */
	apic_write(V, 0x280, 0);
	CU_ASSERT_EQUAL(apic_read(V, 0x280), 1 << 7);
	CU_ASSERT_EQUAL(apic_read(V, 0x000), 0);
	apic_write(V, 0x280, 0);
	CU_ASSERT_EQUAL(apic_read(V, 0x280), 1 << 7);
}

/* ---- timer */

static void divide_codes(void)
{
	static const struct { uint32_t code; unsigned divider;
	} codes[] = {
		{ 0x0, 2 },  { 0x1, 4 },  { 0x2, 8 },	{ 0x3, 16 },
		{ 0x8, 32 }, { 0x9, 64 }, { 0xa, 128 }, { 0xb, 1 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(codes); n++) {
		fresh();
		fake.now_ns = 1000;
		apic_write(V, 0x3e0, codes[n].code);
		apic_write(V, 0x320, 0xec);
		apic_write(V, 0x380, 100);
		CU_ASSERT_EQUAL(apic_deadline(A_), 1000 + 100 * codes[n].divider);
		fake.now_ns += 50 * codes[n].divider;
		CU_ASSERT_EQUAL(apic_read(V, 0x390), 50);
	}
}

static void arm(uint32_t lvt, uint32_t count)
{
	fresh();
	fake.now_ns = 5000;
	apic_write(V, 0x3e0, 0xb);
	apic_write(V, 0x320, lvt);
	apic_write(V, 0x380, count);
}

static void one_shot(void)
{
	arm(0xec, 1000);
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 1000);
	apic_tick(A_, 5999);
	CU_ASSERT_EQUAL(apic_highest(A_), -1);
	fake.now_ns = 5999;
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 1);
	fake.now_ns = 6000;
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 0);
	apic_tick(A_, 6000);
	CU_ASSERT_EQUAL(apic_highest(A_), 0xec);
	CU_ASSERT_EQUAL(apic_deadline(A_), UINT64_MAX);
	apic_accept(A_, 0xec);
	apic_tick(A_, 99999);
	CU_ASSERT_EQUAL(A_->irr[7], 0); /* once */
	CU_ASSERT_EQUAL(apic_read(V, 0x380), 1000);
}

static void one_shot_stopped(void)
{
	arm(0xec, 1000);
	apic_write(V, 0x380, 0);
	CU_ASSERT_EQUAL(apic_deadline(A_), UINT64_MAX);
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 0);
	arm(0xec, 0xffffffff);
	apic_write(V, 0x3e0, 0xa);
	apic_write(V, 0x380, 0xffffffff);
	CU_ASSERT_EQUAL(apic_deadline(A_), 5000 + 0xffffffffull * 128);
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 0xffffffff);
	arm(0xec, 1000);
	fake.now_ns = 5400;
	apic_write(V, 0x380, 1000); /* armed anew */
	CU_ASSERT_EQUAL(apic_deadline(A_), 6400);
}

static void periodic(void)
{
	arm(0x200ec, 1000);
	for (unsigned n = 1; n <= 3; n++) {
		apic_tick(A_, 5000 + n * 1000);
		CU_ASSERT_EQUAL(apic_highest(A_), 0xec);
		apic_accept(A_, 0xec);
		apic_write(V, 0xb0, 0);
		CU_ASSERT_EQUAL(apic_deadline(A_), 6000 + n * 1000);
	}
	apic_tick(A_, 5000 + 7777); /* three and a half periods late: one interrupt, phase kept */
	CU_ASSERT_EQUAL(apic_highest(A_), 0xec);
	CU_ASSERT_EQUAL(apic_deadline(A_), 5000 + 8000);
	fake.now_ns = 5000 + 7777;
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 223);
	fake.now_ns = 5000 + 9100; /* not yet ticked: the count goes on */
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 900);
}

static void masked_timer(void)
{
	arm(0x100ec, 1000);
	CU_ASSERT_EQUAL(apic_deadline(A_), UINT64_MAX); /* nobody need wake */
	fake.now_ns = 5600;
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 400); /* but it counts */
	apic_write(V, 0x320, 0xec);
	CU_ASSERT_EQUAL(apic_deadline(A_), 6000);
	apic_write(V, 0x320, 0x100ec);
	fake.now_ns = 7000;
	apic_write(V, 0x320, 0xec); /* it ran out while masked: that interrupt never comes */
	apic_tick(A_, 7000);
	CU_ASSERT_EQUAL(apic_highest(A_), -1);
	CU_ASSERT_EQUAL(apic_deadline(A_), UINT64_MAX);
}

static void due_timer_before_write(void)
{
	arm(0xec, 1000);
	fake.now_ns = 6500;
	/* armed again before the engine ticked: the due one is not lost */
	apic_write(V, 0x380, 1000);
	CU_ASSERT_EQUAL(apic_highest(A_), 0xec);
	CU_ASSERT_EQUAL(apic_deadline(A_), 7500);
}

static void divider_changed_while_counting(void)
{
	arm(0xec, 1000);
	fake.now_ns = 5400;
	apic_write(V, 0x3e0, 0); /* 600 left, now at half speed */
	CU_ASSERT_EQUAL(apic_deadline(A_), 5400 + 1200);
	CU_ASSERT_EQUAL(apic_read(V, 0x390), 600);
}

/* ---- a timer whose handler takes long */

enum { MS = 1000000, TICK = 10 * MS };

/* The timer fires, the CPU takes its interrupt, and the handler sets the timer again `took_ns`
 * later, for the next tick. */
static void tick_handled(uint64_t took_ns)
{
	fake.now_ns = apic_deadline(A_);
	apic_tick(A_, fake.now_ns);
	CU_ASSERT_EQUAL(apic_highest(A_), 0xec);
	apic_accept(A_, 0xec);
	apic_timer_taken(A_, 0xec, fake.now_ns);
	apic_write(V, 0xb0, 0); /* as Linux: first of all */
	fake.now_ns += took_ns;
	apic_write(V, 0x380, (uint32_t)(TICK - took_ns % TICK));
}

static void rest_after_long_handler(void)
{
	static const struct { uint64_t took_ns, until_next_ns; } cases[] = {
		{ 50000, TICK - 50000 },	 /* nothing but a tick: it comes when it is due */
		{ 1 * MS, 9 * MS },		 /* it may rest until then anyway */
		{ 9 * MS, 36 * MS },
		/* three ticks late: the guest then has four times as long for itself */
		{ 30 * MS, 120 * MS },
		{ 200ull * MS, 800ull * MS },
		{ 60000ull * MS, 10000ull * MS }, /* but not for ever */
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		arm(0xec, TICK);
		tick_handled(cases[n].took_ns);
		CU_ASSERT_EQUAL(apic_deadline(A_), fake.now_ns + cases[n].until_next_ns);
		apic_tick(A_, fake.now_ns + cases[n].until_next_ns - 1);
		CU_ASSERT_EQUAL(apic_highest(A_), -1);
		apic_tick(A_, fake.now_ns + cases[n].until_next_ns);
		CU_ASSERT_EQUAL(apic_highest(A_), 0xec);
	}
}

/* However long the handler takes, the interrupted code gets most of the time. */
static void rest_leaves_time(void)
{
	uint64_t start, handled = 0;

	arm(0xec, TICK);
	start = fake.now_ns;
	for (unsigned n = 0; n < 100; n++) {
		uint64_t took = (5 + n % 50) * MS;

		tick_handled(took);
		handled += took;
	}
	CU_ASSERT(handled * 4 < fake.now_ns - start);
}

static void rest_ends(void)
{
	arm(0xec, TICK);
	tick_handled(30 * MS);
	apic_write(V, 0x380, 1000); /* something is due sooner: the timer rests all the same */
	CU_ASSERT_EQUAL(apic_deadline(A_), fake.now_ns + 120 * MS);
	apic_write(V, 0x380, 500 * MS);
	CU_ASSERT_EQUAL(apic_deadline(A_), fake.now_ns + 500 * MS);
	apic_write(V, 0x380, 0);
	CU_ASSERT_EQUAL(apic_deadline(A_), UINT64_MAX);
	apic_write(V, 0x380, 1000);
	apic_halted(A_); /* nothing is left to do */
	CU_ASSERT_EQUAL(apic_deadline(A_), fake.now_ns + 1000);
	/* A timer that is set long after its interrupt, when the CPU had halted: no handler took so
	 * long. */
	tick_handled(0);
	apic_timer_taken(A_, 0xec, fake.now_ns);
	apic_halted(A_);
	fake.now_ns += 300 * MS;
	apic_write(V, 0x380, 1000);
	CU_ASSERT_EQUAL(apic_deadline(A_), fake.now_ns + 1000);
	/* Another interrupt's handler may take any time. */
	apic_timer_taken(A_, 0xfb, fake.now_ns);
	fake.now_ns += 300 * MS;
	apic_write(V, 0x380, 1000);
	CU_ASSERT_EQUAL(apic_deadline(A_), fake.now_ns + 1000);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(registers_at_reset),
		UNIT_TEST(registers_writable),
		UNIT_TEST(software_enable),
		UNIT_TEST(every_vector),
		UNIT_TEST(priorities),
		UNIT_TEST(end_of_interrupt_order),
		UNIT_TEST(ipi_destinations),
		UNIT_TEST(ipi_modes),
		UNIT_TEST(error_interrupt),
		UNIT_TEST(divide_codes),
		UNIT_TEST(one_shot),
		UNIT_TEST(one_shot_stopped),
		UNIT_TEST(periodic),
		UNIT_TEST(masked_timer),
		UNIT_TEST(due_timer_before_write),
		UNIT_TEST(divider_changed_while_counting),
		UNIT_TEST(rest_after_long_handler),
		UNIT_TEST(rest_leaves_time),
		UNIT_TEST(rest_ends),
		UNIT_END
	};
	return UNIT_RUN("vcpu local APIC", tests);
}
