/* The transport of virtio devices: registers, negotiation, who may walk a queue; and two devices
 * behind it, the random numbers and the console. */
#include <stdio.h>
#include "base/log.h"
#include "tests/unit/virtio_driver.h"

enum { SLOT = VIRTIO_RNG, LINE = 7 };
enum { INDIRECT_DESC = 1 << 28, EVENT_IDX = 1 << 29 }; /* feature bits */

static void start(void)
{
	virtio_add(SLOT, &virtio_rng);
	fake_reset();
}

static void test_absent(void)
{
	start();
	CU_ASSERT(in(VIRTIO_NET, VIRTIO_MAGIC) == 0x74726976 &&
		  in(VIRTIO_NET, VIRTIO_DEVICE_ID) == 0);
	out(VIRTIO_NET, VIRTIO_STATUS, 1);
	CU_ASSERT_EQUAL(in(VIRTIO_NET, VIRTIO_STATUS), 0);
	out(VIRTIO_NET, VIRTIO_STATUS, 0);
	CU_ASSERT_TRUE(told(0, VIRTIO_SETTLED));
}

static void test_negotiation(void)
{
	start();
	CU_ASSERT(in(SLOT, VIRTIO_VERSION) == 2 && in(SLOT, VIRTIO_DEVICE_ID) == 4);
	CU_ASSERT_EQUAL(in(SLOT, VIRTIO_DEVICE_FEATURES), INDIRECT_DESC | EVENT_IDX);
	out(SLOT, VIRTIO_DEVICE_FEATURES_SEL, 1);
	CU_ASSERT_EQUAL(in(SLOT, VIRTIO_DEVICE_FEATURES), 1);
	out(SLOT, VIRTIO_DEVICE_FEATURES_SEL, 2);
	CU_ASSERT_EQUAL(in(SLOT, VIRTIO_DEVICE_FEATURES), 0);
	initialize(SLOT, 1, VERSION_1_HIGH); /* a feature that was not offered */
	CU_ASSERT_FALSE(in(SLOT, VIRTIO_STATUS) & 8);
	start();
	initialize(SLOT, 0, 0); /* a driver of an older version */
	CU_ASSERT_FALSE(in(SLOT, VIRTIO_STATUS) & 8);
	start();
	initialize(SLOT, 0, VERSION_1_HIGH);
	CU_ASSERT_EQUAL(in(SLOT, VIRTIO_STATUS), 15);
	CU_ASSERT(in(SLOT, VIRTIO_QUEUE_READY) == 1 &&
		  in(SLOT, VIRTIO_QUEUE_NUM_MAX) == VIRTIO_QUEUE_SIZE);
	out(SLOT, VIRTIO_QUEUE_SEL, 1);
	CU_ASSERT(in(SLOT, VIRTIO_QUEUE_READY) == 0 && in(SLOT, VIRTIO_QUEUE_NUM_MAX) == 0);
	out(SLOT, VIRTIO_QUEUE_SEL, UINT32_MAX);
	out(SLOT, VIRTIO_QUEUE_NUM, 8);
	out(SLOT, VIRTIO_QUEUE_READY, 1);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, UINT32_MAX);
	CU_ASSERT_EQUAL(in(SLOT, VIRTIO_QUEUE_READY), 0);
	CU_ASSERT(in(SLOT, VIRTIO_SHM_LEN_LOW) == ~0u && in(SLOT, VIRTIO_CONFIG_GENERATION) == 0 &&
		  in(SLOT, 0xffc) == 0);
}

static void test_lease(void)
{
	struct msg_virtio_grant grant;

	start();
	initialize(SLOT, 0, VERSION_1_HIGH);
	as_cpu(1);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_TRUE_FATAL(granted(1, &grant));
	CU_ASSERT(grant.slot == SLOT && grant.queue == 0 && grant.size == 16 &&
		  grant.desc == 0x1000 && grant.avail == 0x2000 && grant.used == 0x100003000 &&
		  grant.avail_next == 0);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0); /* it has it */
	CU_ASSERT_FALSE(granted(1, &grant));
	as_cpu(0);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT(told(1, VIRTIO_RECALL) && !granted(0, &grant));
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_FALSE(told(1, VIRTIO_RECALL)); /* once */
	ask((struct msg_virtio){ .cpu = 1,
				 .op = VIRTIO_RELEASE,
				 .slot = SLOT,
				 .head = 65535,
				 .offset = 65534 },
	    NULL, 0);
	CU_ASSERT_TRUE_FATAL(granted(0, &grant));
	CU_ASSERT(grant.avail_next == 65535 && grant.used_next == 65534);
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_RELEASE, .slot = SLOT }, NULL,
	    0); /* not its own */
	ask((struct msg_virtio){ .cpu = 0, .op = VIRTIO_USED, .slot = SLOT }, NULL, 0);
	CU_ASSERT_EQUAL(fake_edges(LINE), 1);
	ask((struct msg_virtio){ .cpu = 0, .op = VIRTIO_BROKEN, .slot = SLOT }, "x", 1);
	CU_ASSERT_TRUE(in(SLOT, VIRTIO_STATUS) & 0x40);
}

/* What a broken driver causes is one line in the log, however often it does; another device's has a
 * line of its own. */
static void test_broken_drivers(void)
{
	FILE *log = tmpfile();
	char line[200];
	unsigned lines = 0, of_other = 0;

	start();
	virtio_add(VIRTIO_NET, &virtio_rng);
	log_open("test", fileno(log), LOG_WARN);
	for (unsigned i = 0; i < 1001; i++) {
		unsigned slot = i == 500 ? VIRTIO_NET : SLOT;

		initialize(slot, 0, VERSION_1_HIGH);
		out(slot, VIRTIO_QUEUE_NOTIFY, 0);
		ask((struct msg_virtio){ .cpu = 0, .op = VIRTIO_BROKEN, .slot = slot }, "why", 3);
		CU_ASSERT_TRUE(in(slot, VIRTIO_STATUS) & 0x40);
		out(slot, VIRTIO_STATUS, 0);
		ask((struct msg_virtio){ .cpu = 0, .op = VIRTIO_RELEASE, .slot = slot }, NULL, 0);
		fake.n_messages = 0;
	}
	log_open("test", 2, LOG_WARN);
	rewind(log);
	while (fgets(line, sizeof line, log)) {
		of_other += strstr(line, "of queue 0, why") && lines == 1;
		lines++;
	}
	CU_ASSERT(lines == 2 && of_other == 1);
	fclose(log);
	virtio_add(VIRTIO_NET, NULL);
}

/* A CPU that stands still is granted nothing until it is back. */
static void test_away(void)
{
	struct msg_virtio_grant grant;

	start();
	initialize(SLOT, 0, VERSION_1_HIGH);
	as_cpu(1);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_TRUE(granted(1, &grant));
	ask(
		(struct msg_virtio){
			.cpu = 1, .op = VIRTIO_RELEASE, .slot = SLOT, .head = 3, .offset = 3 },
		NULL, 0);
	CU_ASSERT_TRUE(granted(1, &grant)); /* it crosses the farewell */
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_LEAVE }, NULL, 0);
	CU_ASSERT_TRUE(told(1, VIRTIO_LEFT));
	ask(
		(struct msg_virtio){
			.cpu = 1, .op = VIRTIO_RELEASE, .slot = SLOT, .head = 3, .offset = 3 },
		NULL, 0);
	CU_ASSERT_FALSE(granted(1, &grant));
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_BACK }, NULL, 0);
	CU_ASSERT(granted(1, &grant) && grant.avail_next == 3);
}

/* A reset is complete when the last walker has released the queue; only then may the guest go
 * on. */
static void test_reset(void)
{
	struct msg_virtio_grant grant;

	start();
	initialize(SLOT, 0, VERSION_1_HIGH);
	as_cpu(1);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_TRUE(granted(1, &grant));
	as_cpu(0);
	out(SLOT, VIRTIO_STATUS, 0);
	CU_ASSERT(told(1, VIRTIO_RECALL) && !fake_take(MSG_VIRTIO_TELL) &&
		  in(SLOT, VIRTIO_STATUS) == 15);
	as_cpu(1);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_FALSE(granted(1, &grant));
	ask(
		(struct msg_virtio){
			.cpu = 1, .op = VIRTIO_RELEASE, .slot = SLOT, .head = 1, .offset = 1 },
		NULL, 0);
	CU_ASSERT(told(0, VIRTIO_SETTLED) && in(SLOT, VIRTIO_STATUS) == 0 &&
		  in(SLOT, VIRTIO_QUEUE_READY) == 0);
	initialize(SLOT, 0, VERSION_1_HIGH);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT(granted(1, &grant) && grant.avail_next == 0);
}

static void test_rng(void)
{
	uint8_t bytes[20000] = { 0 };
	struct msg_virtio_grant grant;
	unsigned zeros = 0;

	start();
	initialize(SLOT, 0, VERSION_1_HIGH);
	as_cpu(0);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_TRUE(granted(0, &grant));
	request(SLOT, 0, 5, NULL, 0, sizeof bytes);
	CU_ASSERT_EQUAL(answer(5, bytes), sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++)
		zeros += !bytes[i];
	CU_ASSERT(zeros < 200);
	fake.may_fail = true;
	request(SLOT, 0, 5, NULL, VIRTIO_CHAIN_BYTES + 1, 1);
	ask((struct msg_virtio){ .cpu = 0,
				 .op = VIRTIO_REQUEST,
				 .slot = SLOT,
				 .head = 1,
				 .offset = 8,
				 .out_bytes = 16 },
	    "12345678", 8);
	CU_ASSERT(fake.failures >= 2);
}

/* ---- where interrupts go ---- */

static void answer_at_once(struct virtio_request *r)
{
	virtio_done(r, 0);
}

static uint32_t route_of_done(unsigned cpu, unsigned queue)
{
	const struct fake_message *m;
	struct msg_virtio body;

	ask((struct msg_virtio){ .cpu = cpu, .op = VIRTIO_REQUEST, .slot = SLOT, .queue = queue,
				 .in_bytes = 4 }, NULL, 0);
	m = fake_take(MSG_VIRTIO_TELL);
	CU_ASSERT_FATAL(m != NULL);
	memcpy(&body, m->body, sizeof body);
	CU_ASSERT(body.op == VIRTIO_DONE && (!body.irq_cpu_mask || body.irq_vector == 0x41));
	return body.irq_cpu_mask;
}

/* The holder of a device's queues learns where its interrupt goes; two holders do not. */
static void test_route(void)
{
	static const struct virtio_model two = {
		.name = "two queues", .id = 9, .queues = 2, .request = answer_at_once
	};
	struct msg_virtio_grant grant;

	virtio_add(SLOT, &two);
	fake_reset();
	initialize(SLOT, 0, VERSION_1_HIGH);
	out(SLOT, VIRTIO_QUEUE_SEL, 1);
	out(SLOT, VIRTIO_QUEUE_READY, 1);
	as_cpu(1);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT_TRUE(granted(1, &grant));
	CU_ASSERT_EQUAL(route_of_done(1, 0), 0); /* the line is masked */
	mmio_write(VMP_IOAPIC_GPA, 0x10 + 2 * LINE);
	mmio_write(VMP_IOAPIC_GPA + 0x10, 0x41); /* to CPU 0 */
	CU_ASSERT_EQUAL(route_of_done(1, 0), 1);
	as_cpu(0);
	out(SLOT, VIRTIO_QUEUE_NOTIFY, 1);
	CU_ASSERT_TRUE(granted(0, &grant));
	CU_ASSERT(route_of_done(1, 0) == 0 && route_of_done(0, 1) == 0);
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_LEAVE }, NULL, 0);
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_RELEASE, .slot = SLOT }, NULL, 0);
	CU_ASSERT_TRUE(told(1, VIRTIO_LEFT));
	CU_ASSERT_EQUAL(route_of_done(0, 1), 1);
}

/* --- the console --- */

enum { C = VIRTIO_CONSOLE, C_LINE = 3, TYPED = 0, PRINTED = 1 };

static void start_console(void)
{
	console_attach();
	fake_reset();
	initialize(C, 1, VERSION_1_HIGH);
	out(C, VIRTIO_QUEUE_SEL, 1);
	out(C, VIRTIO_QUEUE_READY, 1);
	as_cpu(1);
	out(C, VIRTIO_QUEUE_NOTIFY, TYPED);
	out(C, VIRTIO_QUEUE_NOTIFY, PRINTED);
	fake.n_messages = 0;
}

static void print_text(const char *text)
{
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_REQUEST, .slot = C, .queue = PRINTED,
				 .head = 1, .out_bytes = (uint32_t)strlen(text) },
	    text, (uint32_t)strlen(text));
	CU_ASSERT_TRUE(told(1, VIRTIO_DONE));
}

static bool pushed(const char *text)
{
	const struct fake_message *m = fake_take(MSG_VIRTIO_TELL);
	struct msg_virtio body;

	if (!m)
		return false;
	memcpy(&body, m->body, sizeof body);
	return body.op == VIRTIO_PUSH && body.slot == C && m->payload_bytes == strlen(text) &&
	       !memcmp(m->payload, text, strlen(text));
}

static bool shown(const char *text)
{
	const struct fake_message *m;

	chips_flush();
	m = fake_take(MSG_CONSOLE);
	return m && m->payload_bytes == strlen(text) &&
	       !memcmp(m->payload, text, strlen(text));
}

/* What is typed waits until the guest prints.  Then one message is under way at a time, and is
 * sent again if its lease has ended before the guest had it. */
static void test_typed(void)
{
	struct msg_virtio_grant grant;

	start_console();
	CU_ASSERT_EQUAL(in(C, VIRTIO_DEVICE_ID), 3);
	uart_input("early", 5);
	CU_ASSERT_FALSE(pushed("early"));
	print_text("hello");
	CU_ASSERT_TRUE(pushed("early"));
	CU_ASSERT_TRUE(shown("hello"));
	uart_input("late", 4);
	CU_ASSERT_FALSE(pushed("late"));
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_PUSHED, .slot = C, .in_bytes = 1 }, NULL,
	    0);
	CU_ASSERT_TRUE(pushed("late"));
	/* CPU 1 stops: the guest has not got it. */
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_LEAVE }, NULL, 0);
	ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_RELEASE, .slot = C, .queue = TYPED }, NULL,
	    0);
	uart_input("r", 1);
	fake.n_messages = 0;
	as_cpu(0);
	out(C, VIRTIO_QUEUE_NOTIFY, TYPED);
	CU_ASSERT_TRUE(granted(0, &grant));
	CU_ASSERT_TRUE(pushed("later"));
	ask((struct msg_virtio){ .cpu = 0, .op = VIRTIO_PUSHED, .slot = C, .in_bytes = 9 }, NULL,
	    0);
	CU_ASSERT_FALSE(pushed(""));
	/* The serial port has no input then, whoever opens it. */
	uart_input("x", 1);
	port_out(VMP_UART_PORT + 4, 1, 2);
	CU_ASSERT_FALSE(port_in(VMP_UART_PORT + 5, 1) & 1);
	virtio_add(C, NULL);
}

/* A new size is an interrupt, which the guest tells from others by the status, once. */
static void test_window(void)
{
	start_console();
	CU_ASSERT_EQUAL(in(C, VIRTIO_DEVICE_FEATURES) & 1, 1);
	fake_edges(C_LINE);
	stream_window(101, 33);
	CU_ASSERT_EQUAL(fake_edges(C_LINE), 1);
	CU_ASSERT_EQUAL(in(C, VIRTIO_CONFIG), 33 << 16 | 101);
	CU_ASSERT_EQUAL(in(C, VIRTIO_INTERRUPT_STATUS), 3);
	out(C, VIRTIO_INTERRUPT_ACK, 1);
	CU_ASSERT_EQUAL(in(C, VIRTIO_INTERRUPT_STATUS), 3);
	out(C, VIRTIO_INTERRUPT_ACK, 3);
	CU_ASSERT_EQUAL(in(C, VIRTIO_INTERRUPT_STATUS), 1);
	CU_ASSERT_EQUAL(in(C, VIRTIO_CONFIG_GENERATION), 1);
	stream_window(101, 33); /* the same */
	stream_window(0, 0);	/* nobody looks */
	CU_ASSERT_EQUAL(fake_edges(C_LINE), 0);
	out(C, VIRTIO_STATUS, 0);
	for (unsigned q = TYPED; q <= PRINTED; q++)
		ask((struct msg_virtio){ .cpu = 1, .op = VIRTIO_RELEASE, .slot = C, .queue = q },
		    NULL, 0);
	CU_ASSERT_EQUAL(in(C, VIRTIO_INTERRUPT_STATUS), 1);
	/* A size that is known before the driver is there: told when it prints. */
	console_reset();
	stream_window(80, 25);
	initialize(C, 1, VERSION_1_HIGH);
	out(C, VIRTIO_QUEUE_SEL, 1);
	out(C, VIRTIO_QUEUE_READY, 1);
	out(C, VIRTIO_QUEUE_NOTIFY, PRINTED);
	CU_ASSERT_EQUAL(fake_edges(C_LINE), 0);
	fake.n_messages = 0;
	print_text("hello");
	CU_ASSERT_EQUAL(fake_edges(C_LINE), 1);
	virtio_add(C, NULL);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "broken drivers", test_broken_drivers },
		{ "no device", test_absent },	 { "negotiation", test_negotiation },
		{ "one CPU walks", test_lease }, { "a CPU stands still", test_away },
		{ "reset", test_reset },	 { "routes", test_route },
		{ "rng", test_rng },
		{ "typed", test_typed },	 { "window", test_window },
		UNIT_END
	};

	return UNIT_RUN("virtio", tests);
}
