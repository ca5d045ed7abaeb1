/* iosrv_fake.c - see iosrv_fake.h.  Replaces serve.c, iosrv_main.c and worker.c. */
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

#include <string.h>

struct fake fake;

void fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
	fake.cpus = 2;
	chips_reset();
}

void iosrv_raise(unsigned line)
{
	fake.edges[line]++;
}

void iosrv_interrupt(uint32_t cpus, uint8_t vector, bool nmi)
{
	CU_ASSERT_FATAL(fake.n_interrupts < FAKE_INTERRUPTS);
	fake.interrupts[fake.n_interrupts].cpus = cpus;
	fake.interrupts[fake.n_interrupts].vector = vector;
	fake.interrupts[fake.n_interrupts++].nmi = nmi;
}

void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		const void *payload, size_t payload_bytes)
{
	struct fake_message *m = &fake.messages[fake.n_messages++];
	uint32_t least, most;

	CU_ASSERT_FATAL(fake.n_messages <= FAKE_MESSAGES && body_bytes <= sizeof m->body);
	CU_ASSERT(!wire_type_bounds(type, &least, &most) && body_bytes == least &&
		  body_bytes + payload_bytes <= most);
	m->type = type;
	m->to = to;
	memcpy(m->body, body, body_bytes);
	if (payload_bytes)
		memcpy(m->payload, payload, payload_bytes);
	m->payload_bytes = payload_bytes;
}

void iosrv_fail(const char *format, ...)
{
	(void)format;
	fake.failures++;
	if (!fake.may_fail)
		CU_FAIL("the chip gave up");
}

void iosrv_watch(enum watched which, int socket, bool read, bool write)
{
	(void)which, (void)socket, (void)read, (void)write;
}

void serve_hold(void) { fake.holds++; }
void serve_release(void) { fake.releases++; }

unsigned serve_cpu(void)
{
	return fake.cpu;
}

unsigned iosrv_cpus(void)
{
	return fake.cpus;
}

void iosrv_start_timer(const struct chip *chip, unsigned ms)
{
	CU_ASSERT(ms > 0);
	fake.timer[chips_number(chip)] = true;
}

bool fake_timer(const struct chip *chip)
{
	bool *started = &fake.timer[chips_number(chip)], was = *started;

	*started = false;
	if (was)
		chip->on_timer();
	return was;
}

void iosrv_start_work(const struct chip *chip)
{
	CU_ASSERT_FATAL(!fake.works);
	fake.works = chip;
	if (!fake.slow)
		fake_work();
}

void fake_work(void)
{
	const struct chip *chip = fake.works;

	CU_ASSERT_FATAL(chip != NULL);
	fake.works = NULL;
	chip->on_worked(chip->work());
}

static uint32_t access_one(enum io_kind kind, uint32_t address, unsigned size, uint32_t value)
{
	struct msg_io_request q = {
		.kind = kind, .address = address, .size = size, .count = 1, .value = value
	};
	uint8_t data[4];

	return chips_access(&q, data);
}

uint32_t port_in(uint32_t port, unsigned size)
{
	return access_one(IO_PORT_IN, port, size, 0);
}

void port_out(uint32_t port, unsigned size, uint32_t value)
{
	access_one(IO_PORT_OUT, port, size, value);
}

uint32_t mmio_read(uint32_t address)
{
	return access_one(IO_MMIO_READ, address, 4, 0);
}

void mmio_write(uint32_t address, uint32_t value)
{
	access_one(IO_MMIO_WRITE, address, 4, value);
}

void port_ins(uint32_t port, unsigned size, unsigned count, void *to)
{
	chips_access(&(struct msg_io_request){ .kind = IO_PORT_IN,
					       .address = port,
					       .size = size,
					       .count = count },
		     to);
}

void port_outs(uint32_t port, unsigned size, unsigned count, const void *from)
{
	chips_access(&(struct msg_io_request){ .kind = IO_PORT_OUT,
					       .address = port,
					       .size = size,
					       .count = count },
		     (void *)from);
}

unsigned fake_edges(unsigned line)
{
	unsigned n = fake.edges[line];

	fake.edges[line] = 0;
	return n;
}

const struct fake_message *fake_take(enum msg_type type)
{
	for (unsigned i = 0; i < fake.n_messages; i++)
		if (fake.messages[i].type == type) {
			fake.messages[i].type = 0;
			return &fake.messages[i];
		}
	return NULL;
}
