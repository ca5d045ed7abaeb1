/* net_listen.c - listening: who may connect, and which addresses a node announces.
 *
 * A listener tells TLS from plain connections by the first byte (conn_peek()): a TLS handshake
 * begins with 0x16, a frame with 'P'.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "phoenix/net/net_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routes.h"

static void on_knock(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	atomic_store(&((struct net *)arg)->knock, true);
	net_woken(arg);
}

/* Returns whether a peer may connect.  A local socket is for processes of this user, whatever
 * the mode of its folder. */
static bool welcome(struct net *net, int fd)
{
	struct ucred who;
	socklen_t len = sizeof who;

	return !*net->unix_path ||
	       (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.uid == geteuid());
}

/* Returns how many connections there may be whose peers have not proved themselves: some
 * descriptors are left for peers that have, and for the application. */
static rlim_t most_strangers(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 2 > MAX_LINKS / 4
		       ? MAX_LINKS / 4
		       : files.rlim_cur / 2;
}

/* The listeners are not watched until that time: strangers have had theirs (patience.h), or there
 * is no descriptor for a new connection, and the loop would never sleep. */
static void turn_deaf(struct net *net, uint64_t until)
{
	for (int f = 0; f < 2; f++)
		if (net->listeners[f])
			event_del(net->listeners[f]);
	net->deaf_until = until;
	net_look_by(net, net->deaf_until);
}

void net_hear_again(struct net *net)
{
	net->deaf_until = 0;
	for (int f = 0; f < 2; f++)
		if (net->listeners[f])
			event_add(net->listeners[f], NULL);
}

static rlim_t count_strangers(const struct net *net)
{
	rlim_t n = 0;

	for (struct conn *k = net->conns; k; k = k->next)
		n += !k->l || k->l->state != LINK_UP;
	return n;
}

/* Returns 2: the peer has connected and not greeted; 1: the link is closed and the peer has yet
 * to read why; 0: neither, or this node dialed it. */
static int how_idle(const struct conn *k)
{
	if (k->contact)
		return 0;
	return k->state == DRAINING ? 1 : !k->l || k->l->state == LINK_HELLO ? 2 : 0;
}

/* Makes room as a SYN cache does: drops the oldest idle connection, so that a peer that greets
 * as it connects gets in at once. */
static bool make_room(struct net *net)
{
	struct conn *worst = NULL;

	for (struct conn *k = net->conns; k; k = k->next)	/* the newest connection is first */
		if (how_idle(k) && (!worst || how_idle(k) >= how_idle(worst)))
			worst = k;
	if (worst)
		conn_lost(worst);
	return worst != NULL;
}

/* Accepts half as many connections as have room, and at most AT_ONCE: their greetings, and what
 * other peers have sent, are read before others are accepted.  False: there may be more to
 * accept. */
static bool accept_some(struct net *net, int listener)
{
	enum { AT_ONCE = 64 };
	rlim_t n = count_strangers(net), most = most_strangers();

	for (rlim_t some = most / 2 < AT_ONCE ? most / 2 + 1 : AT_ONCE; some; some--) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return true;
		bool room = welcome(net, fd) && (n < most || make_room(net));
		n += room && n < most;
		struct conn *k = room ? conn_new(net, fd, NULL, PEEKING) : NULL;
		if (!k)
			close(fd);
		else if (conn_watch(k))
			conn_free(k);
	}
	return false;
}

void net_accept_all(struct net *net)
{
	uint64_t until = patience_until(&net->patience, net_now());

	if (until) {
		turn_deaf(net, until);
		return;
	}
	for (int i = 0; i < 2; i++) {
		if (net->listen_fds[i] < 0 || !accept_some(net, net->listen_fds[i]))
			continue;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			turn_deaf(net, net_now() + RETRY_MIN);
	}
}

/* Returns whether other hosts may connect to that address.  Link-local addresses of IPv6 would
 * need an interface's name. */
static bool is_public(const struct ifaddrs *i)
{
	const struct sockaddr_in6 *six = (void *)i->ifa_addr;

	if (!i->ifa_addr || i->ifa_flags & IFF_LOOPBACK)
		return false;
	return i->ifa_addr->sa_family == AF_INET ||
	       (i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

/* Announces the addresses where others can reach this node: IPv4's first, since more nodes can
 * reach these. */
static void announce(struct net *net, int port, bool anywhere)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct payload *me = &net->ph->me;
	struct ifaddrs *all = NULL;

	me->n_addrs = 0;
	if (anywhere)
		getifaddrs(&all);
	for (int f = 0; f < 2; f++)
		for (struct ifaddrs *i = net->listen_fds[f] >= 0 ? all : NULL;
		     i && me->n_addrs < MAX_ADDRS; i = i->ifa_next) {
			struct address *a = me->addrs + me->n_addrs;
			socklen_t len = families[f] == AF_INET ? sizeof(struct sockaddr_in)
							       : sizeof(struct sockaddr_in6);
			if (!is_public(i) || i->ifa_addr->sa_family != families[f] ||
			    getnameinfo(i->ifa_addr, len, a->host, sizeof a->host, NULL, 0,
					NI_NUMERICHOST))
				continue;
			a->port = port;
			me->n_addrs++;
		}
	if (all)
		freeifaddrs(all);
	if (me->n_addrs == 0) {
		strcpy(me->addrs[0].host, "127.0.0.1");
		me->addrs[0].port = port;
		me->n_addrs = 1;
	}
	route_self_changed(net->ph);
}

static int hear(struct net *net, int f, int fd)
{
	net->listen_fds[f] = fd;
	net->listeners[f] = event_new(net->base, fd, EV_READ | EV_PERSIST, on_knock, net);
	return net->listeners[f] && !event_add(net->listeners[f], NULL) ? 0 : PH_ENOMEM;
}

/* Returns a listening socket, or -1 with errno set. */
static int listen_at(const struct sockaddr *at, socklen_t len)
{
	int fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (at->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, at, len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Listens for both families on one port, or for the one family that the host has. */
static bool listen_on(struct net *net, int port, bool anywhere)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr =
					    htonl(anywhere ? INADDR_ANY : INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port),
				    .sin6_addr = anywhere ? in6addr_any : in6addr_loopback };
	int a = listen_at((struct sockaddr *)&four, sizeof four);
	bool taken = a < 0 && errno == EADDRINUSE;
	int b = taken ? -1 : listen_at((struct sockaddr *)&six, sizeof six);

	taken |= b < 0 && errno == EADDRINUSE;
	if (taken && a >= 0)
		close(a);
	if (taken || (a < 0 && b < 0))
		return false;
	net->listen_fds[0] = a;
	net->listen_fds[1] = b;
	return true;
}

int net_listen(struct net *net, const int *ports, size_t n, bool anywhere)
{
	size_t i = 0;

	if (net->listen_fds[0] >= 0 || net->listen_fds[1] >= 0)
		return PH_EINVAL;
	while (i < n && !listen_on(net, ports[i], anywhere))
		i++;
	if (i == n)
		return PH_EPORT;
	for (int f = 0; f < 2; f++)
		if (net->listen_fds[f] >= 0 && hear(net, f, net->listen_fds[f]))
			return PH_ENOMEM;
	announce(net, ports[i], anywhere);
	return 0;
}

/* Such an address is not announced, since other nodes may be on other hosts. */
int net_listen_unix(struct net *net, const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd;

	if (net->listen_fds[0] >= 0 || net->listen_fds[1] >= 0 ||
	    strlen(path) >= sizeof un.sun_path)
		return PH_EINVAL;
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof un) || chmod(path, 0600) ||
	    listen(fd, SOMAXCONN)) {
		if (fd >= 0)
			close(fd);
		return PH_EPORT;
	}
	strcpy(net->unix_path, path);
	return hear(net, 0, fd);
}
