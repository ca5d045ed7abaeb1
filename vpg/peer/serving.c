/* serving.c - see serving.h. */
#include "vpg/peer/serving.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "vpg/peer/jobs.h"
#include "vpg/peer/speed.h"

static struct daemon daemon_here;

static int judge(void *arg, const unsigned char key[KEY_BYTES])
{
	switch (members_state(&((struct daemon *)arg)->net.members, key)) {
	case MEMBER_GOOD: return 0;
	case MEMBER_REVOKED: return X509_V_ERR_CERT_REVOKED;
	case MEMBER_NICK_TAKEN: return X509_V_ERR_CERT_REJECTED;
	default: return X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT;
	}
}

static void on_bury(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	tunnels_tidy(arg);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	(void)fd, (void)what;
	d->ending = true;
	event_base_loopexit(d->base, NULL);
}

static int watch_signals(struct daemon *d)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP };

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct event *e = evsignal_new(d->base, ends[i], on_signal, d);

		if (!e || event_add(e, NULL))
			return -1;
	}
	return 0;
}

static int start(struct daemon *d, struct why *why)
{
	d->base = event_base_new();
	d->ctx = identity_context(&d->net.id, judge, d);
	d->bury = d->base ? event_new(d->base, -1, 0, on_bury, d) : NULL;
	d->speed = speed_measure();
	if (!d->ctx || !d->bury || watch_signals(d) || tunnel_start_self(d))
		return why_set(why, "out of memory");
	return shells_start(d, why) || meeting_start(d, why) ? -1 : 0;
}

/* Reads the network of the folder, or begins a new one. */
static int find_network(struct daemon *d, const struct serve_order *o, struct why *why)
{
	char host[256] = "", nick[NICK_BYTES];
	int error = network_read(&d->net, why);

	if (error == -ENOENT) {
		gethostname(host, sizeof host - 1);
		nick_of_host(host, nick);
		error = network_begin(&d->net, o->nick ? o->nick : nick, why);
	} else if (!error && o->nick && strcmp(o->nick, d->net.settings.nick)) {
		return why_set(why, "this computer is %s in its network already",
			       d->net.settings.nick);
	}
	if (error)
		return -1;
	if (o->port)
		d->net.settings.port = o->port;
	if (o->anywhere >= 0)
		d->net.settings.anywhere = o->anywhere;
	return network_write_settings(&d->net, why);
}

/* In the background: the first process waits for one line from the second, which is empty when the
 * daemon is ready. */
static int wait_for(int fd)
{
	char line[400];
	ssize_t n = read(fd, line, sizeof line - 1);

	line[n > 0 ? n : 0] = 0;
	if (n == 1 && *line == '\n')
		return 0;
	log_error("%s", n > 0 ? line : "the daemon has died; its log says why");
	return EXIT_VMP_FAILURE;
}

/* Sets the standard streams of the daemon: /dev/null, and the log. */
static int into_background(const struct daemon *d)
{
	char path[FOLDER_PATH + 8];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log;

	snprintf(path, sizeof path, "%s/log", d->net.folder);
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (null < 0 || log < 0)
		return -1;
	setsid();
	return dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0 ? -1 : 0;
}

/* Starts this program again: after a suspended computer or a long cut, the other nodes took this
 * process for dead, and refuse its name. */
static void begin_again(void)
{
	setenv("VMP_LOG", "info", 0);
	execl("/proc/self/exe", "vmp-peer", "start", "--foreground", (char *)NULL);
	log_error("cannot start again: %s", strerror(errno));
}

/* Lets malloc() keep some of what is freed.  Otherwise the kernel would have to provide, and to
 * clear, the memory of each large message anew. */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

static int run(struct daemon *d, int ready)
{
	struct why why = { "" };
	int error;

	keep_memory();
	error = start(d, &why);

	if (error && ready >= 0)
		dprintf(ready, "%s", why.line);
	else if (error)
		log_error("%s", why.line);
	else if (ready >= 0)
		dprintf(ready, "\n");
	if (ready >= 0)
		close(ready);
	if (!error)
		event_base_dispatch(d->base);
	d->ending = true;
	jobs_end_all();
	hear_write_members(d);
	enrol_stop(d);
	meeting_stop(d);
	shells_stop(d);		/* a shell that waits for the end notices it now */
	if (d->again)
		begin_again();
	return error || d->again ? EXIT_VMP_FAILURE : 0;
}

int serve_peer(const struct serve_order *o)
{
	struct daemon *d = &daemon_here;
	struct why why;
	int ready[2] = { -1, -1 };
	pid_t child;

	if (find_network(d, o, &why)) {
		log_error("%s", why.line);
		return EXIT_VMP_FAILURE;
	}
	prctl(PR_SET_DUMPABLE, 0);	/* its memory contains the key */
	if (o->foreground)
		return run(d, -1);
	if (pipe2(ready, O_CLOEXEC))
		return EXIT_VMP_FAILURE;
	child = fork();
	if (child < 0) {
		log_error("cannot start a process: %s", strerror(errno));
		return EXIT_VMP_FAILURE;
	}
	if (child) {
		close(ready[1]);
		return wait_for(ready[0]);
	}
	close(ready[0]);
	if (into_background(d))
		_exit(EXIT_VMP_FAILURE);
	log_open("vmp-peer", 2, LOG_INFO);
	_exit(run(d, ready[1]));
}
