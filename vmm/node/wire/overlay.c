/* overlay.c - carries messages between the daemons of a machine.  Each daemon is a node of the
 * Phoenix library, in the daemon's own event loop, and assumes the virtual node VNODE_DAEMON(k).
 * Node k listens on RUNDIR/node-k.sock and dials every lower node; or, when it joins a running
 * machine, all nodes.  RUNDIR/secret proves that a daemon belongs to this machine.
 *
 * A connection that breaks is made again, and nothing is lost.  A daemon that was silent for too
 * long (vmm/shared/silence.h) is gone, and the machine ends, or goes back to its checkpoint.  The
 * death of a daemon on this computer is known at once, from its parent.
 *
 * Daemons on one computer talk over local sockets: TCP costs a tenth to a sixth more for a round
 * trip between two processors, and 1.4 times as much within one (bench/notebook/phoenix.md).  For
 * several computers see links.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "base/quantity.h"
#include "phnx/phnx.h"
#include "phoenix/core/bounds.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/batch.h"
#include "vmm/node/wire/links.h"
#include "vmm/shared/silence.h"
#include "vmm/shared/stats.h"

enum {
	CONNECT_LIMIT_MS = 20000,
	CLUSTER_LIMIT_MS = 90000,
	LAST_WORDS_MS = 200,
	PATH_ROOM = 108
};

struct overlay {
	ph_vp_t name[MAX_NODES]; /* the daemons' resource names; 0: no greeting has come yet */
	struct loop_event *limit, *cut;
	bool prompt; /* there is a checkpoint to go back to, or there is about to be one */
};

_Static_assert(SILENCE_PING_MS * 1000 == PING_INTERVAL && SILENCE_PING_MS * 1000 == GOSSIP_INTERVAL,
	       "the order of the times of silence.h depends on it");

static int send_to(ph_vp_t to, const struct msg_header *header, const void *body,
		   uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	const struct iovec pieces[] = {
		{ (void *)header, sizeof *header },
		{ (void *)body, body_bytes },
		{ (void *)payload, payload_bytes },
	};

	return ph_sendv(to, pieces, ARRAY_LEN(pieces), header->type) ? -ENOBUFS : 0;
}

/* ---- who is there ---- */

/* Returns the number of the daemon of this name; -1 if none has greeted. */
static int peer_of(const struct node *node, ph_vp_t name)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node->overlay->name[peer] == name)
			return (int)peer;
	return -1;
}

bool overlay_reaches(const struct node *node, unsigned peer)
{
	return node->overlay && node->overlay->name[peer];
}

bool overlay_complete(const struct node *node)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer) && peer != node->o.node &&
		    !overlay_reaches(node, peer))
			return false;
	return true;
}

/* Returns whom this daemon dials: the lower nodes, or, when it joins a running machine, all. */
static uint32_t dialed(const struct node *node)
{
	return node->o.join ? node->o.join : (1u << node->o.node) - 1;
}

/* Greets a daemon.  The first message between two daemons goes to a virtual node, from the daemon
 * that dials.  The answer and all later messages go to the resource name that has proved itself.
 * So a message for a daemon that is gone never reaches its successor. */
static void greet(struct node *node, ph_vp_t to, bool answer)
{
	struct msg_hello hello = { .wire_version = wire_version,
				   .role = PEER_DAEMON,
				   .index = node->o.node,
				   .answer = answer };
	struct msg_header header = packet_header(MSG_HELLO, to, node->o.node, sizeof hello);

	if (send_to(to, &header, &hello, sizeof hello, NULL, 0))
		log_error("cannot greet: out of memory");
}

static void on_hello(struct node *node, const void *body, ph_vp_t source)
{
	ph_vp_t *name;
	struct msg_hello hello;

	memcpy(&hello, body, sizeof hello);
	if (hello.wire_version != wire_version && hello.index < MAX_NODES) {
		route_peer_is_wrong(node, hello.index, "it is of another version of vmp: install "
				    "one version everywhere");
		return;
	}
	name = &node->overlay->name[hello.index % MAX_NODES];
	if (hello.role != PEER_DAEMON || hello.index >= MAX_NODES || hello.index == node->o.node ||
	    (*name && *name != source && node_has_host(node, hello.index))) {
		log_error("a daemon greets as number %u: ignored", hello.index);
		return;
	}
	*name = source;
	log_debug("host %u has greeted", hello.index);
	if (!hello.answer)
		greet(node, source, true);
	if (overlay_complete(node))
		loop_disarm(node->overlay->limit);
	node_check_ready(node);
}

/* The peer has said goodbye, or was silent for too long. */
static void on_gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	struct node *node = arg;
	int peer = peer_of(node, name);

	(void)returned;
	if (peer < 0)
		return;
	node->overlay->name[peer] = 0;
	if (node->ending || hostpart_peer_lost(node, (unsigned)peer))
		return;
	if (peer == 0) { /* there is nobody left to tell */
		log_error("host %u has lost the daemon of host 0", node->o.node);
		node->failed = true;
		node_end_here(node);
	} else {
		node_end_lost(node, (unsigned)peer,
			      "the daemon of host %d died: host %u hears nothing from it", peer,
			      node->o.node);
	}
}

/* Returns how long a daemon may be silent before it is lost.  The user's environment may say more,
 * for a machine on one computer: with several, safety depends on the order of all such times. */
static uint32_t patience_ms(const struct node *node)
{
	enum silence_kind kind = node->overlay->prompt ? SILENCE_PROMPT : SILENCE_PATIENT;
	const char *own = getenv("VMP_LOST_AFTER");
	uint32_t ms = silence_of(kind)->daemon_ms, own_ms;

	if (!own || !*own || node->o.cluster)
		return ms;
	if (!quantity_parse_ms(own, &own_ms) && own_ms >= ms)
		return own_ms;
	log_warn("VMP_LOST_AFTER: not a time of %u ms or more: %s", ms, own);
	return ms;
}

uint32_t overlay_silent(const struct node *node)
{
	uint32_t silent = 0;

	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (overlay_reaches(node, peer) &&
		    ph_get_silence(node->overlay->name[peer]) > patience_ms(node) * 1000ll / 2)
			silent |= 1u << peer;
	return silent;
}

static void set_patience(struct node *node)
{
	ph_set_failure_timeout(patience_ms(node) * 1000ll, PH_GONE_RESEND, on_gone, node);
}

void overlay_be_prompt(struct node *node)
{
	if (!node->overlay || node->overlay->prompt || !node->o.machine.checkpoint_ms)
		return;
	node->overlay->prompt = true;
	set_patience(node);
}

/* Takes the library's reports.  PH_EGONE: the others took this daemon for dead. */
static void on_error(void *arg, int error, const char *text)
{
	struct node *node = arg;

	if (node->ending)
		return;
	log_warn("%s: %s", ph_strerror(error), text);
	if (error == PH_EGONE)
		node_end_here(node);
}

/* Returns how long connections may take.  Between computers, logins may take time. */
static int connect_limit_ms(const struct node *node)
{
	int patience = (int)patience_ms(node);

	if (node->o.cluster)
		return CLUSTER_LIMIT_MS;
	return patience > CONNECT_LIMIT_MS ? patience : CONNECT_LIMIT_MS;
}

/* Called when some daemon has not greeted in time. */
static void on_limit(void *arg)
{
	struct node *node = arg;
	unsigned missing = 0;

	if (node->ending)
		return;
	while (missing == node->o.node || !node_has_host(node, missing) ||
	       overlay_reaches(node, missing))
		missing++;
	node_end(node, END_FAILURE, 0, "host %u and host %u did not reach each other within %d s%s",
		 node->o.node, missing, connect_limit_ms(node) / 1000,
		 node->o.cluster ? ": is there a way between them, directly or by ssh?" : "");
}

/* ---- messages ---- */

/* FAULT_CUT_CHANGES breaks the connections when such a message is sent.  Every other time they
 * break before it as well; so the message is sometimes in flight, and sometimes still queued. */
static bool is_of_change(uint32_t type)
{
	return type == MSG_CPU_PREPARE || type == MSG_CPU_GIVE || type == MSG_CPU_STATE ||
	       type == MSG_CPU_BACK || type == MSG_CPU_STEP || type == MSG_CPU_AT ||
	       type == MSG_HOST || type == MSG_HOME_GIVE || type == MSG_HOME_STATE ||
	       type == MSG_HOME_TAKEN || type == MSG_SNAPSHOT;
}

static int send_and_cut(ph_vp_t to, const struct msg_header *header, const void *body,
			uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	static unsigned sent;
	int error;

	if (sent++ % 2)
		ph_break_connections();
	error = send_to(to, header, body, body_bytes, payload, payload_bytes);
	ph_break_connections();
	return error;
}

/* Messages to a peer that is gone are dropped; supervision handles its loss. */
static int carry(void *ctx, unsigned peer, const struct msg_header *header, const void *body,
		 uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	const struct node *node = ctx;

	if (!overlay_reaches(node, peer))
		return 0;
	if (fault_on(FAULT_CUT_CHANGES) && is_of_change(header->type))
		return send_and_cut(node->overlay->name[peer], header, body, body_bytes, payload,
				    payload_bytes);
	return send_to(node->overlay->name[peer], header, body, body_bytes, payload, payload_bytes);
}

static void on_overflow(void *ctx, unsigned peer)
{
	struct node *node = ctx;

	node_end(node, END_FAILURE, 0, "host %u does not take the messages of host %u", peer,
		 node->o.node);
}

/* Returns the sender's number.  Header and HELLO are the same in all versions, so a daemon of
 * another version at least has a number. */
static int number_of(const struct node *node, const struct ph_msg *msg, ph_vp_t source)
{
	struct { struct msg_header header; struct msg_hello hello; } greeting;
	int peer = peer_of(node, source);

	if (peer >= 0 || msg->len < sizeof greeting)
		return peer;
	memcpy(&greeting, msg->body, sizeof greeting);
	return greeting.header.type == MSG_HELLO && greeting.hello.index < MAX_NODES
		       ? (int)greeting.hello.index
		       : -1;
}

static void on_nonsense(struct node *node, const struct ph_msg *msg, ph_vp_t source,
			const char *why)
{
	int peer = number_of(node, msg, source);

	if (peer >= 0)
		route_peer_is_wrong(node, (unsigned)peer, why);
	else
		log_error("a daemon that has not greeted: %s", why);
}

static void receive(struct node *node, unsigned peer, const struct message *m)
{
	batch_before(node, m->header.type);
	net_receive(node->net, peer, m);
}

static void on_message(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	struct node *node = arg;
	struct message m;
	int peer = peer_of(node, source);
	char why[160];

	if (packet_check(msg->body, msg->len, LINK_OVERLAY, &m, why, sizeof why))
		on_nonsense(node, msg, source, why);
	else if (m.header.type == MSG_HELLO)
		on_hello(node, m.body, source);
	else if (peer >= 0)
		receive(node, (unsigned)peer, &m);
	else
		log_error("%s from a daemon that has not greeted: dropped",
			  wire_type_name(m.header.type));
}

bool overlay_has_more(const struct node *node)
{
	return node->overlay && ph_has_more();
}

void overlay_cork(struct node *node)
{
	if (node->overlay)
		ph_cork();
}

void overlay_uncork(struct node *node)
{
	if (node->overlay)
		ph_uncork();
}

static void on_cork(void *ctx, bool on)
{
	if (on)
		overlay_cork(ctx);
	else
		overlay_uncork(ctx);
}

void overlay_flush(struct node *node)
{
	if (node->overlay)
		ph_flush((node->trace ? STATS_LIMIT_MS : LAST_WORDS_MS) * 1000);
}

bool overlay_has_sent_all(const struct node *node)
{
	return !node->overlay || ph_mqueue_is_empty();
}

/* ---- start and end ---- */

static void set_cut(struct node *node);

/* breaks the connections, for the fault point FAULT_CUT_LINKS */
static void on_cut(void *arg)
{
	ph_break_connections();
	set_cut(arg);
}

static void set_cut(struct node *node)
{
	loop_after(node->overlay->cut, fault_on(FAULT_CUT_LINKS) * (uint64_t)LOOP_MS);
}

static void path_of(const struct node *node, const char *format, unsigned number,
		    char path[PATH_ROOM])
{
	int n = snprintf(path, PATH_ROOM, "%s/", node->o.dir);

	if (n >= PATH_ROOM ||
	    snprintf(path + n, PATH_ROOM - (size_t)n, format, number) >= PATH_ROOM - n)
		die("the path %s is too long for sockets", node->o.dir);
}

/* Daemons start at the same time, in any order: the library retries until they listen. */
static void dial(struct node *node)
{
	char path[PATH_ROOM];

	for (uint32_t left = dialed(node); left; left &= left - 1) {
		unsigned peer = (unsigned)__builtin_ctz(left);

		if (!node->o.cluster) {
			path_of(node, "node-%u.sock", peer, path);
			if (ph_add_port_unix(path))
				die("cannot connect to %s", path);
		}
		greet(node, VNODE_DAEMON(peer), false);
	}
}

void overlay_dial(struct node *node, unsigned peer, const char *where, size_t bytes)
{
	if (node->overlay && node->o.cluster && !node->ending)
		links_dial(node, peer, where, bytes);
}

/* Reads the machine's secret, and listens. */
static void open_ways(struct node *node)
{
	char secret[PATH_ROOM], path[PATH_ROOM], why[200];
	int error;

	if (node->o.secret)
		snprintf(secret, sizeof secret, "%s", node->o.secret);
	else
		path_of(node, "secret", 0, secret);
	error = ph_init_in_loop(0, MAX_NODES, "vmp", secret, node->base);
	if (node->o.secret)
		unlink(secret);
	if (error)
		die("cannot use the secret in %s: %s", secret, ph_strerror(error));
	if (node->o.cluster) {
		if (links_start(node, why, sizeof why))
			die("%s", why);
		return;
	}
	path_of(node, "node-%u.sock", node->o.node, path);
	unlink(path); /* left by a daemon of this number that has died */
	error = ph_listen_unix(path);
	if (error)
		die("cannot listen on %s: %s", path, ph_strerror(error));
}

/* (TRICKS: one-order) */
void overlay_start(struct node *node)
{
	struct overlay *overlay;

	if (!node_shares_memory(node))
		return;
	overlay = node->overlay = calloc(1, sizeof *overlay);
	if (!overlay)
		die("out of memory");
	ph_set_error_callback(on_error, node);
	open_ways(node);
	/* a daemon that joins, or that is loaded from a checkpoint, has to notice losses soon */
	overlay->prompt = node->o.machine.checkpoint_ms &&
			  (node->o.join || node->o.machine.restore);
	set_patience(node);
	for (int type = 1; type < MESSAGE_TYPES; type++)
		if (ph_set_handler(type, on_message, node))
			die("out of memory");
	ph_assume_vp(VNODE_DAEMON(node->o.node));
	dial(node);
	net_carry(node->net, carry, on_overflow);
	net_carry_together(node->net, on_cork);
	overlay->limit = loop_timer(&node->loop, on_limit, node);
	overlay->cut = loop_timer(&node->loop, on_cut, node);
	if (!overlay->limit || !overlay->cut ||
	    (!overlay_complete(node) && loop_after(overlay->limit,
						     connect_limit_ms(node) *
							     (uint64_t)LOOP_MS)))
		die("no memory for events");
	if (fault_on(FAULT_CUT_LINKS))
		set_cut(node);
}

/* Sends the last messages, and says goodbye.  So the others need not wait until this daemon has
 * been silent for long enough. */
void overlay_close(struct node *node)
{
	if (!node->overlay)
		return;
	overlay_flush(node);
	ph_finalize_runtime();
	loop_remove(node->overlay->limit);
	loop_remove(node->overlay->cut);
	free(node->overlay);
	node->overlay = NULL;
}
