/* worker.c - see worker.h.
 *
 * A thread waits at its end of a socket pair.  One packet starts the work, one packet back carries
 * the result, and the loop closes its end to end the thread.
 */
#include "iosrv/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "iosrv/iosrv.h"

enum { LOOP_END, THREAD_END };

static struct worker {
	const struct chip *chip; /* NULL: this chip needs no thread */
	pthread_t thread;
	int socket[2];
	struct event *readable;
	bool works;
} workers[N_CHIPS];

/* Receive one packet.  False: the other end is closed, or, with MSG_DONTWAIT, there is none. */
static bool take(int socket, int *number, int flags)
{
	ssize_t n;

	do
		n = recv(socket, number, sizeof *number, flags);
	while (n < 0 && errno == EINTR);
	return n == sizeof *number;
}

static void give(int socket, int number)
{
	while (write(socket, &number, sizeof number) < 0 && errno == EINTR)
		;
}

static void *run_thread(void *context)
{
	struct worker *worker = context;
	int socket = worker->socket[THREAD_END], order;

	give(socket, 0); /* report that the thread runs */
	while (take(socket, &order, 0))
		give(socket, worker->chip->work());
	return NULL;
}

static void finish(struct worker *worker, int result)
{
	worker->works = false;
	worker->chip->on_worked(result); /* may start the next work */
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct worker *worker = context;

	int result;

	(void)what;
	if (take(fd, &result, MSG_DONTWAIT)) /* none: iosrv_finish_work() has taken it */
		finish(worker, result);
}

void iosrv_start_work(const struct chip *chip)
{
	struct worker *worker = &workers[chips_number(chip)];

	bug_on(worker->chip != chip || worker->works);
	worker->works = true;
	give(worker->socket[LOOP_END], 0);
}

void iosrv_finish_work(void)
{
	int result;

	for (unsigned i = 0; i < N_CHIPS; i++)
		while (workers[i].works) {
			if (!take(workers[i].socket[LOOP_END], &result, 0))
				die("the thread of the %s is gone", workers[i].chip->name);
			finish(&workers[i], result);
		}
}

void worker_open(struct event_base *loop)
{
	for (unsigned i = 0; i < N_CHIPS; i++) {
		struct worker *worker = &workers[i];
		int error, ready;

		if (!chips[i]->work || !chips[i]->has_work())
			continue;
		worker->chip = chips[i];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, worker->socket))
			die("cannot make a socket pair: %s; see ulimit -n", strerror(errno));
		error = pthread_create(&worker->thread, NULL, run_thread, worker);
		if (error)
			die("cannot start the %s's thread: %s; see ulimit -u", worker->chip->name,
			    strerror(error));
		if (!take(worker->socket[LOOP_END], &ready, 0))
			die("the thread of the %s is gone", worker->chip->name);
		worker->readable = event_new(loop, worker->socket[LOOP_END], EV_READ | EV_PERSIST,
					     on_readable, worker);
		if (!worker->readable || event_add(worker->readable, NULL))
			die("no event loop: %s", strerror(errno));
	}
}

void worker_close(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++) {
		struct worker *worker = &workers[i];

		if (!worker->chip)
			continue;
		event_free(worker->readable);
		close(worker->socket[LOOP_END]);
		pthread_join(worker->thread, NULL);
		close(worker->socket[THREAD_END]);
		worker->chip = NULL;
	}
}
