/* shells.c - the daemon's socket: answers the questions of shells and of `vmp peer`.
 *
 * The folder and the socket are this user's alone; the kernel says which user the other end is.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/filepass.h"
#include "base/log.h"
#include "vpg/peer/borrow.h"
#include "vpg/peer/jobs.h"
#include "vpg/peer/lender.h"
#include "vpg/peer/pipes.h"

enum { ANSWERS_US = 700000, FDS_MAX = 16 };

struct shell {
	struct shell *next;
	struct daemon *d;
	struct bufferevent *socket;	/* for writing */
	struct event *readable;
	struct evbuffer *in;
	int fds[FDS_MAX];	/* those that have come, before the ATTACHes that name them */
	unsigned n_fds;
	struct event *limit;	/* until when it waits for PONGs */
	bool asks_peers;
};

static int listener = -1;
static struct event *knock;

void shell_say(struct shell *s, enum vpg_type type, const void *fields)
{
	static unsigned char frame[VPG_FRAME_MAX];
	size_t n = message_put(type, fields, frame, sizeof frame);

	if (n)
		bufferevent_write(s->socket, frame, n);
}

struct daemon *shell_daemon(const struct shell *s) { return s->d; }

static void say_done(struct shell *s, int status, const char *line)
{
	struct vpg_DONE done = { (uint64_t)status, line };

	shell_say(s, VPG_DONE, &done);
}

static void shell_close(struct shell *s)
{
	while (s->n_fds)
		close(s->fds[--s->n_fds]);
	if (s->limit)
		event_free(s->limit);
	if (s->readable)
		event_free(s->readable);
	if (s->in)
		evbuffer_free(s->in);
	if (s->socket)
		bufferevent_free(s->socket);
	free(s);
}

static void shell_free(struct shell *s)
{
	for (struct shell **at = &s->d->shells; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	jobs_shell_gone(s->d, s);
	borrow_shell_gone(s);
	shell_close(s);
}

/* ---- peers ---- */

static void say_peer(struct shell *s, const char *nick, const char *state,
		     const struct peer_facts *f)
{
	struct vpg_PEER row = { nick, state, f->processors, f->memory_kib, f->free_kib,
				f->load_percent, f->rtt_us, f->lends, f->lent, f->lends_mib,
				f->lent_mib, f->machines_most, f->machines, f->speed };

	shell_say(s, VPG_PEER, &row);
}

static void say_peers(struct shell *s)
{
	static const struct peer_facts nothing;
	struct daemon *d = s->d;

	for (size_t i = 0; i < d->net.members.n; i++) {
		const struct member *m = d->net.members.at + i;
		struct tunnel *t = tunnel_to(d, m->nick, true);

		if (members_state(&d->net.members, m->key) != MEMBER_GOOD)
			continue;
		if (!t)
			say_peer(s, m->nick, *d->refused ? d->refused : "not reached", &nothing);
		else
			say_peer(s, m->nick, t->asked_us ? "no answer" : "", &t->facts);
	}
	s->asks_peers = false;
	event_del(s->limit);
	say_done(s, 0, "");
}

void shells_peer_answered(struct daemon *d)
{
	for (struct shell *s = d->shells, *next; s; s = next) {
		next = s->next;
		if (s->asks_peers && hear_all_answered(d))
			say_peers(s);
	}
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct shell *s = arg;

	(void)fd, (void)what;
	if (s->asks_peers)
		say_peers(s);
}

static void on_ask_peers(struct shell *s)
{
	const struct timeval limit = { 0, ANSWERS_US };

	hear_ping_all(s->d);
	s->asks_peers = true;
	event_add(s->limit, &limit);
	shells_peer_answered(s->d);
}

static void on_ask_connected(struct shell *s)
{
	const struct members *all = &s->d->net.members;

	for (size_t i = 0; i < all->n; i++) {
		struct vpg_SAID row = { all->at[i].nick };

		if (members_state(all, all->at[i].key) == MEMBER_GOOD &&
		    tunnel_to(s->d, all->at[i].nick, true))
			shell_say(s, VPG_SAID, &row);
	}
	say_done(s, 0, "");
}

/* ---- members ---- */

static void on_ask_members(struct shell *s)
{
	const struct members *all = &s->d->net.members;
	char key[KEY_TEXT];

	for (size_t i = 0; i < all->n; i++) {
		const struct member *m = all->at + i;

		member_key_text(m, key);
		struct vpg_MEMBER row = { key, m->nick, m->since, m->revoked };
		shell_say(s, VPG_MEMBER, &row);
	}
	say_done(s, 0, "");
}

static void on_ask_revoke(struct shell *s, const char *nick)
{
	const struct member *found = members_of_nick(&s->d->net.members, nick);
	struct member m;
	struct why why;

	if (!found) {
		why_set(&why, "%.64s is no member: vmp peer list names them", nick);
		say_done(s, 1, why.line);
		return;
	}
	if (!memcmp(found->key, s->d->net.id.public, KEY_BYTES)) {
		say_done(s, 1, "this is the computer itself: revoke it from another one");
		return;
	}
	m = *found;
	m.revoked = (uint64_t)time(NULL);
	hear_member(s->d, &m, NULL);
	say_done(s, 0, "");
}

/* ---- invitations ---- */

/* Adds the addresses by which others may reach this computer: IPv4 and global IPv6, not
 * loopback. */
static void own_addresses(struct invitation *i)
{
	struct ifaddrs *all = NULL;

	getifaddrs(&all);
	for (struct ifaddrs *a = all; a && i->n_hosts < INVITATION_ADDRESSES; a = a->ifa_next) {
		bool far = a->ifa_addr && !(a->ifa_flags & IFF_LOOPBACK);
		int family = far ? a->ifa_addr->sa_family : 0;
		char *host = i->hosts[i->n_hosts];

		if ((family != AF_INET && family != AF_INET6) ||
		    getnameinfo(a->ifa_addr, family == AF_INET ? sizeof(struct sockaddr_in)
							       : sizeof(struct sockaddr_in6),
				host, INVITATION_HOST, NULL, 0, NI_NUMERICHOST) ||
		    strchr(host, '%'))
			continue;
		i->n_hosts++;
	}
	if (all)
		freeifaddrs(all);
}

static void on_ask_invite(struct shell *s, const struct vpg_ASK_INVITE *ask)
{
	struct invitation i = { 0 };
	char text[INVITATION_TEXT];
	struct vpg_SAID row = { text };
	struct why why;

	if (strlen(ask->address) >= INVITATION_HOST || !ask->seconds ||
	    ask->seconds > INVITE_SECONDS_MAX) {
		say_done(s, 1, "an invitation lasts from 1 second to 30 days, and an address has "
			       "less than 64 bytes");
		return;
	}
	if (*ask->address)
		strcpy(i.hosts[i.n_hosts++], ask->address);
	else if (s->d->net.settings.anywhere)
		own_addresses(&i);
	if (network_invite(&s->d->net, &i, ask->seconds, (uint64_t)time(NULL), &why)) {
		say_done(s, 1, why.line);
		return;
	}
	if (invitation_print(&i, text)) {
		say_done(s, 1, "out of memory");
		return;
	}
	shell_say(s, VPG_SAID, &row);
	say_done(s, 0, s->d->net.settings.anywhere || *ask->address ? "" :
		 "this daemon listens on loopback alone: join with --ssh HOST, through its ssh "
		 "server");
}

/* ---- other questions ---- */

static void on_ask_dial(struct shell *s, const struct vpg_ASK_DIAL *ask)
{
	bool ssh = ask->user[0] != 0;
	const char *user = !strcmp(ask->user, "-") ? NULL : ask->user;
	struct why why;

	if (!ask->port || ask->port > 65535 ||
	    network_add_contact(s->d->net.folder, ask->host, (unsigned)ask->port, user, ssh,
				&why)) {
		say_done(s, 1, ask->port && ask->port < 65536 ? why.line : "no such port");
		return;
	}
	meeting_dial(ask->host, (unsigned)ask->port, ssh, ssh ? user : NULL);
	say_done(s, 0, "");
}

static void on_ask_limits(struct shell *s, const struct vpg_ASK_LIMITS *ask)
{
	const uint64_t as_it_is = LIMIT_AS_IT_IS;
	bool changes = ask->processors != as_it_is || ask->memory_mib != as_it_is ||
		       ask->machines != as_it_is;
	struct limits l;
	struct why why;

	lender_limits(s->d, &l);
	if (ask->processors != as_it_is)
		l.processors = (uint32_t)ask->processors;
	if (ask->memory_mib != as_it_is)
		l.memory_mib = (uint32_t)ask->memory_mib;
	if (ask->machines != as_it_is)
		l.machines = (uint32_t)ask->machines;
	if (changes && lender_set_limits(s->d, &l, &why)) {
		say_done(s, 1, why.line);
		return;
	}
	lender_limits(s->d, &l);
	struct vpg_LIMITS row = { l.processors, l.memory_mib, l.machines };
	shell_say(s, VPG_LIMITS, &row);
	say_done(s, 0, "");
}

static void on_ask_status(struct shell *s)
{
	const struct daemon *d = s->d;
	char line[320];
	struct vpg_SAID row = { line };
	unsigned connected = 0;

	for (const struct tunnel *t = d->tunnels; t; t = t->next)
		connected += t->open && !t->dead && !t->mirror;
	snprintf(line, sizeof line,
		 "%s: process %d, %zu members, %u connected, listens on %s port %u%s%s",
		 d->net.settings.nick, (int)getpid(), d->net.members.n, connected,
		 d->net.settings.anywhere ? "all addresses," : "loopback,", d->net.settings.port,
		 *d->refused ? "; " : "", d->refused);
	shell_say(s, VPG_SAID, &row);
	say_done(s, 0, "");
}

static void on_ask_stop(struct shell *s)
{
	struct timeval soon = { 0, 100000 };

	say_done(s, 0, "");
	s->d->ending = true;
	event_base_loopexit(s->d->base, &soon);	/* the answer is sent first */
}

/* Takes the descriptor that has come with the frame. */
static int on_attach(struct shell *s, const struct vpg_ATTACH *m)
{
	struct stat what;
	int fd;

	if (!s->n_fds)
		return -EPROTO;
	fd = s->fds[0];
	memmove(s->fds, s->fds + 1, --s->n_fds * sizeof *s->fds);
	if (fstat(fd, &what) || !S_ISFIFO(what.st_mode)) {
		close(fd);
		return -EPROTO;
	}
	pipe_attach(s->d, m->stream, s, fd);
	return 0;
}

static int serve(struct shell *s, int type, const union vpg_any *m)
{
	if (type > 0 && pipe_is_frame((enum vpg_type)type)) {
		pipe_hear_shell(s, (enum vpg_type)type, m);
		return 0;
	}
	switch (type) {
	case VPG_SPAWN:
	case VPG_SIGNAL:
	case VPG_RESIZE:
	case VPG_END: jobs_hear_shell(s, (enum vpg_type)type, m); return 0;
	case VPG_ATTACH: return on_attach(s, &m->ATTACH);
	case VPG_ASK_PEERS: on_ask_peers(s); return 0;
	case VPG_ASK_CONNECTED: on_ask_connected(s); return 0;
	case VPG_ASK_MEMBERS: on_ask_members(s); return 0;
	case VPG_ASK_INVITE: on_ask_invite(s, &m->ASK_INVITE); return 0;
	case VPG_ASK_REVOKE: on_ask_revoke(s, m->ASK_REVOKE.nick); return 0;
	case VPG_ASK_DIAL: on_ask_dial(s, &m->ASK_DIAL); return 0;
	case VPG_ASK_LIMITS: on_ask_limits(s, &m->ASK_LIMITS); return 0;
	case VPG_ASK_BORROW:
	case VPG_GIVE_BACK: borrow_hear_shell(s, (enum vpg_type)type, m); return 0;
	case VPG_ASK_STATUS: on_ask_status(s); return 0;
	case VPG_ASK_STOP: on_ask_stop(s); return 0;
	default: return -EPROTO;
	}
}

/* ---- the socket ---- */

/* Serves the first frame.  Returns false if it is not complete, or if the shell was closed. */
static bool serve_next(struct shell *s)
{
	struct evbuffer *in = s->in;
	unsigned char head[VPG_LENGTH_BYTES];
	ev_ssize_t n = evbuffer_copyout(in, head, sizeof head);
	long size = message_size(head, n < 0 ? 0 : (size_t)n);
	union vpg_any m;

	if (size >= 0 && (!size || (size_t)size > evbuffer_get_length(in)))
		return false;
	if (size < 0 || serve(s, message_get(evbuffer_pullup(in, size), (size_t)size, &m), &m)) {
		log_warn("a shell sends what no version sends: its connection is closed");
		shell_free(s);
		return false;
	}
	evbuffer_drain(in, (size_t)size);
	return true;
}

/* Reads like read(), and keeps the descriptors that come along. */
static ssize_t receive(struct shell *s, int fd, void *to, size_t room)
{
	union filepass_control control;
	struct iovec bytes = { to, room };
	struct msghdr m = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof control };
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);

	if (n >= 0) {
		unsigned free = FDS_MAX - s->n_fds;
		unsigned came = filepass_take(&m, s->fds + s->n_fds, free);

		s->n_fds += came < free ? came : free;
	}
	return n;
}

/* Reads what has come; a bufferevent would read only 4 KiB at a time. */
static void on_read(evutil_socket_t fd, short what, void *arg)
{
	struct evbuffer_iovec room;
	struct shell *s = arg;
	struct daemon *d = s->d;
	ssize_t n;

	(void)what;
	if (evbuffer_reserve_space(s->in, VPG_FRAME_MAX, &room, 1) != 1) {
		shell_free(s);
		return;
	}
	n = receive(s, fd, room.iov_base, VPG_FRAME_MAX);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		shell_free(s);
		return;
	}
	room.iov_len = (size_t)n;
	evbuffer_commit_space(s->in, &room, 1);
	while (serve_next(s))
		;
	tunnels_flush(d);
}

static void on_event(struct bufferevent *b, short what, void *arg)
{
	(void)b;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		shell_free(arg);
}

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof peer;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.uid == geteuid();
}

static void on_knock(evutil_socket_t at, short what, void *arg)
{
	struct daemon *d = arg;
	int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shell *s = fd >= 0 && is_ours(fd) ? calloc(1, sizeof *s) : NULL;

	(void)what;
	if (!s) {
		if (fd >= 0)
			close(fd);
		return;
	}
	s->d = d;
	s->socket = bufferevent_socket_new(d->base, fd, BEV_OPT_CLOSE_ON_FREE);
	s->limit = evtimer_new(d->base, on_limit, s);
	s->readable = event_new(d->base, fd, EV_READ | EV_PERSIST, on_read, s);
	s->in = evbuffer_new();
	if (!s->socket || !s->limit || !s->readable || !s->in || event_add(s->readable, NULL)) {
		if (!s->socket)
			close(fd);
		shell_close(s);
		return;
	}
	s->next = d->shells;
	d->shells = s;
	bufferevent_setcb(s->socket, NULL, NULL, on_event, s);
	bufferevent_enable(s->socket, EV_WRITE);
}

/* Returns whether a daemon listens there already. */
static bool somebody_listens(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes = fd >= 0 && !connect(fd, (const struct sockaddr *)at, sizeof *at);

	if (fd >= 0)
		close(fd);
	return yes;
}

int shells_start(struct daemon *d, struct why *why)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", d->net.folder);
	if (somebody_listens(&at))
		return why_set(why, "a daemon runs here already: vmp peer status");
	unlink(at.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) ||
	    listen(listener, SOMAXCONN))
		return why_set(why, "%s: %s", at.sun_path, strerror(errno));
	knock = event_new(d->base, listener, EV_READ | EV_PERSIST, on_knock, d);
	return knock && !event_add(knock, NULL) ? 0 : why_set(why, "out of memory");
}

void shells_stop(struct daemon *d)
{
	char path[FOLDER_PATH + 16];

	while (d->shells)
		shell_free(d->shells);
	if (knock) {
		event_free(knock);
		snprintf(path, sizeof path, "%s/socket", d->net.folder);
		unlink(path);
	}
	if (listener >= 0)
		close(listener);
}
