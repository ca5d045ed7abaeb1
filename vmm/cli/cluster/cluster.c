/* cluster.c - see cluster.h. */
#include "vmm/cli/cluster/cluster_votes.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "phoenix/calls/netconf.h"
#include "vmm/shared/rundir_names.h"

#define PEERS_NAME "peers" /* stands where a file's path would */
enum { ALIVE_S = 10, MAX_ARGUMENTS = 64 };

/* ---- the file ---- */

static int read_file(const char *path, char *text, size_t room, size_t *bytes, struct problem *p)
{
	FILE *file = fopen(path, "re");
	int error = file ? 0 : errno;

	*bytes = 0;
	if (file) {
		*bytes = fread(text, 1, room, file);
		error = ferror(file) ? errno : 0; /* ferror: the path is a folder, for example */
		fclose(file);
	}
	if (error)
		return problem(p, "--cluster %s: %s", path, strerror(error));
	if (*bytes == room)
		return problem(p, "--cluster %s: more than %zu bytes", path, room - 1);
	return 0;
}

/* Checks the lines for Phoenix here, since the daemons that use them run on other computers. */
static int check_phoenix(const struct cluster *c, struct problem *p)
{
	for (uint32_t i = 0; i < c->file.n; i++)
		for (uint32_t line = 0; line < c->file.host[i].n_phoenix; line++) {
			const char *text = c->file.host[i].phoenix[line];
			struct netconf config;
			int error = netconf_parse(&config, text, strlen(text),
						  c->file.host[i].name);

			if (error)
				problem(p, "--cluster %s: host %s: phoenix=\"%s\": %s", c->path,
					c->file.host[i].name, text, config.error);
			netconf_free(&config);
			if (error)
				return -1;
		}
	return 0;
}

static int read_cluster(struct cluster *c, struct problem *p)
{
	static char text[MAX_CLUSTER_BYTES + 1];
	struct problem inner;
	size_t bytes;

	if (c->given)
		bytes = (size_t)snprintf(text, sizeof text, "%s", c->given);
	else if (read_file(c->path, text, sizeof text, &bytes, p))
		return -1;
	if (cluster_file_parse(&c->file, text, bytes, &inner))
		return problem(p, "--cluster %s:%s", c->path, inner.line);
	return check_phoenix(c, p);
}

/* Returns whether a name is this computer's: a socket can be bound only to one's own address. */
static bool is_here(const char *name)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
	char ours[256] = "";
	bool found = false;

	gethostname(ours, sizeof ours - 1);
	if (!strcmp(name, "localhost") || !strcmp(name, ours) ||
	    getaddrinfo(name, NULL, &hints, &all))
		return !all && (!strcmp(name, "localhost") || !strcmp(name, ours));
	for (struct addrinfo *i = all; i && !found; i = i->ai_next) {
		int fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		found = fd >= 0 && !bind(fd, i->ai_addr, i->ai_addrlen);
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(all);
	return found;
}

int cluster_open(struct cluster *c, const char *path, struct hostcpu *cpu, bool fixed,
		 struct problem *p)
{
	if (!realpath(path, c->path))
		return problem(p, "--cluster %s: %s", path, strerror(errno));
	if (read_cluster(c, p))
		return -1;
	c->cpu = cpu;
	c->fixed = fixed;
	return 0;
}

int cluster_open_peers(struct cluster *c, const char *text, int held, struct hostcpu *cpu,
		       bool fixed, struct problem *p)
{
	strcpy(c->path, PEERS_NAME);
	peers_held_begin(&c->held, held);
	c->given = strdup(text);
	c->cpu = cpu;
	c->fixed = fixed;
	return c->given ? read_cluster(c, p) : problem(p, "no memory");
}

int cluster_begins_here(const struct cluster *c, struct problem *p)
{
	if (is_here(c->file.host[0].name))
		return 0;
	return problem(p, "--cluster %s: the first host is %s, which is not this computer: devices "
		       "and console are here, so its first line must be; localhost will do",
		       c->path, c->file.host[0].name);
}

/* ---- preparing ---- */

/* Returns a host's number, or MAX_NODES if it is no host of the machine any more. */
static unsigned number_of(const struct cluster *c, const struct far *far)
{
	unsigned host = 0;

	while (host < MAX_NODES && c->far[host] != far)
		host++;
	return host;
}

/* ---- preparing, by ssh ---- */

static void on_changed(void *context, struct far *far)
{
	struct cluster *c = context;

	if (c->asks)
		cluster_ask_vote(c, far);
	if (!c->preparing && number_of(c, far) < MAX_NODES)
		c->changed(c->context, number_of(c, far));
}

static void on_alive(evutil_socket_t fd, short what, void *context)
{
	struct cluster *c = context;

	(void)fd, (void)what;
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host])
			far_tell_alive(c->far[host]);
}

static int make_ready(struct cluster *c, struct problem *p)
{
	static const struct timeval pause = { ALIVE_S, 0 };

	if (!c->bundle.bytes && bundle_make(&c->bundle, p))
		return -1;
	if (c->alive)
		return 0;
	c->alive = event_new(c->base, -1, EV_PERSIST, on_alive, c);
	return c->alive && !event_add(c->alive, &pause) ? 0 : problem(p, "no memory");
}

/* Returns a free element of far_room, which has one for each host. */
static struct far *unused_far(struct cluster *c)
{
	struct far *far = c->far_room;

	while (number_of(c, far) < MAX_NODES)
		far++;
	return far;
}

static int start_far(struct cluster *c, unsigned host, const struct cluster_host *line,
		     struct problem *p)
{
	struct far *far = c->far[host] = unused_far(c);

	c->host[host] = *line;
	strcpy(c->names.name[host], line->name);
	*far = (struct far){ .host = *line,
			     .bundle = &c->bundle,
			     .base = c->base,
			     .log_fd = c->log_fd,
			     .changed = on_changed,
			     .context = c };
	if (snprintf(far->control, sizeof far->control, RUNDIR_SSH_FORMAT, c->rundir, line->name) >=
	    (int)sizeof far->control)
		far->control[0] = 0;
	return far_start(far) ? problem(p, "%s", far->why) : 0;
}

static void end_far(struct cluster *c, unsigned host)
{
	if (c->far[host])
		far_close(c->far[host]);
	c->far[host] = NULL;
}

/* The host is being asked for its facts, or receives its programs. */
static bool is_being_prepared(const struct cluster *c, unsigned host)
{
	return c->far[host] &&
	       (c->far[host]->state == FAR_PROBE || c->far[host]->state == FAR_COPY);
}

int cluster_prepare(struct cluster *c, uint32_t hosts, struct problem *p)
{
	struct hostmem here;

	c->preparing = true;
	c->host[0] = c->file.host[0];
	if (!c->votes[0]) { /* a new machine, of which nobody else knows */
		if (cluster_random_name(c->votes, p))
			return -1;
		c->asks = true;
	}
	if (cluster_random_name(c->owner, p))
		return -1;
	if (c->asks)
		cluster_ask_vote_here(c);
	hostmem_look(&here, "");
	cluster_file_bound(&c->host[0], c->mem_mib, c->host_mem_mib, &here);
	if (cluster_file_fits(&c->host[0], c->mem_mib, c->host_mem_mib, &here, p))
		return -1;
	strcpy(c->names.name[0], c->host[0].name);
	if (make_ready(c, p))
		return -1;
	for (unsigned host = 1; host < hosts; host++)
		if (start_far(c, host, &c->file.host[host], p))
			return -1;
	return 0;
}

bool cluster_waits_for(const struct cluster *c, bool silent)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (is_being_prepared(c, host) && c->far[host]->silent == silent)
			return true;
	return false;
}

bool cluster_settled(const struct cluster *c)
{
	return !cluster_waits_for(c, false) && !cluster_waits_for(c, true);
}

const char *cluster_doing(const struct cluster *c, char *text, size_t bytes)
{
	size_t n = 0;
	char doing[64];

	*text = 0;
	for (unsigned host = 1; host < MAX_NODES && n < bytes; host++)
		if (is_being_prepared(c, host))
			n += (size_t)snprintf(text + n, bytes - n, "%s%s: %s", n ? "; " : "",
					      c->host[host].name,
					      far_doing(c->far[host], doing, sizeof doing));
	return text;
}

static int agree(struct cluster *c, unsigned host, bool shrinks, struct problem *p)
{
	struct problem why;

	if (!hostcpu_agree(c->cpu, &c->far[host]->facts.cpu, shrinks, &why))
		return 0;
	return problem(p, "host %s: its %s", c->host[host].name, why.line);
}

static int fits(struct cluster *c, unsigned host, struct problem *p)
{
	cluster_file_bound(&c->host[host], c->mem_mib, c->host_mem_mib,
			   &c->far[host]->facts.memory);
	return cluster_file_fits(&c->host[host], c->mem_mib, c->host_mem_mib,
				 &c->far[host]->facts.memory, p);
}

/* Names all hosts that fail, so that a user need not find them one by one. */
int cluster_agree(struct cluster *c, struct problem *p)
{
	unsigned hosts = 1, failed = 0;
	struct problem one;

	for (unsigned host = 1; host < MAX_NODES; host++) {
		const struct far *far = c->far[host];

		if (!far)
			continue;
		hosts++;
		if (far->state != FAR_READY)
			log_error("%s", far->why);
		else if (fits(c, host, &one) || agree(c, host, !c->fixed, &one))
			log_error("%s", one.line);
		else
			continue;
		failed++;
	}
	c->preparing = false;
	if (failed)
		return problem(p, "%u of the %u hosts cannot take part: the machine was not "
			       "started",
			       failed, hosts);
	names_write(&c->names, c->rundir);
	return 0;
}

/* ---- one more ---- */

/* Reads the file again, since it may have got a new line. */
int cluster_add(struct cluster *c, unsigned host, const char *name, struct problem *p)
{
	int line;

	if (!*name)
		return problem(p, "which one? vmp host add NAME, of those in %s", c->path);
	if (names_find(&c->names, name) >= 0)
		return problem(p, "%s is a host of this machine already", name);
	if (read_cluster(c, p))
		return -1;
	line = cluster_file_find(&c->file, name);
	if (line < 0)
		return problem(p, "%s has no host %s", c->path, name);
	if (make_ready(c, p) || start_far(c, host, &c->file.host[line], p)) {
		cluster_forget(c, host);
		return -1;
	}
	return 0;
}

/* The line of a host that was there before is replaced. */
static int add_line(struct cluster *c, const char *name, const char *line, struct problem *p)
{
	int old = cluster_file_find(&c->file, name);
	size_t bytes = MAX_CLUSTER_BYTES, n = 0;
	char *text = malloc(bytes), one[CLUSTER_LINE];

	if (!text)
		return problem(p, "no memory");
	for (int i = 0; i < (int)c->file.n && n < bytes; i++)
		if (i != old) {
			cluster_file_print_line(&c->file.host[i], one);
			n += (size_t)snprintf(text + n, bytes - n, "%s\n", one);
		}
	if (n < bytes)
		snprintf(text + n, bytes - n, "%s", line);
	free(c->given);
	c->given = text;
	return 0;
}

int cluster_add_peer(struct cluster *c, unsigned host, const char *name, const char *line,
		     int held, struct problem *p)
{
	if (add_line(c, name, line, p) || cluster_add(c, host, name, p)) {
		close(held);
		return -1;
	}
	peers_held_add(&c->held, name, held);
	return 0;
}

int cluster_admit(struct cluster *c, unsigned host, struct problem *p)
{
	if (fits(c, host, p) || agree(c, host, false, p))
		return -1;
	names_write(&c->names, c->rundir);
	return 0;
}

/* ---- running ---- */

static int read_secret(struct cluster *c, struct problem *p)
{
	unsigned char secret[32];
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/secret", c->rundir);
	file = fopen(path, "re");
	if (!file || fread(secret, 1, sizeof secret, file) != sizeof secret) {
		if (file)
			fclose(file);
		return problem(p, "cannot read %s", path);
	}
	fclose(file);
	for (size_t i = 0; i < sizeof secret; i++)
		snprintf(c->secret + 2 * i, 3, "%02x", secret[i]);
	return cluster_random_name(c->id, p);
}

pid_t cluster_go(struct cluster *c, unsigned host, char *const *arguments, struct problem *p)
{
	char *all[MAX_ARGUMENTS + 2 * MAX_PHOENIX_LINES + 4];
	int n = 0;

	if (!c->secret[0] && read_secret(c, p))
		return -1;
	for (; arguments[n] && n < MAX_ARGUMENTS; n++)
		all[n] = arguments[n];
	all[n] = NULL;
	if (far_go(c->far[host], all, c->secret, c->id))
		return problem(p, "%s", c->far[host]->why);
	return c->far[host]->pid;
}

/* A host whose line says what it connects to (phoenix=) needs no address from here. */
const char *cluster_where(const struct cluster *c, unsigned host, char *text, size_t bytes)
{
	const struct far *far = c->far[host];
	char destination[160];

	*text = 0;
	if (!far || far->state != FAR_RUNS || !far->port || far->host.n_phoenix)
		return text;
	far_destination(&far->host, destination, sizeof destination);
	snprintf(text, bytes, "%s %u %s",
		 far->host.address[0]	 ? far->host.address
		 : far->facts.address[0] ? far->facts.address
					 : far->host.name,
		 far->port, destination);
	return text;
}

bool cluster_reaped(struct cluster *c, pid_t pid, int status)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host] && c->far[host]->pid == pid) {
			far_reaped(c->far[host], status);
			return true;
		}
	return false;
}

const char *cluster_why(const struct cluster *c, unsigned host)
{
	return host < MAX_NODES && c->far[host] && c->far[host]->why[0] ? c->far[host]->why : NULL;
}

bool cluster_is_lost(const struct cluster *c, unsigned host)
{
	return c->far[host] && c->far[host]->state == FAR_OVER && c->far[host]->lost;
}

void cluster_tell_over(struct cluster *c)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host])
			far_tell_over(c->far[host]);
}

void cluster_hang_up(struct cluster *c)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host])
			far_hang_up(c->far[host]);
}

bool cluster_is_left(const struct cluster *c, uint32_t but)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (!(but >> host & 1) && c->far[host] && c->far[host]->pid > 0)
			return true;
	return false;
}

void cluster_all_reaped(struct cluster *c)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host])
			c->far[host]->pid = 0;
}

void cluster_forget(struct cluster *c, unsigned host)
{
	end_far(c, host);
	if (c->given)
		peers_held_return(&c->held, c->names.name[host]);
	c->names.name[host][0] = 0;
	names_write(&c->names, c->rundir);
}

/* ---- those that are left ---- */

static void renumber(struct cluster *c, uint32_t hosts)
{
	unsigned n = 1;

	for (unsigned host = 1; host < MAX_NODES; host++) {
		if (!(hosts >> host & 1)) {
			end_far(c, host);
			c->names.name[host][0] = 0;
		} else if (n++ != host) {
			c->far[n - 1] = c->far[host];
			c->far[host] = NULL;
			c->host[n - 1] = c->host[host];
			strcpy(c->names.name[n - 1], c->names.name[host]);
			c->names.name[host][0] = 0;
		}
	}
	names_write(&c->names, c->rundir);
}

/* The secret is a new one, so that a daemon that was taken for lost but is alive has no part in the
 * machine that goes on.  (TRICKS: new-secret) */
int cluster_regroup(struct cluster *c, uint32_t hosts, uint32_t silent, struct problem *p)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (c->far[host])
			c->far[host]->silent = silent >> host & 1;
	renumber(c, hosts);
	c->secret[0] = 0;
	for (unsigned host = 1; host < MAX_NODES && c->far[host]; host++) {
		struct cluster_host line = c->host[host];
		bool was_silent = c->far[host]->silent;

		end_far(c, host);
		if (start_far(c, host, &line, p))
			return -1;
		c->far[host]->silent = was_silent;
	}
	return 0;
}

/* Returns whether a host is READY, has given its vote, and can take part; or false with the
 * problem. */
static bool can_keep(struct cluster *c, unsigned host, bool may_lack, struct problem *p)
{
	const struct far *far = c->far[host];
	const char *lacks = cluster_lacks_vote(far, may_lack);

	if (far->state == FAR_READY && !lacks)
		return !agree(c, host, false, p);
	problem(p, "%s",
		far->state == FAR_READY ? lacks :
		far->why[0]		? far->why
					: "ssh does not get through to it");
	return false;
}

uint32_t cluster_count_ready(struct cluster *c, bool may_lack, struct cluster_host lines[MAX_NODES])
{
	struct problem why;
	uint32_t n = 1;

	lines[0] = c->host[0];
	for (unsigned host = 1; host < MAX_NODES && c->far[host]; host++)
		if (can_keep(c, host, may_lack, &why))
			lines[n++] = c->host[host];
	return n;
}

uint32_t cluster_keep_ready(struct cluster *c, bool may_lack, struct problem *p)
{
	struct problem one, missing = { "" };
	uint32_t hosts = 1;

	for (unsigned host = 1; host < MAX_NODES && c->far[host]; host++) {
		if (can_keep(c, host, may_lack, &one)) {
			hosts |= 1u << host;
			continue;
		}
		problem(p, "%.400s, and so is %s (%.200s)", missing.line, c->host[host].name,
			one.line);
		missing = *p;
	}
	*p = missing;
	renumber(c, hosts);
	return (uint32_t)__builtin_popcount(hosts);
}

/* ---- the end ---- */

void cluster_close(struct cluster *c)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		end_far(c, host);
	if (c->alive)
		event_free(c->alive);
	c->alive = NULL;
	cluster_give_up_vote(c);
	if (c->given)
		peers_held_end(&c->held);
	free(c->given);
	c->given = NULL;
	bundle_free(&c->bundle);
}
