/* net_answers.c - see net_answers.h.
 *
 * The guest makes any frame it likes.  A first fragment, or a whole datagram, is an answer only if
 * it holds both ports.  Later fragments hold none: they begin at a multiple of 8 bytes.  They go
 * with the first one if they have its identification, and libslirp puts together only fragments
 * with the same destination.
 */
#include "iosrv/net_answers.h"

#include <string.h>
#include "base/netframe.h"

enum {
	ETHERNET = NET_HEADER_BYTES,
	UDP = 8,
	PROTOCOL_UDP = 17,
	MORE_FRAGMENTS = 0x2000,
	FRAGMENT_AT = 0x1fff,
	RESERVED = 0x8000,
};

/* Where a header holds what, and the addresses: of the guest, the gateway and loopback. */
struct family {
	bool v6;
	uint16_t type;
	uint8_t first_byte, first_mask;
	unsigned bytes, protocol, source, destination, address_bytes;
	uint8_t guest[16], gateway[16], loopback[16];
};

static const struct family v4 = {
	false, NET_TYPE_IPV4, 0x45, 0xff, 20, 9, 12, 16, 4, { 10, 0, 2, 15 }, { 10, 0, 2, 2 },
	{ 127, 0, 0, 1 },
};

/* NET_GUEST_V6, fec0::2, ::1 */
static const struct family v6 = {
	true, NET_TYPE_IPV6, 0x60, 0xf0, 40, 6, 8, 24, 16,
	{ 0xfe, 0xc0, [9] = 'v', 'm', 0xff, 0xfe, 'p', 0, 1 }, { 0xfe, 0xc0, [15] = 2 },
	{ [15] = 1 },
};

/* Ports from which libslirp itself sends as the gateway, and that of the name server, which the
 * guest may ask from a forwarded port: none of them is a sender's. */
static const uint16_t own_ports[] = { 67, 69, 547, 53 };

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Corrects a checksum for new bytes in the place of old ones (RFC 1624). */
static void correct(uint8_t *sum_at, const uint8_t *old, const uint8_t *new, unsigned bytes)
{
	uint32_t sum = (uint16_t)~get16(sum_at);

	for (unsigned i = 0; i < bytes; i += 2)
		sum += (uint16_t)~get16(old + i) + get16(new + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(sum_at, ~sum);
}

static unsigned fragment(const struct family *f, const uint8_t *ip)
{
	return f->v6 ? 0 : get16(ip + 6);
}

static void replace(const struct family *f, uint8_t *ip, unsigned at, const uint8_t *address)
{
	uint8_t *sum = ip + f->bytes + 6;

	if (!f->v6)
		correct(ip + 10, ip + at, address, f->address_bytes);
	if (!(fragment(f, ip) & FRAGMENT_AT) && (f->v6 || get16(sum))) { /* 0 means: none */
		correct(sum, ip + at, address, f->address_bytes);
		if (!get16(sum))
			put16(sum, 0xffff);
	}
	memcpy(ip + at, address, f->address_bytes);
}

static bool is(const struct family *f, const uint8_t *address, const uint8_t *other)
{
	return !memcmp(address, other, f->address_bytes);
}

/* Returns the family of a frame with UDP in it, and with both ports unless it is a later fragment;
 * NULL for others. */
static const struct family *family_of(const uint8_t *frame, size_t bytes)
{
	unsigned type = bytes < ETHERNET ? 0 : get16(frame + 12);
	const struct family *f = type == v4.type ? &v4 : type == v6.type ? &v6 : NULL;
	const uint8_t *ip = frame + ETHERNET;
	unsigned least;

	if (!f || bytes < ETHERNET + f->bytes || (ip[0] & f->first_mask) != f->first_byte ||
	    ip[f->protocol] != PROTOCOL_UDP || fragment(f, ip) & RESERVED)
		return NULL;
	least = f->bytes + (fragment(f, ip) & FRAGMENT_AT ? 0 : UDP);
	if (bytes < ETHERNET + least || get16(ip + (f->v6 ? 4 : 2)) + f->v6 * f->bytes < least)
		return NULL;
	return f;
}

/* --- ports and peers --- */

static struct net_port *find_port(struct net_answers *a, bool is_v6, uint16_t number)
{
	for (struct net_port *p = a->port; p < a->port + a->n_ports; p++)
		if (p->v6 == is_v6 && p->number == number)
			return p;
	return NULL;
}

/* Once the guest has sent a datagram from a port to 10.0.2.255, libslirp shows every sender to that
 * port under the gateway's address.  Behind options the port is not looked for. */
static void on_broadcast(struct net_answers *a, const uint8_t *frame, size_t bytes)
{
	static const uint8_t to[4] = { 10, 0, 2, 255 };
	const uint8_t *ip = frame + ETHERNET;

	if (bytes < ETHERNET + v4.bytes || get16(frame + 12) != v4.type ||
	    ip[v4.protocol] != PROTOCOL_UDP || !is(&v4, ip + v4.destination, to))
		return;
	for (struct net_port *p = a->port; p < a->port + a->n_ports; p++)
		if (!p->v6 && (!family_of(frame, bytes) || p->number == get16(ip + v4.bytes)))
			p->unsure = true;
}

static bool is_v6(const struct net_forward *f)
{
	return f->host.any.sa_family == AF_INET6;
}

static bool on_loopback(const struct net_forward *f)
{
	return is_v6(f) ? IN6_IS_ADDR_LOOPBACK(&f->host.v6.sin6_addr)
			: ntohl(f->host.v4.sin_addr.s_addr) >> 24 == 127;
}

void net_answers_start(struct net_answers *a, const struct netspec *spec)
{
	*a = (struct net_answers){ 0 };
	for (unsigned i = 0; !spec->loopback && i < spec->n_forwards; i++) {
		const struct net_forward *f = &spec->forward[i];
		bool good = f->udp;

		for (unsigned j = 0; j < spec->n_forwards; j++) {
			const struct net_forward *other = &spec->forward[j];

			good &= !other->udp || is_v6(other) != is_v6(f) ||
				other->guest_port != f->guest_port || on_loopback(other);
		}
		if (good)
			a->port[a->n_ports++] = (struct net_port){ .v6 = is_v6(f),
								  .number = f->guest_port };
	}
}

static struct net_peer *find(struct net_answers *a, const struct family *f, uint16_t guest_port,
			     uint16_t port)
{
	for (struct net_peer *p = a->peer; p < a->peer + NET_PEERS; p++)
		if (p->until_ns && p->v6 == f->v6 && p->guest_port == guest_port && p->port == port)
			return p;
	return NULL;
}

/* The peer that has been silent for longest makes room. */
static struct net_peer *oldest(struct net_answers *a)
{
	struct net_peer *found = a->peer;

	for (struct net_peer *p = a->peer; p < a->peer + NET_PEERS; p++)
		if (p->until_ns < found->until_ns)
			found = p;
	return found;
}

static void remember(struct net_answers *a, const struct family *f, const uint8_t *ports,
		     const uint8_t *address, uint64_t now_ns)
{
	uint16_t port = get16(ports), guest_port = get16(ports + 2);
	struct net_peer *p = find(a, f, guest_port, port);

	if (!p) {
		p = oldest(a);
		*p = (struct net_peer){ .v6 = f->v6, .guest_port = guest_port, .port = port };
	}
	memcpy(p->address, address, f->address_bytes);
	p->until_ns = now_ns + (uint64_t)NET_ANSWER_S * 1000000000;
}

static bool is_own_port(uint16_t port)
{
	for (unsigned i = 0; i < ARRAY_LEN(own_ports); i++)
		if (port == own_ports[i])
			return true;
	return false;
}

/* --- frames --- */

bool net_answers_to_guest(struct net_answers *a, const uint8_t *frame, size_t bytes, uint8_t *copy,
			  uint64_t now_ns)
{
	const struct family *f = a->n_ports ? family_of(frame, bytes) : NULL;
	const uint8_t *ip = frame + ETHERNET, *from = f ? ip + f->source : NULL, *ports;
	const struct net_port *port;
	bool truly;

	if (!f || !is(f, ip + f->destination, f->guest))
		return false;
	ports = ip + f->bytes;
	truly = f->v6 ? is(f, from, f->loopback) : *from == *f->loopback;
	if (!(fragment(f, ip) & FRAGMENT_AT)) {
		port = find_port(a, f->v6, get16(ports + 2));
		if (!port || is_own_port(get16(ports)))
			return false;
		if (truly || (is(f, from, f->gateway) && !port->unsure))
			remember(a, f, ports, truly ? from : f->loopback, now_ns);
	}
	if (!truly)
		return false;
	memcpy(copy, frame, bytes);
	replace(f, copy + ETHERNET, f->source, f->gateway);
	return true;
}

static struct net_peer *find_by_id(struct net_answers *a, uint16_t id, uint64_t now_ns)
{
	for (struct net_peer *p = a->peer; p < a->peer + NET_PEERS; p++)
		if (p->until_ns > now_ns && !p->v6 && p->in_fragments && p->id == id)
			return p;
	return NULL;
}

bool net_answers_from_guest(struct net_answers *a, uint8_t *frame, size_t bytes, uint64_t now_ns)
{
	const struct family *f = a->n_ports ? family_of(frame, bytes) : NULL;
	uint8_t *ip = frame + ETHERNET;
	struct net_peer *p;

	if (a->n_ports)
		on_broadcast(a, frame, bytes);
	if (!f || !is(f, ip + f->source, f->guest) || !is(f, ip + f->destination, f->gateway))
		return false;
	if (fragment(f, ip) & FRAGMENT_AT) {
		p = find_by_id(a, get16(ip + 4), now_ns);
	} else {
		p = find(a, f, get16(ip + f->bytes), get16(ip + f->bytes + 2));
		if (p) {
			p->in_fragments = fragment(f, ip) & MORE_FRAGMENTS;
			p->id = get16(ip + 4);
		}
	}
	if (!p || p->until_ns <= now_ns)
		return false;
	replace(f, ip, f->destination, p->address);
	return true;
}
