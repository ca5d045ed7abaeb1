/* iosrv_folder.c - a live folder in a snapshot of the devices: the state of vmp-share, whose end of
 * the socket is the test's, is asked for when the machine is saved, and given to the next one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "iosrv/shareframe.h"
#include "iosrv/virtio.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

static struct item {
	struct msg_snapshot_item head;
	size_t bytes;
	uint8_t data[MAX_MSG_PAYLOAD];
} items[96];
static unsigned n_items;

static void save(void)
{
	n_items = 0;
	CU_ASSERT_FATAL(snapshot_capture(SNAPSHOT_APART) == 0);
	do {
		fake.n_messages = 0;
		snapshot_pull(&(struct msg_snapshot_pull){ .count = 1 });
		CU_ASSERT_FATAL(fake.n_messages == 1 && n_items < ARRAY_LEN(items));
		memcpy(&items[n_items].head, fake.messages[0].body, sizeof items[0].head);
		items[n_items].bytes = fake.messages[0].payload_bytes;
		memcpy(items[n_items].data, fake.messages[0].payload, items[n_items].bytes);
	} while (items[n_items++].head.kind != SNAPSHOT_LAST);
	fake.n_messages = 0;
}

static void load(void)
{
	for (unsigned i = 0; i < n_items; i++) {
		fake.n_messages = 0;
		snapshot_load(&items[i].head, items[i].data, items[i].bytes);
	}
}

static int far_end; /* where vmp-share would be */

static void attach_folder(void)
{
	static const struct snapshot_folder folder = { .read_only = 1, .path = "/the/folder" };
	int pair[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	virtio9p_attach(pair[0], &folder);
	far_end = pair[1];
	fake_reset();
}

static void detach_folder(void)
{
	virtio9p_attach(-1, &(struct snapshot_folder){ 0 });
	virtio_add(VIRTIO_SHARE, NULL);
	close(far_end);
}

static void answer(uint8_t first, const void *data, size_t bytes)
{
	static uint8_t packet[1 + SHARE_PART_BYTES];

	packet[0] = first;
	memcpy(packet + 1, data, bytes);
	CU_ASSERT(send(far_end, packet, 1 + bytes, 0) == (ssize_t)(1 + bytes));
}

/* Returns the length of the next packet to vmp-share, without its first byte; -1: there is none. */
static ssize_t asked(enum share_packet what, uint8_t *to)
{
	static uint8_t packet[1 + SHARE_PART_BYTES];
	ssize_t n = recv(far_end, packet, sizeof packet, MSG_DONTWAIT);

	if (n <= 0)
		return -1;
	CU_ASSERT_EQUAL(packet[0], what);
	memcpy(to, packet + 1, (size_t)n - 1);
	return n - 1;
}

static unsigned items_of(enum snapshot_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_items; i++)
		n += items[i].head.kind == kind;
	return n;
}

/* The state of vmp-share is asked for when the machine is saved, and given to the next one. */
static void what_is_open_in_a_folder_comes_back(void)
{
	static uint8_t state[2 * SHARE_PART_BYTES + 7], got[SHARE_PART_BYTES];
	struct snapshot_folder folder;
	size_t came = 0;

	for (size_t i = 0; i < sizeof state; i++)
		state[i] = (uint8_t)(i * 7 + i / 251);
	attach_folder();
	answer(SHARE_MORE, state, SHARE_PART_BYTES);
	answer(SHARE_MORE, state + SHARE_PART_BYTES, SHARE_PART_BYTES);
	answer(SHARE_LAST, state + 2 * SHARE_PART_BYTES, 7);
	save();
	CU_ASSERT_EQUAL(asked(SHARE_SAVE, got), 0);
	CU_ASSERT(items_of(SNAPSHOT_FOLDER) == 1 && items_of(SNAPSHOT_FILES) >= 2);
	for (unsigned i = 0; i < n_items; i++) {
		if (items[i].head.kind != SNAPSHOT_FOLDER)
			continue;
		CU_ASSERT_FATAL(items[i].bytes == sizeof folder);
		memcpy(&folder, items[i].data, sizeof folder);
		CU_ASSERT(folder.read_only == 1 && !strcmp(folder.path, "/the/folder"));
	}
	for (unsigned failed = 0; failed < 2; failed++) {
		fake_reset();
		fake.may_fail = failed;
		if (failed)
			answer('n', "o", 1); /* a line that says why not */
		else
			answer(0, "", 0);
		load();
		CU_ASSERT_EQUAL(fake.failures, failed);
		for (came = 0; came < 2 * SHARE_PART_BYTES; came += SHARE_PART_BYTES) {
			CU_ASSERT(asked(SHARE_LOAD, got) == SHARE_PART_BYTES &&
				  !memcmp(got, state + came, SHARE_PART_BYTES));
		}
		CU_ASSERT(asked(SHARE_LOAD_LAST, got) == 7 && !memcmp(got, state + came, 7));
	}
	detach_folder();
	fake_reset();
	fake.may_fail = true;
	load(); /* into a machine without a folder */
	CU_ASSERT(fake.failures >= 1);
}

static void a_folder_without_its_files_is_refused(void)
{
	static uint8_t state[PAGE_BYTES];

	attach_folder();
	answer(SHARE_LAST, state, sizeof state);
	save();
	for (unsigned i = 0; i < n_items; i++)
		if (items[i].head.kind == SNAPSHOT_FILES)
			items[i].head.index = 1; /* the first part is missing */
	fake_reset();
	fake.may_fail = true;
	load();
	CU_ASSERT_EQUAL(fake.failures, 2); /* the part; and nothing has come at the end */
	/* vmp-share cannot give its state, gives none, or has ended: no snapshot */
	answer(SHARE_FAILED, "no memory", 9);
	CU_ASSERT_EQUAL(snapshot_capture(SNAPSHOT_APART), -ENOMEM);
	answer(SHARE_LAST, "", 0);
	CU_ASSERT_EQUAL(snapshot_capture(SNAPSHOT_APART), -EPROTO);
	answer(9, "x", 1);
	CU_ASSERT_EQUAL(snapshot_capture(SNAPSHOT_APART), -EPROTO);
	shutdown(far_end, SHUT_RDWR);
	CU_ASSERT_EQUAL(snapshot_capture(SNAPSHOT_APART), -EIO);
	snapshot_forget();
	detach_folder();
}

static uint32_t reg(uint32_t offset)
{
	return VMP_VIRTIO_GPA + VIRTIO_SHARE * VIRTIO_SLOT_BYTES + offset;
}

/* The driver starts the device, and CPU 0 gets the lease of its queue. */
static void start_driver(void)
{
	mmio_write(reg(VIRTIO_DRIVER_FEATURES_SEL), 1);
	mmio_write(reg(VIRTIO_DRIVER_FEATURES), 1);
	mmio_write(reg(VIRTIO_STATUS), 11);
	mmio_write(reg(VIRTIO_QUEUE_SEL), 0);
	mmio_write(reg(VIRTIO_QUEUE_NUM), 16);
	mmio_write(reg(VIRTIO_QUEUE_READY), 1);
	mmio_write(reg(VIRTIO_STATUS), 15);
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), 0);
}

/* A request of the guest's is a packet of its own kind, whatever its bytes are; its reply is the
 * guest's.  Before that there is no snapshot. */
static void requests_are_passed_on(void)
{
	static const char text[] = "\1 looks like an order";
	struct msg_virtio ask = { .op = VIRTIO_REQUEST, .slot = VIRTIO_SHARE, .head = 3,
				  .out_bytes = sizeof text, .in_bytes = 100 };
	const struct fake_message *m = NULL;
	struct msg_virtio body = { 0 };
	uint8_t got[64];

	attach_folder();
	start_driver();
	virtio_on_ask(&ask, text, sizeof text);
	CU_ASSERT(asked(SHARE_REQUEST, got) == sizeof text && !memcmp(got, text, sizeof text));
	CU_ASSERT_EQUAL(snapshot_capture(SNAPSHOT_APART), -EBUSY);
	CU_ASSERT_EQUAL(asked(SHARE_SAVE, got), -1);
	answer('r', "eply", 4);
	virtio9p_on_ready();
	do {
		m = fake_take(MSG_VIRTIO_TELL);
		CU_ASSERT_FATAL(m != NULL);
		memcpy(&body, m->body, sizeof body);
	} while (body.op != VIRTIO_DONE);
	CU_ASSERT(body.head == 3 && m->payload_bytes == 5 && !memcmp(m->payload, "reply", 5));
	answer(SHARE_LAST, "state", 5);
	CU_ASSERT_EQUAL(snapshot_capture(SNAPSHOT_APART), 0);
	snapshot_forget();
	detach_folder();
	fake_reset();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "requests are passed on", requests_are_passed_on },
		{ "what is open in a folder comes back", what_is_open_in_a_folder_comes_back },
		{ "a folder without its files is refused", a_folder_without_its_files_is_refused },
		UNIT_END
	};

	return UNIT_RUN("live folder", tests);
}
