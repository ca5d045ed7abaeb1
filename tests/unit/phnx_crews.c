/* phnx_crews.c - phnx_net's tests of what processes do together: join and leave with state,
 * collectives. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "tests/unit/phnx_net.h"

/* ---- joining and leaving with state ---- */

static _Atomic long table[SPACE];	/* changed in the library's loop, read outside of it */

static int give(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	(void)arg;
	long *counts = malloc((size_t)(hi - lo) * sizeof *counts);
	for (ph_vp_t v = lo; v < hi; v++)
		counts[v - lo] = atomic_exchange(table + v, 0);
	*state = counts;
	*len = (size_t)(hi - lo) * sizeof *counts;
	return 0;
}

static void take(void *arg, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	(void)arg;
	for (ph_vp_t v = lo; v < hi && len == (size_t)(hi - lo) * sizeof(long); v++)
		table[v] = ((const long *)state)[v - lo];
}

/* Runs in the library's loop, where no virtual node can move between the message and its count. */
static void count(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg;
	(void)source;
	table[msg->dest]++;
}

static long counted(void)
{
	long sum = 0;

	for (int v = 0; v < SPACE; v++)
		sum += table[v];
	return sum;
}

/* A counter per virtual node; every node counts what arrives.  Role 0 begins with all virtual
 * nodes, the others join and leave. */
static int role_counter(int role)
{
	enum { MESSAGES = 2000 };
	struct ph_migration m = { give, take, NULL };

	start(role + 1, role ? 1 : 0, NULL);
	ph_set_migration(&m);
	ph_set_handler(1, count, NULL);
	if (role == 0)
		assume_range(0, SPACE);
	else
		CHECK(ph_join_vps(PATIENCE) == 0);
	unsigned seed = (unsigned)role;
	for (int i = 0; i < MESSAGES; i++) {
		ph_send(rand_r(&seed) % SPACE, "", 0, 1);
		if (role && i % 500 == 499) {
			CHECK(ph_leave_vps(PATIENCE) == 0);
			CHECK(ph_join_vps(PATIENCE) == 0);
		}
	}
	/* The joiners leave for good when everything that they sent has arrived; role 0 then has
	 * every count. */
	for (int quiet = 0; role && quiet < 10; quiet = ph_mqueue_is_empty() ? quiet + 1 : 0)
		usleep(20000);
	if (role) {
		CHECK(ph_leave_vps(PATIENCE) == 0);
		ph_finalize(NULL, 5);
		return 0;
	}
	for (int i = 0; counted() < 3 * MESSAGES && i < PATIENCE / 20000; i++)
		usleep(20000);
	CHECK(counted() == 3 * MESSAGES);
	ph_vps_t mine = ph_get_assumed_vps();
	CHECK(ph_vps_get_lower_bound(mine) == 0 && ph_vps_get_upper_bound(mine) == SPACE);
	ph_vps_destroy(mine);
	ph_finalize(NULL, 5);
	return 0;
}

static void test_counters(void)
{
	run_roles(role_counter, 3);
}

/* ---- collective operations ---- */

void add_long(void *into, const void *from, size_t len)
{
	(void)len;
	*(long *)into += *(const long *)from;
}

static int role_collective(int role)
{
	enum { NODES = 5 };

	start(role + 1, role ? 1 : 0, NULL);
	assume_range(SPACE * role / NODES, SPACE * (role + 1) / NODES);
	for (int round = 1; round <= 20; round++) {
		long value = role + round;
		CHECK(ph_reduce(0, SPACE, round, &value, sizeof value, add_long, PATIENCE) == 0);
		CHECK(value == 0 + 1 + 2 + 3 + 4 + NODES * round);
		if (round % NODES == role)
			CHECK(ph_multicast(0, SPACE, &round, sizeof round, 6) == 0);
		ph_msg_t m = ph_timed_recv(6, PATIENCE);
		CHECK(m && m->dest == SPACE * role / NODES && *(int *)m->body == round);
		ph_msg_destroy(m);
	}
	CHECK(ph_barrier(0, SPACE, 100, PATIENCE) == 0);
	CHECK(ph_timed_recv(PH_MSG_ANY_TAG, 50000) == NULL);	/* nothing arrived twice */
	CHECK(ph_barrier(0, SPACE, 101, PATIENCE) == 0);
	ph_finalize(NULL, 5);
	return 0;
}

/* Only role 0 can be connected to: it is done first, and the others get the result through it. */
enum { RAYS = 8 };

static int role_star(int role)
{
	long value = 1L << 8 * role;

	start(role ? 0 : 1, role ? 1 : 0, NULL);
	assume_range(SPACE * role / RAYS, SPACE * (role + 1) / RAYS);
	CHECK(ph_barrier(0, SPACE, 1, PATIENCE) == 0);
	CHECK(ph_reduce(0, SPACE, 2, &value, sizeof value, add_long, PATIENCE / 12) == 0);
	CHECK(value == 0x0101010101010101);
	ph_finalize(NULL, 5);
	return 0;
}

/* The borders between the nodes move all the time; the result of each round must have every
 * node's value once. */
enum { MOVERS = 4, ROUNDS = 30 };
static atomic_bool moving;

/* No node gives everything away: it would have no value for the reduction. */
static int give_not_all(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	ph_vps_t left = ph_get_assumed_vps();
	int all = ph_vps_is_empty(left);

	(void)arg, (void)lo, (void)hi, (void)state, (void)len;
	ph_vps_destroy(left);
	return all ? PH_EINVAL : 0;
}

static void *move_borders(void *role)
{
	for (int i = 0; moving; i++) {
		if (i % 2)
			ph_take_over(2, 1, 100000);
		else if ((long)role < MOVERS - 1)
			ph_hand_over(2, 1, 100000);
		usleep(2000);
	}
	return NULL;
}

static int role_moving_reduction(int role)
{
	struct ph_migration m = { give_not_all, NULL, NULL };
	pthread_t mover;
	unsigned again = 0;

	start(role + 1, role ? 1 : 0, NULL);
	ph_set_migration(&m);
	assume_range(SPACE * role / MOVERS, SPACE * (role + 1) / MOVERS);
	moving = true;
	pthread_create(&mover, NULL, move_borders, (void *)(long)role);
	for (int round = 1; round <= ROUNDS; round++) {
		long value;
		int error;
		do {
			value = 1L << 8 * role;
			error = ph_reduce(0, SPACE, round, &value, sizeof value, add_long,
					  PATIENCE);
		} while (error == PH_EBUSY && ++again < 5000);
		CHECK(error == 0);
		CHECK(value == 0x01010101);
	}
	moving = false;
	pthread_join(mover, NULL);
	ph_finalize(NULL, 5);
	return 0;
}

static void test_collective(void)
{
	run_roles(role_collective, 5);
	run_roles(role_star, RAYS);
	run_roles(role_moving_reduction, MOVERS);
}

/* ---- the suite ---- */

const struct unit_test tests_of_crews[] = {
	{ "join and leave with state", test_counters },
	{ "multicast, reduce, barrier", test_collective },
	UNIT_END
};
