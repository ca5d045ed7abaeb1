/* node_options.c - vmp-node's command line, see node.h. */
#include "vmm/node/node.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_DIR = 1, OPT_NODE, OPT_NODES, OPT_CPUS, OPT_MEM, OPT_LOG_FD, OPT_VERBOSE, OPT_KERNEL, OPT_INITRD, OPT_CMDLINE,
       OPT_DISK, OPT_RESTORE, OPT_DIRECT, OPT_STRICT, OPT_HOLD, OPT_HOST_MEM, OPT_GROWS, OPT_JOIN, OPT_POLICY, OPT_CLUSTER, OPT_SECRET, OPT_PHOENIX, OPT_PLACE, OPT_FEATURES, OPT_REPORT };

static const struct option table[] = {
	{ "dir", required_argument, NULL, OPT_DIR },	     { "node", required_argument, NULL, OPT_NODE },
	{ "nodes", required_argument, NULL, OPT_NODES },     { "cpus", required_argument, NULL, OPT_CPUS },
	{ "mem", required_argument, NULL, OPT_MEM },	     { "log-fd", required_argument, NULL, OPT_LOG_FD },
	{ "verbose", no_argument, NULL, OPT_VERBOSE },	     { "kernel", required_argument, NULL, OPT_KERNEL },
	{ "initrd", required_argument, NULL, OPT_INITRD },   { "cmdline", required_argument, NULL, OPT_CMDLINE },
	{ "disk", required_argument, NULL, OPT_DISK },	     { "restore", no_argument, NULL, OPT_RESTORE },
	{ "direct", no_argument, NULL, OPT_DIRECT },	     { "hold", no_argument, NULL, OPT_HOLD },
	{ "host-mem", required_argument, NULL, OPT_HOST_MEM }, { "strict", no_argument, NULL, OPT_STRICT },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "grows", no_argument, NULL, OPT_GROWS },	     { "join", required_argument, NULL, OPT_JOIN },
	{ "cluster", required_argument, NULL, OPT_CLUSTER }, { "secret", required_argument, NULL, OPT_SECRET },
	{ "phoenix", required_argument, NULL, OPT_PHOENIX }, { "place", required_argument, NULL, OPT_PLACE },
	{ "features", required_argument, NULL, OPT_FEATURES }, { "report", no_argument, NULL, OPT_REPORT },
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

/* "0,1,1": the hosts where processors 0, 1 and 2 begin. */
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
	case OPT_NODES: return number(argument, 1, MAX_NODES, &o->n_nodes);
	case OPT_CPUS: return number(argument, 1, MAX_CPUS, &o->n_cpus);
	case OPT_MEM: return number(argument, MIN_RAM_MIB, MAX_RAM_MIB, &o->mem_mib);
	case OPT_HOST_MEM: return number(argument, 0, MAX_RAM_MIB, &o->host_mem_mib);
	case OPT_LOG_FD:
		if (number(argument, 0, 1 << 20, &fd))
			return -EINVAL;
		o->log_fd = (int)fd;
		return 0;
	case OPT_VERBOSE: o->verbose = true; return 0;
	case OPT_KERNEL: o->kernel = argument; return 0;
	case OPT_INITRD:
		if (o->n_initrds == MAX_INITRDS)
			return -EINVAL;
		o->initrd[o->n_initrds++] = argument;
		return 0;
	case OPT_CMDLINE:
		o->cmdline = argument;
		return strlen(argument) < MAX_CMDLINE ? 0 : -EINVAL;
	case OPT_DISK: o->disk = argument; return 0;
	case OPT_RESTORE: o->restore = true; return 0;
	case OPT_DIRECT: o->direct = true; return 0;
	case OPT_STRICT: o->strict = true; return 0;
	case OPT_HOLD: o->hold = true; return 0;
	case OPT_POLICY: return number(argument, 0, POLICIES - 1, &o->policy);
	case OPT_GROWS: o->grows = true; return 0;
	case OPT_REPORT: o->report = true; return 0;
	case OPT_JOIN: return number(argument, 1, UINT32_MAX, &o->join);
	case OPT_CLUSTER: o->cluster = argument; return 0;
	case OPT_SECRET: o->secret = argument; return 0;
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
	cpufeatures_look(&o->features);
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", table, &which)) != -1)
		if (take(o, option, optarg)) {
			if (option == '?')
				snprintf(why, why_bytes, "unknown option %s", argv[optind - 1]);
			else
				snprintf(why, why_bytes, "--%s %s is not possible", table[which].name, optarg);
			return -EINVAL;
		}
	if (optind < argc)
		snprintf(why, why_bytes, "unexpected argument %s", argv[optind]);
	else if ((!o->dir && !o->secret) || !o->n_nodes || !o->n_cpus || !o->mem_mib || o->node >= (o->join ? MAX_NODES : o->n_nodes))
		snprintf(why, why_bytes, "needs --dir or --secret, --node below --nodes, --cpus and --mem");
	else if (o->n_nodes > o->n_cpus && !o->n_places)
		snprintf(why, why_bytes, "more hosts (%u) than CPUs (%u)", o->n_nodes, o->n_cpus);
	else if (o->node == 0 && !o->dir)
		snprintf(why, why_bytes, "node 0 needs --dir");
	else if (o->join & 1u << o->node)
		snprintf(why, why_bytes, "--join %u names this node itself", o->join);
	else if (o->node == 0 && ((!o->kernel && !o->restore) || !o->cmdline))
		snprintf(why, why_bytes, "node 0 needs --kernel or --restore, and --cmdline");
	else
		return 0;
	return -EINVAL;
}
