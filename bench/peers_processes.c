/* peers_processes.c - figure 13 of the P2P-MPI paper (2009) with real processes of this computer:
 * how long after the death of one of N processes the others declare it gone.
 *
 * The N nodes of one session, each a process, find each other through the first one.  When each has
 * a table of all nodes, they live for a while, in which none may be declared gone.  Then one of
 * them is killed, and each other process notes when it has declared that one gone.
 *
 * Usage: peers_processes brr|dbrr [PROCESSES...]      (default: 2 4 8 16 32 64)
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/clocks.h"
#include "bench/free_ports.h"
#include "phoenix/calls/runtime.h"
#include "phoenix/flow/flow.h"
#include "phoenix/routing/routing_private.h"

enum { MAX_PROCESSES = 128, PATIENCE_US = 120000000, GIVE_UP_S = 300,
       LIVES_US = 20000000 };

static struct shared {
	atomic_int ready, complete, noticed, wrong;
	atomic_bool go, stop, dead;
	_Atomic double when[MAX_PROCESSES];	/* declared gone */
} *shared;
static int self, first_port;

static void on_gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	(void)arg, (void)name;
	if (returned)
		return;
	if (shared->dead) {
		shared->when[self] = now_us();
		atomic_fetch_add(&shared->noticed, 1);
	} else {
		atomic_fetch_add(&shared->wrong, 1);
	}
}

static void node(int n, enum detect_protocol p)
{
	struct phnx_contact first = { .host = "127.0.0.1", .port = first_port };

	alarm(GIVE_UP_S);
	ph_init_runtime(0, n);
	ph_set_session_id("bench");
	ph_set_listen_port(first_port + self, first_port + self + 1);
	atomic_fetch_add(&shared->ready, 1);
	while (!shared->go)
		usleep(1000);
	runtime_lock();
	if (self)
		contact_add(rt.ph, &first, 0);
	runtime_settle();
	while (rt.ph->routes->n < (unsigned)n)
		runtime_wait(runtime_now() + PATIENCE_US);
	detect_set_protocol(rt.ph, p, 0);
	detect_by_size(rt.ph);
	flow_set_gone(rt.ph, PH_GONE_DISCARD, on_gone, NULL);
	runtime_unlock();
	atomic_fetch_add(&shared->complete, 1);
	while (!shared->stop)	/* the library's own thread gossips */
		usleep(20000);
	_exit(0);
}

/* Waits until the count is n.  Returns false if that did not happen in time. */
static bool reaches(atomic_int *count, int n)
{
	double start = now_us();

	while (*count < n && now_us() - start < PATIENCE_US)
		usleep(500);
	return *count >= n;
}

static void print(int n, enum detect_protocol p, double died_us)
{
	double sum = 0, last = 0;

	for (int i = 0; i < n; i++) {
		double took = i == n / 2 ? 0 : (shared->when[i] - died_us) / 1e6;

		sum += took;
		last = took > last ? took : last;
	}
	printf("%9d %9.1f %9.1f %9.2f %9.2f %8d\n", n,
	       (double)detect_rounds(DETECT_BRR, (unsigned)n) * GOSSIP_INTERVAL / 1e6,
	       (double)detect_cleanup(p, (unsigned)n, GOSSIP_INTERVAL) / 1e6, sum / (n - 1), last,
	       shared->wrong);
	fflush(stdout);
}

static void detect(int n, enum detect_protocol p)
{
	pid_t pid[MAX_PROCESSES];
	double died_us = 0;
	bool all;

	*shared = (struct shared){ 0 };
	first_port = free_ports(n);
	for (self = 0; self < n; self++) {
		pid[self] = fork();
		if (pid[self] == 0)
			node(n, p);
	}
	all = reaches(&shared->ready, n);
	shared->go = true;
	all = all && reaches(&shared->complete, n);
	if (all) {
		usleep(LIVES_US);
		died_us = now_us();
		shared->dead = true;
		kill(pid[n / 2], SIGKILL);
		all = reaches(&shared->noticed, n - 1);
	}
	if (all)
		print(n, p, died_us);
	else
		printf("%9d  %d of %d have found all others, %d have noticed\n", n,
		       shared->complete, n, shared->noticed);
	shared->stop = true;
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	static const int usual[] = { 2, 4, 8, 16, 32, 64 };
	enum detect_protocol p;

	if (argc < 2 || (strcmp(argv[1], "brr") && strcmp(argv[1], "dbrr"))) {
		fprintf(stderr, "usage: peers_processes brr|dbrr [PROCESSES...]\n");
		return 2;
	}
	p = strcmp(argv[1], "brr") ? DETECT_DBRR : DETECT_BRR;
	/* like a random secret, but without the time that making a key takes */
	setenv("PHNX_SECRET",
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 2;
	printf("%9s %9s %9s %9s %9s %8s   (seconds)\n", "processes", "one way", "cleanup", "mean",
	       "last", "false");
	for (int i = 2; i < argc; i++)
		if (atoi(argv[i]) > 1 && atoi(argv[i]) <= MAX_PROCESSES)
			detect(atoi(argv[i]), p);
	for (size_t i = 0; argc == 2 && i < sizeof usual / sizeof *usual; i++)
		detect(usual[i], p);
	return 0;
}
