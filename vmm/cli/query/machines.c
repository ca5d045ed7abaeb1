/* machines.c - `vmp ps`: all machines of this user, from their run folders.  It asks no daemon. */
#include "vmm/cli/query/query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/log.h"
#include "vmm/cli/jsontext.h"
#include "vmm/cli/rundir.h"

struct listed {
	struct rundir dir;
	struct machine_info info;
	const char *state;
	uint64_t up_s;
};

const char *machines_print_age(uint64_t seconds, char *text, size_t bytes)
{
	static const struct { uint64_t seconds; char letter; } units[] = {
		{ 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' },
	};
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(units) && seconds < units[i].seconds)
		i++;
	if (i + 1 == ARRAY_LEN(units))
		snprintf(text, bytes, "%llus", (unsigned long long)seconds);
	else
		snprintf(text, bytes, "%llu%c %llu%c",
			 (unsigned long long)(seconds / units[i].seconds), units[i].letter,
			 (unsigned long long)(seconds % units[i].seconds / units[i + 1].seconds),
			 units[i + 1].letter);
	return text;
}

/* Reads a machine's run folder.  Returns false if the machine has ended. */
static bool look(struct listed *m, const char *name)
{
	struct problem p;
	time_t since;

	if (rundir_find(&m->dir, name, &p))
		return false;
	m->state = rundir_read_info(&m->dir, &m->info, &p) ? "starting"
		   : m->info.elsewhere[0]		   ? "gone on"
							   : "running";
	since = rundir_since(&m->dir);
	m->up_s = since && time(NULL) > since ? (uint64_t)(time(NULL) - since) : 0;
	return true;
}

static void print_line(const struct listed *m)
{
	char age[32];

	printf("%-16s %8d %-9s %5u %5u %6uM  %-8s %s%s%s\n", m->dir.name, m->info.pid, m->state,
	       m->info.machine.hosts, m->info.machine.cpus, m->info.machine.mem_mib,
	       machines_print_age(m->up_s, age, sizeof age), m->info.background ? "up" : "run",
	       m->info.elsewhere[0] ? ", on " : "", m->info.elsewhere);
}

static void print_json(const struct listed *m, bool first)
{
	printf("%s\n  {\"name\": \"%s\", \"pid\": %d, \"state\": \"%s\", \"hosts\": %u, "
	       "\"cpus\": %u, \"memory_mib\": %u, \"up_s\": %llu, "
	       "\"background\": %s, \"elsewhere\": ",
	       first ? "" : ",", m->dir.name, m->info.pid, m->state, m->info.machine.hosts,
	       m->info.machine.cpus, m->info.machine.mem_mib, (unsigned long long)m->up_s,
	       m->info.background ? "true" : "false");
	json_put_string(stdout, m->info.elsewhere);
	putchar('}');
}

int query_ps(const struct options *o)
{
	static struct listed m;
	struct rundir_list list;
	struct problem p;
	unsigned n = 0;

	if (rundir_list(&list, &p)) {
		log_error("%s", p.line);
		return EXIT_VMP_FAILURE;
	}
	if (o->json)
		putchar('[');
	else
		printf("%-16s %8s %-9s %5s %5s %7s  %-8s %s\n", "NAME", "PROCESS", "STATE", "HOSTS",
		       "CPUS", "MEMORY", "SINCE", "BY");
	for (unsigned i = 0; i < list.n; i++) {
		if (!look(&m, list.name[i]))
			continue;
		if (o->json)
			print_json(&m, !n);
		else
			print_line(&m);
		n++;
	}
	if (o->json)
		printf("%s]\n", n ? "\n" : "");
	if (!fflush(stdout))
		return 0;
	log_error("cannot write the list: %s", strerror(errno));
	return EXIT_VMP_FAILURE;
}
