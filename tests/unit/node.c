/* Unit test of the node daemon's pure and nearly pure parts: which node plays a role, which packets are legal, queues,
 * routing between two nets, its options, the kernel loader, boot parameters and MP table. */
#include <CUnit/Basic.h>
#include <asm/bootparam.h>
#include <elf.h>
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
#include "vmm/bootparams.h"
#include "vmm/conn.h"
#include "vmm/hold.h"
#include "vmm/kernel_load.h"
#include "vmm/hostplan.h"
#include "vmm/movequeue.h"
#include "vmm/placement.h"
#include "vmm/mptable.h"
#include "vmm/net.h"
#include "vmm/node.h"
#include "vmm/share.h"

/* --- roles ---------------------------------------------------------------------------------------------------------- */

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
	CU_ASSERT_EQUAL(net_vnode_node(VNODE_HOME_BASE, 4), -1); /* where homes are, the page protocol knows */
}

/* --- packets -------------------------------------------------------------------------------------------------------- */

static int check(uint16_t type, uint16_t version, uint32_t claimed, size_t actual)
{
	static char packet[CONN_MAX_PACKET * 2];
	struct msg_header header = { .type = type, .version = version, .bytes = claimed };
	char why[160] = "";
	int result;

	memcpy(packet, &header, sizeof header);
	result = conn_check_packet(packet, sizeof header + actual, why, sizeof why);
	CU_ASSERT_EQUAL(result != 0, why[0] != 0);
	return result;
}

/* Every type: its smallest and largest size are legal, one byte less or more is not. */
static void test_bounds(void)
{
	static const struct { uint16_t type; uint32_t body; bool payload; } types[] = {
#define X(name, number, body, payload) { MSG_##name, sizeof(body), payload },
#include "base/msg.def"
#undef X
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		uint32_t least = types[i].body, most = least + (types[i].payload ? MAX_MSG_PAYLOAD : 0);

		CU_ASSERT_EQUAL(conn_body_bytes(types[i].type), least);
		CU_ASSERT_EQUAL(check(types[i].type, WIRE_VERSION, least, least), 0);
		CU_ASSERT_EQUAL(check(types[i].type, WIRE_VERSION, most, most), 0);
		CU_ASSERT_EQUAL(check(types[i].type, WIRE_VERSION, least - 1, least - 1), -EPROTO);
		CU_ASSERT_EQUAL(check(types[i].type, WIRE_VERSION, most + 1, most + 1), -EPROTO);
		CU_ASSERT_EQUAL(check(types[i].type, WIRE_VERSION, least + 1, least), -EPROTO);
		CU_ASSERT_EQUAL(check(types[i].type, WIRE_VERSION + 1, least, least), -EPROTO);
		CU_ASSERT(types[i].type < NET_TYPES);
		CU_ASSERT(sizeof(struct msg_header) + most <= CONN_MAX_PACKET);
	}
	CU_ASSERT_EQUAL(check(0, WIRE_VERSION, 8, 8), -EPROTO);
	CU_ASSERT_EQUAL(check(9999, WIRE_VERSION, 8, 8), -EPROTO);
	for (size_t n = 0; n < sizeof(struct msg_header); n++) {
		char why[160];

		CU_ASSERT_EQUAL(conn_check_packet(why, n, why, sizeof why), -EPROTO);
	}
}

/* --- connections and nets ------------------------------------------------------------------------------------------- */

struct end { /* what one end of a pair saw */
	unsigned messages, closed;
	int reason;
	struct msg_header last;
	char body[CONN_MAX_PACKET];
};

static void on_end_message(struct conn *conn, const struct msg_header *header, const void *body)
{
	struct end *end = conn_owner(conn);

	end->messages++;
	end->last = *header;
	memcpy(end->body, body, header->bytes);
}

static void on_end_closed(struct conn *conn, int reason)
{
	struct end *end = conn_owner(conn);

	end->closed++;
	end->reason = reason;
}

static const struct conn_handler end_handler = { on_end_message, on_end_closed };

static void make_pair(struct event_base *base, struct conn *conn[2], struct end end[2])
{
	int fd[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	conn[0] = conn_new(base, fd[0], "left", &end_handler, &end[0], 1);
	conn[1] = conn_new(base, fd[1], "right", &end_handler, &end[1], 0);
}

/* More than the socket holds is queued, in order, up to the limit; the limit loses nothing of what was accepted. */
static void test_queue(void)
{
	static struct end end[2];
	struct event_base *base = event_base_new();
	struct conn *conn[2];
	char page[PAGE_BYTES] = { 0 };
	struct msg_stream body = { .stream = 1 };
	struct msg_header header = { .type = MSG_STREAM, .version = WIRE_VERSION, .bytes = sizeof body + sizeof page };
	unsigned accepted = 0;

	make_pair(base, conn, end);
	while (!conn_send(conn[0], &header, &body, sizeof body, page, sizeof page))
		accepted++, page[0]++;
	CU_ASSERT(accepted > CONN_QUEUE_BYTES / PAGE_BYTES / 2);
	CU_ASSERT(conn_queued_bytes(conn[0]) <= CONN_QUEUE_BYTES);
	for (int i = 0; i < 100000 && end[1].messages < accepted; i++)
		event_base_loop(base, EVLOOP_ONCE);
	CU_ASSERT_EQUAL(end[1].messages, accepted);
	CU_ASSERT_EQUAL(conn_queued_bytes(conn[0]), 0);
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
	struct msg_header header = { .type = MSG_PING, .version = WIRE_VERSION, .bytes = 3 };
	int fd[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	conn_drain(conn_new(base, (send(fd[1], &header, sizeof header, 0), fd[0]), "stranger", &end_handler, &end, 0));
	CU_ASSERT_EQUAL(end.messages, 0);
	CU_ASSERT_EQUAL(end.closed, 1);
	CU_ASSERT_EQUAL(end.reason, -EPROTO);
	close(fd[1]);
	event_base_free(base);
}

/* Two nodes, and what is under way to each: one message at most. */
struct site {
	struct net *net;
	unsigned delivered, overflows;
	struct msg_interrupt last;
	bool full, waits;
	struct msg_header header;
	char body[64];
};
static struct site site[2];

static void on_interrupt(void *ctx, const struct msg_header *header, const void *body)
{
	struct site *here = ctx;

	CU_ASSERT_EQUAL(header->bytes, sizeof here->last);
	memcpy(&here->last, body, sizeof here->last);
	here->delivered++;
}

static int carry(void *ctx, unsigned peer, const struct msg_header *header, const void *body, uint32_t body_bytes,
		 const void *payload, uint32_t payload_bytes)
{
	struct site *to = &site[peer];

	CU_ASSERT(ctx == &site[!peer] && !to->waits && body_bytes + payload_bytes <= sizeof to->body);
	if (to->full)
		return -ENOBUFS;
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
	CU_ASSERT(site[node].waits);
	site[node].waits = false;
	net_receive(site[node].net, !node, &site[node].header, site[node].body);
}

static void make_sites(void)
{
	memset(site, 0, sizeof site);
	for (unsigned node = 0; node < 2; node++) {
		site[node].net = net_new(node, 2, &site[node]);
		net_on(site[node].net, MSG_INTERRUPT, on_interrupt);
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
	/* What came to the wrong node is passed on. */
	net_receive(site[1].net, 0, &(struct msg_header){ MSG_INTERRUPT, WIRE_VERSION, sizeof interrupt, VNODE_CPU(4), 1, 0 },
		    &interrupt);
	arrive(0);
	CU_ASSERT_EQUAL(site[0].delivered, 2);
	CU_ASSERT_EQUAL(net_counts(site[0].net, 1)->sent[MSG_INTERRUPT].messages, 1);
	CU_ASSERT_EQUAL(net_counts(site[0].net, 1)->sent[MSG_INTERRUPT].bytes, sizeof(struct msg_header) + sizeof interrupt);
	CU_ASSERT_EQUAL(net_counts(site[0].net, 1)->received[MSG_INTERRUPT].messages, 1);
	/* A carrier that takes no more is told of once; a role that nobody plays is dropped with a line; so is everything while
	 * there is no carrier. */
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

/* A CPU that moves: news replace what is older, and what comes for a CPU that is not here any more is passed on. */
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
	net_receive(site[0].net, 1, &(struct msg_header){ MSG_INTERRUPT, WIRE_VERSION, sizeof interrupt, VNODE_CPU(0), 1, 0 },
		    &interrupt);
	arrive(1);
	CU_ASSERT(site[0].delivered == 0 && site[1].delivered == 1);
	free_sites();
}

/* --- moves of CPUs -------------------------------------------------------------------------------------------------- */

static enum move_action begin(struct movequeue *q, const char *complaint)
{
	static const uint32_t at[] = { 0, 1, 0 };
	char why[160] = "";
	enum move_action action = movequeue_begin(q, at, 3, 3, why, sizeof why);

	CU_ASSERT_EQUAL(action == MOVE_FAILED, complaint != NULL);
	CU_ASSERT(!complaint || strstr(why, complaint));
	return action;
}

static enum move_action report(struct movequeue *q, enum cpu_step step, int error)
{
	return movequeue_step(q, &(struct msg_cpu_step){ .cpu = q->wait[0].move.cpu, .move = q->number, .step = step,
							 .error = error });
}

static void test_moves_one_by_one(void)
{
	static struct movequeue q;

	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_NOTHING);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		CU_ASSERT(movequeue_push(&q, &(struct move_request){ { cpu, 0, !cpu, 0 }, cpu }));
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_PREPARE);
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_NOTHING); /* the second waits */
	CU_ASSERT_EQUAL(report(&q, STEP_TAKEN, 0), MOVE_NOTHING);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, 0), MOVE_GIVE);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, 0), MOVE_NOTHING);
	CU_ASSERT_EQUAL(movequeue_step(&q, &(struct msg_cpu_step){ 0, q.number - 1, STEP_TAKEN, 0, 0, 0 }), MOVE_NOTHING);
	CU_ASSERT_EQUAL(movequeue_step(&q, &(struct msg_cpu_step){ 1, q.number, STEP_TAKEN, 0, 0, 0 }), MOVE_NOTHING);
	CU_ASSERT_EQUAL(movequeue_step(&q, &(struct msg_cpu_step){ 0, q.number, 9, 0, 0, 0 }), MOVE_NOTHING);
	CU_ASSERT_EQUAL(report(&q, STEP_TAKEN, 0), MOVE_DONE);
	movequeue_pop(&q);
	CU_ASSERT(q.n == 1 && q.wait[0].client == 1);
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_PREPARE);
	CU_ASSERT_EQUAL(q.number, 2);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, EAGAIN), MOVE_FAILED);
	movequeue_pop(&q);
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_NOTHING);
	CU_ASSERT(movequeue_push(&q, &(struct move_request){ { 2, 0, 1, 0 }, 0 }));
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_PREPARE);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, 0), MOVE_GIVE);
	CU_ASSERT_EQUAL(report(&q, STEP_BACK, EAGAIN), MOVE_FAILED);
}

static void test_moves_refused(void)
{
	static const struct { uint32_t cpu, host; const char *complaint; } wrong[] = {
		{ 3, 0, "no CPU 3" }, { UINT32_MAX, 0, "no CPU" }, { 0, 2, "no host 2" }, { 1, UINT32_MAX, "no host" },
		{ 1, 1, "CPU 1 is on host 1 already" },
	};
	static struct movequeue q;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT(movequeue_push(&q, &(struct move_request){ { wrong[i].cpu, 0, wrong[i].host, 0 }, 0 }));
		CU_ASSERT_EQUAL(begin(&q, wrong[i].complaint), MOVE_FAILED);
		movequeue_pop(&q);
	}
	for (unsigned i = 0; i < MAX_MOVES; i++)
		CU_ASSERT(movequeue_push(&q, &(struct move_request){ { 0, 0, 1, 0 }, i }));
	CU_ASSERT(!movequeue_push(&q, &(struct move_request){ { 0, 0, 1, 0 }, 0 }));
}

/* --- hosts that come and go ------------------------------------------------------------------------------------------ */

static void test_host_queue(void)
{
	static struct hostqueue q;

	for (unsigned i = 0; i < MAX_HOST_REQUESTS; i++)
		CU_ASSERT(hostqueue_push(&q, &(struct host_request){ { .op = HOST_ADD }, i }));
	CU_ASSERT(!hostqueue_push(&q, &(struct host_request){ { .op = HOST_ADD }, 0 }));
	hostqueue_pop(&q);
	CU_ASSERT(q.n == MAX_HOST_REQUESTS - 1 && q.wait[0].client == 1);
	CU_ASSERT_EQUAL(hostplan_free(1), 1);
	CU_ASSERT_EQUAL(hostplan_free(0xd), 1);
	CU_ASSERT_EQUAL(hostplan_free(~0u), -1);
}

static void test_host_may_go(void)
{
	static const struct { uint32_t hosts, host, mem, host_mem; const char *complaint; } wrong[] = {
		{ 3, 2, 64, 0, "no host 2" }, { 3, UINT32_MAX, 64, 0, "no host 4294967295" }, { 3, 0, 64, 0, "host 0 stays" },
		{ 1, 0, 64, 0, "host 0 stays" }, { 7, 2, 64, 31, "hold 62 MiB of the guest's 64 MiB" },
	};
	char why[200];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT_EQUAL(hostplan_may_go(wrong[i].hosts, wrong[i].host, wrong[i].mem, wrong[i].host_mem, why, sizeof why),
				-EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, wrong[i].complaint));
	}
	CU_ASSERT_EQUAL(hostplan_may_go(7, 2, 64, 32, why, sizeof why), 0);
	CU_ASSERT_EQUAL(hostplan_may_go(1u << 31 | 1, 31, 64, 0, why, sizeof why), 0);
}

/* Hosts come one after the other, and go again: each has its share, and every order is for a home where it is. */
static void test_host_homes(void)
{
	struct home_place places[DSM_INTERVALS] = { { 0 } };
	struct home_order orders[DSM_INTERVALS];
	uint32_t hosts = 1;

	for (unsigned round = 1; round < 2 * MAX_NODES - 1; round++) {
		bool comes = round < MAX_NODES;
		unsigned host = comes ? round : 2 * MAX_NODES - 1 - round, count[MAX_NODES] = { 0 }, n;

		hosts |= 1u << host;
		n = comes ? hostplan_homes_for(places, hosts, host, orders) : hostplan_homes_of(places, hosts, host, orders);
		for (unsigned i = 0; i < n; i++) {
			CU_ASSERT_EQUAL_FATAL(orders[i].from, places[orders[i].interval].node);
			CU_ASSERT_EQUAL_FATAL(comes ? orders[i].to : orders[i].from, host);
			places[orders[i].interval].node = orders[i].to;
		}
		if (!comes)
			hosts &= ~(1u << host);
		for (unsigned i = 0; i < DSM_INTERVALS; i++)
			count[places[i].node]++;
		for (unsigned i = 0; i < MAX_NODES; i++) {
			unsigned share = DSM_INTERVALS / (unsigned)__builtin_popcount(hosts);

			CU_ASSERT(hosts >> i & 1 ? count[i] >= share && count[i] <= share + 8 : count[i] == 0);
		}
	}
}

static void test_host_cpus(void)
{
	static const uint32_t at[] = { 0, 1, 2, 0, 1 };

	CU_ASSERT_EQUAL(hostplan_place_for_cpu(at, 5, 7), 2);
	CU_ASSERT_EQUAL(hostplan_place_for_cpu(at, 5, 3), 0);
	CU_ASSERT_EQUAL(hostplan_place_for_cpu(at, 5, 1u << 1 | 1u << 3), 3);
}

/* --- placement ------------------------------------------------------------------------------------------------------- */

/* Carry out all the moves: how many CPUs each host has then, as "2 1 1 0". */
static const char *place(enum policy policy, struct placement_look *look)
{
	static char text[64];
	struct placement_move move;
	unsigned moves = 0;

	for (; moves <= look->n_cpus && placement_step(policy, look, &move); moves++) {
		CU_ASSERT_EQUAL_FATAL(look->cpu[move.cpu].host, move.from);
		CU_ASSERT(look->hosts >> move.to & 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(move.why, policy_name(policy)));
		look->cpu[move.cpu].host = move.to;
	}
	CU_ASSERT(moves <= look->n_cpus); /* none moves twice */
	text[0] = 0;
	for (unsigned host = 0; host < 4; host++) {
		unsigned count = 0;

		for (unsigned cpu = 0; cpu < look->n_cpus; cpu++)
			count += look->cpu[cpu].host == host;
		sprintf(text + strlen(text), "%s%u", host ? " " : "", count);
	}
	return text;
}

static struct placement_look four_hosts(void)
{
	struct placement_look look = { .hosts = 0xf, .n_cpus = 6 };

	for (unsigned host = 0; host < 4; host++)
		look.host[host].processors = 2;
	look.host[1].rtt_us = 9000; /* far */
	look.host[2].rtt_us = 60;
	look.host[3].rtt_us = 50; /* as near as 2 */
	return look;
}

static void test_placement(void)
{
	struct placement_look look = four_hosts();

	CU_ASSERT_STRING_EQUAL(place(POLICY_SPREAD, &look), "2 1 2 1");
	CU_ASSERT_STRING_EQUAL(place(POLICY_CONCENTRATE, &look), "2 0 2 2");
	CU_ASSERT_STRING_EQUAL(place(POLICY_CONCENTRATE, &look), "2 0 2 2");
	look.n_cpus = 10; /* more than processors */
	CU_ASSERT_STRING_EQUAL(place(POLICY_CONCENTRATE, &look), "3 2 3 2");
	look.hosts = 0x5;
	for (unsigned cpu = 0; cpu < look.n_cpus; cpu++)
		look.cpu[cpu].host = 0;
	CU_ASSERT_STRING_EQUAL(place(POLICY_SPREAD, &look), "5 0 5 0");
	CU_ASSERT_EQUAL(policy_of_name("auto"), POLICY_AUTO);
	CU_ASSERT_EQUAL(policy_of_name("away"), -EINVAL);
}

/* How many looks until a CPU moves, and which; 0: none in 20. */
static unsigned looks_until(struct placement_auto *state, struct placement_look *look, struct placement_move *move)
{
	for (unsigned i = 1; i <= 20; i++)
		if (placement_auto(state, look, move))
			return i;
	return 0;
}

static void test_placement_towards_pages(void)
{
	struct placement_look look = four_hosts();
	struct placement_auto state = { 0 };
	struct placement_move move;

	look.n_cpus = 2;
	look.cpu[1].host = 2;
	look.cpu[0].fetched[2] = 300;
	look.cpu[0].fetched[3] = 100;
	look.cpu[1].fetched[0] = 400; /* it would like to come here; only one of the two moves */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), AUTO_LOOKS);
	CU_ASSERT(move.cpu == 0 && move.from == 0 && move.to == 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(move.why, "75 % of the 400 pages"));
	memset(look.cpu, 0, sizeof look.cpu);
	look.cpu[0].host = look.cpu[1].host = 2;
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), 0); /* together: nothing is fetched */

	look.cpu[0].fetched[3] = 1000; /* it has rested by now */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), AUTO_LOOKS);
	look.cpu[0].host = 3;
	memset(look.cpu[0].fetched, 0, sizeof look.cpu[0].fetched);
	look.cpu[0].fetched[2] = 1000; /* and back: not so soon */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), AUTO_REST);
	state = (struct placement_auto){ 0 };
	look.cpu[0].fetched[2] = AUTO_PAGES - 1; /* too few */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), 0);
	look.cpu[0].fetched[2] = look.cpu[0].fetched[1] = 500; /* from everywhere */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), 0);
	look.cpu[0].fetched[1] = 0;
	look.host[2].processors = 1; /* full */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), 0);
	look.host[2].processors = 2;
	look.cpu[0].fetched[2] = 500;
	CU_ASSERT(!placement_auto(&state, &look, &move) && !placement_auto(&state, &look, &move));
	look.cpu[0].fetched[2] = 0; /* it was only for a moment */
	CU_ASSERT(!placement_auto(&state, &look, &move));
	look.cpu[0].fetched[2] = 500;
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), AUTO_LOOKS);
}

static void test_placement_away_from_load(void)
{
	struct placement_look look = four_hosts();
	struct placement_auto state = { 0 };
	struct placement_move move;

	look.n_cpus = 2;
	for (unsigned host = 0; host < 4; host++)
		look.host[host].load_percent = 200; /* the same computer */
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), 0);
	look.host[3].load_percent = 20;
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), AUTO_LOOKS);
	CU_ASSERT(move.from == 0 && move.to == 3 && strstr(move.why, "load of 200 %"));
	look.host[0].load_percent = AUTO_LOADED_PERCENT - 1;
	state = (struct placement_auto){ 0 };
	CU_ASSERT_EQUAL(looks_until(&state, &look, &move), 0);
}

/* --- options -------------------------------------------------------------------------------------------------------- */

static void test_options(void)
{
	static const struct { bool good; const char *line; } cases[] = {
		{ true, "--dir /d --node 0 --nodes 1 --cpus 1 --mem 256 --log-fd 3 --kernel k --cmdline c --initrd a --initrd b" },
		{ true, "--dir /d --node 1 --nodes 2 --cpus 2 --mem 256" },
		{ false, "--dir /d --node 2 --nodes 2 --cpus 2 --mem 256" },
		{ false, "--dir /d --node 0 --nodes 2 --cpus 1 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --nodes 1 --cpus 33 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --nodes 1 --cpus 0 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --nodes 1 --cpus 1 --mem 8 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --nodes 1 --cpus 1 --mem 100000 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --nodes 1 --cpus 1x --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 0 --nodes 1 --cpus 1 --mem 256" },
		{ false, "--node 0 --nodes 1 --cpus 1 --mem 256 --kernel k --cmdline c" },
		{ false, "--dir /d --node 1 --nodes 2 --cpus 2 --mem 256 --what" },
		{ false, "--dir /d --node 1 --nodes 2 --cpus 2 --mem 256 stray" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char line[256], why[256] = "", *argv[40] = { "vmp-node" }, *save = NULL;
		struct node_options o;
		int argc = 1;

		snprintf(line, sizeof line, "%s", cases[i].line);
		for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
			argv[argc++] = word;
		CU_ASSERT_EQUAL(node_options_parse(&o, argc, argv, why, sizeof why) == 0, cases[i].good);
		CU_ASSERT_EQUAL(why[0] == 0, cases[i].good);
		if (i == 0)
			CU_ASSERT(o.n_initrds == 2 && o.log_fd == 3 && !strcmp(o.initrd[1], "b"));
	}
}

/* --- kernel --------------------------------------------------------------------------------------------------------- */

struct kernel_file {
	Elf32_Ehdr header;
	Elf32_Phdr segment[2];
	char bytes[64];
	Elf32_Shdr section[3]; /* used with header.e_shnum 3: none, symbols, their names */
	Elf32_Sym symbol[2];
	char names[32];
};

static struct kernel_file good_kernel(void)
{
	struct kernel_file k = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC, .e_machine = EM_386, .e_version = EV_CURRENT, .e_entry = 0x1000010,
			    .e_phoff = sizeof(Elf32_Ehdr), .e_ehsize = sizeof(Elf32_Ehdr), .e_phentsize = sizeof(Elf32_Phdr),
			    .e_phnum = 2 },
		.bytes = "text and data of the smallest kernel there is",
	};

	k.segment[0] = (Elf32_Phdr){ .p_type = PT_LOAD, .p_offset = offsetof(struct kernel_file, bytes), .p_vaddr = 0xc1000000,
				     .p_paddr = 0x1000000, .p_filesz = 32, .p_memsz = 32 };
	k.segment[1] = (Elf32_Phdr){ .p_type = PT_LOAD, .p_offset = offsetof(struct kernel_file, bytes) + 32,
				     .p_vaddr = 0xc1001000, .p_paddr = 0x1001000, .p_filesz = 16, .p_memsz = 0x3000 };
	k.section[1] = (Elf32_Shdr){ .sh_type = SHT_SYMTAB, .sh_offset = offsetof(struct kernel_file, symbol), .sh_link = 2,
				     .sh_size = sizeof k.symbol, .sh_entsize = sizeof *k.symbol };
	k.section[2] = (Elf32_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct kernel_file, names),
				     .sh_size = sizeof k.names };
	k.symbol[1] = (Elf32_Sym){ .st_name = 1, .st_value = VMP_ABI_VERSION, .st_shndx = SHN_ABS };
	memcpy(k.names + 1, "vmp_abi_version", 16);
	return k;
}

enum { RAM_BYTES = 32 << 20 };
static uint8_t *ram;

static int load(const struct kernel_file *k, size_t bytes, struct kernel_image *image, char *why, size_t why_bytes)
{
	char path[] = "/tmp/vmp-test-kernel-XXXXXX";
	int fd = mkstemp(path), result;

	CU_ASSERT_FATAL(fd >= 0 && write(fd, k, bytes) == (ssize_t)bytes);
	result = kernel_load(path, ram, RAM_BYTES, image, why, why_bytes);
	close(fd);
	unlink(path);
	return result;
}

static void expect_refused(struct kernel_file k, size_t bytes, const char *because)
{
	struct kernel_image image;
	char why[300] = "";

	CU_ASSERT_EQUAL(load(&k, bytes, &image, why, sizeof why), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, because));
}

static void test_kernel_load(void)
{
	struct kernel_file k = good_kernel(), bad;
	struct kernel_image image;
	char why[300] = "";

	ram = calloc(1, RAM_BYTES);
	CU_ASSERT_FATAL(ram != NULL);
	CU_ASSERT_EQUAL(load(&k, sizeof k, &image, why, sizeof why), 0);
	CU_ASSERT(image.entry == 0x1000010 && image.first == 0x1000000 && image.end == 0x1004000 &&
		  image.file_end == 0x1001010);
	CU_ASSERT(!memcmp(ram + 0x1000000, k.bytes, 32) && !memcmp(ram + 0x1001000, k.bytes + 32, 16));

	k.header.e_shoff = offsetof(struct kernel_file, section), k.header.e_shentsize = sizeof(Elf32_Shdr);
	k.header.e_shnum = 3, k.header.e_shstrndx = 2;
	CU_ASSERT_EQUAL(load(&k, sizeof k, &image, why, sizeof why), 0);
	bad = k, bad.symbol[1].st_value++, expect_refused(bad, sizeof bad, "another version");
	bad = k, bad.names[1] = 'V', expect_refused(bad, sizeof bad, "another version");
	bad = k, bad.symbol[1].st_name = 1000, expect_refused(bad, sizeof bad, "another version");
	bad = k, bad.section[1].sh_size = 0, expect_refused(bad, sizeof bad, "another version");

	expect_refused(k, offsetof(struct kernel_file, bytes) + 24, "shorter");
	expect_refused(k, 10, "not an ELF");
	expect_refused(k, 0, "not an ELF");
	bad = k, bad.header.e_machine = EM_X86_64, expect_refused(bad, sizeof bad, "32-bit x86");
	bad = k, bad.header.e_type = ET_DYN, expect_refused(bad, sizeof bad, "not an executable");
	bad = k, bad.header.e_entry = 0xc1000010, expect_refused(bad, sizeof bad, "entry");
	bad = k, bad.segment[1].p_paddr = RAM_BYTES - 0x1000, expect_refused(bad, sizeof bad, "fit");
	bad = k, bad.segment[1].p_paddr = 0xfffff000, expect_refused(bad, sizeof bad, "fit");
	bad = k, bad.segment[0].p_paddr = 0x10000, expect_refused(bad, sizeof bad, "below 1 MiB");
	bad = k, bad.segment[0].p_memsz = 8, expect_refused(bad, sizeof bad, "more bytes");
	bad = k, bad.segment[0].p_offset = 0xfffffff0, expect_refused(bad, sizeof bad, "shorter");
	bad = k, bad.segment[0].p_type = bad.segment[1].p_type = PT_NOTE, expect_refused(bad, sizeof bad, "nothing to load");
	CU_ASSERT_EQUAL(kernel_load("/nonexistent/vmlinux", ram, RAM_BYTES, &image, why, sizeof why), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "make"));
	free(ram);
}

/* --- tables --------------------------------------------------------------------------------------------------------- */

static uint8_t sum(const uint8_t *p, size_t n)
{
	uint8_t s = 0;

	while (n--)
		s += *p++;
	return s;
}

static void test_mptable(void)
{
	static const uint8_t entry_bytes[] = { 20, 8, 8, 8, 8 };

	for (unsigned n_cpus = 1; n_cpus <= MAX_CPUS; n_cpus++) {
		uint8_t table[MPTABLE_ROOM];
		uint32_t bytes = mptable_build(table, n_cpus), address;
		uint16_t length, entries;
		unsigned count[5] = { 0 }, at = 16 + 44;

		CU_ASSERT(bytes <= sizeof table);
		memcpy(&address, table + 4, 4);
		memcpy(&length, table + 16 + 4, 2);
		memcpy(&entries, table + 16 + 34, 2);
		CU_ASSERT(!memcmp(table, "_MP_", 4) && !sum(table, 16) && address == VMP_MP_TABLE_GPA + 16);
		CU_ASSERT(!memcmp(table + 16, "PCMP", 4) && !sum(table + 16, length) && 16u + length == bytes);
		for (unsigned i = 0; i < entries && at < bytes; i++) {
			uint8_t type = table[at];

			CU_ASSERT_FATAL(type < 5);
			if (type == 0) {
				CU_ASSERT_EQUAL(table[at + 1], count[0]);
				CU_ASSERT_EQUAL(table[at + 3], count[0] ? 1 : 3);
			}
			count[type]++;
			at += entry_bytes[type];
		}
		CU_ASSERT_EQUAL(at, bytes);
		CU_ASSERT(count[0] == n_cpus && count[1] == 1 && count[2] == 1 && count[3] == 15 && count[4] == 2);
	}
}

static void test_bootparams(void)
{
	struct boot_params b;

	memset(&b, 0xaa, sizeof b);
	bootparams_build(&b, 64 << 20, 0x3000000, 1000);
	CU_ASSERT(b.e820_entries == 3 && b.e820_table[2].addr == 1 << 20 &&
		  b.e820_table[2].addr + b.e820_table[2].size == 64 << 20);
	CU_ASSERT(b.hdr.ramdisk_image == 0x3000000 && b.hdr.ramdisk_size == 1000 && b.hdr.cmd_line_ptr == VMP_CMDLINE_GPA);
	CU_ASSERT(b.hdr.hardware_subarch == VMP_HARDWARE_SUBARCH && b.acpi_rsdp_addr == 0);
	bootparams_build(&b, 64 << 20, 0x3000000, 0);
	CU_ASSERT(b.hdr.ramdisk_image == 0);
}

/* --- how long a page stays ------------------------------------------------------------------------------------------- */

enum { HOLD_GFN = 7, US = 1000 };
static const uint64_t HOLD_START = 1000000000;

/* The page goes `away_us` before it comes back. */
static void come_back(struct page_hold *hold, uint64_t *now, uint64_t away_us)
{
	hold_went(hold, HOLD_GFN, *now);
	*now += away_us * US;
	hold_arrived(hold, HOLD_GFN, *now);
}

static void test_hold_between_writers(void)
{
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, true, now), 0); /* nothing is known of it */
	hold_arrived(&hold, HOLD_GFN, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now), HOLD_MIN_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now + 30 * US), HOLD_MIN_US - 30);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now + HOLD_MIN_US * US), 0);
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold.writer_us, 2 * HOLD_MIN_US);
	/* It comes in two steps, to read and then to write: it has come back once. */
	come_back(&hold, &now, 500);
	hold_arrived(&hold, HOLD_GFN, now + 50 * US);
	CU_ASSERT_EQUAL(hold.writer_us, 4 * HOLD_MIN_US);
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold.writer_us, HOLD_MAX_US);
	come_back(&hold, &now, PING_PONG_US + 1);
	CU_ASSERT_EQUAL(hold.writer_us, HOLD_MIN_US);
	come_back(&hold, &now, 500);
	hold_arrived(&hold, HOLD_GFN, now + 50 * US);
	CU_ASSERT_EQUAL(hold.writer_us, 2 * HOLD_MIN_US);
	hold_went(&hold, HOLD_GFN + 1, now); /* another page */
	CU_ASSERT_EQUAL(hold.went_ns, 0);
	hold_arrived(&hold, HOLD_GFN + 1, now);
	CU_ASSERT_EQUAL(hold.writer_us, HOLD_MIN_US);
}

/* Threads that take turns at a page: the next one spins on it, asks when it has lost its copy, and must not wait for a timer. */
static void test_hold_in_turns(void)
{
	enum { NEXT_REQUEST_US = 36 }; /* measured: from the right to write here until the next host's request is here */
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	for (int turn = 0; turn < 5; turn++) {
		come_back(&hold, &now, 250);		       /* the copy, */
		hold_arrived(&hold, HOLD_GFN, now += 60 * US); /* the right to write to it */
		now += NEXT_REQUEST_US * US;
		CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now), 0);
	}
}

static gfn_t next_to_go(struct share *share)
{
	gfn_t gfn;

	return share_excess(share, &gfn) ? gfn : 0;
}

static void test_share(void)
{
	enum { PAGES = 2000, LIMIT = 1000 };
	struct share *share = share_new(PAGES, LIMIT);

	share_came(share, LIMIT - 300);
	for (gfn_t gfn = 1; gfn <= 300; gfn++)
		share_came_copy(share, gfn);
	CU_ASSERT_EQUAL(next_to_go(share), 0);
	share_came_copy(share, 301);
	CU_ASSERT_EQUAL(next_to_go(share), 1); /* fetched longest ago */
	share_went(share, 1);
	CU_ASSERT_EQUAL(next_to_go(share), 0);
	share_came_copy(share, 1); /* fetched again: the newest */
	CU_ASSERT_EQUAL(next_to_go(share), 2);
	share_owned(share, 2);
	share_owned(share, 2);
	CU_ASSERT_EQUAL(next_to_go(share), 3);
	share_went(share, 150);
	share_came(share, 1);
	CU_ASSERT_EQUAL(next_to_go(share), 3);
	for (gfn_t gfn = 3; next_to_go(share); gfn++) {
		CU_ASSERT_EQUAL(next_to_go(share), gfn);
		share_went(share, gfn);
	}
	/* What is owned may be more than the share; then only the newest copies stay. */
	share_came(share, LIMIT);
	for (gfn_t gfn = next_to_go(share); gfn; gfn = next_to_go(share))
		share_went(share, gfn);
	share_went(share, 301);
	share_came_copy(share, 301);
	CU_ASSERT_EQUAL(next_to_go(share), 0);
	share_came_copy(share, 500);
	CU_ASSERT_EQUAL(next_to_go(share), 301 - (SHARE_NEWEST - 1)); /* 150 is not among them */
	share_free(share);
}

static void test_hold_until_run(void)
{
	struct page_hold hold = { 0 };
	const uint64_t now = HOLD_START, late = now + HOLD_RUN_MAX_US * US;

	hold_arrived(&hold, HOLD_GFN, now);
	/* Awaited: asked again and again, but not for ever. */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, now + 500 * US), HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, late - US), HOLD_POLL_US);
	/* The CPU runs now: time for an instruction, or a critical section, from the moment that this is seen. */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, late), HOLD_INSN_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, late + HOLD_INSN_US * US), 0);
	hold_arrived(&hold, HOLD_GFN, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, true, now + 10 * US), HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now + 60 * US), HOLD_SECTION_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now + (60 + HOLD_SECTION_US) * US), 0);
}

int main(void)
{
	CU_pSuite suite;
	unsigned failed;

	log_open("test", open("/dev/null", O_WRONLY), LOG_ERROR); /* what is refused here is refused on purpose */
	if (CU_initialize_registry() != CUE_SUCCESS)
		return EXIT_FAILURE;
	suite = CU_add_suite("node", NULL, NULL);
	CU_add_test(suite, "the node of a role", test_roles);
	CU_add_test(suite, "sizes of every message type", test_bounds);
	CU_add_test(suite, "a queue keeps order and its limit", test_queue);
	CU_add_test(suite, "nonsense ends a connection", test_nonsense_closes);
	CU_add_test(suite, "routing between two nodes", test_net);
	CU_add_test(suite, "a CPU's place", test_places);
	CU_add_test(suite, "moves, one by one", test_moves_one_by_one);
	CU_add_test(suite, "moves that cannot be", test_moves_refused);
	CU_add_test(suite, "a page between writers", test_hold_between_writers);
	CU_add_test(suite, "a page stays until it is used", test_hold_until_run);
	CU_add_test(suite, "a page that is taken in turns does not wait", test_hold_in_turns);
	CU_add_test(suite, "a host keeps to its share", test_share);
	CU_add_test(suite, "requests for hosts", test_host_queue);
	CU_add_test(suite, "hosts that may go", test_host_may_go);
	CU_add_test(suite, "homes of hosts that come and go", test_host_homes);
	CU_add_test(suite, "CPUs of hosts that go", test_host_cpus);
	CU_add_test(suite, "spread and concentrate", test_placement);
	CU_add_test(suite, "a CPU follows its pages", test_placement_towards_pages);
	CU_add_test(suite, "a CPU leaves a loaded host", test_placement_away_from_load);
	CU_add_test(suite, "options", test_options);
	CU_add_test(suite, "kernel loading, bad files", test_kernel_load);
	CU_add_test(suite, "MP table", test_mptable);
	CU_add_test(suite, "boot parameters", test_bootparams);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
