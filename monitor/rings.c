/* rings.c - the monitor's part of virtio devices: it walks the rings for the CPU that uses them.
 *
 * A virtqueue is in guest memory, whose pages may be on any host; the I/O server has none of them.
 * So the monitor of the CPU that notifies a queue walks it: its host has the pages that the guest
 * has just written.  It sends each chain's bytes to the I/O server (REQUEST), which replies with
 * the bytes to write (DONE).  The monitor writes them into the guest's buffers, gives the chain
 * back and sends the device's interrupt, if the I/O server has said where it goes, or else has the
 * line raised (USED).  An unrequested message, a packet from the network
 * or what was typed, arrives as PUSH and is written into the next chain.
 *
 * One CPU at a time has a queue's lease: the right to walk it, and with it the device's two
 * indices.  The I/O server grants the lease to a CPU that notifies, and recalls it when another one
 * does (iosrv/virtio.h).  A notification by the CPU that has the lease needs no message.  The lease
 * goes back only when all its chains are done.  A CPU that is stopped for a snapshot or a move has
 * no lease, so the saved state of a queue is in the I/O server alone.  Chains that the device has
 * not received yet are in the guest's rings, and so part of the memory.
 *
 * With VIRTIO_F_EVENT_IDX the guest notifies only where the device has asked for it: when the
 * monitor has taken all chains.  Chains that become available while others wait, because the
 * device's limits are reached, need no notification: they are taken when chains are done, or by the
 * next CPU with the lease.  Fresh buffers for pushes are notified once in a round of the ring, so
 * that the lease follows the CPU that supplies them.
 *
 * A device's file may be at hand: a monitor on the I/O server's host reads and writes a disk's
 * image and sends frames itself, as far as the lease allows (localdisk.h, localnet.h).
 *
 * Bus-master DMA of the IDE disk comes the same way: the I/O server sends a step
 * (iosrv/busmaster.c) to the CPU that started it, whose monitor copies the bytes by the guest's
 * table (dma.c).
 *
 * Rules of use: messages arrive whenever the monitor waits, perhaps while pins are held.  They are
 * queued, and served where no page is pinned: rings_serve() and similar functions.
 */
#include "monitor/monitor.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/virtio_abi.h"
#include "monitor/dma.h"
#include "monitor/localdisk.h"
#include "monitor/localnet.h"
#include "monitor/virtqueue.h"

struct in_flight {
	bool used;
	struct virtqueue_chain chain;
};
/* A message that waits to be served. */
struct kept {
	struct kept *next;
	enum msg_type type;
	size_t payload_bytes;
	union {
		struct msg_virtio tell;
		struct msg_virtio_grant grant;
		struct msg_dma dma;
	} body;
	uint8_t payload[];
};

static struct lease {
	bool held, recalled, broken;
	uint32_t direct; /* enum virtio_direct */
	struct route {
		uint32_t cpu_mask, vector;
	} route; /* of the interrupts of chains that are served here */
	unsigned slot, number;
	struct virtqueue queue;
	unsigned n_in_flight;
	uint32_t bytes_in_flight;
	struct in_flight in_flight[VIRTIO_IN_FLIGHT];
	struct kept *first_push, *last_push; /* for which the guest has no chain yet */
	unsigned n_pushes;
} leases[VIRTIO_SLOTS][VIRTIO_QUEUES];

static struct {
	bool known;	  /* the I/O server knows this CPU, and may send messages */
	bool serving;	  /* inside rings_serve() or rings_write() */
	bool left;	  /* LEFT has arrived */
	unsigned settled; /* number of SETTLED that have arrived */
	uint32_t used;	  /* slots whose lines are to be raised */
	/* where the interrupts of these slots go, as the last message said; no CPU: ask */
	struct route route[VIRTIO_SLOTS], now; /* now: of the message that is being served */
	struct kept *first, *last;
} rings;

/* --- guest memory --- */

static bool read_memory(void *ctx, uint64_t gpa, void *to, uint32_t bytes)
{
	return guestmem_copy(ctx, gpa, to, bytes, false);
}

static bool write_memory(void *ctx, uint64_t gpa, const void *from, uint32_t bytes)
{
	uint16_t index;

	if (bytes == sizeof index) { /* guestmem_copy() writes back what it was given */
		memcpy(&index, from, sizeof index);
		return guestmem_copy(ctx, gpa, &index, sizeof index, true);
	}
	return guestmem_copy(ctx, gpa, (void *)from, bytes, true);
}

static struct virtqueue_memory memory_of(struct monitor *m)
{
	return (struct virtqueue_memory){ m, read_memory, write_memory };
}

/* --- requests to the I/O server --- */

static void ask(struct monitor *m, const struct lease *l, struct msg_virtio body,
		const void *payload, size_t bytes)
{
	body.cpu = m->cpu;
	if (l) {
		body.slot = l->slot;
		body.queue = l->number;
	}
	channel_send(m, MSG_VIRTIO_ASK, VNODE_IOSRV, &body, sizeof body, payload, bytes);
}

static void forget_pushes(struct lease *l)
{
	for (struct kept *k = l->first_push, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	l->first_push = l->last_push = NULL;
	l->n_pushes = 0;
}

static void break_queue(struct monitor *m, struct lease *l, const char *why)
{
	if (l->broken)
		return;
	l->broken = true;
	ask(m, l, (struct msg_virtio){ .op = VIRTIO_BROKEN }, why, strlen(why));
}

/* Give a chain back to the guest.  The line is raised after all arrived messages are served, by one
 * message for many chains. */
static void give_back(struct monitor *m, struct lease *l, uint16_t head, uint32_t written)
{
	struct virtqueue_memory memory = memory_of(m);

	if (!virtqueue_push(&l->queue, &memory, head, written)) {
		break_queue(m, l, "its used ring is not in RAM");
	} else if (virtqueue_wants_interrupt(&l->queue, &memory)) {
		rings.used |= 1u << l->slot;
		rings.route[l->slot] = rings.now;
	}
}

/* --- chains that the guest has made available --- */

static bool send_chain(struct monitor *m, struct lease *l, const struct virtqueue_chain *chain)
{
	struct virtqueue_memory memory = memory_of(m);
	struct msg_virtio body = { .op = VIRTIO_REQUEST,
				   .head = chain->head,
				   .out_bytes = chain->out_bytes,
				   .in_bytes = chain->in_bytes };
	uint8_t data[MAX_MSG_PAYLOAD];
	uint32_t part;

	do {
		part = chain->out_bytes - body.offset < sizeof data ? chain->out_bytes - body.offset
								    : sizeof data;
		if (!virtqueue_read(chain, &memory, body.offset, data, part)) {
			break_queue(m, l, "a buffer is not in RAM");
			return false;
		}
		ask(m, l, body, data, part);
		body.offset += part;
	} while (body.offset < chain->out_bytes);
	return true;
}

/* What is served in one go without the I/O server: the CPU answers nobody meanwhile, and others may
 * go on filling the ring. */
enum { HERE_CHAINS = 256, HERE_BYTES = 4 << 20 };

/* Serve a chain without the I/O server, if that can be done at once. */
static bool serve_here(struct monitor *m, struct lease *l, const struct virtqueue_chain *chain)
{
	struct virtqueue_memory memory = memory_of(m);
	uint32_t written = 0;
	bool served;

	if (l->direct & VIRTIO_DIRECT_SEND)
		served = !l->n_in_flight && localnet_send(chain, &memory);
	else
		served = l->direct &&
			 localdisk_serve(l->slot, l->direct, chain, &memory, &written);
	if (!served)
		return false;
	rings.now = l->route;
	give_back(m, l, chain->head, written);
	rings.now = (struct route){ 0 };
	return true;
}

static struct in_flight *find_free(struct lease *l)
{
	for (unsigned i = 0; i < VIRTIO_IN_FLIGHT; i++)
		if (!l->in_flight[i].used)
			return &l->in_flight[i];
	return NULL;
}

static struct in_flight *find_head(struct lease *l, uint32_t head)
{
	for (unsigned i = 0; i < VIRTIO_IN_FLIGHT; i++)
		if (l->in_flight[i].used && l->in_flight[i].chain.head == head)
			return &l->in_flight[i];
	return NULL;
}

static bool takes_pushes(const struct lease *l)
{
	return (l->slot == VIRTIO_NET || l->slot == VIRTIO_CONSOLE) && l->number == 0;
}

static void submit(struct monitor *m, struct lease *l)
{
	struct virtqueue_memory memory = memory_of(m);
	uint32_t here = 0, here_bytes = 0;
	struct in_flight *f;
	const char *why;
	int result;

	while (l->held && !l->recalled && !l->broken &&
	       l->bytes_in_flight < VIRTIO_IN_FLIGHT_BYTES && (f = find_free(l))) {
		result = virtqueue_pop(&l->queue, &memory, &f->chain, &why);
		if (result < 0)
			break_queue(m, l, why);
		if (result <= 0)
			return;
		if (find_head(l, f->chain.head)) {
			break_queue(m, l, "a chain is available that the device still has");
			return;
		}
		if (here < HERE_CHAINS && here_bytes < HERE_BYTES && serve_here(m, l, &f->chain)) {
			here++;
			here_bytes += f->chain.out_bytes + f->chain.in_bytes;
			continue;
		}
		if (!send_chain(m, l, &f->chain)) /* if parts were sent, the rest never follows */
			return;
		f->used = true;
		l->n_in_flight++;
		l->bytes_in_flight += f->chain.out_bytes + f->chain.in_bytes;
	}
}

/* Fill chains with pushed messages, as long as there are both. */
static void fill(struct monitor *m, struct lease *l)
{
	struct virtqueue_memory memory = memory_of(m);
	struct virtqueue_chain chain;
	uint16_t before = l->queue.avail_next;
	uint32_t taken = 0;
	struct kept *k;
	const char *why;
	int result;

	while (l->held && !l->broken && (k = l->first_push)) {
		result = virtqueue_pop(&l->queue, &memory, &chain, &why);
		if (result < 0)
			break_queue(m, l, why);
		if (result <= 0)
			break;
		if (k->payload_bytes > chain.in_bytes ||
		    !virtqueue_write(&chain, &memory, 0, k->payload, (uint32_t)k->payload_bytes)) {
			break_queue(m, l, "a buffer is too small, or not in RAM");
			break;
		}
		give_back(m, l, chain.head, (uint32_t)k->payload_bytes);
		l->first_push = k->next;
		l->last_push = k->next ? l->last_push : NULL;
		l->n_pushes--;
		free(k);
		taken++;
	}
	if (before / VIRTIO_QUEUE_SIZE != l->queue.avail_next / VIRTIO_QUEUE_SIZE &&
	    !virtqueue_arm_next(&l->queue, &memory))
		break_queue(m, l, "its rings are not in RAM");
	if (taken)
		ask(m, l, (struct msg_virtio){ .op = VIRTIO_PUSHED, .in_bytes = taken }, NULL, 0);
}

static void walk(struct monitor *m, struct lease *l)
{
	if (takes_pushes(l))
		fill(m, l);
	else
		submit(m, l);
}

static void raise_lines(struct monitor *m)
{
	for (; rings.used; rings.used &= rings.used - 1) {
		unsigned slot = __builtin_ctz(rings.used);
		const struct route *route = &rings.route[slot];

		if (route->cpu_mask)
			env_send_interrupt(m, route->cpu_mask, (uint8_t)route->vector, false);
		else
			ask(m, NULL, (struct msg_virtio){ .op = VIRTIO_USED, .slot = slot }, NULL,
			    0);
	}
}

/* Give a recalled lease back if no chain is outstanding.  Its interrupts are sent before: the next
 * holder's do not overtake them (put_route() in iosrv/virtio.c). */
static void release_if_done(struct monitor *m, struct lease *l)
{
	if (!l->held || !l->recalled || l->n_in_flight)
		return;
	raise_lines(m);
	forget_pushes(l); /* a network may lose packets; a console's bytes are sent again */
	l->held = false;
	ask(m, l,
	    (struct msg_virtio){ .op = VIRTIO_RELEASE,
				 .head = l->queue.avail_next,
				 .offset = l->queue.used_next },
	    NULL, 0);
}

/* --- messages from the I/O server --- */

static void on_done(struct monitor *m, struct lease *l, const struct msg_virtio *tell,
		    const void *payload, uint32_t bytes)
{
	struct in_flight *f = find_head(l, tell->head);
	struct virtqueue_memory memory = memory_of(m);

	if (!l->held || !f)
		return;
	if (bytes && !virtqueue_write(&f->chain, &memory, tell->offset, payload, bytes))
		break_queue(m, l, "a buffer is not in RAM");
	if (!tell->in_bytes)
		return;
	f->used = false;
	l->n_in_flight--;
	l->bytes_in_flight -= f->chain.out_bytes + f->chain.in_bytes;
	if (!l->broken)
		give_back(m, l, f->chain.head, tell->out_bytes);
	walk(m, l);
}

static void on_push(struct monitor *m, struct lease *l, struct kept *push)
{
	if (!l->held || l->broken || l->n_pushes == VIRTIO_PUSHES) {
		free(push);
		return;
	}
	push->next = NULL;
	*(l->last_push ? &l->last_push->next : &l->first_push) = push;
	l->last_push = push;
	l->n_pushes++;
	walk(m, l);
}

static void on_grant(struct monitor *m, struct lease *l, const struct msg_virtio_grant *grant)
{
	const char *why;

	forget_pushes(l);
	l->held = true;
	l->recalled = l->broken = false;
	l->slot = grant->slot;
	l->number = grant->queue;
	l->direct = grant->direct;
	l->route = (struct route){ grant->irq_cpu_mask, grant->irq_vector };
	l->queue = (struct virtqueue){ .desc = grant->desc,
				       .avail = grant->avail,
				       .used = grant->used,
				       .size = grant->size,
				       .avail_next = (uint16_t)grant->avail_next,
				       .used_next = (uint16_t)grant->used_next,
				       .event_idx = grant->event_idx };
	l->n_in_flight = l->bytes_in_flight = 0;
	for (unsigned i = 0; i < VIRTIO_IN_FLIGHT; i++)
		l->in_flight[i].used = false;
	why = virtqueue_wrong(&l->queue, (uint64_t)m->shm->ram_pages << PAGE_BITS);
	if (why)
		break_queue(m, l, why);
	else
		walk(m, l);
}

static void serve_dma(struct monitor *m, struct kept *k)
{
	struct virtqueue_memory memory = memory_of(m);

	dma_step(m, &memory, k->body.dma, k->payload, (uint32_t)k->payload_bytes);
	free(k);
}

/* Serve one message; free it, or keep it. */
static void serve_one(struct monitor *m, struct kept *k)
{
	const struct msg_virtio *tell = &k->body.tell;
	bool grant = k->type == MSG_VIRTIO_GRANT;
	unsigned slot = grant ? k->body.grant.slot : tell->slot,
		 queue = grant ? k->body.grant.queue : tell->queue;
	struct lease *l = slot < VIRTIO_SLOTS && queue < VIRTIO_QUEUES ? &leases[slot][queue]
								       : NULL;

	rings.now = grant ? (struct route){ 0 }
			  : (struct route){ tell->irq_cpu_mask, tell->irq_vector };
	if (!l) {
		log_warn("CPU %u: virtio device %u has no queue %u", m->cpu, slot, queue);
	} else if (grant) {
		on_grant(m, l, &k->body.grant);
	} else if (tell->op == VIRTIO_PUSH) {
		on_push(m, l, k);
		k = NULL;
	} else if (tell->op == VIRTIO_DONE) {
		on_done(m, l, tell, k->payload, (uint32_t)k->payload_bytes);
	} else if (tell->op == VIRTIO_RECALL) {
		l->recalled = true;
	}
	rings.now = (struct route){ 0 };
	if (l)
		release_if_done(m, l);
	free(k);
}

void rings_serve(struct monitor *m)
{
	struct kept *k;

	if (rings.serving)
		return;
	rings.serving = true; /* serving waits for pages, and more messages may arrive meanwhile */
	while ((k = rings.first)) {
		rings.first = k->next;
		if (!rings.first)
			rings.last = NULL;
		if (k->type == MSG_DMA_TELL)
			serve_dma(m, k);
		else
			serve_one(m, k);
	}
	raise_lines(m);
	rings.serving = false;
}

bool rings_wait(void)
{
	return rings.first;
}

static struct kept *keep(enum msg_type type, const void *payload, size_t bytes)
{
	struct kept *k = malloc(sizeof *k + bytes);

	if (!k)
		die("no memory for a message of a virtio device");
	k->next = NULL;
	k->type = type;
	k->payload_bytes = bytes;
	if (bytes)
		memcpy(k->payload, payload, bytes);
	*(rings.last ? &rings.last->next : &rings.first) = k;
	rings.last = k;
	return k;
}

void rings_on_grant(struct monitor *m, const struct message *message,
		    const struct msg_virtio_grant *grant)
{
	(void)m, (void)message;
	keep(MSG_VIRTIO_GRANT, NULL, 0)->body.grant = *grant;
	rings.known = true;
}

void rings_on_tell(struct monitor *m, const struct message *message, const struct msg_virtio *tell)
{
	(void)m;
	if (tell->op == VIRTIO_LEFT)
		rings.left = true;
	else if (tell->op == VIRTIO_SETTLED)
		rings.settled++;
	else
		keep(MSG_VIRTIO_TELL, message->payload, message->payload_bytes)->body.tell = *tell;
}

void rings_on_dma(struct monitor *m, const struct message *message, const struct msg_dma *tell)
{
	(void)m;
	keep(MSG_DMA_TELL, message->payload, message->payload_bytes)->body.dma = *tell;
	rings.known = true;
}

/* --- the guest's accesses --- */

bool rings_write(struct monitor *m, gpa_t gpa, unsigned size, uint32_t value)
{
	unsigned slot, offset;
	struct lease *l;

	if (!virtio_register_of(gpa, &slot, &offset))
		return false;
	if (offset != VIRTIO_QUEUE_NOTIFY || size != 4 || value >= VIRTIO_QUEUES)
		return false;
	rings.known = true;
	l = &leases[slot][value];
	if (!l->held || l->recalled || l->broken)
		return false;
	rings.serving = true;
	walk(m, l);
	rings.serving = false;
	rings_serve(m); /* serve messages that have arrived meanwhile */
	return true;
}

void rings_stopped(struct monitor *m)
{
	while (!rings.settled && !m->ending) {
		rings_serve(m); /* this CPU's own leases are recalled, too */
		if (!rings.settled)
			channel_serve(m);
	}
	rings.settled = 0;
}

/* --- a CPU that stops --- */

/* Recall all leases of this CPU.  True: it still holds one. */
static bool holds_any(struct monitor *m)
{
	bool any = false;

	for (unsigned slot = 0; slot < VIRTIO_SLOTS; slot++)
		for (unsigned queue = 0; queue < VIRTIO_QUEUES; queue++) {
			leases[slot][queue].recalled = true;
			release_if_done(m, &leases[slot][queue]);
			any |= leases[slot][queue].held;
		}
	return any;
}

/* Return when the I/O server has received all messages, and grants no lease any more. */
static void say_farewell(struct monitor *m)
{
	rings.left = false;
	ask(m, NULL, (struct msg_virtio){ .op = VIRTIO_LEAVE }, NULL, 0);
	while (!rings.left && !m->ending)
		channel_serve(m);
}

/* The first farewell ends the grants.  Without it a lease that goes back could be granted again at
 * once, with new requests, while another queue still has chains outstanding.  The second one is for
 * the host that takes this CPU over, whose messages may overtake ours: when it returns, the I/O
 * server has received all of ours. */
bool rings_leave(struct monitor *m)
{
	if (!rings.known)
		return false;
	say_farewell(m);
	rings_serve(m);
	while (holds_any(m) && !m->ending) {
		channel_serve(m);
		rings_serve(m);
	}
	say_farewell(m);
	rings_serve(m); /* recalls of leases that were given back meanwhile */
	rings.known = false;
	return true;
}

void rings_back(struct monitor *m)
{
	rings.known = true;
	ask(m, NULL, (struct msg_virtio){ .op = VIRTIO_BACK }, NULL, 0);
}
