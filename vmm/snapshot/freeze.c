/* freeze.c - see freeze.h. */
#include "vmm/snapshot/freeze.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/guest_abi.h"
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/conn.h"
#include "vmm/debug.h"
#include "vmm/hosts.h"
#include "vmm/tsc.h"

enum { CLIENT_BITS = 24, NO_CLIENT = -1, SETTLE_MS = 1, MARK_ROUNDS = 2 };

static struct freeze {
	bool active;		/* between PREPARE and END */
	bool frozen;		/* between PREPARE and THAW */
	bool saving, all_sent;
	uint32_t frozen_cpus, saved_cpus, marks[MARK_ROUNDS];
	/* the copy, and what of it has been sent */
	struct { uint32_t bytes; uint8_t data[CPU_STATE_LIMIT]; } cpu[MAX_CPUS];
	gfn_t *gfn;
	uint8_t *pages;
	uint32_t n_pages, at_page, at_cpu, sent;
} freeze;

static struct leader { /* node 0 */
	int client;	       /* its slot */
	uint32_t seq;	       /* its request, with its slot */
	uint32_t prepared_nodes, frozen_nodes, done_nodes, result;
	uint64_t began_ns;
} leader = { .client = NO_CLIENT };

static uint32_t local_cpus(const struct node *node)
{
	uint32_t cpus = 0;

	for (unsigned cpu = 0; cpu < node->o.n_cpus; cpu++)
		cpus |= (uint32_t)node_has_cpu(node, cpu) << cpu;
	return cpus;
}

static void send_step(struct node *node, unsigned to, enum snapshot_step step, uint32_t result)
{
	struct msg_snapshot body = { .of = node->o.node, .step = step, .result = result };

	net_send(node->net, VNODE_DAEMON(to), MSG_SNAPSHOT, &body, sizeof body, NULL, 0);
}

static void send_step_to_all(struct node *node, enum snapshot_step step)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer))
			send_step(node, peer, step, 0);
}

static void send_to_child(struct node *node, struct child *child, enum msg_type type, const void *body, uint32_t body_bytes,
			  const void *payload, uint32_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .bytes = body_bytes + payload_bytes,
				     .from_node = node->o.node };

	if (child->conn && conn_send(child->conn, &header, body, body_bytes, payload, payload_bytes) == -ENOBUFS)
		node_end(node, END_FAILURE, 0, "the %s does not take its messages", child->name);
}

static void tell_monitors(struct node *node, enum snapshot_step step)
{
	struct msg_snapshot body = { .of = node->o.node, .step = step };

	for (unsigned cpu = 0; cpu < node->o.n_cpus; cpu++)
		if (node_has_cpu(node, cpu)) {
			send_to_child(node, &node->monitor[cpu], MSG_SNAPSHOT, &body, sizeof body, NULL, 0);
			hostshm_post(node->shm, cpu, POST_MESSAGE);
		}
}

static void tell_iosrv(struct node *node, enum snapshot_step step)
{
	struct msg_snapshot body = { .step = step };

	send_to_child(node, &node->iosrv, MSG_SNAPSHOT, &body, sizeof body, NULL, 0);
}

/* --- the copy ------------------------------------------------------------------------------------------------------- */

static void forget_copy(struct node *node)
{
	if (freeze.pages)
		munmap(freeze.pages, (size_t)node->ram_pages << PAGE_BITS);
	free(freeze.gfn);
	memset(&freeze, 0, sizeof freeze);
}

static bool is_zero(const uint8_t *page)
{
	const uint64_t *word = (const uint64_t *)page;

	for (unsigned i = 0; i < PAGE_BYTES / sizeof *word; i += 4)
		if (word[i] | word[i + 1] | word[i + 2] | word[i + 3])
			return false;
	return true;
}

static void copy_range(struct node *node, gfn_t first, gfn_t end)
{
	for (gfn_t gfn = first; gfn < end; gfn++) {
		const uint8_t *page = node->ram + ((size_t)gfn << PAGE_BITS);

		if ((node->dsm && !dsm_is_owner(node->dsm, gfn)) || is_zero(page))
			continue;
		memcpy(freeze.pages + ((size_t)freeze.n_pages << PAGE_BITS), page, PAGE_BYTES);
		freeze.gfn[freeze.n_pages++] = gfn;
	}
}

/* Before the CPUs are frozen: memory that is there already is filled in a third of the time. */
static void prepare_copy(struct node *node)
{
	size_t bytes = (size_t)node->ram_pages << PAGE_BITS, used;
	struct stat st;

	freeze.gfn = malloc(node->ram_pages * sizeof *freeze.gfn);
	freeze.pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (freeze.pages == MAP_FAILED)
		freeze.pages = NULL;
	if (!freeze.pages || fstat(node->ram_fd, &st))
		return;
	used = ((size_t)st.st_blocks * 512 + PAGE_MASK) & ~(size_t)PAGE_MASK;
	madvise(freeze.pages, bytes, MADV_HUGEPAGE);
	madvise(freeze.pages, used < bytes ? used : bytes, MADV_POPULATE_WRITE);
}

/* The pages that this host owns and that are not zero. What was never touched has no memory, and is not looked at. */
static int copy_pages(struct node *node)
{
	off_t end = (off_t)node->ram_pages << PAGE_BITS, at = 0, hole;

	if (!freeze.pages || !freeze.gfn || fault_on(FAULT_SNAPSHOT_NO_MEMORY) == node->o.node + 1)
		return -ENOMEM;
	while (at < end && (at = lseek(node->ram_fd, at, SEEK_DATA)) >= 0) {
		hole = lseek(node->ram_fd, at, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		copy_range(node, at >> PAGE_BITS, (hole + PAGE_MASK) >> PAGE_BITS);
		at = hole;
	}
	return 0;
}

/* No CPU waits for a page, but one may be on its way that nobody waits for: it comes first. */
static void copy_when_settled(evutil_socket_t fd, short what, void *context)
{
	static const struct timeval moment = { 0, SETTLE_MS * 1000 };
	struct node *node = context;

	(void)fd, (void)what;
	if (!node->dsm || dsm_settled(node->dsm))
		send_step(node, 0, SNAPSHOT_DONE, (uint32_t)-copy_pages(node));
	else if (event_base_once(node->base, -1, EV_TIMEOUT, copy_when_settled, node, &moment))
		die("no memory for events");
}

static void send_marks(struct node *node, uint32_t round)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer) && peer != node->o.node)
			send_step(node, peer, SNAPSHOT_MARK, round);
	freeze.marks[round] |= 1u << node->o.node;
}

/* A round's marks are all here. Behind those of the first nothing comes that was sent to this host, but for what another
 * host passes on to a CPU that has moved here; that is ahead of its mark of the second. Then the CPUs give their state. */
static void check_marks(struct node *node)
{
	if (freeze.marks[0] != node->hosts || freeze.saving)
		return;
	if (!(freeze.marks[1] >> node->o.node & 1))
		send_marks(node, 1);
	if (freeze.marks[1] != node->hosts)
		return;
	freeze.saving = true;
	tell_monitors(node, SNAPSHOT_SAVE);
	if (!local_cpus(node))
		copy_when_settled(-1, 0, node);
}

void freeze_on_cpu_state(struct node *node, unsigned cpu, const void *state, uint32_t bytes)
{
	if (!freeze.active || bytes > CPU_STATE_LIMIT) {
		log_error("CPU %u sent a state of %u bytes that nobody asked for", cpu, bytes);
		return;
	}
	memcpy(freeze.cpu[cpu].data, state, bytes);
	freeze.cpu[cpu].bytes = bytes;
	freeze.saved_cpus |= 1u << cpu;
	if (freeze.saved_cpus == local_cpus(node))
		copy_when_settled(-1, 0, node);
}

/* --- what every daemon does ----------------------------------------------------------------------------------------- */

static void on_prepare(struct node *node)
{
	forget_copy(node);
	freeze.active = freeze.frozen = true;
	prepare_copy(node);
	send_step(node, 0, SNAPSHOT_PREPARED, 0);
}

static void on_freeze(struct node *node)
{
	tell_monitors(node, SNAPSHOT_FREEZE);
	if (!local_cpus(node)) /* they may all have moved away */
		send_step(node, 0, SNAPSHOT_FROZEN, 0);
}

static void on_thaw(struct node *node)
{
	freeze.frozen = false;
	tell_monitors(node, SNAPSHOT_THAW);
}

static void on_monitor_frozen(struct node *node, unsigned cpu)
{
	freeze.frozen_cpus |= 1u << cpu;
	if (freeze.frozen_cpus == local_cpus(node))
		send_step(node, 0, SNAPSHOT_FROZEN, 0);
}

static void on_cut(struct node *node)
{
	send_marks(node, 0);
	check_marks(node);
}

static bool send_item(struct node *node, uint32_t seq, enum snapshot_kind kind, uint32_t index, const void *data, uint32_t bytes)
{
	struct msg_snapshot_item item = { .of = node->o.node, .seq = seq, .kind = kind, .index = index };

	net_send(node->net, VNODE_CLI, MSG_SNAPSHOT_ITEM, &item, sizeof item, data, bytes);
	freeze.sent += kind != SNAPSHOT_LAST;
	return true;
}

static bool send_cpu(struct node *node, uint32_t seq)
{
	for (; freeze.at_cpu < node->o.n_cpus; freeze.at_cpu++)
		if (freeze.cpu[freeze.at_cpu].bytes) {
			send_item(node, seq, SNAPSHOT_CPU, freeze.at_cpu, freeze.cpu[freeze.at_cpu].data,
				  freeze.cpu[freeze.at_cpu].bytes);
			freeze.at_cpu++;
			return true;
		}
	return false;
}

static bool send_page(struct node *node, uint32_t seq)
{
	uint32_t n = freeze.at_page;

	if (n == freeze.n_pages)
		return false;
	freeze.at_page++;
	return send_item(node, seq, SNAPSHOT_PAGE, freeze.gfn[n], freeze.pages + ((size_t)n << PAGE_BITS), PAGE_BYTES);
}

void freeze_on_pull(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_snapshot_pull pull;

	(void)header;
	memcpy(&pull, body, sizeof pull);
	for (uint32_t n = 0; n < pull.count && freeze.active && !freeze.frozen && !freeze.all_sent; n++) {
		freeze.all_sent = !send_cpu(node, pull.seq) && !send_page(node, pull.seq);
		if (freeze.all_sent)
			send_item(node, pull.seq, SNAPSHOT_LAST, freeze.sent, NULL, 0);
	}
}

/* --- node 0 leads --------------------------------------------------------------------------------------------------- */

static uint64_t wallclock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void answer_client(struct node *node, uint32_t seq, enum snapshot_kind kind, const void *data, uint32_t bytes)
{
	struct msg_snapshot_item item = { .seq = seq, .kind = kind };
	struct msg_header header = { .type = MSG_SNAPSHOT_ITEM, .version = WIRE_VERSION, .to = VNODE_CLI,
				     .from_node = node->o.node, .bytes = sizeof item + bytes };
	uint8_t packet[sizeof item + MAX_MSG_PAYLOAD];

	memcpy(packet, &item, sizeof item);
	memcpy(packet + sizeof item, data, bytes);
	clients_send_answer(node, &header, packet);
}

static void refuse(struct node *node, uint32_t seq, const char *why)
{
	answer_client(node, seq, SNAPSHOT_REFUSED, why, strlen(why));
}

static void describe_machine(struct node *node)
{
	struct snapshot_machine machine = {
		.hosts = (uint32_t)__builtin_popcount(node->hosts), .cpus = node->o.n_cpus, .mem_mib = node->o.mem_mib, .saved_ns = wallclock_ns(),
		.clock_ns = node_now_ns() - node->shm->start_monotonic_ns, .pause_ns = node_now_ns() - leader.began_ns,
		.tsc_khz = node->shm->tsc_khz, .tsc = tsc_mark().ticks,
	};
	uint8_t payload[sizeof machine + MAX_CMDLINE];
	size_t line = strlen(node->o.cmdline) + 1;

	memcpy(payload, &machine, sizeof machine);
	memcpy(payload + sizeof machine, node->o.cmdline, line);
	log_info("saved: stood still for %llu us", (unsigned long long)machine.pause_ns / 1000);
	answer_client(node, leader.seq, SNAPSHOT_MACHINE, payload, sizeof machine + line);
}

static void end_snapshot(struct node *node)
{
	leader.client = NO_CLIENT;
	tell_iosrv(node, SNAPSHOT_END);
	send_step_to_all(node, SNAPSHOT_END);
}

/* Everything is copied, or cannot be. */
static void finish(struct node *node)
{
	uint32_t result = leader.result;

	/* The clock is read before any CPU can read it again. */
	if (!result && leader.client != NO_CLIENT)
		describe_machine(node);
	tell_iosrv(node, SNAPSHOT_THAW);
	send_step_to_all(node, SNAPSHOT_THAW);
	if (result)
		refuse(node, leader.seq, "a host has not got the memory for a copy of the machine; close something, or use more hosts");
	if (result || leader.client == NO_CLIENT)
		end_snapshot(node);
}

static void begin(struct node *node, unsigned number, uint32_t seq)
{
	if (leader.client != NO_CLIENT || freeze.active || !node->running || node->ending || moves_under_way(node) ||
	    debug_holds()) {
		refuse(node, seq, !node->running ? "the machine has not started yet" :
				  hosts_under_way(node) ? "a host comes or goes: try again" :
				  moves_under_way(node) ? "a processor is moving: try again" :
				  debug_holds() ? "a debugger is attached, whose breakpoints stand in its memory" :
				  "the machine is being saved already");
		return;
	}
	leader = (struct leader){ .client = number, .seq = seq };
	send_step_to_all(node, SNAPSHOT_PREPARE);
}

static void on_iosrv_saved(struct node *node, uint32_t result)
{
	leader.result |= result;
	send_step_to_all(node, SNAPSHOT_CUT);
}

static void on_node_prepared(struct node *node, unsigned of)
{
	leader.prepared_nodes |= 1u << of;
	if (leader.prepared_nodes != node->hosts)
		return;
	leader.began_ns = node_now_ns();
	send_step_to_all(node, SNAPSHOT_FREEZE);
}

static void on_node_frozen(struct node *node, unsigned of)
{
	leader.frozen_nodes |= 1u << of;
	if (leader.frozen_nodes == node->hosts)
		tell_iosrv(node, SNAPSHOT_SAVE);
}

static void on_node_done(struct node *node, unsigned of, uint32_t result)
{
	leader.result |= result;
	leader.done_nodes |= 1u << of;
	if (leader.done_nodes == node->hosts)
		finish(node);
}

bool freeze_active(void)
{
	return freeze.active;
}

bool freeze_holds(void)
{
	return freeze.frozen;
}

void freeze_on_message(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_snapshot m;

	memcpy(&m, body, sizeof m);
	switch (m.step) {
	case SNAPSHOT_PREPARE: on_prepare(node); return;
	case SNAPSHOT_FREEZE: on_freeze(node); return;
	case SNAPSHOT_CUT: on_cut(node); return;
	case SNAPSHOT_THAW: on_thaw(node); return;
	case SNAPSHOT_END: forget_copy(node); return;
	case SNAPSHOT_MARK:
		if (!node_has_host(node, m.of) || m.result >= MARK_ROUNDS)
			break;
		freeze.marks[m.result] |= 1u << m.of;
		check_marks(node);
		return;
	case SNAPSHOT_SAVED: on_iosrv_saved(node, m.result); return;
	case SNAPSHOT_TAKEN: clients_send_run(node, header, body); return;
	case SNAPSHOT_PREPARED:
		if (!node_has_host(node, m.of))
			break;
		on_node_prepared(node, m.of);
		return;
	case SNAPSHOT_FROZEN:
		if (!node_has_host(node, m.of))
			break;
		on_node_frozen(node, m.of);
		return;
	case SNAPSHOT_DONE:
		if (!node_has_host(node, m.of))
			break;
		on_node_done(node, m.of, m.result);
		return;
	}
	log_error("unexpected step %u of a snapshot, of %u", m.step, m.of);
}

void freeze_on_monitor(struct node *node, unsigned cpu, const void *body)
{
	struct msg_snapshot m;

	memcpy(&m, body, sizeof m);
	if (m.step == SNAPSHOT_FROZEN && freeze.active)
		on_monitor_frozen(node, cpu);
	else
		log_error("unexpected step %u of a snapshot from CPU %u", m.step, cpu);
}

void freeze_client_gone(struct node *node, unsigned number)
{
	if (leader.client != (int)number)
		return;
	if (freeze.frozen || !freeze.active)
		leader.client = NO_CLIENT; /* finish() sees it */
	else
		end_snapshot(node);
}

/* --- loading --------------------------------------------------------------------------------------------------------- */

void freeze_load_ready(struct node *node)
{
	struct msg_snapshot ready = { .step = SNAPSHOT_READY };
	struct msg_header header = { .type = MSG_SNAPSHOT, .version = WIRE_VERSION, .bytes = sizeof ready, .to = VNODE_CLI };

	node->preloaded.range[0] = (struct page_range){ 0, node->ram_pages };
	node->preloaded.count = 1;
	clients_send_run(node, &header, &ready);
}

void freeze_thaw_all(struct node *node)
{
	tell_iosrv(node, SNAPSHOT_THAW);
	send_step_to_all(node, SNAPSHOT_THAW);
}

static void load_page(struct node *node, uint32_t gfn, const void *data, uint32_t bytes)
{
	if (gfn >= node->ram_pages || bytes != PAGE_BYTES)
		node_end(node, END_FAILURE, 0, "the snapshot has a page %x, which is not RAM", gfn);
	else
		memcpy(node->ram + ((size_t)gfn << PAGE_BITS), data, bytes);
}

static void load_item(struct node *node, const struct msg_header *header, const void *body)
{
	const uint8_t *data = (const uint8_t *)body + sizeof(struct msg_snapshot_item);
	uint32_t bytes = header->bytes - sizeof(struct msg_snapshot_item);
	struct msg_snapshot_item item;

	memcpy(&item, body, sizeof item);
	switch (item.kind) {
	case SNAPSHOT_PAGE:
		load_page(node, item.index, data, bytes);
		return;
	case SNAPSHOT_CPU:
		if (item.index < node->o.n_cpus)
			net_send(node->net, VNODE_CPU(item.index), MSG_SNAPSHOT_ITEM, &item, sizeof item, data, bytes);
		return;
	default:
		send_to_child(node, &node->iosrv, MSG_SNAPSHOT_ITEM, &item, sizeof item, data, bytes);
	}
}

void freeze_on_item(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_snapshot_item item;

	if (header->to == VNODE_CLI) {
		clients_send_answer(node, header, body);
		return;
	}
	memcpy(&item, body, sizeof item);
	if (item.kind != SNAPSHOT_CPU || item.index >= node->o.n_cpus || !node_has_cpu(node, item.index)) {
		log_error("the state of CPU %u, which is not here", item.index);
		return;
	}
	send_to_child(node, &node->monitor[item.index], MSG_SNAPSHOT_ITEM, &item, sizeof item,
		      (const uint8_t *)body + sizeof item, header->bytes - sizeof item);
	hostshm_post(node->shm, item.index, POST_MESSAGE);
}

/* --- what a command line sends ---------------------------------------------------------------------------------------- */

/* Between READY and LOADED, and it is the client that does it. */
static bool is_loading(const struct node *node, unsigned number)
{
	return node->o.restore && node->preloaded.count && !node->started && node->client[number].kind == CLIENT_KIND_RUN;
}

static void on_client_step(struct node *node, unsigned number, const void *body)
{
	struct msg_snapshot m;

	memcpy(&m, body, sizeof m);
	m.seq = (m.seq & ((1u << CLIENT_BITS) - 1)) | number << CLIENT_BITS;
	if (m.step == SNAPSHOT_SAVE)
		begin(node, number, m.seq);
	else if (m.step == SNAPSHOT_END)
		freeze_client_gone(node, number);
	else if (m.step == SNAPSHOT_LOADED && is_loading(node, number))
		node_start_loaded(node, m.clock_ns);
	else
		log_warn("a command line sent step %u of a snapshot: dropped", m.step);
}

static void on_client_pull(struct node *node, unsigned number, const void *body)
{
	struct msg_snapshot_pull pull;

	memcpy(&pull, body, sizeof pull);
	pull.seq = (pull.seq & ((1u << CLIENT_BITS) - 1)) | number << CLIENT_BITS;
	if (leader.client != (int)number)
		log_warn("a command line pulls a snapshot that it does not save: dropped");
	else if (pull.of == SNAPSHOT_OF_IOSRV)
		send_to_child(node, &node->iosrv, MSG_SNAPSHOT_PULL, &pull, sizeof pull, NULL, 0);
	else if (node_has_host(node, pull.of))
		net_send(node->net, VNODE_DAEMON(pull.of), MSG_SNAPSHOT_PULL, &pull, sizeof pull, NULL, 0);
}

void freeze_on_client(struct node *node, unsigned number, const struct msg_header *header, const void *body)
{
	switch (header->type) {
	case MSG_SNAPSHOT:
		on_client_step(node, number, body);
		return;
	case MSG_SNAPSHOT_PULL:
		on_client_pull(node, number, body);
		return;
	default:
		if (is_loading(node, number))
			load_item(node, header, body);
		else
			log_warn("a command line sent a part of a machine that is not being loaded: dropped");
	}
}
