/* node.c - messages of the node daemon: which node has a role, queues, routing between two nets;
 * and its options.  Its decisions, its loading and its pages: node_plans.c, node_guest.c,
 * node_pages.c. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "dsm/dsm.h"
#include "tests/unit/unit.h"
#include "vmm/node/node.h"
#include "vmm/node/wire/conn.h"
#include "vmm/node/wire/net.h"
#include "vmm/shared/loop.h"

/* ---- roles ---- */

static void test_roles(void)
{
	for (unsigned n = 1; n <= MAX_NODES; n++) {
		for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
			CU_ASSERT_EQUAL(net_vnode_node(VNODE_CPU(cpu), n), (int)(cpu % n));
		for (unsigned node = 0; node < MAX_NODES; node++)
			CU_ASSERT_EQUAL(net_vnode_node(VNODE_DAEMON(node), n), (int)node);
		CU_ASSERT_EQUAL(net_vnode_node(VNODE_DAEMON(MAX_NODES), n), -1);
		CU_ASSERT_EQUAL(net_vnode_node(VNODE_IOSRV, n), 0);
		CU_ASSERT_EQUAL(net_vnode_node(VNODE_CLI, n), 0);
	}
	CU_ASSERT_EQUAL(net_vnode_node(-1, 4), -1);
	CU_ASSERT_EQUAL(net_vnode_node(VNODE_CPU(MAX_CPUS), 4), -1);
	CU_ASSERT_EQUAL(net_vnode_node(VNODE_CLI + 1, 4), -1);
	/* where homes are, the page protocol knows */
	CU_ASSERT_EQUAL(net_vnode_node(VNODE_HOME_BASE, 4), -1);
}

/* ---- connections and nets ---- */

struct end { /* what one end of a pair saw */
	unsigned messages, closed, written;
	int reason;
	struct msg_header last;
	char body[PACKET_MAX_BYTES];
};

static void on_end_message(struct conn *conn, const struct message *m)
{
	struct end *end = conn_owner(conn);

	end->messages++;
	end->last = m->header;
	memcpy(end->body, m->body, m->header.bytes);
}

static void on_end_closed(struct conn *conn, int reason)
{
	struct end *end = conn_owner(conn);

	end->closed++;
	end->reason = reason;
}

static void on_end_written(struct conn *conn)
{
	struct end *end = conn_owner(conn);

	end->written++;
}

static const struct conn_handler end_handler = { LINK_NODE_TO_IOSRV, on_end_message, on_end_closed,
						 on_end_written };

static void make_pair(const struct loop *loop, struct conn *conn[2], struct end end[2])
{
	int fd[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	conn[0] = conn_new(loop, fd[0], "left", &end_handler, &end[0], 1);
	conn[1] = conn_new(loop, fd[1], "right", &end_handler, &end[1], 0);
}

/* More than the socket holds is queued, in order, up to the limit; nothing that was accepted is
 * lost at the limit.  The sender is notified when what was queued is in the socket, since the
 * receiver may have read the socket before. */
static void test_queue(void)
{
	static struct end end[2];
	struct event_base *base = event_base_new();
	struct loop loop = loop_on_event_base(base);
	struct conn *conn[2];
	char page[PAGE_BYTES] = { 0 };
	struct msg_stream body = { .stream = 1 };
	struct msg_header header = packet_header(MSG_STREAM, 0, 0, sizeof body + sizeof page);
	unsigned accepted = 0;

	make_pair(&loop, conn, end);
	while (!conn_send(conn[0], &header, &body, sizeof body, page, sizeof page))
		accepted++, page[0]++;
	CU_ASSERT(accepted > CONN_QUEUE_BYTES / PAGE_BYTES / 2);
	CU_ASSERT(conn_queued_bytes(conn[0]) <= CONN_QUEUE_BYTES);
	CU_ASSERT_EQUAL(end[0].written, 0);
	for (int i = 0; i < 100000 && end[1].messages < accepted; i++)
		event_base_loop(base, EVLOOP_ONCE);
	CU_ASSERT_EQUAL(end[1].messages, accepted);
	CU_ASSERT_EQUAL(conn_queued_bytes(conn[0]), 0);
	CU_ASSERT(end[0].written > 0);
	CU_ASSERT_EQUAL(end[1].written, 0);
	CU_ASSERT_EQUAL(end[1].body[sizeof body], (char)(accepted - 1));
	conn_close(conn[0]);
	conn_drain(conn[1]);
	CU_ASSERT_EQUAL(end[1].closed, 1);
	CU_ASSERT_EQUAL(end[1].reason, 0);
	event_base_free(base);
}

static void test_nonsense_closes(void)
{
	static struct end end;
	struct event_base *base = event_base_new();
	struct loop loop = loop_on_event_base(base);
	struct msg_header header = packet_header(MSG_STREAM, 0, 0, 3);
	int fd[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	conn_drain(conn_new(&loop, (send(fd[1], &header, sizeof header, 0), fd[0]), "stranger",
			    &end_handler, &end, 0));
	CU_ASSERT_EQUAL(end.messages, 0);
	CU_ASSERT_EQUAL(end.closed, 1);
	CU_ASSERT_EQUAL(end.reason, -EPROTO);
	close(fd[1]);
	event_base_free(base);
}

/* Two nodes, and what is in flight to each: one message at most.  Of the next `keeps` messages only
 * the types are noted. */
struct site {
	struct net *net;
	unsigned delivered, overflows;
	struct msg_interrupt last;
	bool full, waits;
	struct msg_header header;
	char body[64];
	unsigned keeps, kept;
	uint16_t type[NET_LATE_MOST];
};
static struct site site[2];

static void on_delivered(void *ctx, const struct message *m)
{
	struct site *here = ctx;

	if (m->header.type != MSG_INTERRUPT)
		return;
	CU_ASSERT_EQUAL(m->header.bytes, sizeof here->last);
	memcpy(&here->last, m->body, sizeof here->last);
	here->delivered++;
}

/* A message that `node` gets from the other one. */
static void receive(unsigned node, vnode_t to, const struct msg_interrupt *interrupt)
{
	struct msg_header header = packet_header(MSG_INTERRUPT, to, !node, sizeof *interrupt);
	struct message m = packet_message(&header, interrupt);

	net_receive(site[node].net, !node, &m);
}

static int carry(void *ctx, unsigned peer, const struct msg_header *header, const void *body,
		 uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	struct site *to = &site[peer];

	CU_ASSERT(ctx == &site[!peer] && !to->waits &&
		  body_bytes + payload_bytes <= sizeof to->body);
	if (to->full)
		return -ENOBUFS;
	if (to->kept < to->keeps) {
		to->type[to->kept++] = header->type;
		return 0;
	}
	to->header = *header;
	memcpy(to->body, body, body_bytes);
	if (payload_bytes)
		memcpy(to->body + body_bytes, payload, payload_bytes);
	to->waits = true;
	return 0;
}

static void on_overflow(void *ctx, unsigned peer)
{
	CU_ASSERT(ctx == &site[!peer]);
	((struct site *)ctx)->overflows++;
}

static void arrive(unsigned node)
{
	struct message m = packet_message(&site[node].header, site[node].body);

	CU_ASSERT(site[node].waits);
	site[node].waits = false;
	net_receive(site[node].net, !node, &m);
}

static void make_sites(void)
{
	memset(site, 0, sizeof site);
	for (unsigned node = 0; node < 2; node++) {
		site[node].net = net_new(node, 2, on_delivered, &site[node]);
		net_carry(site[node].net, carry, on_overflow);
	}
}

static void free_sites(void)
{
	for (unsigned node = 0; node < 2; node++)
		net_free(site[node].net);
}

static void test_net(void)
{
	struct msg_interrupt interrupt = { .cpu_mask = 2, .vector = 0x31 };

	make_sites();
	net_send(site[0].net, VNODE_CPU(2), MSG_INTERRUPT, &interrupt, sizeof interrupt, NULL, 0);
	CU_ASSERT(site[0].delivered == 1 && !site[1].waits); /* its own: at once */
	net_send(site[0].net, VNODE_CPU(3), MSG_INTERRUPT, &interrupt, sizeof interrupt, NULL, 0);
	CU_ASSERT_EQUAL(site[1].header.from_node, 0);
	arrive(1);
	CU_ASSERT(site[0].delivered == 1 && site[1].delivered == 1);
	CU_ASSERT_EQUAL(site[1].last.vector, 0x31);
	/* a message at the wrong node is forwarded */
	receive(1, VNODE_CPU(4), &interrupt);
	arrive(0);
	CU_ASSERT_EQUAL(site[0].delivered, 2);
	CU_ASSERT_EQUAL(net_counts(site[0].net, 1)->sent[MSG_INTERRUPT].messages, 1);
	CU_ASSERT_EQUAL(net_counts(site[0].net, 1)->sent[MSG_INTERRUPT].bytes,
			sizeof(struct msg_header) + sizeof interrupt);
	CU_ASSERT_EQUAL(net_counts(site[0].net, 1)->received[MSG_INTERRUPT].messages, 1);
	/* A carrier that takes no more is reported once.  A message to a role that no node has is
	 * dropped with a line; so is every message while there is no carrier. */
	site[1].full = true;
	net_send(site[0].net, VNODE_CPU(1), MSG_INTERRUPT, &interrupt, sizeof interrupt, NULL, 0);
	net_send(site[0].net, VNODE_CPU(1), MSG_INTERRUPT, &interrupt, sizeof interrupt, NULL, 0);
	CU_ASSERT_EQUAL(site[0].overflows, 1);
	net_send(site[0].net, VNODE_CLI + 7, MSG_INTERRUPT, &interrupt, sizeof interrupt, NULL, 0);
	net_send(site[0].net, VNODE_CLI, MSG_PING, &interrupt, sizeof(struct msg_ping), NULL, 0);
	net_carry(site[0].net, NULL, NULL);
	net_send(site[0].net, VNODE_CPU(1), MSG_INTERRUPT, &interrupt, sizeof interrupt, NULL, 0);
	CU_ASSERT(site[0].delivered == 2 && site[1].delivered == 1);
	free_sites();
}

static unsigned corks;

static void cork(void *ctx, bool on)
{
	CU_ASSERT(ctx == &site[0]);
	corks += on;
}

/* Late messages stand before the next one to that node, however it leaves. */
static void test_late(void)
{
	struct msg_interrupt interrupt = { .cpu_mask = 2, .vector = 0x31 };
	const struct msg_ping ping = { 0 };

	make_sites();
	corks = 0;
	net_carry_together(site[0].net, cork);
	net_send_late(site[0].net, VNODE_CPU(2), MSG_INTERRUPT, &interrupt, sizeof interrupt);
	CU_ASSERT_EQUAL(site[0].delivered, 1); /* its own: at once */
	interrupt.vector = 0x32;
	net_send_late(site[0].net, VNODE_CPU(1), MSG_INTERRUPT, &interrupt, sizeof interrupt);
	CU_ASSERT_FALSE(site[1].waits);
	net_flush_late(site[0].net, 0); /* there is nothing */
	CU_ASSERT_FALSE(site[1].waits);
	net_flush_late(site[0].net, 1);
	arrive(1);
	CU_ASSERT_EQUAL(site[1].last.vector, 0x32);
	net_flush_late(site[0].net, 1); /* once */
	CU_ASSERT_FALSE(site[1].waits);

	site[1].keeps = 2;
	net_send_late(site[0].net, VNODE_CPU(1), MSG_INTERRUPT, &interrupt, sizeof interrupt);
	net_send(site[0].net, VNODE_DAEMON(1), MSG_PING, &ping, sizeof ping, NULL, 0);
	CU_ASSERT(site[1].kept == 2 && corks == 1);
	CU_ASSERT(site[1].type[0] == MSG_INTERRUPT && site[1].type[1] == MSG_PING);
	site[1].keeps = site[1].kept = 0;
	net_send(site[0].net, VNODE_DAEMON(1), MSG_PING, &ping, sizeof ping, NULL, 0);
	CU_ASSERT(corks == 1 && site[1].waits);
	site[1].waits = false;

	/* more than there is room for: those before leave, together */
	site[1].keeps = NET_LATE_MOST;
	for (unsigned i = 0; i < NET_LATE_MOST + 1; i++)
		net_send_late(site[0].net, VNODE_CPU(1), MSG_INTERRUPT, &interrupt,
			      sizeof interrupt);
	CU_ASSERT(site[1].kept == NET_LATE_MOST && corks == 2);
	free_sites();
}

/* A CPU that moves: news replace older news, and messages for a CPU that is not here any more are
 * forwarded. */
static void test_places(void)
{
	struct msg_interrupt interrupt = { .cpu_mask = 1, .vector = 0x31 };

	make_sites();
	CU_ASSERT_EQUAL(net_node_of(site[0].net, VNODE_CPU(0)), 0);
	net_cpu_at(site[0].net, 0, 1, 7);
	CU_ASSERT_EQUAL(net_node_of(site[0].net, VNODE_CPU(0)), 1);
	CU_ASSERT_EQUAL(net_node_of(site[0].net, VNODE_CPU(2)), 0);
	CU_ASSERT_EQUAL(net_node_of(site[0].net, VNODE_DAEMON(0)), 0);
	net_cpu_at(site[0].net, 0, 0, 6); /* late news */
	CU_ASSERT_EQUAL(net_node_of(site[0].net, VNODE_CPU(0)), 1);
	net_cpu_at(site[0].net, 0, 0, 7); /* it was not taken */
	CU_ASSERT_EQUAL(net_node_of(site[0].net, VNODE_CPU(0)), 0);
	net_cpu_at(site[0].net, 0, 1, 8);
	net_cpu_at(site[1].net, 0, 1, 8);
	receive(0, VNODE_CPU(0), &interrupt);
	arrive(1);
	CU_ASSERT(site[0].delivered == 0 && site[1].delivered == 1);
	free_sites();
}

/* ---- options ---- */

static void test_options(void)
{
	static const struct { bool good; const char *line;
	} cases[] = {
		{ true, "--dir /d --node 0 --hosts 1 --cpus 1 --mem 256 --log-fd 3 --kernel k "
			"--cmdline c --initrd a --initrd b" },
		{ true, "--dir /d --node 1 --hosts 2 --cpus 2 --mem 256" },
		{ false, "--dir /d --node 2 --hosts 2 --cpus 2 --mem 256" },
		{ false, "--dir /d --node 0 --hosts 2 --cpus 1 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --hosts 1 --cpus 33 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --hosts 1 --cpus 0 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --hosts 1 --cpus 1 --mem 8 --kernel k --cmdline c" },
		{ false,
		  "--dir /d --node 0 --hosts 1 --cpus 1 --mem 100000 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --hosts 1 --cpus 1x --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --hosts 1 --cpus 1 --mem 256" },
		{ false, "--node 0 --hosts 1 --cpus 1 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 1 --hosts 2 --cpus 2 --mem 256 --what" },
		{ false, "--dir /d --node 1 --hosts 2 --cpus 2 --mem 256 stray" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char line[256], why[256] = "", *argv[40] = { "vmp-node" }, *save = NULL;
		struct node_options o;
		int argc = 1;

		snprintf(line, sizeof line, "%s", cases[i].line);
		for (char *word = strtok_r(line, " ", &save); word;
		     word = strtok_r(NULL, " ", &save))
			argv[argc++] = word;
		CU_ASSERT_EQUAL(node_options_parse(&o, argc, argv, why, sizeof why) == 0,
				cases[i].good);
		CU_ASSERT_EQUAL(why[0] == 0, cases[i].good);
		if (i == 0)
			CU_ASSERT(o.n_initrds == 2 && o.log_fd == 3 && !strcmp(o.initrd[1], "b"));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "the node of a role", test_roles },
		{ "a queue keeps order and its limit", test_queue },
		{ "nonsense ends a connection", test_nonsense_closes },
		{ "routing between two nodes", test_net },
		{ "messages that leave with the next one", test_late },
		{ "a CPU's place", test_places },
		{ "options", test_options },
		UNIT_END
	};

	log_open("test", open("/dev/null", O_WRONLY), LOG_ERROR); /* the errors here are intended */
	return UNIT_RUN("node", tests);
}
