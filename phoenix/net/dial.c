/* dial.c - from a contact point to a connection: names, addresses, TCP.  Tunnels: ssh.c. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "phoenix/net/net_private.h"

/* ---- the addresses of a name, one after the other ---- */

static bool connect_to(struct conn *k, const struct sockaddr *address, socklen_t len)
{
	conn_drop_socket(k);
	k->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	k->state = CONNECTING;
	k->since_us = net_now();
	if (k->fd < 0 || conn_watch(k) || (connect(k->fd, address, len) && errno != EINPROGRESS))
		return false;
	event_add(k->writable, NULL);
	return true;
}

static bool is_neighbour(struct conn *k, const struct addrinfo *at)
{
	char host[64];

	return getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof host, NULL, 0,
			   NI_NUMERICHOST) == 0 &&
	       contact_is_neighbour(k->net->ph, k->contact, host);
}

void dial_next(struct conn *k)
{
	while (k->address) {
		const struct addrinfo *at = k->address;

		k->address = at->ai_next;
		if (is_neighbour(k, at)) {
			conn_free(k);
			return;
		}
		if (connect_to(k, at->ai_addr, at->ai_addrlen)) {
			net_look_by(k->net, k->since_us + ADDRESS_TIMEOUT);
			return;
		}
	}
	conn_lost(k);
}

void dial_connected(struct conn *k)
{
	int error = 0;
	socklen_t len = sizeof error;

	event_del(k->writable);
	if (getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &error, &len) || error) {
		dial_next(k);
		return;
	}
	if (contact_at(k->contact)->protocol == PHNX_TLS) {
		if (tls_start(k, false))
			conn_lost(k);
		else
			tls_advance(k);
	} else {
		conn_open(k);
	}
}

void dial_resolved(struct conn *k)
{
	k->address = k->lookup_error ? NULL : k->found;
	if (!k->address && contact_is_first_try(k->contact))
		core_report(k->net->ph, PH_EHOST, "unknown host %s", contact_at(k->contact)->host);
	dial_next(k);
}

/* Dials a host.  Its name goes to libevent's resolver, which does not block; an address needs
 * none. */
static void dial_tcp(struct net *net, struct conn *k, const struct phnx_contact *at)
{
	bool here = !strcmp(at->host, "localhost");
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = here ? 0 : AI_NUMERICHOST };
	char port[8];

	snprintf(port, sizeof port, "%d", at->port);
	if (getaddrinfo(here ? NULL : at->host, port, &hints, &k->numeric) == 0) {
		k->address = k->numeric;
		dial_next(k);
		return;
	}
	if (!net->dns) {
		net->dns = evdns_base_new(net->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
		if (net->dns)	/* without a name server the hosts file is read all the same */
			evdns_base_resolv_conf_parse(net->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	}
	if (!net->dns) {
		conn_lost(k);
		return;
	}
	hints.ai_flags = 0;
	struct lookup *q = notes_expect(k);
	if (!q) {
		conn_lost(k);
		return;
	}
	notes_expected(k, evdns_getaddrinfo(net->dns, at->host, port, &hints, net_note_resolved,
					    q));
}

static void dial_unix(struct conn *k, const struct phnx_contact *at)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strcpy(un.sun_path, at->host);
	if (!connect_to(k, (struct sockaddr *)&un, sizeof un))
		conn_lost(k);
}

void dial_start(struct net *net, struct contact *c)
{
	const struct phnx_contact *at = contact_at(c);
	struct conn *k = conn_new(net, -1, c, RESOLVING);

	if (!k)
		contact_dial_failed(net->ph, c);
	else if (at->protocol == PHNX_SSH)
		ssh_start(k, at);
	else if (at->protocol == PHNX_UNIX)
		dial_unix(k, at);
	else
		dial_tcp(net, k, at);
}

void dial_stop(struct net *net, struct contact *c)
{
	contact_set_transport(c, NULL);
	for (struct conn *k = net->conns, *next; k; k = next) {
		next = k->next;
		if (k->contact != c)
			continue;
		k->contact = NULL;
		if (!k->l)
			conn_free(k);
	}
}
