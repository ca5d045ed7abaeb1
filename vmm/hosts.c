/* hosts.c - node 0 leads what changes about the machine's hosts; hosts.h tells the story. */
#include "vmm/hosts.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/guest_abi.h"
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/conn.h"
#include "vmm/debug.h"
#include "vmm/snapshot/freeze.h"
#include "vmm/hostplan.h"
#include "vmm/policy.h"

enum { NOBODY = MAX_CLIENTS, PROGRESS_AFTER_NS = 2000000000, PROGRESS_S = 1 };

/* How far the change under way is: what it waits for. */
enum stage {
	STAGE_NONE,
	STAGE_LAUNCH,  /* comes: the owner's answer */
	STAGE_CONNECT, /* comes: it has reached all others */
	STAGE_START,   /* comes: it knows what it must */
	STAGE_TELL,    /* all have heard of it; or: goes: all have heard that it leaves */
	STAGE_CPUS,    /* goes: a CPU's move */
	STAGE_HOMES,   /* homes that are on their way */
	STAGE_PAGES,   /* goes: it is empty */
	STAGE_FORGET,  /* goes: all have had its farewell */
	STAGE_RETIRE,  /* goes: the owner expects its end */
	STAGE_END,     /* goes: its process has ended */
	STAGE_BACK,    /* does not go: a CPU moves back */
	STAGE_CLEAR,   /* does not come: its process has ended */
};
static const char *const stage_texts[] = {
	[STAGE_LAUNCH] = "its daemon starts", [STAGE_CONNECT] = "it connects to the others", [STAGE_START] = "it gets ready",
	[STAGE_TELL] = "the others hear of it", [STAGE_CPUS] = "its processors move away", [STAGE_HOMES] = "page homes move",
	[STAGE_PAGES] = "its pages move", [STAGE_FORGET] = "the others take leave of it", [STAGE_RETIRE] = "it ends",
	[STAGE_END] = "it ends", [STAGE_BACK] = "its processors move back", [STAGE_CLEAR] = "its daemon ends",
};

struct hosts {
	struct hostqueue queue;
	enum stage stage;
	bool comes;
	bool connected; /* the one that comes has reached all others, perhaps before the owner has said that it started it */
	unsigned host; /* that comes or goes */
	uint64_t since_ns;
	uint32_t staying; /* bit set: all but the one that goes, and those that wait to go */
	uint32_t told;	  /* that set, as all have been told last */
	uint32_t news, heard, gone; /* news: their number */
	struct home_place place[DSM_INTERVALS]; /* as node 0 has been told */
	unsigned homes_moved, homes_waiting;
	uint32_t cpus_moved; /* bit set: away from it, in this change */
	bool waits_for_move; /* one that began before it was to go, perhaps to there */
	uint32_t pages_left;
	uint64_t held_pages, room_pages; /* by the one that goes; on the computers of those that stay */
	char why[200]; /* it fails */
	uint32_t came, went;
	struct event *progress;
};

static uint32_t bit_of(unsigned host) { return 1u << host; }

static void begin_next(struct node *node);

/* --- messages ------------------------------------------------------------------------------------------------------- */

static void tell(struct node *node, unsigned to, enum host_op op, const void *payload, uint32_t bytes)
{
	struct hosts *h = node->hosts_state;
	struct msg_host body = { .host = h->host, .seq = h->news, .op = op, .nodes = h->staying, .present = node->hosts };

	net_send(node->net, VNODE_DAEMON(to), MSG_HOST, &body, sizeof body, payload, bytes);
}

static void tell_all(struct node *node, uint32_t hosts, enum host_op op, const void *payload, uint32_t bytes)
{
	for (unsigned host = 0; host < MAX_NODES; host++)
		if (hosts & bit_of(host))
			tell(node, host, op, payload, bytes);
}

static void see_who_stays(struct node *node, unsigned first)
{
	struct hosts *h = node->hosts_state;

	h->staying = hostplan_staying(&h->queue, first, node->hosts);
}

static void tell_news(struct node *node, uint32_t to)
{
	struct hosts *h = node->hosts_state;

	h->news++;
	h->heard = 0;
	h->told = h->staying;
	tell_all(node, to, HOST_NEWS, h->place, sizeof h->place);
}

static void tell_owner(struct node *node, enum host_op op, int error)
{
	struct hosts *h = node->hosts_state;
	struct { struct msg_host body; char name[64]; } packet = { .body = { .host = h->host, .op = op, .error = error, .nodes = node->hosts } };
	struct msg_header header = { .type = MSG_HOST, .version = WIRE_VERSION, .bytes = sizeof packet.body, .to = VNODE_CLI };

	if (op == HOST_LAUNCH) {
		memcpy(packet.name, h->queue.wait[0].name, sizeof packet.name);
		header.bytes += strnlen(packet.name, sizeof packet.name);
	}
	clients_send_run(node, &header, &packet);
}

static void answer(struct node *node, const struct host_request *request, enum host_op op, int error, const char *line)
{
	struct { struct msg_host body; char line[240]; } packet = {
		.body = { .host = node->hosts_state->host, .seq = clients_tag(request->client, request->body.seq), .op = op,
			  .error = error },
	};
	struct msg_header header = { .type = MSG_HOST, .version = WIRE_VERSION, .to = VNODE_CLI,
				     .bytes = sizeof packet.body + strnlen(line, sizeof packet.line) };

	memcpy(packet.line, line, header.bytes - sizeof packet.body);
	if (request->client != NOBODY)
		clients_send_answer(node, &header, &packet);
}

static struct msg_hosts describe(const struct node *node)
{
	return (struct msg_hosts){ .present = node->hosts, .came = node->hosts_state->came, .went = node->hosts_state->went,
				    .policy = policy_now() };
}

void hosts_tell_client(struct node *node, struct conn *conn)
{
	struct msg_hosts hosts = describe(node);
	struct msg_header header = { .type = MSG_HOSTS, .version = WIRE_VERSION, .bytes = sizeof hosts, .to = VNODE_CLI };

	conn_send(conn, &header, &hosts, sizeof hosts, NULL, 0);
}

void hosts_tell_clients(struct node *node)
{
	struct msg_hosts hosts = describe(node);

	clients_send_all(node, MSG_HOSTS, &hosts, sizeof hosts, NULL, 0);
}

/* --- the end of a change -------------------------------------------------------------------------------------------- */

static void done(struct node *node, int error, const char *line)
{
	struct hosts *h = node->hosts_state;
	struct host_request request = h->queue.wait[0];

	log_info("%s", line);
	h->stage = STAGE_NONE;
	h->staying = node->hosts;
	event_del(h->progress);
	hostqueue_pop(&h->queue);
	answer(node, &request, HOST_DONE, error, line);
	begin_next(node);
	if (h->stage == STAGE_NONE && h->told != h->staying) /* one that waited to go stays after all */
		tell_news(node, node->hosts);
}

static void fail(struct node *node, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fail(struct node *node, int error, const char *format, ...)
{
	char line[200];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	done(node, error, line);
}

static unsigned ms_since(const struct hosts *h)
{
	return (unsigned)((node_now_ns() - h->since_ns) / 1000000);
}

/* --- homes ---------------------------------------------------------------------------------------------------------- */

static void homes_are_moved(struct node *node);

static void move_homes(struct node *node, const struct home_order *orders, unsigned n)
{
	struct hosts *h = node->hosts_state;

	h->stage = STAGE_HOMES;
	h->homes_moved = h->homes_waiting = n;
	for (unsigned i = 0; i < n; i++) {
		struct msg_home home = { .interval = orders[i].interval, .to = orders[i].to };

		net_send(node->net, VNODE_DAEMON(orders[i].from), MSG_HOME_GIVE, &home, sizeof home, NULL, 0);
	}
	if (!n)
		homes_are_moved(node);
}

void hosts_on_home_taken(struct node *node, unsigned host, const struct msg_home *home)
{
	struct hosts *h = node->hosts_state;

	if (node->ending)
		return;
	if (h->stage != STAGE_HOMES || home->interval >= DSM_INTERVALS || !h->homes_waiting) {
		log_error("host %u took interval %u of homes, which nobody gave it", host, home->interval);
		return;
	}
	h->place[home->interval] = (struct home_place){ host, home->generation };
	if (--h->homes_waiting == 0)
		homes_are_moved(node);
}

static void homes_are_moved(struct node *node)
{
	struct hosts *h = node->hosts_state;
	char line[160];

	see_who_stays(node, 0);
	tell_news(node, node->hosts);
	if (!h->comes) {
		h->stage = STAGE_PAGES;
		h->pages_left = 0;
		tell(node, h->host, HOST_LEAVE, NULL, 0);
		return;
	}
	h->came++;
	hosts_tell_clients(node);
	snprintf(line, sizeof line, "host %u is there after %u ms, with %u of the %u intervals of page homes", h->host, ms_since(h),
		 h->homes_moved, DSM_INTERVALS);
	done(node, 0, line);
	policy_host_came();
}

/* --- a host comes --------------------------------------------------------------------------------------------------- */

static void begin_add(struct node *node)
{
	struct hosts *h = node->hosts_state;
	int host = hostplan_free(node->hosts);

	if (!node->dsm)
		return fail(node, EINVAL, "this machine was started for one host: start it with vmp up, or with more hosts");
	if (host < 0)
		return fail(node, EINVAL, "this machine has %d hosts, and cannot have more", MAX_NODES);
	h->host = (unsigned)host;
	h->connected = false;
	if (fault_on(FAULT_HOST_NO_DAEMON))
		return fail(node, EAGAIN, "host %d does not come: its daemon could not be started", host);
	h->stage = STAGE_LAUNCH;
	tell_owner(node, HOST_LAUNCH, 0);
}

/* Until all are told of it, it can be as if it had never been. */
void hosts_join_failed(struct node *node, unsigned host, const char *line, unsigned line_bytes)
{
	struct hosts *h = node->hosts_state;

	if (!hosts_joins(node, host) || h->stage < STAGE_CONNECT || h->stage > STAGE_START)
		return;
	snprintf(h->why, sizeof h->why, "%.*s", (int)line_bytes, line);
	h->stage = STAGE_CLEAR;
	tell_owner(node, HOST_RETIRE, EAGAIN);
}

/* It knows the others: now it gets to know the machine. */
static void introduce(struct node *node)
{
	struct hosts *h = node->hosts_state;
	struct msg_machine_start start = { .start_monotonic_ns = node->start_ns, .entry = node->preloaded.entry,
					   .boot_params = VMP_BOOT_PARAMS_GPA, .host_tsc_khz = node->shm->host_tsc_khz };
	struct msg_host news = { .host = h->host, .op = HOST_NEWS, .nodes = node->hosts | bit_of(h->host),
				 .present = node->hosts | bit_of(h->host) };

	h->stage = STAGE_START;
	moves_tell(node, h->host);
	net_send(node->net, VNODE_DAEMON(h->host), MSG_HOST, &news, sizeof news, h->place, sizeof h->place);
	net_send(node->net, VNODE_DAEMON(h->host), MSG_MACHINE_START, &start, sizeof start, NULL, 0);
}

static void on_launched(struct node *node, const struct msg_host *body, const char *line, unsigned bytes)
{
	struct hosts *h = node->hosts_state;

	if (h->stage != STAGE_LAUNCH || body->host != h->host)
		return;
	if (body->error)
		return fail(node, (int)body->error, "host %u does not come: %.*s", h->host, (int)bytes, line);
	h->stage = STAGE_CONNECT;
	if (h->connected)
		introduce(node);
}

/* From here on its end is the machine's. A CPU may have moved since it was introduced. */
static void include(struct node *node)
{
	struct hosts *h = node->hosts_state;

	h->stage = STAGE_TELL;
	node->hosts |= bit_of(h->host);
	see_who_stays(node, 0);
	tell_owner(node, HOST_INCLUDED, 0);
	moves_tell(node, h->host);
	tell_news(node, node->hosts);
}

void hosts_on_ready(struct node *node, const struct msg_node_ready *ready)
{
	struct hosts *h = node->hosts_state;

	if (!hosts_joins(node, ready->node))
		log_error("host %u is ready, whom nobody has called", ready->node);
	else if (h->stage == STAGE_LAUNCH && ready->stage == READY_CONNECTED)
		h->connected = true;
	else if (h->stage == STAGE_CONNECT && ready->stage == READY_CONNECTED)
		introduce(node);
	else if (h->stage == STAGE_START && ready->stage == READY_STARTED)
		include(node);
}

/* --- a host goes ---------------------------------------------------------------------------------------------------- */

static void begin_remove(struct node *node)
{
	struct hosts *h = node->hosts_state;
	char why[200];

	if (hostplan_may_go(node->hosts, h->host, node->o.mem_mib, node->o.host_mem_mib, why, sizeof why))
		return fail(node, EINVAL, "%s", why);
	h->stage = STAGE_TELL;
	h->cpus_moved = h->gone = 0;
	h->held_pages = h->room_pages = 0;
	tell_news(node, node->hosts);
}

/* A CPU that is there, or MAX_CPUS. */
static unsigned cpu_on(const struct node *node, unsigned host)
{
	unsigned cpu = 0;

	while (cpu < node->o.n_cpus && moves_place(node, cpu) != host)
		cpu++;
	return cpu < node->o.n_cpus ? cpu : MAX_CPUS;
}

static void move_cpu(struct node *node, unsigned cpu, unsigned to)
{
	struct msg_cpu_move move = { .cpu = cpu, .host = to };

	moves_request(node, MOVE_CLIENT_HOSTS, &move);
}

/* The next CPU goes where there are fewest; when there is none, the homes. */
static void move_cpus_away(struct node *node)
{
	struct hosts *h = node->hosts_state;
	struct home_order orders[DSM_INTERVALS];
	uint32_t at[MAX_CPUS];
	unsigned cpu = cpu_on(node, h->host), to;

	h->stage = STAGE_CPUS;
	h->waits_for_move = moves_one_goes(node);
	if (h->waits_for_move)
		return;
	if (cpu == MAX_CPUS)
		return move_homes(node, orders, hostplan_homes_of(h->place, h->staying, h->host, orders));
	for (unsigned i = 0; i < node->o.n_cpus; i++)
		at[i] = moves_place(node, i);
	h->cpus_moved |= bit_of(cpu);
	to = hostplan_place_for_cpu(at, node->o.n_cpus, h->staying);
	log_info("CPU %u shall move from host %u to host %u; that one goes, and this one has the fewest", cpu, h->host, to);
	move_cpu(node, cpu, to);
}

/* Those that have moved away move back, as far as they can; then it is as before. */
static void move_cpus_back(struct node *node)
{
	struct hosts *h = node->hosts_state;
	unsigned cpu;

	if (!h->cpus_moved) {
		tell_news(node, node->hosts);
		fail(node, EAGAIN, "host %u stays: %s", h->host, h->why);
		return;
	}
	cpu = (unsigned)__builtin_ctz(h->cpus_moved);
	h->cpus_moved &= ~bit_of(cpu);
	move_cpu(node, cpu, h->host);
}

static void stay(struct node *node)
{
	see_who_stays(node, 1);
	node->hosts_state->stage = STAGE_BACK;
	move_cpus_back(node);
}

void hosts_on_moved(struct node *node, unsigned cpu, int error, const char *why)
{
	struct hosts *h = node->hosts_state;

	if (h->stage == STAGE_BACK) {
		move_cpus_back(node);
	} else if (h->stage == STAGE_CPUS && error && moves_place(node, cpu) == h->host) {
		snprintf(h->why, sizeof h->why, "%s", why);
		h->cpus_moved &= ~bit_of(cpu);
		stay(node);
	} else if (h->stage == STAGE_CPUS) {
		move_cpus_away(node);
	}
}

void hosts_after_move(struct node *node)
{
	struct hosts *h = node->hosts_state;

	if (h->stage == STAGE_CPUS && h->waits_for_move)
		move_cpus_away(node);
}

static void on_empty(struct node *node)
{
	struct hosts *h = node->hosts_state;

	h->stage = STAGE_FORGET;
	tell_all(node, node->hosts & ~bit_of(h->host), HOST_FORGET, NULL, 0);
}

/* All have had its farewell: it is no part of the machine any more. */
static void on_gone(struct node *node, unsigned from)
{
	struct hosts *h = node->hosts_state;

	h->gone |= bit_of(from);
	if (h->gone != (node->hosts & ~bit_of(h->host)))
		return;
	node->hosts = h->gone;
	h->stage = STAGE_RETIRE;
	tell_owner(node, HOST_RETIRE, 0);
}

static void on_ended(struct node *node, unsigned host, const char *how, unsigned bytes)
{
	struct hosts *h = node->hosts_state;
	char line[160];

	if (node_has_host(node, host)) {
		node_end_lost(node, host, "the daemon of host %u died: %.*s", host, (int)bytes, how);
	} else if (host != h->host || h->stage == STAGE_NONE) {
		log_warn("host %u has ended: %.*s", host, (int)bytes, how);
	} else if (h->comes) {
		if (h->stage != STAGE_CLEAR)
			snprintf(h->why, sizeof h->why, "its daemon ended: %.*s", (int)bytes, how);
		fail(node, EAGAIN, "host %u does not come: %s", host, h->why);
	} else {
		h->went++;
		hosts_tell_clients(node);
		snprintf(line, sizeof line, "host %u is gone after %u ms", host, ms_since(h));
		done(node, 0, line);
	}
}

/* --- what the daemons answer ---------------------------------------------------------------------------------------- */

static void on_heard(struct node *node, const struct msg_host *heard)
{
	struct hosts *h = node->hosts_state;
	struct home_order orders[DSM_INTERVALS];

	if (heard->seq != h->news)
		return;
	h->heard |= bit_of(heard->host);
	if (heard->host == h->host)
		h->held_pages = heard->nodes;
	else if (h->staying & bit_of(heard->host))
		h->room_pages += heard->present;
	if (h->stage != STAGE_TELL || (h->heard & node->hosts) != node->hosts)
		return;
	if (h->comes)
		move_homes(node, orders, hostplan_homes_for(h->place, node->hosts, h->host, orders));
	else if (hostplan_has_room(h->held_pages, h->room_pages, h->why, sizeof h->why))
		stay(node);
	else
		move_cpus_away(node);
}

void hosts_on_step(struct node *node, const struct msg_host *step)
{
	struct hosts *h = node->hosts_state;

	if (step->op == HOST_HEARD)
		on_heard(node, step);
	else if (step->op == HOST_GONE && h->stage == STAGE_FORGET)
		on_gone(node, step->host);
	else if (step->op == HOST_EMPTY && h->stage == STAGE_PAGES && step->host == h->host)
		on_empty(node);
	else if (step->op == HOST_PROGRESS && h->stage == STAGE_PAGES && step->host == h->host)
		h->pages_left = step->nodes;
	else
		log_error("unexpected step %u of host %u", step->op, step->host);
}

/* --- the queue ------------------------------------------------------------------------------------------------------ */

static void tell_those_who_wait(struct node *node)
{
	const struct hosts *h = node->hosts_state;
	char line[160];

	for (unsigned i = 1; i < h->queue.n; i++) {
		snprintf(line, sizeof line, "hosts come and go one after the other: host %u %s, %u before this one", h->host,
			 h->comes ? "comes" : "goes", i);
		answer(node, &h->queue.wait[i], HOST_PROGRESS, 0, line);
	}
}

static void on_progress(evutil_socket_t fd, short what, void *ctx)
{
	static const struct timeval second = { PROGRESS_S, 0 };
	struct node *node = ctx;
	struct hosts *h = node->hosts_state;
	char line[160];

	(void)fd, (void)what;
	if (h->stage == STAGE_NONE)
		return;
	if (h->stage == STAGE_PAGES && h->pages_left)
		snprintf(line, sizeof line, "host %u: %s, %u MiB are left", h->host, stage_texts[h->stage], h->pages_left >> 8);
	else
		snprintf(line, sizeof line, "host %u: %s", h->host, stage_texts[h->stage]);
	if (node_now_ns() - h->since_ns > PROGRESS_AFTER_NS)
		answer(node, &h->queue.wait[0], HOST_PROGRESS, 0, line);
	tell_those_who_wait(node);
	event_add(h->progress, &second);
}

static void begin_next(struct node *node)
{
	static const struct timeval second = { PROGRESS_S, 0 };
	struct hosts *h = node->hosts_state;

	if (!h->queue.n || h->stage != STAGE_NONE || node->ending || freeze_active(node))
		return;
	h->comes = h->queue.wait[0].body.op == HOST_ADD;
	h->host = h->queue.wait[0].body.host;
	h->since_ns = node_now_ns();
	h->why[0] = 0;
	see_who_stays(node, 0);
	event_add(h->progress, &second);
	if (h->comes)
		begin_add(node);
	else
		begin_remove(node);
}

void hosts_after_snapshot(struct node *node)
{
	begin_next(node);
}

static void request(struct node *node, unsigned client, const struct msg_host *body, const char *name, unsigned name_bytes)
{
	struct hosts *h = node->hosts_state;
	struct host_request request = { *body, client, "" };
	const char *why = NULL;

	snprintf(request.name, sizeof request.name, "%.*s", (int)name_bytes, name);
	if (debug_holds())
		why = "a debugger is attached: hosts stay as they are";
	else if (node->ending || !node->running)
		why = node->ending ? "the machine is going down" : "the machine is only starting";
	else if (!hostqueue_push(&h->queue, &request))
		why = "too many hosts wait to come or go";
	if (why)
		answer(node, &request, HOST_DONE, EAGAIN, why);
	else
		begin_next(node);
	tell_those_who_wait(node);
}

/* The machine's owner is the one that starts and reaps daemons. */
static void on_owner(struct node *node, const struct msg_host *body, const char *line, unsigned bytes)
{
	struct hosts *h = node->hosts_state;

	if (body->op == HOST_LAUNCHED) {
		on_launched(node, body, line, bytes);
	} else if (body->op == HOST_ENDED) {
		on_ended(node, body->host, line, bytes);
	} else if (body->op == HOST_AT) {
		overlay_dial(node, body->host, line, bytes);
	} else if (body->op == HOST_RETIRED && h->stage == STAGE_RETIRE) {
		h->stage = STAGE_END;
		tell(node, h->host, HOST_END, NULL, 0);
	}
}

void hosts_on_client(struct node *node, unsigned client, const struct msg_header *header, const void *body)
{
	struct msg_host host;

	memcpy(&host, body, sizeof host);
	if (host.op == HOST_ADD || host.op == HOST_REMOVE)
		request(node, client, &host, (const char *)body + sizeof host, header->bytes - sizeof host);
	else if (node->client[client].kind == CLIENT_KIND_RUN && host.host < MAX_NODES)
		on_owner(node, &host, (const char *)body + sizeof host, header->bytes - sizeof host);
	else
		log_warn("a command line sent step %u of a host: dropped", host.op);
}

/* The change goes on; nobody hears of it, least of all whoever gets its slot. */
void hosts_forget_client(struct node *node, unsigned client)
{
	struct hosts *h = node->hosts_state;

	for (unsigned i = 0; i < h->queue.n; i++)
		if (h->queue.wait[i].client == client)
			h->queue.wait[i].client = NOBODY;
}

bool hosts_under_way(const struct node *node)
{
	return node->hosts_state->queue.n;
}

uint32_t hosts_that_stay(const struct node *node)
{
	return node->hosts_state->staying & node->hosts;
}

bool hosts_joins(const struct node *node, unsigned host)
{
	const struct hosts *h = node->hosts_state;

	return h && h->stage != STAGE_NONE && h->comes && h->host == host && !node_has_host(node, host);
}

void hosts_start(struct node *node)
{
	struct hosts *h = node->hosts_state = calloc(1, sizeof *h);

	if (!h)
		die("out of memory");
	h->staying = h->told = node->hosts;
	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		h->place[i].node = dsm_interval_start(i, node->o.n_nodes);
	h->progress = evtimer_new(node->base, on_progress, node);
	if (!h->progress)
		die("no memory for events");
}
