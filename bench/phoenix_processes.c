/* phoenix_processes.c - measures how long real processes on this computer take to build their
 * routing tables.
 *
 * N processes listen on loopback.  At a signal each dials the others, as in the cases of the same
 * names in phoenix_routing.c.  The time ends when the last process has what the case asks for.  All
 * share this computer's processors, so the times compare work: how much processor time the messages
 * of a table need.
 *
 *   offline    it is given which node connects to which; done when the connections are there
 *   names      all names are given; done when each node's table has a direct way to each other
 *              node, and they are linked
 *   discovery  a node knows the first one
 *
 * Usage: phoenix_processes [ROUNDS [PROCESSES...]]      (default: 3 rounds of 25, 50, 100 and 200)
 * A round takes the cases in turns.  The program prints medians, and the medians of the rounds'
 * ratios.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/clocks.h"
#include "bench/free_ports.h"
#include "bench/median.h"
#include "phoenix/calls/runtime.h"
#include "phoenix/link/link_private.h"
#include "phoenix/routing/routing_private.h"

enum {
	MAX_PROCESSES = 400,
	MAX_ROUNDS = 25,
	PATIENCE_US = 120000000,
	GIVE_UP_S = 240
};
enum mode { OFFLINE, NAMES, DISCOVERY, MODES };
static struct shared {
	atomic_int ready, done;
	atomic_bool go, stop;
	_Atomic uint64_t updates;
} *shared;
static int first_port;

static void contact(int port)
{
	struct phnx_contact at = { .host = "127.0.0.1", .port = port };

	contact_add(rt.ph, &at, 0);
}

static void configure(int node, int n, enum mode mode)
{
	contact_set_learning(rt.ph, mode == DISCOVERY);
	if (mode == OFFLINE)
		rt.ph->routes->algorithm = ROUTING_SILENT;
	for (int other = 0; other < n; other++)
		if (mode == NAMES || (mode == OFFLINE && other < node) ||
		    (mode == DISCOVERY && node && !other))
			contact(first_port + other);
}

static bool complete(int n, enum mode mode)
{
	int there = 0;

	for (unsigned k = 0; k < rt.ph->routes->n; k++) {
		const struct rentry *e = rt.ph->routes->list[k];
		there +=
			e != rt.ph->routes->self && e->direct && (mode == OFFLINE || e->nhops == 1);
	}
	return there == n - 1;
}

static void node(int node, int n, enum mode mode)
{
	alarm(GIVE_UP_S);
	ph_init_runtime(0, n);
	ph_set_session_id("bench");
	ph_set_listen_port(first_port + node, first_port + node + 1);
	atomic_fetch_add(&shared->ready, 1);
	while (!shared->go)
		usleep(1000);
	runtime_lock();
	configure(node, n, mode);
	runtime_settle();
	while (!complete(n, mode))
		runtime_wait(runtime_now() + PATIENCE_US);
	runtime_unlock();
	atomic_fetch_add(&shared->done, 1);
	while (!shared->stop)	/* the library's own thread goes on with what the others need */
		usleep(20000);
	atomic_fetch_add(&shared->updates, rt.ph->links->frames_out[FRAME_ROUTE]);
	_exit(0);
}

/* Runs one construction.  Returns its seconds, or a negative number if it did not end. */
static double construct(int n, enum mode mode, uint64_t *updates)
{
	*shared = (struct shared){ 0 };
	first_port = free_ports(n);
	for (int i = 0; i < n; i++)
		if (fork() == 0)
			node(i, n, mode);
	while (shared->ready < n)
		usleep(1000);
	double start = now_us();
	shared->go = true;
	while (shared->done < n && now_us() - start < PATIENCE_US)
		usleep(500);
	double took = shared->done == n ? (now_us() - start) / 1e6 : -1;
	shared->stop = true;
	while (wait(NULL) > 0)
		;
	*updates = shared->updates;
	return took;
}

static void row(int n, int rounds)
{
	double s[MODES][MAX_ROUNDS], ratio[MODES][MAX_ROUNDS];
	uint64_t updates[MODES];

	for (int r = 0; r < rounds; r++)
		for (enum mode m = 0; m < MODES; m++) {
			s[m][r] = construct(n, m, updates + m);
			ratio[m][r] = s[m][r] / s[OFFLINE][r];
		}
	printf("%9d %9.3f %9.3f %9.3f %8.2f %8.2f %10llu %10llu\n", n, median(s[OFFLINE], rounds),
	       median(s[NAMES], rounds), median(s[DISCOVERY], rounds), median(ratio[NAMES], rounds),
	       median(ratio[DISCOVERY], rounds), (unsigned long long)updates[NAMES],
	       (unsigned long long)n * (unsigned long long)(n - 1));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const int usual[] = { 25, 50, 100, 200 };
	struct rlimit files;
	int rounds = argc > 1 ? atoi(argv[1]) : 3;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	/* like a random secret, but without the time that making a key takes */
	setenv("PHNX_SECRET",
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	printf("%9s %9s %9s %9s %8s %8s %10s %10s\n", "processes", "offline", "names", "discovery",
	       "/offline", "disc/off", "updates", "least");
	for (int i = 0; i < (argc > 2 ? argc - 2 : 4); i++) {
		int n = argc > 2 ? atoi(argv[i + 2]) : usual[i];
		if (n < 2 || n > MAX_PROCESSES)
			return 2;
		row(n, rounds);
	}
	return 0;
}
