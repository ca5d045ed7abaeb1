/* options_check.c - what the options must be together, and the defaults that depend on several. */
#include "vmm/cli/options_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/netspec.h"
#include "base/quantity.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/cli/gdb/gdb_server.h"

static int check_name(struct options *o)
{
	size_t n = strlen(o->name);

	if (n >= MAX_NAME)
		return options_fail(o, "--name %.16s...: longer than %d characters", o->name,
				    MAX_NAME - 1);
	for (size_t i = 0; i < n; i++) {
		char c = o->name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (i && strchr("-_.", c))))
			return options_fail(o,
					    "--name %s: only letters, digits, and -_. after the "
					    "first",
					    o->name);
	}
	return 0;
}

/* Checks a name as networks have it: letters, digits and hyphens, in parts that dots separate. */
static int check_hostname(struct options *o)
{
	size_t n = strlen(o->hostname), part = 0;

	if (n >= MAX_NAME)
		return options_fail(o, "--hostname %.16s...: longer than %d characters",
				    o->hostname, MAX_NAME - 1);
	for (size_t i = 0; i <= n; i++) {
		char c = o->hostname[i];

		if ((c == '.' || !c) ? !part || o->hostname[i - 1] == '-'
				     : !isalnum((unsigned char)c) && (c != '-' || !part))
			return options_fail(o,
					    "--hostname %s: only letters and digits, with - and . "
					    "between them",
					    o->hostname);
		part = c == '.' ? 0 : part + 1;
	}
	return 0;
}

/* Checks NAME, UID or UID:GID. The guest's init finds out whether the guest has a user NAME. */
static int check_user(struct options *o)
{
	const char *colon = strchr(o->user, ':');
	char uid[16];
	uint32_t id;

	if (isalpha((unsigned char)*o->user) && !colon && strlen(o->user) < MAX_NAME &&
	    !strpbrk(o->user, " /"))
		return 0;
	snprintf(uid, sizeof uid, "%.*s", colon ? (int)(colon - o->user) : (int)sizeof uid - 1,
		 o->user);
	if (quantity_parse_number(uid, &id) || id == UINT32_MAX ||
	    (colon && (quantity_parse_number(colon + 1, &id) || id == UINT32_MAX)))
		return options_fail(o, "--user %.64s: must be a name, or numbers as UID or UID:GID",
			    o->user);
	return 0;
}

/* Takes apart --share DIR[,live[,ro]]; the words come in any order. */
static int split_share(struct options *o)
{
	static const char *const ends[] = { ",live,ro", ",ro,live", ",live" };
	size_t n = strlen(o->share);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		size_t end = strlen(ends[i]);

		if (n <= end || strcmp(o->share + n - end, ends[i]))
			continue;
		o->share = strndup(o->share, n - end);
		if (!o->share)
			return options_fail(o, "no memory");
		o->share_live = true;
		o->share_read_only = i < 2;
		return 0;
	}
	return 0;
}

/* Checks the options about the command's surroundings in the guest. */
static int check_place(struct options *o)
{
	if (o->workdir && *o->workdir != '/')
		return options_fail(o, "--workdir %s: must begin with /, as /tmp", o->workdir);
	if (o->hostname && check_hostname(o))
		return -EINVAL;
	if (o->share && !o->share_live && split_share(o))
		return -EINVAL;
	return o->user ? check_user(o) : 0;
}

/* Checks what checkpoints need.  The machine must be able to go back: to other hosts, and with its
 * disk as it was then (iosrv/undolog.h), which a file elsewhere cannot have. */
static int check_checkpoint(struct options *o)
{
	const char *written = options_disk_written(&o->machine);

	if (o->checkpoint_parts && !o->machine.checkpoint_ms)
		return options_fail(o, "--checkpoint-parts needs --checkpoint TIME: how often one "
				       "is taken");
	if (o->checkpoint_parts && o->checkpoint_file)
		return options_fail(o, "--checkpoint-file and --checkpoint-parts: one of them; the "
				       "file is written where all of the checkpoint is");
	if (o->checkpoint_parts && !o->cluster && !o->peers)
		return options_fail(o, "--checkpoint-parts needs --cluster or --peers: all hosts "
				       "would hold their parts on this computer");
	if (!o->machine.checkpoint_ms)
		return o->checkpoint_file ? options_fail(o, "--checkpoint-file needs --checkpoint "
							    "TIME: how often it is written")
					  : 0;
	if (o->machine.hosts == 1)
		return options_fail(o, "--checkpoint needs --hosts 2 or more: when the only host "
				       "is lost, none is left to go on");
	if (written && o->checkpoint_file)
		return options_fail(o,
				    "--checkpoint-file needs --disk %.200s,snapshot (or ,ro): the "
				    "file does not have what the machine writes to its image",
				    written);
	return 0;
}

static int check_peers(struct options *o)
{
	int ways = o->peers_near + o->peers_spread + o->peers_concentrate;
	uint32_t mib;

	if (!o->peers)
		return ways || o->min_memory ? options_fail(o, "--near, --spread, --concentrate "
							       "and --min-memory choose computers "
							       "for --peers N")
					     : 0;
	if (o->cluster || o->machine.hosts)
		return options_fail(o, "--peers N chooses the hosts: leave %s away",
			    o->cluster ? "--cluster" : "--hosts");
	if (ways > 1)
		return options_fail(o, "--near, --spread and --concentrate: one of them");
	if (o->min_memory && quantity_parse_mib(o->min_memory, &mib))
		return options_fail(o, "--min-memory %s: not a size, as 512M or 2G", o->min_memory);
	if (o->verb == VERB_SNAPSHOT)
		return 0; /* the snapshot says how many processors there are */
	if (!o->machine.cpus)
		o->machine.cpus = o->peers + 1;
	if (o->machine.cpus <= o->peers && !o->peers_concentrate)
		return options_fail(o,
				    "--peers %u and this computer are %u hosts, each with a "
				    "processor: more than --cpus %u; with --concentrate fewer "
				    "computers are taken",
				    o->peers, o->peers + 1, o->machine.cpus);
	return 0;
}

/* Sets the engine when no --engine was given: from VMP_ENGINE, or the default. */
static int choose_engine(struct options *o)
{
	const char *name = getenv("VMP_ENGINE");

	if (name)
		return machine_set(&o->machine, &machine_rows[MACHINE_ROW_engine], name, o->error,
				   sizeof o->error);
	o->machine.engine = ENGINE_DIRECT;
	return 0;
}

/* Checks the options against each other and sets the defaults that depend on several of them. */
int options_check(struct options *o, uint32_t host_cpus)
{
	struct gdb_address gdb;
	struct netspec net;
	struct problem p;

	if (check_peers(o))
		return -EINVAL;
	if (!o->machine.hosts && !o->cluster && !o->peers && o->verb != VERB_SNAPSHOT)
		o->machine.hosts = 1;
	if (!o->machine.engine && choose_engine(o))
		return -EINVAL;
	if (o->verb == VERB_UP && (o->log ? !strcmp(o->log, "-") : o->machine.verbose))
		return options_fail(o, "`vmp up` returns before the machine ends: give its log a "
				       "file with --log FILE");
	if (o->machine.net && netspec_parse(&net, o->machine.net, o->error, sizeof o->error))
		return -EINVAL;
	if (o->verb == VERB_METRICS && (o->token || o->for_user) && !o->listen)
		return options_fail(o, "--%s needs --listen HOST:PORT: without it, the metrics "
				       "are printed", o->token ? "token" : "for-user");
	if (o->gdb && gdb_address_parse(o->gdb, &gdb, &p))
		return options_fail(o, "%s", p.line);
	if ((o->name && check_name(o)) || check_place(o) || check_checkpoint(o))
		return -EINVAL;
	if (o->verb == VERB_SNAPSHOT)
		return 0; /* the snapshot says how many processors there are */
	if (o->cluster && (o->verb == VERB_RUN || o->verb == VERB_UP))
		return 0; /* the cluster's file says how many hosts there are */
	if (o->peers)
		return 0; /* so do the computers that are borrowed */
	if (!o->machine.cpus) {
		o->machine.cpus = o->machine.hosts > host_cpus ? o->machine.hosts : host_cpus;
		if (o->machine.cpus > MAX_CPUS)
			o->machine.cpus = MAX_CPUS;
	}
	if (o->machine.hosts > o->machine.cpus)
		return options_fail(o,
				    "--hosts %u is more than --cpus %u: each host needs a "
				    "processor",
				    o->machine.hosts, o->machine.cpus);
	if (o->machine.host_mem_mib &&
	    (uint64_t)o->machine.hosts * o->machine.host_mem_mib < o->machine.mem_mib)
		return options_fail(o, "--host-mem %uM on %u host%s is less than --mem %uM",
			    o->machine.host_mem_mib, o->machine.hosts,
			    o->machine.hosts == 1 ? "" : "s", o->machine.mem_mib);
	return 0;
}
