/* vcpu_state.c - a CPU as bytes (vcpu/state.c): everything comes back; input that is cut, damaged,
 * foreign or another CPU's is refused.
 */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vcpu/state.h"

static uint8_t state[VCPU_STATE_BYTES + 1];

static void fresh(void)
{
	fake_reset();
	fake_user();
	fake.v.interrupt_shadow = true;
	fake.v.nmi_pending = true;
	fake.v.start_wanted = true;
	fake.v.start_eip = 0x100000;
	fake.v.dr[3] = 0x1234;
	fake.v.xcr0 = 0xe7;
	fake.v.pat_msr = 0x0123456789abcdef;
	apic_write(&fake.v, 0xf0, 0x1ff);
	apic_write(&fake.v, 0x320, 0x40);
	fake.now_ns = 5000;
	apic_write(&fake.v, 0x380, 1000);
	apic_post(&fake.v.apic, 0x81);
	apic_post(&fake.v.apic, 0x51);
	apic_accept(&fake.v.apic, 0x81);
	vcpu_state_save(&fake.v, state);
}

/* A CPU that has just been initialised takes the state, and equals the saved one byte for byte. */
static void round_trip(void)
{
	static struct vcpu saved, other;
	uint8_t again[VCPU_STATE_BYTES];

	fresh();
	saved = fake.v;
	vcpu_init(&other, saved.number, saved.n_cpus, saved.ram_pages, saved.env);
	CU_ASSERT_EQUAL(vcpu_state_load(&other, state, VCPU_STATE_BYTES), VCPU_STATE_GOOD);
	vcpu_state_save(&other, again);
	CU_ASSERT(!memcmp(state, again, VCPU_STATE_BYTES));
	CU_ASSERT(!memcmp(other.gpr, saved.gpr, sizeof saved.gpr));
	CU_ASSERT(!memcmp(&other.apic, &saved.apic, sizeof saved.apic));
	CU_ASSERT_EQUAL(other.cpl, 3);
	CU_ASSERT_EQUAL(other.eflags, saved.eflags);
	CU_ASSERT_EQUAL(other.pat_msr, saved.pat_msr);
	CU_ASSERT_EQUAL(apic_deadline(&other.apic), apic_deadline(&saved.apic));
	CU_ASSERT_EQUAL(other.start_eip, 0x100000);
	CU_ASSERT_TRUE(other.start_wanted);
	CU_ASSERT_TRUE(other.interrupt_shadow && other.nmi_pending && !other.halted);
}

static void expect_refused(uint32_t bytes, enum vcpu_state_fault fault)
{
	struct vcpu before = fake.v;

	CU_ASSERT_EQUAL(vcpu_state_load(&fake.v, state, bytes), fault);
	CU_ASSERT(!memcmp(&fake.v, &before, sizeof before));
}

/* Another struct vcpu, which hostile code may have written: any byte of it, with any value.  What
 * is accepted is a possible CPU. */
static void taken_from_the_hostile(void)
{
	static struct vcpu theirs, before;
	bool bounded = true, whole = true;
	unsigned refused = 0;

	fresh();
	theirs = fake.v;
	theirs.env = NULL;
	theirs.gpr[EAX]++;
	theirs.yields = 9;
	CU_ASSERT_EQUAL(vcpu_state_take(&fake.v, &theirs), VCPU_STATE_GOOD);
	CU_ASSERT(fake.v.env && fake.v.gpr[EAX] == theirs.gpr[EAX] && fake.v.yields == 9);
	before = fake.v;
	for (size_t at = 0; at < sizeof theirs; at++)
		for (unsigned change = 1; change < 256; change++) {
			((uint8_t *)&theirs)[at] ^= (uint8_t)change;
			if (vcpu_state_take(&fake.v, &theirs)) {
				refused++;
				whole &= !memcmp(&fake.v, &before, sizeof before);
			} else {
				bounded &= fake.v.env == before.env &&
					   fake.v.number == before.number &&
					   fake.v.n_cpus == before.n_cpus &&
					   fake.v.ram_pages == before.ram_pages &&
					   (fake.v.cpl == 0 || fake.v.cpl == 3) &&
					   (unsigned)fake.v.dead <= VCPU_KILLED &&
					   fake.v.delivering <= 256 &&
					   memchr(fake.v.dead_reason, 0, sizeof fake.v.dead_reason);
			}
			((uint8_t *)&theirs)[at] ^= (uint8_t)change;
			fake.v = before;
		}
	CU_ASSERT(bounded && whole && refused > 1000);
}

/* The reason goes to the user's terminal; ours are plain. */
static void no_escapes_from_the_hostile(void)
{
	static struct vcpu theirs;

	fresh();
	theirs = fake.v;
	theirs.dead = VCPU_KILLED;
	strcpy(theirs.dead_reason, "\x1b]0;title\x07\nreason: \xc2\x9b~ and\x7f");
	CU_ASSERT_EQUAL(vcpu_state_take(&fake.v, &theirs), VCPU_STATE_GOOD);
	CU_ASSERT_STRING_EQUAL(fake.v.dead_reason, "?]0;title??reason: ??~ and?");
}

static void cut_anywhere(void)
{
	fresh();
	for (uint32_t bytes = 0; bytes < VCPU_STATE_BYTES; bytes++)
		expect_refused(bytes, VCPU_STATE_CUT);
	expect_refused(VCPU_STATE_BYTES + 1, VCPU_STATE_CUT);
}

static void damaged_anywhere(void)
{
	fresh();
	for (unsigned at = 0; at < VCPU_STATE_BYTES; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			state[at] ^= 1 << bit;
			CU_ASSERT_NOT_EQUAL(vcpu_state_load(&fake.v, state, VCPU_STATE_BYTES),
					    VCPU_STATE_GOOD);
			state[at] ^= 1 << bit;
		}
	CU_ASSERT_EQUAL(vcpu_state_load(&fake.v, state, VCPU_STATE_BYTES), VCPU_STATE_GOOD);
}

static void foreign_and_versioned(void)
{
	fresh();
	state[0] ^= 1;
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_FOREIGN);
	fresh();
	state[4]++;
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_VERSIONED);
}

static void another_cpu(void)
{
	fresh();
	fake.v.number++;
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_MISPLACED);
	fresh();
	fake.v.n_cpus++;
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_MISPLACED);
	fresh();
	fake.v.ram_pages /= 2;
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_MISPLACED);
}

/* A correct checksum over an impossible value. */
static void impossible_values(void)
{
	fresh();
	fake.v.cpl = 1;
	vcpu_state_save(&fake.v, state);
	fake.v.cpl = 3;
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_DAMAGED);
	memset(&fake.v.halted, 2, 1);
	vcpu_state_save(&fake.v, state);
	memset(&fake.v.halted, 0, 1);
	expect_refused(VCPU_STATE_BYTES, VCPU_STATE_DAMAGED);
}

static void rebuild_announces_descriptors(void)
{
	fresh();
	memset(fake.segment, 0, sizeof fake.segment);
	fake.segments_changed = fake.flush_all = 0;
	vcpu_state_rebuild(&fake.v);
	CU_ASSERT_EQUAL(fake.segments_changed, VMP_GDT_ENTRIES);
	CU_ASSERT_EQUAL(fake.flush_all, 1);
	CU_ASSERT_TRUE(fake.segment[VMP_GDT_KERNEL_CS].present);
	CU_ASSERT_EQUAL(fake.segment[GDT_BASED_DATA].base, BASED_AT);
	CU_ASSERT_FALSE(fake.segment[GDT_FREE].present);
}

static void checksum_is_zlibs(void)
{
	CU_ASSERT_EQUAL(vcpu_crc32(0, "123456789", 9), 0xcbf43926);
	CU_ASSERT_EQUAL(vcpu_crc32(vcpu_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(round_trip),
		UNIT_TEST(taken_from_the_hostile),
		UNIT_TEST(no_escapes_from_the_hostile),
		UNIT_TEST(cut_anywhere),
		UNIT_TEST(damaged_anywhere),
		UNIT_TEST(foreign_and_versioned),
		UNIT_TEST(another_cpu),
		UNIT_TEST(impossible_values),
		UNIT_TEST(rebuild_announces_descriptors),
		UNIT_TEST(checksum_is_zlibs),
		UNIT_END
	};

	return UNIT_RUN("vcpu state", tests);
}
