/* replay.c - replays recorded fetches (`vmp run --trace`, as bench/replay prepares them) on other
 * numbers of hosts and on other networks.  The page protocol is the daemons' own (dsm/); network,
 * daemons and programs are a model.
 *
 *   replay [--hosts N,...] [--rtt US,...] [--gbit N,...] [--serve US] [--one S] [--json]
 *          <FETCHES
 *
 * FETCHES has lines of words, ordered by time:
 *   fetch HOST CPU BEGIN_US END_US PAGE read|write FROM TO_DAEMON_US TO_GUEST_US
 *   take HOST END_US PAGE
 *
 * A program is a sequence for each CPU: compute, fetch, compute, ...  The time between two fetches
 * is computing, less what every fetch costs outside its recorded stages: the longest of the
 * shortest tenth of these times. --one gives the program's measured time on one CPU; all computing
 * is then scaled to that sum.  If a host loses a page during such a time, and its CPU fetches it
 * again within SPIN_US, the CPU was waiting for another CPU's store.  In the replay it continues as
 * soon as its host loses the page again, but not later than in the recording.  With N hosts, more
 * than were recorded, CPU i behaves as CPU i mod K of the K recorded ones and computes K/N of the
 * time.  Each K hosts have copies of their own of the recorded pages, except those that every
 * recorded host wrote GLOBAL_WRITES times or more (barriers, reductions, locks, the kernel's
 * variables): all hosts share these.
 */
#include <getopt.h>
#include <stdlib.h>
#include "base/log.h"
#include "bench/replay.h"

enum { LISTED = 8 };

struct list { double value[LISTED]; unsigned n; };

static void parse_list(struct list *list, const char *name, const char *text, double most)
{
	list->n = 0;
	for (char *end;; text = end + 1) {
		double value = strtod(text, &end);

		if (end == text || (*end && *end != ',') || !(value > 0) || value > most ||
		    list->n == LISTED)
			die("--%s %s: up to %d numbers above 0 and up to %.0f, as 10,25", name,
			    text, LISTED, most);
		list->value[list->n++] = value;
		if (!*end)
			return;
	}
}

struct options { struct list hosts, rtt, gbit, serve, one; bool json; };

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option words[] = {
		{ "hosts", 1, NULL, 'h' }, { "rtt", 1, NULL, 'r' }, { "gbit", 1, NULL, 'g' },
		{ "serve", 1, NULL, 's' }, { "one", 1, NULL, 'o' }, { "json", 0, NULL, 'j' },
		{ 0 }
	};

	*o = (struct options){ .hosts = { { 2, 4, 8, 16, 32 }, 5 }, .rtt = { { 10, 25, 100 }, 3 },
			       .gbit = { { 1, 10, 100 }, 3 }, .serve = { { 3 }, 1 } };
	for (int c; (c = getopt_long(argc, argv, "", words, NULL)) != -1;)
		switch (c) {
		case 'h': parse_list(&o->hosts, "hosts", optarg, MAX_NODES); break;
		case 'r': parse_list(&o->rtt, "rtt", optarg, 1e6); break;
		case 'g': parse_list(&o->gbit, "gbit", optarg, 1e4); break;
		case 's': parse_list(&o->serve, "serve", optarg, 1e6); break;
		case 'o': parse_list(&o->one, "one", optarg, 1e6); break;
		case 'j': o->json = true; break;
		default: exit(2);
		}
}

static void print_row(const struct options *o, unsigned hosts, double rtt, double gbit,
		      double one_us)
{
	double us = model_run(hosts);

	if (o->json)
		printf("{\"hosts\": %u, \"rtt_us\": %g, \"gbit\": %g, \"seconds\": %.6f, "
		       "\"speedup\": %.3f, \"fetches\": %llu, \"messages\": %llu}\n", hosts, rtt,
		       gbit, us / 1e6, one_us / us, (unsigned long long)model.fetches,
		       (unsigned long long)model.messages);
	else
		printf("%5u%s %8g %9g %10.4f %9.2f %10llu\n", hosts,
		       hosts > record.tracks ? "*" : " ", rtt, gbit, us / 1e6, one_us / us,
		       (unsigned long long)model.fetches);
}

static void print_head(const struct options *o, double one_us)
{
	printf("measured: %llu fetches of %u CPUs in %.4f s; each took %.1f us to its daemon and "
	       "%.1f us back\n  to the guest, and %.1f us besides; one CPU takes %.4f s%s\n",
	       (unsigned long long)record.fetches, record.tracks,
	       (record.end_us - record.begin_us) / 1e6, record.to_daemon_us, record.to_guest_us,
	       record.overhead_us, one_us / 1e6,
	       o->one.n ? "" : ", the sum of what they computed (--one S: as measured)");
	printf("model: the network, %g us of a daemon for a message, and all rows below; * more "
	       "hosts than recorded\n", o->serve.value[0]);
	printf("%5s  %8s %9s %10s %9s %10s\n", "hosts", "rtt us", "Gbit/s", "seconds", "speed-up",
	       "fetches");
}

int main(int argc, char **argv)
{
	struct options o;
	double one_us;

	parse(&o, argc, argv);
	record_read(stdin);
	one_us = o.one.n ? o.one.value[0] * 1e6 : record_computed_us();
	if (o.one.n)
		record_scale(one_us);
	if (!o.json)
		print_head(&o, one_us);
	model.serve_us = o.serve.value[0];
	for (unsigned h = 0; h < o.hosts.n; h++)
		for (unsigned r = 0; r < o.rtt.n; r++)
			for (unsigned g = 0; g < o.gbit.n; g++) {
				model.one_way_us = o.rtt.value[r] / 2;
				model.us_per_byte = 8 / (o.gbit.value[g] * 1000);
				print_row(&o, (unsigned)o.hosts.value[h], o.rtt.value[r],
					  o.gbit.value[g], one_us);
			}
	return 0;
}
