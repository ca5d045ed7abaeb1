/* virtio.c - the transport of virtio devices: registers (virtio 1.2, 4.2.2), feature negotiation,
 * queues, leases. */
#include "iosrv/virtio.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "iosrv/iosrv.h"
#include "iosrv/away.h"

enum {
	MAGIC = 0x74726976,
	VERSION = 2, VENDOR = 0x504d56 /* "VMP" */,
	CONFIG_BYTES = 256, NOBODY = MAX_CPUS
};
enum { INTERRUPT_CONFIG = 2 };
enum { STATUS_FEATURES_OK = 8, STATUS_DRIVER_OK = 4, STATUS_NEEDS_RESET = 0x40 };
#define FEATURE_INDIRECT_DESC VIRTIO_FEATURE(28)
#define FEATURE_EVENT_IDX VIRTIO_FEATURE(29)
#define FEATURE_VERSION_1 VIRTIO_FEATURE(32)

#define STATE(X)                                                                                   \
	X(uint32_t, id, , 0, UINT32_MAX) /* the model's; 0: no device */                           \
	X(uint8_t, status, , 0, 0xff)                                                              \
	X(uint32_t, device_features_sel, , 0, UINT32_MAX)                                          \
	X(uint32_t, driver_features_sel, , 0, UINT32_MAX)                                          \
	X(uint64_t, driver_features, , 0, UINT64_MAX)                                              \
	X(uint32_t, queue_sel, , 0, UINT32_MAX)                                                    \
	X(bool, config_changed, , 0, 1) /* the driver does not know it yet */                      \
	X(uint8_t, config_generation, , 0, UINT8_MAX)                                              \
	X(bool, ready, [VIRTIO_QUEUES], 0, 1)                                                      \
	/* The monitor that walks a queue checks its size and addresses. */ \
	X(uint32_t, size, [VIRTIO_QUEUES], 0, UINT32_MAX)                                          \
	X(uint64_t, desc, [VIRTIO_QUEUES], 0, UINT64_MAX)                                          \
	X(uint64_t, avail, [VIRTIO_QUEUES], 0, UINT64_MAX)                                         \
	X(uint64_t, used, [VIRTIO_QUEUES], 0, UINT64_MAX)                                          \
	X(uint16_t, avail_next, [VIRTIO_QUEUES], 0, UINT16_MAX)                                    \
	X(uint16_t, used_next, [VIRTIO_QUEUES], 0, UINT16_MAX)                                     \
	X(uint32_t, notifier, [VIRTIO_QUEUES], 0, NOBODY) /* the CPU that has notified last */
static struct state {
	STATE(CHIPSTATE_MEMBER)
} devices[VIRTIO_SLOTS];

static const struct virtio_model *models[VIRTIO_SLOTS]; /* NULL: no device */
static const uint8_t lines[VIRTIO_SLOTS] = VIRTIO_LINES;

enum lease_state { LEASE_FREE, LEASE_HELD, LEASE_RECALLED };
static struct lease {
	enum lease_state state;
	unsigned holder;
	bool direct;		       /* the holder sends interrupts for what it serves itself */
	bool stopping;		       /* the driver stops the queue: not ready once it is FREE */
	unsigned pushes;	       /* pushed messages that the monitor has not taken yet */
	struct virtio_request *coming; /* a request of which parts are still to come */
	unsigned requests;	       /* requests that the model has not answered */
} leases[VIRTIO_SLOTS][VIRTIO_QUEUES];
static uint32_t stoppers[VIRTIO_SLOTS]; /* CPUs that wait until a device's queues have stopped */
static bool resetting[VIRTIO_SLOTS];
static uint64_t warned[VIRTIO_SLOTS]; /* of the guest's driver */

void virtio_add(unsigned slot, const struct virtio_model *model)
{
	models[slot] = model;
}

uint64_t virtio_features(unsigned slot)
{
	return devices[slot].status & STATUS_FEATURES_OK ? devices[slot].driver_features : 0;
}

static uint64_t offered(unsigned slot)
{
	return FEATURE_VERSION_1 | FEATURE_INDIRECT_DESC | FEATURE_EVENT_IDX |
	       (models[slot]->features ? models[slot]->features(slot) : 0);
}

static void reset_device(unsigned slot)
{
	memset(&devices[slot], 0, sizeof devices[slot]);
	devices[slot].id = models[slot] ? models[slot]->id : 0;
	for (unsigned q = 0; q < VIRTIO_QUEUES; q++)
		devices[slot].notifier[q] = NOBODY;
}

static void forget_coming(struct lease *lease)
{
	virtio_forget(lease->coming);
	lease->coming = NULL;
}

static void virtio_reset(void)
{
	for (unsigned slot = 0; slot < VIRTIO_SLOTS; slot++) {
		reset_device(slot);
		for (unsigned q = 0; q < VIRTIO_QUEUES; q++) {
			forget_coming(&leases[slot][q]);
			memset(&leases[slot][q], 0, sizeof leases[slot][q]);
		}
	}
	memset(stoppers, 0, sizeof stoppers);
	memset(resetting, 0, sizeof resetting);
	away_none();
	blk_reset();
	net_reset();
	virtio9p_reset();
	console_reset();
}

/* --- leases --- */

static void tell(unsigned cpu, enum virtio_op op, unsigned slot, unsigned queue)
{
	struct msg_virtio body = { .cpu = cpu, .op = op, .slot = slot, .queue = queue };

	iosrv_send(MSG_VIRTIO_TELL, VNODE_CPU(cpu), &body, sizeof body, NULL, 0);
}

static bool walks_alone(unsigned slot, unsigned cpu)
{
	for (unsigned q = 0; q < VIRTIO_QUEUES; q++)
		if (leases[slot][q].state != LEASE_FREE && leases[slot][q].holder != cpu)
			return false;
	return true;
}

static void recall(unsigned slot, unsigned queue)
{
	if (leases[slot][queue].state != LEASE_HELD)
		return;
	leases[slot][queue].state = LEASE_RECALLED;
	tell(leases[slot][queue].holder, VIRTIO_RECALL, slot, queue);
}

/* Let the CPU that notified last walk a queue, if it may.  If there are two CPUs from now on, the
 * other one's lease comes back, and is granted without a route (put_route()). */
static void grant(unsigned slot, unsigned queue)
{
	const struct state *d = &devices[slot];
	struct lease *lease = &leases[slot][queue];
	unsigned cpu = d->notifier[queue];
	struct msg_virtio_grant body = {
		.cpu = cpu, .slot = slot, .queue = queue, .size = d->size[queue],
		.desc = d->desc[queue], .avail = d->avail[queue], .used = d->used[queue],
		.avail_next = d->avail_next[queue], .used_next = d->used_next[queue],
		.event_idx = !!(virtio_features(slot) & FEATURE_EVENT_IDX),
		.direct = models[slot]->direct ? models[slot]->direct(slot, queue) : 0,
	};

	if (lease->state != LEASE_FREE || lease->stopping || !d->ready[queue] ||
	    cpu >= iosrv_cpus() || away_has(cpu))
		return;
	lease->state = LEASE_HELD;
	lease->holder = cpu;
	lease->direct = body.direct;
	if (body.direct && walks_alone(slot, cpu))
		body.irq_cpu_mask = ioapic_route(lines[slot], &body.irq_vector);
	for (unsigned q = 0; q < VIRTIO_QUEUES; q++)
		if (leases[slot][q].direct && leases[slot][q].holder != cpu)
			recall(slot, q);
	iosrv_send(MSG_VIRTIO_GRANT, VNODE_CPU(cpu), &body, sizeof body, NULL, 0);
}

/* Grant the lease as grant() does, and let the model push waiting messages into the queue.
 * virtio_push() must not call it: room() would push the same message again. */
static void grant_and_fill(unsigned slot, unsigned queue)
{
	grant(slot, queue);
	if (leases[slot][queue].state == LEASE_HELD && models[slot]->room)
		models[slot]->room(slot);
}

void virtio_rerouted(unsigned line) /* (TRICKS: old-route-first) */
{
	for (unsigned slot = 0; slot < VIRTIO_SLOTS; slot++)
		for (unsigned q = 0; lines[slot] == line && q < VIRTIO_QUEUES; q++)
			if (leases[slot][q].direct)
				recall(slot, q);
}

static void notify(unsigned slot, unsigned queue, unsigned cpu)
{
	const struct lease *lease;

	if (queue >= VIRTIO_QUEUES || !devices[slot].ready[queue])
		return;
	lease = &leases[slot][queue];
	devices[slot].notifier[queue] = cpu;
	away_remove(cpu); /* since it has notified */
	if (lease->state == LEASE_HELD && lease->holder != cpu)
		recall(slot, queue);
	grant_and_fill(slot, queue);
}

static bool is_walked(unsigned slot)
{
	for (unsigned q = 0; q < VIRTIO_QUEUES; q++)
		if (leases[slot][q].stopping &&
		    (leases[slot][q].state != LEASE_FREE || leases[slot][q].requests))
			return true;
	return false;
}

/* If no CPU walks the queues of a stopping device any more, it has stopped: notify the CPUs that
 * wait. */
static void settle(unsigned slot)
{
	if (!stoppers[slot] || is_walked(slot))
		return;
	for (unsigned q = 0; q < VIRTIO_QUEUES; q++) {
		if (leases[slot][q].stopping)
			devices[slot].ready[q] = false;
		leases[slot][q].stopping = false;
	}
	if (resetting[slot])
		reset_device(slot);
	resetting[slot] = false;
	for (; stoppers[slot]; stoppers[slot] &= stoppers[slot] - 1)
		tell(__builtin_ctz(stoppers[slot]), VIRTIO_SETTLED, slot, 0);
}

static void stop_queue(unsigned slot, unsigned queue)
{
	leases[slot][queue].stopping = true;
	recall(slot, queue);
}

/* --- requests and pushes --- */

/* Put into a message for the holder of a lease where its interrupt goes, so that the monitor can
 * send it itself: this saves the way to the I/O server and back.  If several CPUs walk the device's
 * queues, the interrupt is sent from here.  Otherwise one that was sent to a CPU and vector of
 * before could arrive after the guest has routed the line elsewhere and got another one there; all
 * that one holder sends is in order. */
static void put_route(unsigned slot, struct msg_virtio *body)
{
	if (walks_alone(slot, body->cpu))
		body->irq_cpu_mask = ioapic_route(lines[slot], &body->irq_vector);
}

void virtio_done(struct virtio_request *r, uint32_t written)
{
	struct msg_virtio body = { .cpu = r->cpu, .op = VIRTIO_DONE, .slot = r->slot,
				   .queue = r->queue, .head = r->head };
	uint32_t part;

	bug_on(written > r->in_bytes);
	put_route(r->slot, &body);
	do {
		part = written - body.offset < MAX_MSG_PAYLOAD ? written - body.offset
							       : MAX_MSG_PAYLOAD;
		body.in_bytes = body.offset + part == written; /* the last one */
		body.out_bytes = body.in_bytes ? written : 0;
		iosrv_send(MSG_VIRTIO_TELL, VNODE_CPU(r->cpu), &body, sizeof body,
			   r->in + body.offset, part);
		body.offset += part;
	} while (!body.in_bytes);
	leases[r->slot][r->queue].requests--;
	free(r->in);
	free(r);
}

void virtio_forget(struct virtio_request *first)
{
	for (struct virtio_request *r = first, *next; r; r = next) {
		next = r->next;
		free(r->in);
		free(r);
	}
}

static struct virtio_request *begin_request(const struct msg_virtio *ask)
{
	struct virtio_request *r;

	if (ask->out_bytes > VIRTIO_CHAIN_BYTES || ask->in_bytes > VIRTIO_CHAIN_BYTES ||
	    ask->head > UINT16_MAX)
		return NULL;
	r = malloc(sizeof *r + ask->out_bytes);
	if (r)
		*r = (struct virtio_request){ .slot = ask->slot,
					      .queue = ask->queue,
					      .cpu = ask->cpu,
					      .head = (uint16_t)ask->head,
					      .out_bytes = ask->out_bytes,
					      .in_bytes = ask->in_bytes,
					      .in = calloc(1, ask->in_bytes + 1) };
	if (!r || !r->in)
		die("no memory for a request of the %s", models[ask->slot]->name);
	return r;
}

/* Receive a part of a chain; the parts of a chain arrive one after the other. */
static void on_request(const struct msg_virtio *ask, struct lease *lease, const void *payload,
		       uint32_t bytes)
{
	struct virtio_request *r;

	if (!ask->offset) {
		forget_coming(lease);
		lease->coming = begin_request(ask);
	}
	r = lease->coming;
	if (!r || r->head != ask->head || r->come != ask->offset ||
	    bytes > r->out_bytes - r->come || lease->requests >= VIRTIO_IN_FLIGHT) {
		iosrv_fail("CPU %u sent a malformed request to the %s; this is a bug in vmp",
			   ask->cpu, models[ask->slot]->name);
		return;
	}
	if (bytes)
		memcpy(r->out + r->come, payload, bytes);
	r->come += bytes;
	if (r->come < r->out_bytes)
		return;
	lease->coming = NULL;
	lease->requests++;
	models[r->slot]->request(r);
}

bool virtio_push(unsigned slot, const void *data, uint32_t bytes)
{
	struct lease *lease = &leases[slot][0];
	struct msg_virtio body = { .cpu = lease->holder, .op = VIRTIO_PUSH, .slot = slot };

	if (lease->state == LEASE_FREE)
		grant(slot, 0);
	if (lease->state != LEASE_HELD || lease->pushes >= VIRTIO_PUSHES)
		return false;
	body.cpu = lease->holder;
	put_route(slot, &body);
	lease->pushes++;
	iosrv_send(MSG_VIRTIO_TELL, VNODE_CPU(lease->holder), &body, sizeof body, data, bytes);
	return true;
}

unsigned virtio_pushes(unsigned slot) { return leases[slot][0].pushes; }

bool virtio_config_changed(unsigned slot)
{
	struct state *d = &devices[slot];

	if (!(d->status & STATUS_DRIVER_OK))
		return false;
	d->config_changed = true;
	d->config_generation++;
	iosrv_raise(lines[slot]);
	return true;
}

static void on_pushed(const struct msg_virtio *ask, struct lease *lease)
{
	uint32_t taken = ask->in_bytes < lease->pushes ? ask->in_bytes : lease->pushes;

	for (; taken; taken--) {
		lease->pushes--;
		if (models[ask->slot]->taken)
			models[ask->slot]->taken(ask->slot);
	}
	if (models[ask->slot]->room)
		models[ask->slot]->room(ask->slot);
}

static void on_release(const struct msg_virtio *ask, struct lease *lease)
{
	forget_coming(lease);
	lease->state = LEASE_FREE;
	lease->pushes = 0;
	devices[ask->slot].avail_next[ask->queue] = (uint16_t)ask->head;
	devices[ask->slot].used_next[ask->queue] = (uint16_t)ask->offset;
	settle(ask->slot);
	grant_and_fill(ask->slot, ask->queue);
}

static void on_broken(const struct msg_virtio *ask, const void *why, uint32_t bytes)
{
	log_warn_at_times(&warned[ask->slot],
			  "%s %u: the guest's driver is at fault: of queue %u, %.*s",
			  models[ask->slot]->name, ask->slot, ask->queue, (int)bytes,
			  (const char *)why);
	devices[ask->slot].status |= STATUS_NEEDS_RESET;
}

/* A message of the CPU that holds a lease. */
static void on_holder(const struct msg_virtio *ask, const void *payload, uint32_t bytes)
{
	struct lease *lease = &leases[ask->slot][ask->queue];

	if (lease->state == LEASE_FREE || lease->holder != ask->cpu) {
		log_warn("CPU %u speaks of queue %u of the %s, which is not its own", ask->cpu,
			 ask->queue, models[ask->slot]->name);
		return;
	}
	switch (ask->op) {
	case VIRTIO_REQUEST: on_request(ask, lease, payload, bytes); break;
	case VIRTIO_RELEASE: on_release(ask, lease); break;
	case VIRTIO_BROKEN: on_broken(ask, payload, bytes); break;
	case VIRTIO_PUSHED: on_pushed(ask, lease); break;
	}
}

static void on_back(unsigned cpu)
{
	away_remove(cpu);
	busmaster_run();
	for (unsigned slot = 0; slot < VIRTIO_SLOTS; slot++)
		for (unsigned q = 0; q < VIRTIO_QUEUES; q++)
			if (models[slot] && devices[slot].notifier[q] == cpu)
				grant_and_fill(slot, q);
}

void virtio_on_ask(const struct msg_virtio *ask, const void *payload, uint32_t bytes)
{
	if (ask->cpu >= iosrv_cpus() || ask->slot >= VIRTIO_SLOTS || ask->queue >= VIRTIO_QUEUES) {
		iosrv_fail("CPU %u asked for virtio queue %u of device %u; this is a bug in vmp",
			   ask->cpu, ask->queue, ask->slot);
		return;
	}
	if (ask->op == VIRTIO_LEAVE) {
		away_add(ask->cpu);
		tell(ask->cpu, VIRTIO_LEFT, 0, 0);
	} else if (ask->op == VIRTIO_BACK) {
		on_back(ask->cpu);
	} else if (!models[ask->slot]) {
		log_warn("CPU %u speaks to virtio device %u, which is not there", ask->cpu,
			 ask->slot);
	} else if (ask->op == VIRTIO_USED) {
		iosrv_raise(lines[ask->slot]);
	} else {
		on_holder(ask, payload, bytes);
	}
}

/* --- registers --- */

static uint32_t read_config(unsigned slot, uint32_t offset, unsigned size)
{
	uint8_t bytes[CONFIG_BYTES] = { 0 };
	uint32_t value = 0;

	if (models[slot]->config)
		models[slot]->config(slot, bytes, sizeof bytes);
	if (offset <= CONFIG_BYTES - size)
		memcpy(&value, bytes + offset, size);
	return value;
}

static uint32_t read_register(unsigned slot, uint32_t offset)
{
	const struct state *d = &devices[slot];
	bool exists = models[slot] && d->queue_sel < models[slot]->queues;

	switch (offset) {
	case VIRTIO_DEVICE_FEATURES:
		return d->device_features_sel > 1
			       ? 0 : (uint32_t)(offered(slot) >> 32 * d->device_features_sel);
	case VIRTIO_QUEUE_NUM_MAX:
		return exists ? models[slot]->queue_size ?: VIRTIO_QUEUE_SIZE : 0;
	case VIRTIO_QUEUE_READY: return exists && d->ready[d->queue_sel];
	case VIRTIO_INTERRUPT_STATUS:
		return VIRTIO_INTERRUPT_CHAINS | (d->config_changed ? INTERRUPT_CONFIG : 0);
	case VIRTIO_STATUS: return d->status;
	case VIRTIO_CONFIG_GENERATION: return d->config_generation;
	default: /* no shared memory */
		return offset >= VIRTIO_SHM_LEN_LOW && offset <= VIRTIO_SHM_BASE_HIGH ? ~0u : 0;
	}
}

static uint32_t virtio_read(uint32_t offset, unsigned size)
{
	unsigned slot = offset / VIRTIO_SLOT_BYTES;

	offset %= VIRTIO_SLOT_BYTES;
	if (offset >= VIRTIO_CONFIG)
		return models[slot] ? read_config(slot, offset - VIRTIO_CONFIG, size) : 0;
	if (size != 4)
		return 0;
	switch (offset) {
	case VIRTIO_MAGIC: return MAGIC;
	case VIRTIO_VERSION: return VERSION;
	case VIRTIO_VENDOR_ID: return VENDOR;
	case VIRTIO_DEVICE_ID: return models[slot] ? models[slot]->id : 0;
	default: return models[slot] ? read_register(slot, offset) : 0;
	}
}

static void set_half(uint64_t *value, bool high, uint32_t half)
{
	*value = high ? (*value & UINT32_MAX) | (uint64_t)half << 32
		      : (*value & ~(uint64_t)UINT32_MAX) | half;
}

/* The driver has chosen its features; they hold only if each was offered. */
static void write_status(unsigned slot, uint32_t value)
{
	struct state *d = &devices[slot];
	bool fit = !(d->driver_features & ~offered(slot)) &&
		   (d->driver_features & FEATURE_VERSION_1);

	if (value & STATUS_FEATURES_OK && !(d->status & STATUS_FEATURES_OK) && !fit)
		value &= ~(uint32_t)STATUS_FEATURES_OK;
	d->status = (uint8_t)(value | (d->status & STATUS_NEEDS_RESET));
	if (value & STATUS_DRIVER_OK && models[slot]->room)
		models[slot]->room(slot);
}

static void stop(unsigned slot, uint32_t offset, unsigned cpu)
{
	struct state *d = &devices[slot];

	stoppers[slot] |= 1u << cpu;
	if (offset == VIRTIO_STATUS) {
		resetting[slot] = true;
		for (unsigned q = 0; q < VIRTIO_QUEUES; q++)
			stop_queue(slot, q);
	} else if (d->queue_sel < VIRTIO_QUEUES) {
		stop_queue(slot, d->queue_sel);
	}
	settle(slot);
}

static void write_queue(struct state *d, unsigned q, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case VIRTIO_QUEUE_NUM: d->size[q] = value; return;
	case VIRTIO_QUEUE_DESC_LOW: set_half(&d->desc[q], false, value); return;
	case VIRTIO_QUEUE_DESC_HIGH: set_half(&d->desc[q], true, value); return;
	case VIRTIO_QUEUE_DRIVER_LOW: set_half(&d->avail[q], false, value); return;
	case VIRTIO_QUEUE_DRIVER_HIGH: set_half(&d->avail[q], true, value); return;
	case VIRTIO_QUEUE_DEVICE_LOW: set_half(&d->used[q], false, value); return;
	case VIRTIO_QUEUE_DEVICE_HIGH: set_half(&d->used[q], true, value); return;
	case VIRTIO_QUEUE_READY:
		d->ready[q] = true;
		d->avail_next[q] = d->used_next[q] = 0;
		d->notifier[q] = NOBODY;
		return;
	}
}

static void write_register(unsigned slot, uint32_t offset, uint32_t value, unsigned cpu)
{
	struct state *d = &devices[slot];

	switch (offset) {
	case VIRTIO_DEVICE_FEATURES_SEL: d->device_features_sel = value; return;
	case VIRTIO_DRIVER_FEATURES_SEL: d->driver_features_sel = value; return;
	case VIRTIO_DRIVER_FEATURES:
		if (d->driver_features_sel < 2 && !(d->status & STATUS_FEATURES_OK))
			set_half(&d->driver_features, d->driver_features_sel, value);
		return;
	case VIRTIO_QUEUE_SEL: d->queue_sel = value; return;
	case VIRTIO_QUEUE_NOTIFY: notify(slot, value, cpu); return;
	case VIRTIO_STATUS: write_status(slot, value); return;
	case VIRTIO_INTERRUPT_ACK: d->config_changed &= !(value & INTERRUPT_CONFIG); return;
	}
	/* The addresses of a queue in use do not change. */
	if (d->queue_sel < models[slot]->queues && !d->ready[d->queue_sel])
		write_queue(d, d->queue_sel, offset, value);
}

static void virtio_write(uint32_t offset, unsigned size, uint32_t value)
{
	unsigned slot = offset / VIRTIO_SLOT_BYTES, cpu = serve_cpu();

	offset %= VIRTIO_SLOT_BYTES;
	if (virtio_write_stops(offset, size, value)) {
		if (models[slot])
			stop(slot, offset, cpu);
		else
			tell(cpu, VIRTIO_SETTLED, slot, 0);
	} else if (size == 4 && models[slot] && offset < VIRTIO_CONFIG) {
		write_register(slot, offset, value, cpu);
	}
}

static const char *virtio_impossible(void)
{
	for (unsigned slot = 0; slot < VIRTIO_SLOTS; slot++)
		if (devices[slot].id != (models[slot] ? models[slot]->id : 0))
			return "its devices are not this machine's";
	return NULL;
}

static void virtio_restored(void)
{
	away_all();
	console_restored();
}

const struct chip virtio_chip = {
	.name = "virtio devices",
	.range = { { VMP_VIRTIO_GPA, VIRTIO_SLOTS *VIRTIO_SLOT_BYTES, true } },
	.reset = virtio_reset,
	.read = virtio_read,
	.write = virtio_write,
	.state = CHIPSTATE(devices),
	.impossible = virtio_impossible,
	.restored = virtio_restored,
	.work = blk_work,
	.has_work = blk_has_work,
	.on_worked = blk_on_worked,
};
