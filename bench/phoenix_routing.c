/* phoenix_routing.c - how long it takes until a routing table is built (thesis, figures 3.3 to
 * 3.8).
 *
 * The nodes are in a simulated network.  Each does one thing at a time, for as long as a packet and
 * a connection cost the kernel of this computer (measured at the start), and as long as the
 * library's own code takes here.  A packet is under way for a random time of 25 to 75 us, as in a
 * local network; with "far", for 50 to 500 us.
 *
 *   offline    it is given which node connects to which; done when the connections are there
 *   master     all names are given; each node tries all others and tells node 0 whom it reached;
 *              node 0 calculates all paths and sends each node its table
 *   told       as offline; when the connections are there, all nodes tell at once what they have:
 *              done when every table is complete.  This is the time if nothing is held, and nothing
 *              about others is told before the connections are there
 *   names      all names are given; the library does the rest
 *   discovery  a node knows the first of its subnet, and that one the first of the first subnet
 *   naive      `names` with DSDV as it is in the books: each change is told to each neighbour at
 *              once
 *
 * There is one subnet, or three in the proportion 14 : 8 : 3, of which only the first nodes can
 * reach each other.  "phases" prints when, with `names`, the last connection was there, the last
 * node knew its subnet, the last gateway knew all nodes, and the last table was complete.  "ratio"
 * runs offline and names in turns, and prints medians over seven seeds, and the least time that is
 * possible (see least()).  "fixed" takes 4 us for a packet, 12 us for a connection and nothing for
 * the library's own code: the same on every computer.
 *
 * Usage: phoenix_routing [far] [fixed] table|ratio|naive|phases [NODES...] | curve NODES |
 *                        storm NODES
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tests/sim/phnx_sim.h"

enum {
	MAX_NODES = 1000,
	LIMIT = 60000000,
	STEP = 20,
	NEAR_MIN = 25,
	NEAR_MAX = 75,
	FAR_MIN = 50,
	FAR_MAX = 500
};
enum mode { OFFLINE, MASTER, TOLD, NAMES, DISCOVERY, NAIVE };
struct costs {
	uint64_t packet_ns, kib_ns, link_ns;
};
struct result {
	double s;
	uint64_t updates;	/* frames of the routing protocol */
	double least_s;		/* least(), taken after OFFLINE */
};
static struct sim s;
static int n_nodes;
static bool three, far_away, fixed;
static struct costs costs;

static uint64_t seed = 1;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- what a packet and a connection cost ---- */

static void stop(const char *what)
{
	perror(what);
	exit(1);
}

static int listen_somewhere(struct sockaddr_in *at)
{
	socklen_t len = sizeof *at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)at, len) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		stop("socket");
	return fd;
}

/* Returns how many ns it takes to send n bytes once and to receive them, as an average of many
 * times. */
static uint64_t exchanges_ns(int from, int to, size_t n)
{
	enum { TIMES = 100 };
	static char buf[65536];
	uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < TIMES; i++) {
		if (send(from, buf, n, 0) != (ssize_t)n)
			stop("send");
		for (size_t at = 0; at < n;) {
			ssize_t got = recv(to, buf, n - at, 0);
			if (got <= 0)
				stop("recv");
			at += (size_t)got;
		}
	}
	return (now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / TIMES;
}

/* The same without disturbances: the least of several measurements. */
static uint64_t exchange_ns(int from, int to, size_t n)
{
	enum { ATTEMPTS = 10 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < ATTEMPTS; i++) {
		uint64_t ns = exchanges_ns(from, to, n);
		least = ns < least ? ns : least;
	}
	return least;
}

static struct costs measure(void)
{
	enum { LINKS = 100 };
	struct sockaddr_in at;
	int listener = listen_somewhere(&at), a[LINKS], b[LINKS];
	uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < LINKS; i++) {
		a[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(a[i], (struct sockaddr *)&at, sizeof at) ||
		    (b[i] = accept(listener, NULL, NULL)) < 0)
			stop("connect");
	}
	uint64_t link = (now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / LINKS;
	uint64_t small = exchange_ns(a[0], b[0], 100), large = exchange_ns(a[0], b[0], 32768);
	for (int i = 0; i < LINKS; i++) {
		close(a[i]);
		close(b[i]);
	}
	close(listener);
	return (struct costs){ small / 2, large > small ? (large - small) / 32 / 2 : 0, link / 2 };
}

/* ---- the network ---- */

static int subnet(int node)
{
	int at = node * 25 / n_nodes;

	return !three ? 0 : at < 14 ? 0 : at < 22 ? 1 : 2;
}

static bool is_gateway(int node)
{
	return node == 0 || subnet(node) != subnet(node - 1);
}

static bool reaches(const struct sim *sim, int from, int to)
{
	(void)sim;
	return subnet(from) == subnet(to) || (is_gateway(from) && is_gateway(to));
}

static int gateway_of(int node)
{
	while (!is_gateway(node))
		node--;
	return node;
}

static void configure(int node, enum mode mode)
{
	struct phnx *ph = s.nodes[node].ph;

	if (mode == OFFLINE || mode == MASTER || mode == TOLD)
		ph->routes->algorithm = ROUTING_SILENT;
	if (mode == NAIVE)
		ph->routes->algorithm = ROUTING_NAIVE;
	contact_set_learning(ph, mode == DISCOVERY);
	if (mode == DISCOVERY) {
		if (node)
			sim_know(&s, node, is_gateway(node) ? 0 : gateway_of(node));
		return;
	}
	for (int other = 0; other < n_nodes; other++)
		if (mode == OFFLINE || mode == TOLD ? other < node && reaches(&s, node, other)
						    : true)
			sim_know(&s, node, other);
}

static bool linked(struct sim *sim)
{
	for (int i = 0; i < n_nodes; i++) {
		int want = 0, have = 0;
		for (int j = 0; j < n_nodes; j++)
			want += j != i && reaches(sim, i, j);
		for (struct plink *l = sim->nodes[i].ph->links->list; l; l = l->next)
			have += l->state == LINK_UP;
		if (have < want)
			return false;
	}
	return true;
}

/* Counts the reachable pairs, and the hops between them. */
static void pairs(const struct sim *sim, uint64_t *reachable, uint64_t *hops)
{
	*reachable = *hops = 0;
	for (int i = 0; i < n_nodes; i++) {
		const struct phnx *ph = sim->nodes[i].ph;
		for (unsigned k = 0; !sim->nodes[i].dead && k < ph->routes->n; k++) {
			const struct rentry *e = ph->routes->list[k];
			if (e == ph->routes->self || e->nhops == UNREACHABLE)
				continue;
			++*reachable;
			*hops += e->nhops;
		}
	}
}

/* Returns whether every table is complete and every path the shortest. */
static bool stable(struct sim *sim)
{
	uint64_t reachable, hops, n = (uint64_t)n_nodes, best = 0;

	pairs(sim, &reachable, &hops);
	if (reachable != n * (n - 1))
		return false;
	for (int i = 0; i < n_nodes; i++)
		for (int j = 0; j < n_nodes; j++)
			best += i == j		     ? 0
				: reaches(sim, i, j) ? 1u
						     : 1u + !is_gateway(i) + !is_gateway(j);
	return hops == best;
}

static void start(enum mode mode)
{
	sim_init(&s, seed, n_nodes, 0, 1 << 20);
	s.may_connect = reaches;
	s.delay_min = far_away ? FAR_MIN : NEAR_MIN;
	s.delay_max = far_away ? FAR_MAX : NEAR_MAX;
	s.packet_cost_ns = costs.packet_ns;
	s.kib_cost_ns = costs.kib_ns;
	s.link_cost_ns = costs.link_ns;
	s.cpu_costs = !fixed;
	for (int i = 0; i < n_nodes; i++)
		configure(i, mode);
}

/* ---- the master's part, after the connections ---- */

static void breadth_first(const unsigned char *edge, int from, short *queue, unsigned char *far)
{
	int head = 0, tail = 0;

	memset(far, 255, (size_t)n_nodes);
	far[from] = 0;
	queue[tail++] = (short)from;
	while (head < tail) {
		int i = queue[head++];
		for (int j = 0; j < n_nodes; j++)
			if (edge[i * n_nodes + j] && far[j] == 255) {
				far[j] = far[i] + 1;
				queue[tail++] = (short)j;
			}
	}
}

/* Returns the master's part in seconds: it receives n lists of neighbours, calculates, and sends n
 * tables; the last table then needs a packet's time. */
static double master_s(void)
{
	static unsigned char edge[MAX_NODES * MAX_NODES], far[MAX_NODES];
	static short queue[MAX_NODES];
	uint64_t n = (uint64_t)n_nodes, list_bytes = 0, table_bytes = 10 * n,
		 delay_us = 2 * (s.delay_min + s.delay_max) / 2;

	for (int i = 0; i < n_nodes; i++)
		for (int j = 0; j < n_nodes; j++)
			list_bytes += 8u * (edge[i * n_nodes + j] = i != j && reaches(&s, i, j));
	uint64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < n_nodes; i++)
		breadth_first(edge, i, queue, far);
	uint64_t ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	ns += 2 * n * costs.packet_ns + (list_bytes + n * table_bytes) * costs.kib_ns / 1024;
	return (double)ns / 1e9 + (double)delay_us / 1e6;
}

/* ---- figures ---- */

static void tell_all(void)
{
	for (int i = 0; i < n_nodes; i++) {
		s.nodes[i].ph->routes->algorithm = ROUTING_OPTIMISED;
		for (struct plink *l = s.nodes[i].ph->links->list; l; l = l->next)
			route_resend_all(s.nodes[i].ph, l);
		sim_touch(&s, i);
	}
}

/* Returns the least time in seconds in which a distance-vector protocol can build the tables,
 * whatever its nodes are told, if its routing messages are packets of their own.  (The library's
 * are, except for what a node tells a new neighbour about itself.) It is the sum of: the busiest
 * node's connections (as in OFFLINE), one packet from each neighbour about itself and one to each,
 * and the way of the last packet.  Names that lead nowhere, and what the library takes for these
 * packets, are not counted. */
static double least(void)
{
	uint64_t most_ns = 0;

	for (int i = 0; i < n_nodes; i++) {
		uint64_t neighbours = 0, ns;
		for (int j = 0; j < n_nodes; j++)
			neighbours += j != i && reaches(&s, i, j);
		ns = s.nodes[i].all_busy_ns + 2 * neighbours * costs.packet_ns;
		most_ns = ns > most_ns ? ns : most_ns;
	}
	return (double)(most_ns + costs.packet_ns) / 1e9 + (double)s.delay_min / 1e6;
}

static struct result construct(enum mode mode)
{
	struct result r = { .s = -1 };
	uint64_t begin;

	start(mode);
	begin = s.now;
	bool (*done)(struct sim *) = mode <= TOLD ? linked : stable;
	while (!done(&s) && s.now < begin + LIMIT)
		sim_run(&s, s.now + STEP);
	if (mode == TOLD) {
		tell_all();
		for (done = stable; !done(&s) && s.now < begin + LIMIT;)
			sim_run(&s, s.now + STEP);
	}
	if (done(&s))
		r.s = (double)(s.now - begin) / 1e6 + (mode == MASTER ? master_s() : 0);
	r.least_s = mode == OFFLINE ? least() : 0;
	for (int i = 0; i < n_nodes; i++)
		r.updates += s.nodes[i].ph->links->frames_out[FRAME_ROUTE];
	sim_free(&s);
	return r;
}

static void table(void)
{
	struct result offline = construct(OFFLINE), master = construct(MASTER),
		      told = construct(TOLD), names = construct(NAMES),
		      found = construct(DISCOVERY);

	printf("%6d %7s %9.4f %9.4f %9.4f %9.4f %9.4f %8.2f %8.2f %8.2f %8.2f %10llu\n", n_nodes,
	       three ? "three" : "one", offline.s, master.s, names.s, found.s, told.s,
	       names.s / offline.s, names.s / master.s, names.s / told.s, found.s / offline.s,
	       (unsigned long long)names.updates);
	fflush(stdout);
}

static int by_s(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return (x->s > y->s) - (x->s < y->s);
}

/* Runs both in turns, so that other load affects both, and prints medians. */
static void ratio(void)
{
	enum { ROUNDS = 7 };
	struct result offline[ROUNDS], names[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		seed = (uint64_t)i + 1;
		offline[i] = construct(OFFLINE);
		names[i] = construct(NAMES);
	}
	qsort(offline, ROUNDS, sizeof *offline, by_s);
	qsort(names, ROUNDS, sizeof *names, by_s);
	const struct result *o = offline + ROUNDS / 2, *n = names + ROUNDS / 2;
	printf("%6d %7s %9.4f %9.4f %9.4f %8.2f %8.2f %10llu\n", n_nodes, three ? "three" : "one",
	       o->s, o->least_s, n->s, n->s / o->s, o->least_s / o->s,
	       (unsigned long long)n->updates);
	fflush(stdout);
}

static void naive(void)
{
	struct result ours = construct(NAMES), books = construct(NAIVE);

	printf("%6d %7s %10llu %10llu %9.3f %9.3f\n", n_nodes, three ? "three" : "one",
	       (unsigned long long)ours.updates, (unsigned long long)books.updates, ours.s,
	       books.s);
	fflush(stdout);
}

static bool knows(const struct sim *sim, int node, bool all)
{
	const struct phnx *ph = sim->nodes[node].ph;
	int known = 0, asked = 0;

	for (int j = 0; j < n_nodes; j++)
		asked += all || reaches(sim, node, j);
	for (unsigned k = 0; k < ph->routes->n; k++)
		known += ph->routes->list[k]->nhops != UNREACHABLE &&
			 (all || ph->routes->list[k]->nhops < 2);
	return known >= asked;
}

static bool subnets_known(struct sim *sim)
{
	for (int i = 0; i < n_nodes; i++)
		if (!knows(sim, i, false))
			return false;
	return true;
}

static bool gateways_know(struct sim *sim)
{
	for (int i = 0; i < n_nodes; i++)
		if (is_gateway(i) && !knows(sim, i, true))
			return false;
	return true;
}

static void phases(void)
{
	bool (*const done[])(struct sim *) = { linked, subnets_known, gateways_know, stable };
	uint64_t begin;

	start(NAMES);
	begin = s.now;
	printf("%6d %7s", n_nodes, three ? "three" : "one");
	for (unsigned i = 0; i < sizeof done / sizeof *done; i++) {
		while (!done[i](&s) && s.now < begin + LIMIT)
			sim_run(&s, s.now + STEP);
		printf(" %9.4f", (double)(s.now - begin) / 1e6);
	}
	printf("\n");
	fflush(stdout);
	sim_free(&s);
}

static void print_pairs(uint64_t since)
{
	uint64_t reachable, hops, all = (uint64_t)n_nodes * (uint64_t)(n_nodes - 1);

	pairs(&s, &reachable, &hops);
	printf("%.4f %.4f %.4f\n", (double)(s.now - since) / 1e6, (double)reachable / (double)all,
	       reachable ? (double)hops / (double)reachable : 0);
}

static void watch(uint64_t since, uint64_t until_us, uint64_t step_us)
{
	for (; s.now < since + until_us; sim_run(&s, s.now + step_us))
		print_pairs(since);
}

static void curve(void)
{
	start(DISCOVERY);
	for (uint64_t since = s.now;;) {
		print_pairs(since);
		if (stable(&s))
			break;
		sim_run(&s, s.now + 250);
	}
	sim_free(&s);
}

/* Half of the nodes die after 3 seconds and come back after 5. */
static void storm(void)
{
	start(DISCOVERY);
	uint64_t since = s.now;
	watch(since, 3000000, 20000);
	for (int i = 1; i < n_nodes; i += 2)
		sim_kill(&s, i);
	watch(since, 5000000, 20000);
	for (int i = 1; i < n_nodes; i += 2) {
		sim_restart(&s, i);
		configure(i, DISCOVERY);
	}
	watch(since, 8000000, 20000);
	sim_free(&s);
}

static void for_each(void (*what)(void), int argc, char **argv)
{
	static const int usual[] = { 100, 200, 400 };

	for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++)
		for (int t = 0; t < 2; t++) {
			n_nodes = argc > 2 ? atoi(argv[i + 2]) : usual[i];
			three = t;
			if (n_nodes < 2 || n_nodes > MAX_NODES)
				exit(2);
			what();
		}
}

int main(int argc, char **argv)
{
	far_away = argc > 1 && !strcmp(argv[1], "far");
	argc -= far_away;
	argv += far_away;
	fixed = argc > 1 && !strcmp(argv[1], "fixed");
	argc -= fixed;
	argv += fixed;
	costs = fixed ? (struct costs){ 4000, 25, 12000 } : measure();
	const char *what = argc > 1 ? argv[1] : "table";
	/* without this, one node would now and then pay for tidying up what all others in this
	 * process have freed */
	mallopt(M_MXFAST, 0);
	n_nodes = argc > 2 ? atoi(argv[2]) : 224;
	fprintf(stderr,
		"a packet costs each side %llu ns and %llu ns per KiB, a connection %llu ns\n",
		(unsigned long long)costs.packet_ns, (unsigned long long)costs.kib_ns,
		(unsigned long long)costs.link_ns);
	if (!strcmp(what, "table")) {
		printf("%6s %7s %9s %9s %9s %9s %9s %8s %8s %8s %8s %10s\n", "nodes", "subnets",
		       "offline", "master", "names", "discovery", "told", "/offline", "/master",
		       "/told", "disc/off", "updates");
		for_each(table, argc, argv);
	} else if (!strcmp(what, "ratio")) {
		printf("%6s %7s %9s %9s %9s %8s %8s %10s\n", "nodes", "subnets", "offline", "least",
		       "names", "/offline", "least/off", "updates");
		for_each(ratio, argc, argv);
	} else if (!strcmp(what, "naive")) {
		printf("%6s %7s %10s %10s %9s %9s\n", "nodes", "subnets", "updates", "naive", "s",
		       "naive s");
		for_each(naive, argc, argv);
	} else if (!strcmp(what, "phases")) {
		printf("%6s %7s %9s %9s %9s %9s\n", "nodes", "subnets", "linked", "subnets",
		       "gateways", "all");
		for_each(phases, argc, argv);
	} else if (!strcmp(what, "curve") || !strcmp(what, "storm")) {
		(strcmp(what, "curve") ? storm : curve)();
	} else {
		return 2;
	}
	return 0;
}
