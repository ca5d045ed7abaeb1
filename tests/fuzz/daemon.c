/* daemon.c - fuzzes a node daemon with what other daemons, its monitors and its I/O server send.
 *
 * The first byte chooses the daemon's part: the leader or another one of three hosts, or one that
 * joins; and whether its share of the memory is small.  Then come operations (enum op), each a byte
 * followed by its operands.
 *
 * Whatever comes, the daemon refuses it, drops it, or ends the machine with one line.  It does not
 * abort, it writes nowhere outside its objects, and its peers would accept the messages that it
 * sends.
 *
 * All of the daemon is linked except its start, and its edges to sockets and processes, which are
 * passed in.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "dsm/dsm.h"
#include "tests/fuzz/fuzz.h"
#include "tests/sim/nowhere.h"
#include "vmm/node/clock/clock_sync.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/cut/turn.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/wants.h"

enum { HOSTS = 3, CPUS = 4, PAGES = 64 };
enum op {
	FROM_PEER,
	FROM_PEER_PAGE,
	FROM_MONITOR,
	FROM_IOSRV,
	WANT,
	RUN_TIMERS,
	START,
	CHILD_DIES,
	OPS
};

static struct node node;
static struct { const uint8_t *at; size_t left; } w;

static uint64_t number(unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes && w.left; i++, w.left--)
		value |= (uint64_t)*w.at++ << 8 * i;
	return value;
}

/* ---- what is passed in (vmm/node/outside.h) ---- */

static bool has_more(const struct node *n) { (void)n; return false; }
static bool reaches(const struct node *n, unsigned peer) { (void)n; return peer < HOSTS; }
static bool reaches_all(const struct node *n) { (void)n; return true; }

static int start(struct node *n, struct child *child, const struct child_program *program,
		 char *why, size_t why_bytes)
{
	(void)n, (void)program, (void)why, (void)why_bytes;
	/* a second monitor would replace the first */
	FUZZ_CHECK(child->cpu < CPUS && !child->pid);
	child->pid = (pid_t)(1000 + child->cpu);
	return 0;
}

static void kill_child(struct node *n, struct child *child, int number)
{
	(void)n, (void)number;
	FUZZ_CHECK(child->pid > 0);
}

static pid_t dead; /* the next to be reaped */

static pid_t reap(struct node *n, int *status)
{
	pid_t pid = dead;

	(void)n;
	dead = 0;
	*status = SIGKILL;
	return pid;
}

static bool processors(cpu_set_t *allowed) { (void)allowed; return false; }
static uint32_t load_percent(void) { return 100; }

static const struct outside outside = {
	NOWHERE,
	.has_more = has_more,
	.reaches = reaches,
	.reaches_all = reaches_all,
	.start = start,
	.kill = kill_child,
	.reap = reap,
	.processors = processors,
	.load_percent = load_percent,
};

/* Takes messages to other daemons: they must be acceptable. */
static int carry(void *ctx, unsigned peer, const struct msg_header *header, const void *body,
		 uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	(void)ctx, (void)body, (void)payload;
	FUZZ_CHECK(peer < MAX_NODES && wire_is_legal(LINK_OVERLAY, header->type));
	FUZZ_CHECK(header->bytes == body_bytes + payload_bytes &&
		   wire_size_is_legal(header->type, header->bytes));
	return 0;
}

/* ---- the daemon's loop: time stands still but for RUN_TIMERS ---- */

struct fuzz_event {
	struct loop_event common;
	struct fuzz_event *next;
	loop_fn fn;
	void *context;
	bool is_timer, armed;
	int signal_number; /* 0: it is none */
	uint64_t at_ns;
};
static struct { struct fuzz_event *events; uint64_t now_ns; } loop;

static uint64_t op_now_ns(const struct loop *on)
{
	(void)on;
	return loop.now_ns;
}

static struct loop_event *op_add(const struct loop *on, enum loop_kind kind, int number,
				 loop_fn fn, void *context)
{
	struct fuzz_event *event = malloc(sizeof *event);

	FUZZ_CHECK(event);
	*event = (struct fuzz_event){ { on->ops },
				      loop.events,
				      fn,
				      context,
				      kind == LOOP_TIMER || kind == LOOP_OWN_TIMER,
				      false,
				      kind == LOOP_SIGNAL ? number : 0,
				      0 };
	loop.events = event;
	return &event->common;
}

static int op_arm(struct loop_event *common, uint64_t after_ns)
{
	struct fuzz_event *event = (struct fuzz_event *)common;

	event->armed = event->is_timer;
	event->at_ns = loop.now_ns + after_ns;
	return 0;
}

static void op_disarm(struct loop_event *event) { ((struct fuzz_event *)event)->armed = false; }
static bool op_is_armed(const struct loop_event *event)
{
	return ((const struct fuzz_event *)event)->armed;
}
static void op_stop(const struct loop *on) { (void)on; }

static int op_once(const struct loop *on, uint64_t after_ns, loop_fn fn, void *context)
{
	return op_arm(op_add(on, LOOP_TIMER, -1, fn, context), after_ns);
}

static const struct loop_ops loop_ops = { op_now_ns,   op_now_ns, op_add,  op_arm, op_disarm,
					  op_is_armed, op_disarm, op_once, op_stop };

/* Calls the function of the timer that is due next. */
static void run_timers(void)
{
	struct fuzz_event *first = NULL;

	for (struct fuzz_event *event = loop.events; event; event = event->next)
		if (event->armed && (!first || event->at_ns < first->at_ns))
			first = event;
	if (!first)
		return;
	if (first->at_ns > loop.now_ns)
		loop.now_ns = first->at_ns;
	first->armed = false;
	first->fn(first->context);
}

static void signal_comes(int number)
{
	for (struct fuzz_event *event = loop.events; event; event = event->next)
		if (event->signal_number == number)
			event->fn(event->context);
}

static void free_events(void)
{
	while (loop.events) {
		struct fuzz_event *event = loop.events;

		loop.events = event->next;
		free(event);
	}
}

/* ---- a daemon ---- */

static int make_memory(const char *name, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	return fd;
}

static void make_shared_memory(void)
{
	node.ram_pages = PAGES;
	node.ram_fd = make_memory("ram", PAGES * PAGE_BYTES);
	node.ram = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, node.ram_fd,
			0);
	node.shm_fd = make_memory("head", HOSTSHM_HEAD_BYTES);
	node.cpus_fd = make_memory("cpus", hostshm_cpus_bytes(PAGES));
	node.shm = hostshm_map(node.shm_fd, node.cpus_fd, PAGES);
	FUZZ_CHECK(node.ram != MAP_FAILED && node.shm);
	node.shm->n_cpus = CPUS;
	node.shm->ram_pages = PAGES;
	node.shm->many_hosts = true;
	hostclock_set(&node.shm->clock, (struct clock_line){ node.boot_ns, 0, 0 });
}

static void begin(unsigned how)
{
	node = (struct node){ .ram_fd = -1 };
	machine_defaults(&node.o.machine);
	node.o.machine.hosts = HOSTS;
	node.o.machine.cpus = CPUS;
	node.o.machine.restore = how >> 2 & 1;
	node.o.cmdline = "";
	node.o.node = how % 3;
	if (node.o.node == 2 && how & 8)
		node.o.join = 3;
	loop.now_ns = LOOP_S;
	node.loop = (struct loop){ &loop_ops, NULL };
	node.outside = &outside;
	supervise_start(&node);
	processors_start(&node);
	node.boot_ns = node_now_ns(&node);
	node.net = net_new(node.o.node, HOSTS, route_deliver, &node);
	FUZZ_CHECK(node.net);
	node.hosts = node.o.join ? node.o.join : (1u << HOSTS) - 1;
	handover_start(&node);
	hostpart_start(&node);
	freeze_start(&node);
	policy_start(&node);
	if (node.o.node == 0) {
		moves_start(&node);
		hosts_start(&node);
		turn_start(&node);
	}
	make_shared_memory();
	node.share_pages = how & 16 ? PAGES / 8 : PAGES;
	wants_start(&node);
	pagestore_start(&node);
	net_carry(node.net, carry, NULL);
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		node.monitor[cpu].cpu = cpu;
		node.monitor[cpu].pid = node_has_cpu(&node, cpu) ? (pid_t)(1000 + cpu) : 0;
	}
}

static void end(void)
{
	pagestore_end(&node);
	wants_end(&node);
	free_events();
	net_free(node.net);
	munmap(node.ram, PAGES * PAGE_BYTES);
	hostshm_unmap(node.shm, PAGES);
	free(node.moves);
	free(node.hosts_state);
	free(node.hostpart);
	free(node.freeze);
	free(node.turn);
	free(node.policy);
	free(node.processors);
}

/* ---- operations ---- */

/* Reads a word of a body: mostly a small number, since most meaningful ones are small. */
static uint32_t word(void)
{
	unsigned how = number(1);

	return how < 0xf0    ? how & 0x7f
	       : how == 0xff ? (uint32_t)number(4)
			     : UINT32_MAX >> (how & 15);
}

/* Makes a message with a body from the input, and a payload of whole items as far as its type
 * allows. */
static bool make_message(uint16_t type, vnode_t to, unsigned from, uint32_t payload_bytes,
			 enum wire_link link, struct message *m)
{
	static struct {
		struct msg_header header;
		uint8_t rest[MAX_BODY_BYTES + MAX_MSG_PAYLOAD];
	} packet;
	uint32_t body = wire_body_bytes(type), least, most;
	char why[160];

	if (!wire_is_legal(link, type) || wire_type_bounds(type, &least, &most))
		return false;
	if (body + payload_bytes > most)
		payload_bytes = most - body;
	memset(packet.rest, 0, sizeof packet.rest);
	for (uint32_t at = 0; at < body; at += 4)
		memcpy(packet.rest + at, &(uint32_t){ word() }, 4);
	for (uint32_t at = 0; at + 4 <= payload_bytes && w.left; at += 4)
		memcpy(packet.rest + body + at, &(uint32_t){ word() }, 4);
	packet.header = packet_header(type, to, from, body + payload_bytes);
	return !packet_check(&packet, sizeof packet.header + packet.header.bytes, link, m, why,
			     sizeof why);
}

static vnode_t destination(unsigned how)
{
	switch (how & 7) {
	case 0: return VNODE_CPU(how >> 3 & 3);
	case 1: return VNODE_IOSRV;
	case 2: return VNODE_CLI;
	case 3: return VNODE_HOME_BASE + (how >> 3);
	case 4: return VNODE_DAEMON(how >> 3 & 3);
	default: return VNODE_DAEMON(node.o.node);
	}
}

static void from_peer(bool page)
{
	unsigned type = number(1) % MESSAGE_TYPES, from = number(1) & 3, how = number(1);
	struct message m;

	if (page) /* mostly of the page protocol */
		type = MSG_DSM_READ + type % (MSG_DSM_ADOPT - MSG_DSM_READ + 1);
	uint32_t payload = (how >> 5) * 20;

	if (type >= MSG_DSM_READ)
		payload = PAGE_BYTES * (type == MSG_DSM_GRANT_READ || type == MSG_DSM_GRANT_WRITE);
	/* MSG_HELLO is the overlay's own */
	if (type != MSG_HELLO &&
	    make_message((uint16_t)type, destination(how), from, payload, LINK_OVERLAY, &m))
		net_receive(node.net, from, &m);
}

static void from_child(enum wire_link link)
{
	unsigned type = number(1) % MESSAGE_TYPES, how = number(1);
	struct message m;

	if (type == MSG_HELLO || !make_message((uint16_t)type, 0, 0, (how >> 5) * 20, link, &m))
		return;
	m.from = link == LINK_MONITOR_TO_NODE ? how % CPUS : 0;
	if (link == LINK_MONITOR_TO_NODE && !node.monitor[m.from].pid)
		return;
	if (link == LINK_MONITOR_TO_NODE)
		FUZZ_CHECK(dispatch_from_monitor(&node, &m));
	else
		FUZZ_CHECK(dispatch_from_iosrv(&node, &m));
}

static void want(void)
{
	unsigned how = number(1);
	struct vcpu_slot *slot = &node.shm->slot[how & 3];

	/* as any VM process may write it */
	slot->want_gfn = word();
	slot->want_right = how >> 2 & 3;
	slot->want_aheads = how >> 4;
	for (unsigned i = 0; i < MAX_AHEAD && i < how >> 4; i++)
		slot->want_ahead[i] = word();
	slot->want_locked = slot->want_gfn & 1;
	slot->want_guessed = slot->want_gfn >> 1 & 1;
	slot->want = WANT_ASKED;
	wants_look(&node);
}

static void start_machine(void)
{
	struct page_range ranges[] = { { 0, 8, 0, 0 }, { 8, 8, 1, 0 }, { 16, 8, 2, 1 } };
	struct msg_machine_start body = { .start_monotonic_ns = 1, .ranges = ARRAY_LEN(ranges) };

	node_on_start(&node, &body, ranges);
	node.running = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int first_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_open("fuzz", first_fd, LOG_ERROR);
	w.at = data;
	w.left = size;
	begin(number(1));
	while (w.left)
		switch ((enum op)(number(1) % OPS)) {
		case FROM_PEER: from_peer(false); break;
		case FROM_PEER_PAGE: from_peer(true); break;
		case FROM_MONITOR: from_child(LINK_MONITOR_TO_NODE); break;
		case FROM_IOSRV: from_child(LINK_IOSRV_TO_NODE); break;
		case WANT: want(); break;
		case RUN_TIMERS: run_timers(); break;
		case START: start_machine(); break;
		case CHILD_DIES: {
			struct child *child = &node.monitor[number(1) % CPUS];

			dead = child->pid;
			if (dead > 0)
				signal_comes(SIGCHLD);
			break;
		}
		case OPS: break;
		}
	end();
	/* pipes and timers of the parts that are not freed */
	close_range((unsigned)first_fd, ~0u, 0);
	return 0;
}
