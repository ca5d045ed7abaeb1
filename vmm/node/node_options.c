/* node_options.c - vmp-node's command line, see node.h. */
#include "vmm/node/node.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options that are not part of the machine's description (base/machine.def). */
enum { OPT_DIR = 1, OPT_NODE, OPT_LOG_FD, OPT_KERNEL, OPT_INITRD, OPT_CMDLINE, OPT_JOIN,
       OPT_CLUSTER, OPT_SECRET, OPT_PRESENT, OPT_PHOENIX, OPT_PLACE, OPT_FEATURES };

static const struct option table[] = {
	{ "dir", required_argument, NULL, OPT_DIR },
	{ "node", required_argument, NULL, OPT_NODE },
	{ "log-fd", required_argument, NULL, OPT_LOG_FD },
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "initrd", required_argument, NULL, OPT_INITRD },
	{ "cmdline", required_argument, NULL, OPT_CMDLINE },
	{ "join", required_argument, NULL, OPT_JOIN },
	{ "cluster", required_argument, NULL, OPT_CLUSTER },
	{ "secret", required_argument, NULL, OPT_SECRET },
	{ "present", required_argument, NULL, OPT_PRESENT },
	{ "phoenix", required_argument, NULL, OPT_PHOENIX },
	{ "place", required_argument, NULL, OPT_PLACE },
	{ "features", required_argument, NULL, OPT_FEATURES },
	{ 0 },
};

static int number(const char *text, unsigned least, unsigned most, unsigned *out)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most)
		return -EINVAL;
	*out = (unsigned)value;
	return 0;
}

/* Parses "0,1,1": the hosts where processors 0, 1 and 2 begin. */
static int places(struct node_options *o, const char *argument)
{
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
		char *end;
		unsigned long host = strtoul(argument, &end, 10);

		if (end == argument || host >= MAX_NODES || (*end && *end != ','))
			return -EINVAL;
		o->place[cpu] = (uint8_t)host;
		o->n_places = cpu + 1;
		if (!*end)
			return 0;
		argument = end + 1;
	}
	return -EINVAL;
}

static int take(struct node_options *o, int option, const char *argument)
{
	unsigned fd;

	switch (option) {
	case OPT_DIR: o->dir = argument; return 0;
	case OPT_NODE: return number(argument, 0, MAX_NODES - 1, &o->node);
	case OPT_LOG_FD:
		if (number(argument, 0, 1 << 20, &fd))
			return -EINVAL;
		o->log_fd = (int)fd;
		return 0;
	case OPT_KERNEL: o->kernel = argument; return 0;
	case OPT_INITRD:
		if (o->n_initrds == MAX_INITRDS)
			return -EINVAL;
		o->initrd[o->n_initrds++] = argument;
		return 0;
	case OPT_CMDLINE:
		o->cmdline = argument;
		return strlen(argument) < MAX_CMDLINE ? 0 : -EINVAL;
	case OPT_JOIN: return number(argument, 1, UINT32_MAX, &o->join);
	case OPT_CLUSTER: o->cluster = argument; return 0;
	case OPT_SECRET: o->secret = argument; return 0;
	case OPT_PRESENT: o->present = argument; return 0;
	case OPT_PHOENIX:
		if (o->n_phoenix == MAX_PHOENIX)
			return -EINVAL;
		o->phoenix[o->n_phoenix++] = argument;
		return 0;
	case OPT_PLACE: return places(o, argument);
	case OPT_FEATURES: return cpufeatures_parse(&o->features, argument);
	default: return -EINVAL;
	}
}

int node_options_parse(struct node_options *o, int argc, char **argv, char *why, size_t why_bytes)
{
	int option, which = -1;

	*o = (struct node_options){ .log_fd = 2, .node = MAX_NODES };
	machine_defaults(&o->machine);
	if (machine_take_words(&o->machine, MACHINE_NODE | MACHINE_NODE0, &argc, argv, why,
			       why_bytes))
		return -EINVAL;
	cpufeatures_look(&o->features);
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", table, &which)) != -1)
		if (take(o, option, optarg)) {
			if (option == '?')
				snprintf(why, why_bytes, "unknown option %s", argv[optind - 1]);
			else
				snprintf(why, why_bytes, "--%s %s is not possible",
					 table[which].name, optarg);
			return -EINVAL;
		}
	if (optind < argc)
		snprintf(why, why_bytes, "unexpected argument %s", argv[optind]);
	else if ((!o->dir && !o->secret) || !o->machine.hosts || !o->machine.cpus ||
		 o->node >= (o->join ? MAX_NODES : o->machine.hosts))
		snprintf(why, why_bytes,
			 "needs --dir or --secret, --node below --hosts, and --cpus");
	else if (o->machine.hosts > o->machine.cpus && !o->n_places)
		snprintf(why, why_bytes, "more hosts (%u) than CPUs (%u)", o->machine.hosts,
			 o->machine.cpus);
	else if (o->node == 0 && !o->dir)
		snprintf(why, why_bytes, "node 0 needs --dir");
	else if (o->join & 1u << o->node)
		snprintf(why, why_bytes, "--join %u names this node itself", o->join);
	else if (o->node == 0 && ((!o->kernel && !o->machine.restore) || !o->cmdline))
		snprintf(why, why_bytes, "node 0 needs --kernel or --restore, and --cmdline");
	else
		return 0;
	return -EINVAL;
}
