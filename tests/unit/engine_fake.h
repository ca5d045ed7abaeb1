/* engine_fake.h - an engine that only counts what it is asked for, around the machine of arrays
 * (vcpu_fake.h), for the unit tests of engine/.
 */
#ifndef TESTS_UNIT_ENGINE_FAKE_H
#define TESTS_UNIT_ENGINE_FAKE_H

#include "engine/engine.h"
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

enum { PAGE_AT = 0x80000, PAGE_GONE = 0x81000, BEYOND_LIMIT = VMP_USER_LIMIT + 16 };
enum { STAMP_NS = 1000 }; /* from one reading of the time to the next */
enum { STEP = 2 }; /* si_code of a SIGTRAP */

extern struct vcpu_slot slot;
extern struct doorbell bell;
extern struct engine_debug debug;
extern struct cpu_engine e;

/* What the engine was asked for, and what it answers. */
extern struct engine_asked {
	unsigned prepares, serves, deaths, stands, sleeps, timers, maps, admits, stamps;
	uint64_t stamp_ns;
	uint32_t posts, wake;
	enum debug_why why;
	uint64_t slept_ns, timer_ns;
	gva_t gva;
	enum vcpu_access access;
	bool write;
	/* answers: */
	unsigned ends_at;	/* prepare() says that the machine ends, from this call on */
	unsigned unprepared;	/* so many times is_prepared() says no */
	bool own_int3, watched, beyond, guessed_write;
	unsigned guessed_vector;
	void (*while_asleep)(void), (*while_polling)(void);
	unsigned watches, checks;
	uint32_t hits;		/* answer */
} asked;

void engine_reset(void);
void engine_user(void); /* the same, and user code is to run */

#endif
