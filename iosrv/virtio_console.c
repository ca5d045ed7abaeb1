/* virtio_console.c - the console as a virtio device (virtio 1.2, 5.3), /dev/hvc0 in the guest: one
 * port, whose size is the user's window (VIRTIO_CONSOLE_F_SIZE).
 *
 * What the guest prints goes the way of the serial port's bytes, and what is typed waits on that
 * port's wire (uart.c).  One message of typed bytes is under way at a time.  Its bytes leave the
 * wire when the monitor has put them into the guest's buffer; if its lease has ended before, they
 * are sent again.  So a snapshot has all that the guest has not read.
 *
 * Linux drops what arrives before its console is set up.  So what is typed waits until the guest
 * has printed something.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "iosrv/virtio.h"

enum { FEATURE_SIZE = 0, TRANSMIT = 1, TYPED_BYTES = 1024, QUEUE_SIZE = 16 };

struct config { uint16_t columns, rows; };
_Static_assert(offsetof(struct config, rows) == 2, "layout (virtio 1.2, 5.3.4)");

static struct {
	bool attached;
	bool has_printed;
	uint32_t under_way; /* bytes of the wire that were pushed last */
	struct config told; /* the size that the guest knows of */
} console;

bool console_is_virtio(void) { return console.attached; }

static uint64_t console_features(unsigned slot)
{
	(void)slot;
	return VIRTIO_FEATURE(FEATURE_SIZE);
}

static struct config window(void)
{
	uint32_t size = stream_window_size();

	return (struct config){ .columns = (uint16_t)(size >> 16), .rows = (uint16_t)size };
}

static void console_config(unsigned slot, uint8_t *to, size_t bytes)
{
	const struct config config = window();

	(void)slot;
	memcpy(to, &config, sizeof config < bytes ? sizeof config : bytes);
}

/* Tell the guest a new size.  Linux does not read the first one by itself, and a port takes none
 * before it prints. */
void console_window(void)
{
	struct config now = window();

	if (!console.attached || !now.columns || !now.rows ||
	    !memcmp(&now, &console.told, sizeof now))
		return;
	if (virtio_config_changed(VIRTIO_CONSOLE))
		console.told = now;
}

static void console_room(unsigned slot)
{
	uint8_t bytes[TYPED_BYTES];

	if (!console.has_printed || virtio_pushes(slot))
		return;
	console.under_way = (uint32_t)uart_typed(bytes, sizeof bytes);
	if (console.under_way && !virtio_push(slot, bytes, console.under_way))
		console.under_way = 0;
}

void console_typed(void)
{
	if (console.attached)
		console_room(VIRTIO_CONSOLE);
}

static void console_taken(unsigned slot)
{
	(void)slot;
	uart_read_typed(console.under_way);
	console.under_way = 0;
}

static void console_request(struct virtio_request *r)
{
	if (r->queue == TRANSMIT) { /* chains of the other queue are filled by the monitor */
		uart_print(r->out, r->out_bytes);
		console_window();
		console.has_printed = true;
	}
	virtio_done(r, 0);
	console_room(VIRTIO_CONSOLE);
}

static const struct virtio_model virtio_console = {
	.name = "virtio console",
	.id = 3,
	.queues = 2,
	.queue_size = QUEUE_SIZE,
	.features = console_features,
	.config = console_config,
	.request = console_request,
	.room = console_room,
	.taken = console_taken,
};

void console_reset(void)
{
	console.has_printed = false;
	console.under_way = 0;
	console.told = (struct config){ 0 };
}

/* A machine is saved when its console has long been set up. */
void console_restored(void) { console.has_printed = true; }

void console_attach(void)
{
	console.attached = true;
	virtio_add(VIRTIO_CONSOLE, &virtio_console);
}
