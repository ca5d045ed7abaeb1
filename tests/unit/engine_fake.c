/* engine_fake.c - the engine of engine_fake.h: what it answers, and how it counts. */
#include "tests/unit/engine_fake.h"

struct vcpu_slot slot;
struct doorbell bell;
static struct shadow shadow;
static uint32_t entries[LINEAR_PAGES];
struct engine_debug debug;
struct cpu_engine e;
struct engine_asked asked;

static bool op_prepare(struct cpu_engine *engine)
{
	CU_ASSERT_PTR_EQUAL(engine, &e);
	CU_ASSERT_NOT_EQUAL(atomic_load(&bell.state), SLOT_RUNNING);
	return ++asked.prepares != asked.ends_at;
}

static bool op_is_prepared(struct cpu_engine *engine)
{
	(void)engine;
	if (!asked.unprepared)
		return true;
	asked.unprepared--;
	return false;
}

static void op_serve(struct cpu_engine *engine, uint32_t posts)
{
	(void)engine;
	asked.serves++;
	asked.posts = posts;
}

static void op_died(struct cpu_engine *engine)
{
	(void)engine;
	asked.deaths++;
	asked.ends_at = asked.prepares + 1;
}

static bool op_debugger(struct cpu_engine *engine, enum debug_why why)
{
	(void)engine;
	asked.stands++;
	asked.why = why;
	if (why == WHY_STEP)
		debug.step.wanted = false;
	return why == WHY_BREAKPOINT ? !asked.own_int3 : why == WHY_WATCH ? asked.watched : true;
}

static void op_watch(struct cpu_engine *engine, const struct debug_watch *watch)
{
	(void)engine;
	asked.watches++;
	debug.guest = *watch;
}

static uint32_t op_watch_hits(struct cpu_engine *engine)
{
	(void)engine;
	asked.checks++;
	return asked.hits;
}

static enum time_kind op_time_switch(struct cpu_engine *engine, enum time_kind to)
{
	static enum time_kind now;
	enum time_kind before = now;

	(void)engine;
	now = to;
	return before;
}

/* Time passes by looking at it. */
static uint64_t op_stamp_ns(struct cpu_engine *engine)
{
	(void)engine;
	asked.stamps++;
	if (asked.while_polling)
		asked.while_polling();
	return asked.stamp_ns += STAMP_NS;
}

static void op_sleep(struct cpu_engine *engine, uint32_t wake, uint64_t at_most_ns)
{
	(void)engine;
	CU_ASSERT_EQUAL(atomic_load(&bell.state), SLOT_HALTED);
	asked.sleeps++;
	asked.wake = wake;
	asked.slept_ns = at_most_ns;
	if (asked.while_asleep)
		asked.while_asleep();
}

static void op_set_timer(struct cpu_engine *engine, uint64_t deadline_ns)
{
	(void)engine;
	asked.timers++;
	asked.timer_ns = deadline_ns;
}

static void op_map(struct cpu_engine *engine, gva_t gva, const struct vcpu_walk *walk,
		   enum vcpu_access access)
{
	(void)engine, (void)walk;
	asked.maps++;
	asked.gva = gva;
	asked.access = access;
}

static void op_admit(struct cpu_engine *engine, gva_t gva, uint32_t entry, bool write)
{
	(void)engine;
	CU_ASSERT_EQUAL(entry, entries[gva >> PAGE_BITS]);
	asked.admits++;
	asked.gva = gva;
	asked.write = write;
}

static bool op_beyond_user_limit(struct cpu_engine *engine, gva_t *gva, enum vcpu_access *access)
{
	(void)engine;
	*gva = BEYOND_LIMIT;
	*access = ACCESS_READ;
	return asked.beyond;
}

static enum vcpu_access op_guess_access(struct cpu_engine *engine, gva_t gva)
{
	(void)engine, (void)gva;
	return asked.guessed_write ? ACCESS_WRITE : ACCESS_READ;
}

static bool op_guess_write(struct cpu_engine *engine, gva_t gva)
{
	(void)engine, (void)gva;
	return asked.guessed_write;
}

static unsigned op_guess_vector(struct cpu_engine *engine, int signal)
{
	(void)engine, (void)signal;
	return asked.guessed_vector;
}

static const struct engine_ops ops = { ENGINE_OPS(op_) ENGINE_GUESSES(op_) };

void engine_reset(void)
{
	fake_reset();
	memset(&slot, 0, sizeof slot);
	memset(&bell, 0, sizeof bell);
	memset(&asked, 0, sizeof asked);
	memset(&debug, 0, sizeof debug);
	atomic_store(&bell.state, SLOT_MONITOR);
	shadow.entry = entries;
	entries[PAGE_AT >> PAGE_BITS] = PAGE_AT | SHADOW_VALID | SHADOW_WRITE;
	e = (struct cpu_engine){
		.ops = &ops,
		.vcpu = &fake.v,
		.slot = &slot,
		.bell = &bell,
		.shadow = &shadow,
		.debug = &debug,
		.ram_pages = RAM_BYTES >> PAGE_BITS,
		.many_hosts = true,
		.timer_armed_ns = UINT64_MAX,
	};
	apic_write(&fake.v, 0xf0, 0x1ff); /* enabled */
	asked.guessed_write = false;
}

void engine_user(void)
{
	engine_reset();
	fake_user();
}
