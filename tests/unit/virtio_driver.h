/* virtio_driver.h - the driver of a virtio device in a guest, and its monitor, as unit tests play
 * them: registers, negotiation, requests. */
#ifndef TESTS_UNIT_VIRTIO_DRIVER_H
#define TESTS_UNIT_VIRTIO_DRIVER_H

#include <string.h>
#include "base/guest_abi.h"
#include "iosrv/virtio.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum { VERSION_1_HIGH = 1 }; /* a feature bit */

static inline uint32_t reg(unsigned slot, uint32_t offset)
{
	return VMP_VIRTIO_GPA + slot * VIRTIO_SLOT_BYTES + offset;
}
static inline uint32_t in(unsigned slot, uint32_t offset)
{
	return mmio_read(reg(slot, offset));
}
static inline void out(unsigned slot, uint32_t offset, uint32_t value)
{
	mmio_write(reg(slot, offset), value);
}

static inline void as_cpu(unsigned cpu)
{
	fake.cpu = cpu;
}

/* Whether there was a message with this op for this CPU. */
static inline bool told(unsigned cpu, enum virtio_op op)
{
	const struct fake_message *m = fake_take(MSG_VIRTIO_TELL);
	struct msg_virtio body;

	if (!m)
		return false;
	memcpy(&body, m->body, sizeof body);
	return body.op == op && body.cpu == cpu && m->to == VNODE_CPU(cpu);
}

static inline bool granted(unsigned cpu, struct msg_virtio_grant *grant)
{
	const struct fake_message *m = fake_take(MSG_VIRTIO_GRANT);

	if (!m)
		return false;
	memcpy(grant, m->body, sizeof *grant);
	return grant->cpu == cpu && m->to == VNODE_CPU(cpu);
}

static inline void ask(struct msg_virtio body, const void *payload, uint32_t bytes)
{
	virtio_on_ask(&body, payload, bytes);
}

static inline void initialize(unsigned slot, uint32_t low, uint32_t high)
{
	out(slot, VIRTIO_STATUS, 3);
	out(slot, VIRTIO_DRIVER_FEATURES_SEL, 0);
	out(slot, VIRTIO_DRIVER_FEATURES, low);
	out(slot, VIRTIO_DRIVER_FEATURES_SEL, 1);
	out(slot, VIRTIO_DRIVER_FEATURES, high);
	out(slot, VIRTIO_STATUS, 11);
	out(slot, VIRTIO_QUEUE_SEL, 0);
	out(slot, VIRTIO_QUEUE_NUM, 16);
	out(slot, VIRTIO_QUEUE_DESC_LOW, 0x1000);
	out(slot, VIRTIO_QUEUE_DRIVER_LOW, 0x2000);
	out(slot, VIRTIO_QUEUE_DEVICE_LOW, 0x3000);
	out(slot, VIRTIO_QUEUE_DEVICE_HIGH, 1);
	out(slot, VIRTIO_QUEUE_READY, 1);
	out(slot, VIRTIO_STATUS, 15);
}

static inline void request(unsigned slot, unsigned cpu, uint32_t head, const void *bytes,
		    uint32_t out_bytes, uint32_t in_bytes)
{
	uint32_t part;

	for (uint32_t at = 0; !at || at < out_bytes; at += part) {
		part = out_bytes - at < MAX_MSG_PAYLOAD ? out_bytes - at : MAX_MSG_PAYLOAD;
		ask((struct msg_virtio){ .cpu = cpu,
					 .op = VIRTIO_REQUEST,
					 .slot = slot,
					 .head = head,
					 .offset = at,
					 .out_bytes = out_bytes,
					 .in_bytes = in_bytes },
		    (const char *)bytes + at, part);
		if (!part)
			break;
	}
}

/* The answer's bytes, or -1. */
static inline int answer(uint32_t head, void *to)
{
	const struct fake_message *m;
	struct msg_virtio body;

	for (uint32_t at = 0; (m = fake_take(MSG_VIRTIO_TELL)); at += (uint32_t)m->payload_bytes) {
		memcpy(&body, m->body, sizeof body);
		if (body.op != VIRTIO_DONE || body.head != head || body.offset != at)
			return -1;
		memcpy((char *)to + at, m->payload, m->payload_bytes);
		if (body.in_bytes)
			return (int)body.out_bytes;
	}
	return -1;
}

#endif
