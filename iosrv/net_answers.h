/* net_answers.h - the guest's answers to datagrams that came to a forwarded UDP port on this
 * computer's loopback interface.  Pure.
 *
 * libslirp shows the guest such a sender under the gateway's address.  Unless the guest may reach
 * the loopback interface, libslirp sends nothing to that address (disable_host_loopback), an answer
 * neither.  So vmp-net writes the sender's true address into the frame of an answer, and the
 * gateway's into frames to the guest that show the true one, as those after an answer do.
 *
 * What is an answer: a datagram from a forwarded port to a port from which a datagram came to that
 * port, in the last NET_ANSWER_S seconds.  Only for ports that are forwarded on loopback addresses
 * alone: of another one libslirp does not reliably say which sender is on this computer.
 */
#ifndef IOSRV_NET_ANSWERS_H
#define IOSRV_NET_ANSWERS_H

#include <stddef.h>
#include "base/netspec.h"

enum {
	NET_PEERS = 256,
	NET_ANSWER_S = 300, /* as RFC 4787 recommends for NAT */
};

struct net_answers {
	unsigned n_ports;
	struct net_port {
		bool v6;
		bool unsure; /* the gateway's address may stand for any sender */
		uint16_t number;
	} port[NET_FORWARDS];
	struct net_peer {
		bool v6, in_fragments; /* the last answer came in fragments, with this: */
		uint16_t id;
		uint16_t guest_port, port;
		uint8_t address[16];
		uint64_t until_ns; /* 0: free */
	} peer[NET_PEERS];
};

/* The ports are those of `spec`; without any, or with `loopback`, the two below do nothing. */
void net_answers_start(struct net_answers *a, const struct netspec *spec);

/* A frame goes to the guest.  Returns true if it has to be changed: `copy`, of as many bytes, is
 * what the guest gets. */
bool net_answers_to_guest(struct net_answers *a, const uint8_t *frame, size_t bytes, uint8_t *copy,
			  uint64_t now_ns);

/* A frame comes from the guest.  Returns true if it is an answer; then it has the true address, and
 * may go there. */
bool net_answers_from_guest(struct net_answers *a, uint8_t *frame, size_t bytes, uint64_t now_ns);

#endif
