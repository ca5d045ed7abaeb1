/* iosrv_fake.h - the I/O server's chips without the server: the test makes a CPU's accesses; edges
 * and messages are recorded. */
#ifndef TESTS_UNIT_IOSRV_FAKE_H
#define TESTS_UNIT_IOSRV_FAKE_H

#include "iosrv/iosrv.h"
#include "tests/unit/unit.h"

enum { FAKE_MESSAGES = 64, FAKE_INTERRUPTS = 64 };

extern struct fake {
	unsigned cpus, cpu /* whose accesses come */, edges[24], n_messages, n_interrupts;
	bool timer[N_CHIPS]; /* started, and not yet passed */
	unsigned holds, releases; /* of answers (busmaster.c) */
	bool may_fail; /* iosrv_fail() is counted, not a failure of the test */
	unsigned failures;
	bool slow; /* work waits for fake_work() */
	const struct chip *works; /* NULL: none does */
	struct fake_message {
		enum msg_type type;
		vnode_t to;
		uint8_t body[64], payload[MAX_MSG_PAYLOAD];
		size_t payload_bytes;
	} messages[FAKE_MESSAGES];
	struct { uint32_t cpus; uint8_t vector; bool nmi; } interrupts[FAKE_INTERRUPTS];
} fake;

void fake_reset(void); /* forget everything; all chips as after power-on */
uint32_t port_in(uint32_t port, unsigned size);
void port_out(uint32_t port, unsigned size, uint32_t value);
void port_ins(uint32_t port, unsigned size, unsigned count, void *to);
void port_outs(uint32_t port, unsigned size, unsigned count, const void *from);
uint32_t mmio_read(uint32_t address);
void mmio_write(uint32_t address, uint32_t value);
bool fake_timer(const struct chip *chip); /* its time passes; false if it was not started */
void fake_work(void);
unsigned fake_edges(unsigned line); /* since the last call */
/* The first message of a type that was not yet taken, or NULL. */
const struct fake_message *fake_take(enum msg_type type);

#endif
