/* phnx_threads.c - phnx_net's tests of threads: all calls from several threads at once, while
 * connections break; threads that wait when the library ends or the process forks.  Built with
 * SAN=thread they show that calls may come from any thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/phnx_net.h"

/* ---- several senders; a sender that waits for a receiver ---- */

static void *many_sends(void *arg)
{
	for (int i = 0; i < 1000; i++)
		ph_send(40, &i, sizeof i, (int)(long)arg);
	return NULL;
}

static int role_threads(int role)
{
	pthread_t t[4];

	start(role + 1, role ? 1 : 2, NULL);
	assume_range(role ? 32 : 0, role ? 64 : 32);
	if (role == 0) {
		for (long i = 0; i < 4; i++)
			pthread_create(t + i, NULL, many_sends, (void *)(i + 1));
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	} else {
		for (int i = 0; i < 1000; i++)
			for (int tag = 4; tag; tag--) {
				ph_msg_t m = ph_timed_recv(tag, PATIENCE);
				CHECK(m && *(int *)m->body == i);
				ph_msg_destroy(m);
			}
	}
	ph_finalize(NULL, 10);
	return 0;
}

/* More messages than a node keeps for itself: the thread that sends waits for the one that
 * receives. */
enum { OWN_MESSAGES = 160, OWN_BYTES = 1 << 20 };

static void *sends_to_itself(void *arg)
{
	(void)arg;
	for (int i = 0; i < OWN_MESSAGES; i++) {
		static char body[OWN_BYTES];
		memcpy(body, &i, sizeof i);
		ph_send(3, body, sizeof body, 1);
	}
	ph_send(3, "", 0, 2);
	return NULL;
}

static int role_itself(int role)
{
	pthread_t t;

	(void)role;
	start(0, 0, NULL);
	assume_range(0, SPACE);
	pthread_create(&t, NULL, sends_to_itself, NULL);
	CHECK(ph_timed_recv(2, 300000) == NULL);	/* the sender waits */
	for (int i = 0; i < OWN_MESSAGES; i++) {
		ph_msg_t m = ph_timed_recv(1, PATIENCE);
		CHECK(m && m->len == OWN_BYTES && *(int *)m->body == i);
		ph_msg_destroy(m);
	}
	ph_msg_t last = ph_timed_recv(2, PATIENCE);
	CHECK(last);
	ph_msg_destroy(last);
	pthread_join(t, NULL);
	ph_finalize(NULL, 5);
	return 0;
}

static void test_threads(void)
{
	run_roles(role_threads, 2);
	run_roles(role_itself, 1);
}

/* ---- everything at once ----
 * In each of 3 processes 4 threads send to the others, receive their own messages by tag, and
 * meanwhile make all other calls.  Each process keeps 8 virtual nodes of [0, 24), over which they
 * reduce.  Each thread keeps one of [24, 48), which it gives up now and then.
 */

enum { CROWD = 3, WORKERS = 4, KEPT = 8, LETTERS = 400, OF_HANDLERS = 100, STILL = CROWD * KEPT };
struct letter {
	int from, worker, number;
};
static struct worker {
	int role, worker, line;
	/* of each process, to what stays and what moves: in order, each once */
	int next[CROWD][2];
	int taken;
	atomic_int handled;
} workers[WORKERS];

static ph_vp_t kept_by(int role, int worker) { return role * KEPT + worker; }
static ph_vp_t moved_by(int role, int worker) { return STILL + role * WORKERS + worker; }

static void on_letter(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)msg, (void)source;
	atomic_fetch_add(&((struct worker *)arg)->handled, 1);
}

static int take_letter(struct worker *w, long long patience)
{
	ph_msg_t m = patience ? ph_timed_recv(1 + w->worker, patience) : ph_try_recv(1 + w->worker);

	if (!m)
		return 0;
	const struct letter *l = m->body;
	CHECK(m->len == sizeof *l && l->worker == w->worker && l->from != w->role);
	int *next = &w->next[l->from][m->dest >= STILL];
	/* each once and in order; messages that went to the other of the two are not among these */
	CHECK(l->number >= *next);
	*next = l->number + 1;
	w->taken++;
	ph_get_rtt(ph_get_source(m));
	ph_msg_destroy(m);
	return 0;
}

/* All workers of this number, in all processes, make these calls in the same round. */
static int together(struct worker *w, int round)
{
	long value = 1L << 8 * w->role;
	int id = w->worker * LETTERS + round;

	if (w->worker % 2) {
		CHECK(ph_barrier(0, STILL, id, PATIENCE) == 0);
	} else {
		CHECK(ph_reduce(0, STILL, id, &value, sizeof value, add_long, PATIENCE) == 0);
		CHECK(value == 0x010101);
	}
	return 0;
}

static void look_around(struct worker *w, int round)
{
	ph_vps_t some = ph_vps_create_range(w->role, ph_get_random_vp()),
		 mine = ph_get_assumed_vps();

	ph_vps_is_member(mine, ph_vps_get_any_elem(some));
	ph_vps_destroy(some);
	ph_vps_destroy(mine);
	ph_mqueue_is_empty();
	ph_get_fd();
	ph_get_listen_port();
	ph_set_error_callback(count_error, NULL);
	ph_set_handler(OF_HANDLERS + w->worker, round % 2 ? NULL : on_letter, w);
	if (round % 3 == 0 && w->worker == w->role)
		ph_break_connections();
}

static int work(struct worker *w)
{
	for (int i = 0; i < LETTERS; i++) {
		struct letter l = { w->role, w->worker, i };
		int to = (w->role + 1 + i % (CROWD - 1)) % CROWD;
		ph_send(i / 2 % 2 ? kept_by(to, w->worker) : moved_by(to, w->worker), &l, sizeof l,
			1 + w->worker);
		ph_send(kept_by(to, 0), NULL, 0, OF_HANDLERS + w->worker);
		CHECK(take_letter(w, i % 7 ? 0 : 100) == 0);
		if (i % 50 == 10)
			ph_release_vp(moved_by(w->role, w->worker));
		if (i % 50 == 20)
			ph_assume_vp(moved_by(w->role, w->worker));
		if (i % 80 == 30)
			CHECK(together(w, i) == 0);
		if (i % 25 == 24)
			look_around(w, i / 25);
	}
	ph_set_handler(OF_HANDLERS + w->worker, on_letter, w);
	while (w->taken < LETTERS)	/* half of the messages of each of the two others */
		CHECK(take_letter(w, PATIENCE) == 0);
	for (int wait = 0; w->handled < LETTERS; wait++) {
		CHECK(wait < PATIENCE / 1000);
		usleep(1000);
	}
	CHECK(together(w, LETTERS - 1) == 0);
	CHECK(w->taken == LETTERS && w->handled == LETTERS && !ph_try_recv(1 + w->worker));
	return 0;
}

static void *work_in_thread(void *arg)
{
	struct worker *w = arg;

	w->line = work(w);
	return NULL;
}

static int role_everything(int role)
{
	pthread_t t[WORKERS];

	start(role + 1, role ? 1 : 0, NULL);
	assume_range(role * KEPT, (role + 1) * KEPT);
	assume_range(moved_by(role, 0), moved_by(role, WORKERS));
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .role = role, .worker = i };
		pthread_create(t + i, NULL, work_in_thread, workers + i);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < WORKERS; i++)
		if (workers[i].line)
			return workers[i].line;
	ph_finalize(NULL, 5);
	return 0;
}

static void test_everything(void)
{
	run_roles(role_everything, CROWD);
}

/* ---- threads that wait when the library ends ---- */

static atomic_int waiting;

static void *waits_for_message(void *arg)
{
	waiting++;
	return ph_recv((int)(long)arg) ? "a message that nobody sent" : NULL;
}

static void *waits_for_barrier(void *arg)
{
	waiting++;
	int error = ph_barrier(0, SPACE, (int)(long)arg, PATIENCE);
	/* EINVAL: it came late, when the library had started again */
	return error == PH_ENOTINIT || error == PH_EINVAL ? NULL : "another error";
}

static void *waits_for_room(void *arg)
{
	static char body[1 << 20];
	long sent = 0;

	(void)arg;
	waiting++;
	/* ph_send() reports the error, ph_multicast() returns it */
	for (int error = 0; !error; sent++)
		error = ph_multicast(40, 41, body, sizeof body, 1);
	return sent < 1000 ? NULL : "no bound";
}

/* The waiting threads return at once, and touch nothing of the library that has ended, even if
 * it starts again. */
static int role_ends(int role)
{
	enum { TURNS = 10, THREADS = 6 };
	static void *(*const what[THREADS])(void *) = { waits_for_message, waits_for_message,
							waits_for_barrier, waits_for_barrier,
							waits_for_room,	   waits_for_message };
	pthread_t t[THREADS];
	void *wrong;

	(void)role;
	for (int turn = 0; turn < TURNS; turn++) {
		start(1, 0, NULL);
		assume_range(0, 32);
		waiting = 0;
		for (long i = 0; i < THREADS; i++)
			pthread_create(t + i, NULL, what[i], (void *)(i + 1));
		while (waiting < THREADS)
			usleep(1000);
		usleep(turn % 2 ? 20000 : 1000);
		ph_finalize(NULL, 0);
		if (turn % 3 == 0) {
			start(1, 0, NULL);
			ph_finalize(NULL, 0);
		}
		for (int i = 0; i < THREADS; i++) {
			CHECK(pthread_join(t[i], &wrong) == 0);
			CHECK(!wrong);
		}
	}
	return 0;
}

static void *ends(void *arg)
{
	(void)arg;
	ph_finalize(NULL, 1);
	return NULL;
}

/* Several threads end the library at once: one does, the others find that it has ended. */
static int role_ends_twice(int role)
{
	pthread_t t[4];

	(void)role;
	for (int turn = 0; turn < 2; turn++) {
		start(1, 0, NULL);
		assume_range(0, 32);
		ph_send(50, "", 1, 1);		/* nobody assumes it */
		for (int i = 0; i < 4; i++)
			pthread_create(t + i, NULL, ends, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	return 0;
}

static void test_ends(void)
{
	run_roles(role_ends, 1);
	run_roles(role_ends_twice, 1);
}

/* ---- a fork while threads wait: the child starts anew, and no thread waits there ---- */

static void answers(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg;
	ph_send(source, msg->body, msg->len, 3);
}

static int child_serves(void)
{
	start(2, 0, NULL);
	CHECK(ph_set_handler(2, answers, NULL) == 0);
	assume_range(32, SPACE);
	usleep(1500000);		/* the library's thread does the rest */
	return 0;
}

static int role_forks(int role)
{
	pthread_t t[2];
	int status;

	(void)role;
	start(0, 2, NULL);
	assume_range(0, 32);
	for (long i = 0; i < 2; i++)
		pthread_create(t + i, NULL, waits_for_message, (void *)(i + 10));
	usleep(100000);
	pid_t child = fork();
	if (!child)
		_exit(child_serves() != 0);
	ph_send(40, "", 1, 2);
	ph_msg_t m = ph_timed_recv(3, 1400000);
	CHECK(m);
	ph_msg_destroy(m);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	ph_finalize(NULL, 5);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static void test_forks(void)
{
#ifndef __SANITIZE_THREAD__	/* the thread sanitizer has no thread in such a child */
	run_roles(role_forks, 1);
#else
	(void)role_forks;
#endif
}

/* ---- the suite ---- */

const struct unit_test tests_of_threads[] = {
	{ "threads", test_threads },
	{ "everything at once", test_everything },
	{ "threads that wait when the library ends", test_ends },
	{ "a fork while threads wait", test_forks },
	UNIT_END
};
