/* iosrv_items.c - see iosrv_items.h. */
#include "tests/unit/iosrv_items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"

char image_path[] = "/tmp/vmp-snap-XXXXXX";
struct item items[ITEMS];
unsigned n_items;

void open_disk(const char *mode)
{
	char spec[64], why[256];

	ide_close();
	snprintf(spec, sizeof spec, "%s%s", image_path, mode);
	CU_ASSERT_FATAL(ide_open(spec, why, sizeof why) == 0);
}

void save_as(enum snapshot_mode mode)
{
	fake.n_messages = n_items = 0;
	CU_ASSERT_FATAL(snapshot_capture(mode) == 0);
	fake.n_messages = 0;
	for (;;) {
		snapshot_pull(&(struct msg_snapshot_pull){ .seq = 7, .count = 1 });
		CU_ASSERT_FATAL(fake.n_messages == 1 &&
				fake.messages[0].type == MSG_SNAPSHOT_ITEM &&
				n_items < ARRAY_LEN(items));
		memcpy(&items[n_items].head, fake.messages[0].body, sizeof items[0].head);
		items[n_items].bytes = fake.messages[0].payload_bytes;
		memcpy(items[n_items].data, fake.messages[0].payload, items[n_items].bytes);
		fake.n_messages = 0;
		CU_ASSERT(items[n_items].head.seq == 7);
		if (items[n_items++].head.kind == SNAPSHOT_LAST)
			break;
	}
	CU_ASSERT(items[n_items - 1].head.index == n_items - 1);
	snapshot_pull(&(struct msg_snapshot_pull){ .count = 5 });
	CU_ASSERT(fake.n_messages == 0); /* the copy is gone */
}

void save(void) { save_as(SNAPSHOT_APART); }

void load(void)
{
	for (unsigned i = 0; i < n_items; i++) {
		snapshot_load(&items[i].head, items[i].data, items[i].bytes);
		if (items[i].head.kind != SNAPSHOT_LAST)
			fake.n_messages = 0;
	}
}

uint32_t stream_reg(unsigned s, unsigned r) { return VMP_STREAM_PORT + 16 * s + r; }

void put_chips_to_work(void)
{
	fake_reset();
	port_out(VMP_UART_PORT + 7, 1, 0x5a);
	port_out(VMP_UART_PORT + 4, 1, 0x0b);
	port_out(VMP_UART_PORT, 1, 'x'); /* the transmitter is draining */
	uart_input("typed", 5);
	stream_input(&(struct msg_stream){ .stream = 0 }, "hello", 5);
	port_in(stream_reg(0, VMP_STREAM_DATA), 1);
	port_out(stream_reg(0, VMP_STREAM_IRQ_ENABLE), 4, 1);
	fake_edges(VMP_STREAM_IRQ);
	mmio_write(VMP_IOAPIC_GPA, 0x18);
	mmio_write(VMP_IOAPIC_GPA + 0x10, 0x31);
}

void issue(uint8_t command, uint32_t lba)
{
	port_out(NSECT, 1, 1);
	port_out(LBAL, 1, lba);
	port_out(LBAM, 1, 0);
	port_out(LBAH, 1, 0);
	port_out(DEVICE, 1, 0xe0);
	port_out(COMMAND, 1, command);
}

bool make_image(void)
{
	int fd = mkstemp(image_path);

	return fd >= 0 && !ftruncate(fd, DISK_SECTORS * 512) && !close(fd);
}

void remove_image(void) { unlink(image_path); }
