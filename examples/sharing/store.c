/* store.c - a key-value server and its clients.
 *
 *   store [S|W|A] [--threads N]
 *
 * The clients are N processes, each with a socket to the server; the server has a thread for each
 * of them. A client sends a request and waits for the answer. The threads share one hash table,
 * parts of which have locks of their own. Each client writes and reads keys that are its alone, and
 * checks every answer; besides, all clients count up the same few counters, whose sum is checked at
 * the end.
 */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npb.h"

enum { VALUE = 52, BUCKETS = 4096, LOCKS = 64, OWN_KEYS = 256, COUNTERS = 8 };
enum { PUT, GET, COUNT };

static const int requests_of_class[] = { 2000, 20000, 200000 }; /* of each client */

/* A request and its answer. Key 0 <= key < COUNTERS is a counter. */
struct message {
	int operation;
	uint32_t key;
	uint64_t count; /* of a counter: to add, and the result */
	char value[VALUE];
};

struct entry {
	struct entry *next;
	uint32_t key;
	uint64_t count;
	char value[VALUE];
};

static struct entry *bucket[BUCKETS];
static pthread_mutex_t lock[LOCKS]; /* bucket b has lock b % LOCKS */
static int requests;

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- The server ---- */

/* The entry of a key, made if there is none. The caller holds the bucket's lock. */
static struct entry *find(unsigned b, uint32_t key)
{
	struct entry *e = bucket[b];

	while (e && e->key != key)
		e = e->next;
	if (e)
		return e;
	e = calloc(1, sizeof *e);
	if (!e)
		fail("store: calloc");
	e->key = key;
	e->next = bucket[b];
	return bucket[b] = e;
}

/* Carry out a request; the message becomes the answer. */
static void serve(struct message *m)
{
	unsigned b = m->key * 2654435761u % BUCKETS;
	struct entry *e;

	pthread_mutex_lock(&lock[b % LOCKS]);
	e = find(b, m->key);
	switch (m->operation) {
	case PUT: memcpy(e->value, m->value, VALUE); break;
	case GET: memcpy(m->value, e->value, VALUE); break;
	case COUNT: m->count = e->count += m->count; break;
	}
	pthread_mutex_unlock(&lock[b % LOCKS]);
}

/* A message is shorter than what a socket takes and gives at once. */
static void *serve_client(void *argument)
{
	int socket = (int)(intptr_t)argument;
	struct message m;

	while (recv(socket, &m, sizeof m, 0) == sizeof m) {
		serve(&m);
		if (send(socket, &m, sizeof m, MSG_NOSIGNAL) != sizeof m)
			fail("store: send");
	}
	return NULL;
}

/* ---- A client ---- */

static void ask(int socket, struct message *m)
{
	if (send(socket, m, sizeof *m, MSG_NOSIGNAL) != sizeof *m ||
		recv(socket, m, sizeof *m, 0) != sizeof *m)
		fail("store: a client's socket");
}

/* Send the requests of one client; returns its exit status: 0, or 1 if an answer was wrong. */
static int run_client(int number, int socket)
{
	static char expected[OWN_KEYS][VALUE];
	uint64_t seed = npb_skip(npb_first_seed, (uint64_t)number * 2 * requests);

	for (int i = 0; i < requests; i++) {
		int operation = (int)(3 * randlc(&seed)), which = (int)(OWN_KEYS * randlc(&seed));
		uint32_t own_key = (uint32_t)(COUNTERS + number * OWN_KEYS + which);
		uint32_t key = operation == COUNT ? (uint32_t)which % COUNTERS : own_key;
		struct message m = { operation, key, 1, "" };

		if (operation == PUT) {
			snprintf(m.value, VALUE, "client %d, request %d", number, i);
			memcpy(expected[which], m.value, VALUE);
		}
		ask(socket, &m);
		if (operation == GET && memcmp(m.value, expected[which], VALUE)) {
			printf("client %d: key %d has the value '%.*s'\n", number, which, VALUE,
				m.value);
			return 1;
		}
	}
	return 0;
}

/* How often a client counts: its numbers again, without the server. */
static uint64_t counts_of_client(int number)
{
	uint64_t seed = npb_skip(npb_first_seed, (uint64_t)number * 2 * requests), counts = 0;

	for (int i = 0; i < requests; i++) {
		counts += (int)(3 * randlc(&seed)) == COUNT;
		randlc(&seed);
	}
	return counts;
}

/* ---- The program ---- */

/* Start the clients; returns the server's sockets. A client waits until its first answer. */
static void start_clients(int clients, int *sockets)
{
	fflush(stdout);
	for (int i = 0; i < clients; i++) {
		int ends[2];
		pid_t child;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
			fail("store: socketpair");
		child = fork();
		if (child < 0)
			fail("store: fork");
		if (child == 0) {
			int status;

			close(ends[0]); /* else the end of this server would not be seen */
			for (int other = 0; other < i; other++)
				close(sockets[other]);
			status = run_client(i, ends[1]);
			fflush(stdout);
			_exit(status);
		}
		close(ends[1]);
		sockets[i] = ends[0];
	}
}

/* Serve until all clients have ended. */
static void run_server(int clients, const int *sockets)
{
	pthread_t thread[NPB_MAX_THREADS];

	for (int i = 0; i < clients; i++)
		if (pthread_create(&thread[i], NULL, serve_client, (void *)(intptr_t)sockets[i]))
			fail("store: pthread_create");
	for (int i = 0; i < clients; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "store"), clients = omp_get_max_threads(), status;
	int sockets[NPB_MAX_THREADS];
	uint64_t counted = 0, expected = 0;
	double start, seconds;
	bool good = true;

	requests = requests_of_class[c];
	for (int i = 0; i < LOCKS; i++)
		pthread_mutex_init(&lock[i], NULL);
	start = omp_get_wtime();
	start_clients(clients, sockets);
	run_server(clients, sockets);
	seconds = omp_get_wtime() - start;
	while (wait(&status) > 0)
		good &= status == 0;
	for (int i = 0; i < COUNTERS; i++) {
		struct message m = { COUNT, i, 0, "" };

		serve(&m);
		counted += m.count;
	}
	for (int i = 0; i < clients; i++)
		expected += counts_of_client(i);
	printf("%-15s %llu  expected %llu\n", "counted", (unsigned long long)counted,
		(unsigned long long)expected);
	return npb_report("store", c, seconds, 1e-6 * clients * requests,
		good && counted == expected);
}
