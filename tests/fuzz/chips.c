/* chips.c - fuzzes the I/O server's chips: a saved state with arbitrary bytes, then arbitrary
 * accesses.
 *
 * ACCESS touches all chips' addresses, VIRTIO those of the virtio devices; ASK is what a monitor
 * reports of their queues.  DMA sets up and starts the bus master of the IDE disk, reads or writes
 * one of the registers, or is a monitor's answer to its step, right or wrong.  The first byte
 * chooses the disks: an IDE disk, or, without one, two virtio disks; there is a network card.  Then
 * come operations (enum op), each a byte followed by its operands.  A saved form of all chips is
 * kept.  POKE changes a field of it, LOAD gives it to the chips, SAVE replaces it by the chips'
 * state.
 *
 * Whatever was loaded, either it is refused with one line, or the chips work with it.  What chips
 * save, they can load.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "iosrv/diskimage.h"
#include "iosrv/iosrv.h"
#include "iosrv/virtio.h"
#include "tests/fuzz/fuzz.h"

enum { CPUS = 4, DISK_BYTES = 100 * SECTOR_BYTES + 1024, NO_DISK = 3, MAX_ITEMS = 256 };
enum op { ACCESS, POKE, LOAD, SAVE, INPUT, ROOM, TIMER, WORKED, ASK, VIRTIO, FRAME, OPS,
	  DMA_FROM = 0xf0 };

static struct {
	const uint8_t *at;
	size_t left;
	unsigned ends; /* lines that ended the machine */
	bool timer[N_CHIPS], works[N_CHIPS];
	uint8_t *form[N_CHIPS];
	size_t form_bytes[N_CHIPS];
	bool keeps; /* what is pulled becomes the saved form */
	bool last;
	struct msg_dma dma; /* the step that the I/O server has sent last; bytes 0: none */
} w;

static uint64_t number(unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes && w.left; i++, w.left--)
		value |= (uint64_t)*w.at++ << 8 * i;
	return value;
}

/* ---- replaces iosrv_main.c and worker.c ---- */

unsigned iosrv_cpus(void) { return CPUS; }
void iosrv_watch(enum watched which, int socket, bool read, bool write)
{
	(void)which, (void)socket, (void)read, (void)write;
}

static void keep(const struct msg_snapshot_item *item, const void *data, size_t bytes)
{
	unsigned chip = item->index >> 16;

	w.last |= item->kind == SNAPSHOT_LAST;
	if (item->kind != SNAPSHOT_CHIP)
		return;
	FUZZ_CHECK(chip < N_CHIPS && w.form_bytes[chip] + bytes <= chipstate_bytes(chips[chip]));
	memcpy(w.form[chip] + w.form_bytes[chip], data, bytes);
	w.form_bytes[chip] += bytes;
}

void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		const void *payload, size_t payload_bytes)
{
	uint32_t least, most;

	FUZZ_CHECK(!wire_type_bounds(type, &least, &most));
	FUZZ_CHECK(body_bytes == least && body_bytes + payload_bytes <= most);
	FUZZ_CHECK(to == VNODE_CLI || to == VNODE_DAEMON(0) ||
		   (to >= VNODE_CPU(0) && to < VNODE_CPU(CPUS)));
	w.ends += type == MSG_MACHINE_END;
	if (type == MSG_DMA_TELL)
		memcpy(&w.dma, body, sizeof w.dma);
	if (type == MSG_SNAPSHOT_ITEM && w.keeps)
		keep(body, payload, payload_bytes);
}

void iosrv_start_timer(const struct chip *chip, unsigned ms)
{
	FUZZ_CHECK(ms && chip->on_timer);
	w.timer[chips_number(chip)] = true;
}

void iosrv_start_work(const struct chip *chip)
{
	FUZZ_CHECK(!w.works[chips_number(chip)]);
	w.works[chips_number(chip)] = true;
}

static void finish_work(unsigned chip)
{
	while (w.works[chip]) {
		w.works[chip] = false;
		chips[chip]->on_worked(chips[chip]->work());
	}
}

void iosrv_finish_work(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		finish_work(i);
}

/* ---- operations ---- */

static void say(uint16_t type, const void *body, size_t body_bytes, const void *data, size_t bytes)
{
	struct msg_header header = packet_header(type, VNODE_IOSRV, 0,
						 (uint32_t)(body_bytes + bytes));
	struct message m;
	static uint8_t packet[256 + MAX_MSG_PAYLOAD];

	memcpy(packet, body, body_bytes);
	if (bytes)
		memcpy(packet + body_bytes, data, bytes);
	m = packet_message(&header, packet);
	serve(&m);
}

static void do_access(void)
{
	static const struct { uint32_t address, count;
	} places[] = {
		{ VMP_UART_PORT, 8 },	   { VMP_IDE_PORT, 8 },	     { VMP_IDE_CONTROL_PORT, 1 },
		{ VMP_STREAM_PORT, 0x40 }, { VMP_AGENT_PORT, 0x20 }, { VMP_IOAPIC_GPA, 0x14 },
		{ 0, 1024 },
	};
	static uint8_t data[PAGE_BYTES];
	unsigned place = number(1) % ARRAY_LEN(places), how = number(1), shape = number(1), more;
	struct msg_io_request q = { .cpu = how >> 4 & 3,
				    .kind = how & 3,
				    .size = 1 << (how >> 2 & 3) % 3 };

	q.address = places[place].address + shape % places[place].count;
	q.count = 1 + (how & 0x80 ? number(2) % (PAGE_BYTES / q.size) : 0);
	q.value = number(how & 0x40 ? 4 : 1);
	more = q.kind == IO_PORT_OUT || q.kind == IO_MMIO_WRITE ? q.count > 1 : 0;
	memset(data, q.value, sizeof data);
	say(MSG_IO_REQUEST, &q, sizeof q, data, more ? (size_t)q.size * q.count : 0);
}

/* Writes values that a driver would write, and sometimes makes a queue ready. */
static void do_virtio(void)
{
	static const uint8_t registers[] = { 0x00, 0x10, 0x14, 0x20, 0x24, 0x30, 0x34, 0x38,
					     0x44, 0x50, 0x60, 0x64, 0x70, 0x80, 0xa4, 0xfc };
	unsigned how = number(1), slot = how & 1   ? VIRTIO_RNG
					 : how & 2 ? VIRTIO_DISKS
						   : number(1) % VIRTIO_SLOTS;
	struct msg_io_request q = { .cpu = how >> 2 & 3,
				    .kind = how & 16 ? IO_MMIO_WRITE : IO_MMIO_READ,
				    .size = 4,
				    .count = 1 };

	q.address = VMP_VIRTIO_GPA + slot * VIRTIO_SLOT_BYTES +
		    (how & 32 ? 0x100 + number(1) : registers[number(1) % sizeof registers]);
	q.value = number(how & 64 ? 4 : 1);
	say(MSG_IO_REQUEST, &q, sizeof q, NULL, 0);
}

static void do_ask(void)
{
	unsigned how = number(1);
	struct msg_virtio ask = { .cpu = how & 3,
				  .op = (how >> 2 & 15) % (VIRTIO_BACK + 1),
				  .slot = how & 64 ? VIRTIO_RNG : VIRTIO_DISKS };
	unsigned other = number(1);
	static uint8_t bytes[MAX_MSG_PAYLOAD];
	unsigned n = 16, payload = number(2) % sizeof bytes;

	if (other & 1)
		ask.slot = other & 2 ? VIRTIO_NET : other & 4 ? VIRTIO_CONSOLE : VIRTIO_DISKS + 1;
	ask.queue = how & 128 ? number(1) % 3 : 0;
	ask.head = number(1);
	ask.out_bytes = ask.op == VIRTIO_REQUEST ? payload + (how & 32 ? number(1) : 0) : 0;
	ask.in_bytes = number(2);
	memset(bytes, 0, sizeof bytes);
	for (unsigned i = 0; i < n && i < payload; i++)
		bytes[i] = number(1);
	say(MSG_VIRTIO_ASK, &ask, sizeof ask, bytes, payload);
}

static void write_port(unsigned cpu, uint32_t port, unsigned size, uint32_t value)
{
	struct msg_io_request q = { .cpu = cpu, .address = port, .kind = IO_PORT_OUT, .size = size,
				    .count = 1, .value = value };

	say(MSG_IO_REQUEST, &q, sizeof q, NULL, 0);
}

static void read_port(unsigned cpu, uint32_t port, unsigned size)
{
	struct msg_io_request q = { .cpu = cpu, .address = port, .kind = IO_PORT_IN, .size = size,
				    .count = 1 };

	say(MSG_IO_REQUEST, &q, sizeof q, NULL, 0);
}

/* What a driver does to begin a transfer. */
static void begin_dma(unsigned how)
{
	static const uint8_t commands[] = { 0xc8, 0xca, 0x25, 0x35 };
	unsigned cpu = how & 3;

	write_port(cpu, 0xcf8, 4, 0x80000804);
	write_port(cpu, 0xcfc, 2, how & 4 ? 1 : 5);
	write_port(cpu, 0xc004, 4, number(2));
	write_port(cpu, 0xc000, 1, how & 8 ? 8 : 0);
	write_port(cpu, VMP_IDE_PORT + 2, 1, number(1));
	write_port(cpu, VMP_IDE_PORT + 3, 1, number(1));
	write_port(cpu, VMP_IDE_PORT + 6, 1, 0xe0);
	write_port(cpu, VMP_IDE_PORT + 7, 1, commands[how >> 4 & 3]);
	write_port(cpu, 0xc000, 1, how & 8 ? 9 : 1);
}

static void answer_dma(unsigned how)
{
	static uint8_t bytes[MAX_MSG_PAYLOAD];
	uint32_t part = w.dma.bytes < sizeof bytes ? w.dma.bytes : sizeof bytes;

	w.dma.result = how & 3;
	w.dma.entry += 8;
	w.dma.used = how & 0x20 ? number(3) : 0;
	w.dma.cpu ^= how & 0x40 ? 1 : 0;
	w.dma.last = 1;
	if (w.dma.to_memory) {
		say(MSG_DMA_ASK, &w.dma, sizeof w.dma, bytes, how & 0x10 ? 1 : 0);
		return;
	}
	w.dma.offset = 0;
	do { /* all its bytes, or fewer */
		part = w.dma.bytes - w.dma.offset < part ? w.dma.bytes - w.dma.offset : part;
		w.dma.last = w.dma.offset + part == w.dma.bytes || how & 0x10;
		say(MSG_DMA_ASK, &w.dma, sizeof w.dma, bytes, part);
		w.dma.offset += part;
	} while (!w.dma.last);
}

static void do_dma(void)
{
	static const uint32_t ports[] = { 0xcf8, 0xcfc, 0xc000, VMP_IDE_CONTROL_PORT };
	unsigned how = number(1), kind = number(1) % 4;
	unsigned port = ports[how >> 2 & 3] + (how >> 4 & 7), size = how >> 7 ? 4 : 1;

	if (kind == 0)
		begin_dma(how);
	else if (kind == 1)
		answer_dma(how);
	else if (kind == 2)
		write_port(how & 3, port, size, number(size));
	else
		read_port(how & 3, port, size);
}

static void do_poke(void)
{
	unsigned chip = number(1) % N_CHIPS, n = number(1);
	const struct chipstate *s = &chips[chip]->state;
	const struct chipstate_field *field;
	uint64_t value;
	size_t at;

	if (!s->n_fields)
		return; /* a chip without state */
	field = &s->field[n % s->n_fields];
	at = sizeof(uint32_t) + (n / s->n_fields) % s->copies *
					((chipstate_bytes(chips[chip]) - 4) / s->copies);
	for (const struct chipstate_field *f = s->field; f != field; f++)
		at += (size_t)f->bytes * f->count;
	if (field->count > 1)
		at += number(2) % field->count * field->bytes;
	value = number(field->bytes);
	memcpy(w.form[chip] + at, &value, field->bytes);
}

static void load_item(uint32_t kind, uint32_t index, const void *data, size_t bytes)
{
	say(MSG_SNAPSHOT_ITEM,
	    &(struct msg_snapshot_item){ .of = SNAPSHOT_OF_IOSRV, .kind = kind, .index = index },
	    sizeof(struct msg_snapshot_item), data, bytes);
}

/* Loads the saved form into a server that has just been started.  Returns whether the chips took
 * it. */
static bool do_load(void)
{
	unsigned before = w.ends;

	iosrv_finish_work();
	serve_start(true);
	for (unsigned chip = 0; chip < N_CHIPS; chip++)
		for (size_t at = 0, part; at < w.form_bytes[chip]; at += part) {
			part = w.form_bytes[chip] - at;
			if (part > SNAPSHOT_PART_BYTES)
				part = SNAPSHOT_PART_BYTES;
			load_item(SNAPSHOT_CHIP, chip << 16 | at / SNAPSHOT_PART_BYTES,
				  w.form[chip] + at, part);
		}
	load_item(SNAPSHOT_LAST, 0, NULL, 0);
	FUZZ_CHECK(w.ends - before <= 1);
	return w.ends == before;
}

static void do_save(void)
{
	struct msg_snapshot step = { .step = SNAPSHOT_SAVE, .result = SNAPSHOT_APART };

	memset(w.form_bytes, 0, sizeof w.form_bytes);
	w.last = false;
	w.keeps = true;
	say(MSG_SNAPSHOT, &step, sizeof step, NULL, 0);
	say(MSG_SNAPSHOT_PULL, &(struct msg_snapshot_pull){ .count = MAX_ITEMS },
	    sizeof(struct msg_snapshot_pull), NULL, 0);
	w.keeps = false;
	FUZZ_CHECK(w.last);
	step.step = SNAPSHOT_THAW;
	say(MSG_SNAPSHOT, &step, sizeof step, NULL, 0);
}

static void do_input(void)
{
	static uint8_t bytes[MAX_MSG_PAYLOAD];
	unsigned how = number(1), count = number(2) % (MAX_MSG_PAYLOAD + 1);
	struct msg_stream stream = { .stream = how >> 1 & 3, .eof = how >> 3 & 1 };

	memset(bytes, how, sizeof bytes);
	if (how & 1)
		say(MSG_CONSOLE, &(struct msg_console){ 0 }, sizeof(struct msg_console), bytes,
		    count);
	else
		say(MSG_STREAM, &stream, sizeof stream, bytes, count);
}

static void do_room(void)
{
	unsigned how = number(1);
	uint32_t value = number(4);

	if (how & 1)
		say(MSG_CONSOLE_ATTACH,
		    &(struct msg_console_attach){ .client = how >> 4, .backlog = value },
		    sizeof(struct msg_console_attach), NULL, 0);
	else
		say(MSG_STREAM_ROOM,
		    &(struct msg_stream_room){ .stream = how >> 4, .bytes = value },
		    sizeof(struct msg_stream_room), NULL, 0);
	chips_flush();
}

static void do_timer(void)
{
	unsigned chip = number(1) % N_CHIPS;

	if (w.timer[chip])
		serve_timer(chips[chip]);
	w.timer[chip] = false;
}

static void open_disk(unsigned mode)
{
	static const char *const modes[] = { "", ",ro", ",snapshot" };
	char path[] = "/tmp/vmp-fuzz-XXXXXX", spec[64], why[256];
	int fd;

	ide_close();
	blk_close();
	fd = mkstemp(path);
	snprintf(spec, sizeof spec, "%s%s", path, modes[mode % NO_DISK]);
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, DISK_BYTES));
	if (mode == NO_DISK)
		for (unsigned i = 0; i < 2; i++) {
			snprintf(spec, sizeof spec, "%s,snapshot", path);
			FUZZ_CHECK(!blk_open(i, spec, why, sizeof why));
		}
	else
		FUZZ_CHECK(!ide_open(spec, why, sizeof why));
	close(fd);
	unlink(path);
}

/* The other end of the card's socket, which reads nothing, and writes now and then (FRAME). */
static int network = -1;
static void open_network(void)
{
	static int card = -1;
	int pair[2];

	if (card >= 0) {
		close(card);
		close(network);
	}
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	card = pair[0];
	network = pair[1];
	net_attach(card);
}

static void do_frame(void)
{
	unsigned how = number(1);
	static const uint8_t frame[200];

	if (send(network, frame, 1 + how % sizeof frame, MSG_DONTWAIT) > 0 || how & 1)
		net_on_ready();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(w.timer, 0, sizeof w.timer);
	memset(w.works, 0, sizeof w.works);
	for (unsigned i = 0; i < N_CHIPS; i++) {
		w.form_bytes[i] = chipstate_bytes(chips[i]);
		if (!w.form[i])
			w.form[i] = malloc(w.form_bytes[i]);
	}
	w.at = data;
	w.left = size;
	w.ends = 0;
	memset(&w.dma, 0, sizeof w.dma);
	open_disk(number(1) % (NO_DISK + 1));
	virtio_add(VIRTIO_RNG, &virtio_rng);
	console_attach();
	open_network();
	serve_start(false);
	for (unsigned i = 0; i < N_CHIPS; i++)
		chipstate_save(chips[i], w.form[i]);
	while (w.left) {
		unsigned op = number(1);

		if (op >= DMA_FROM) {
			do_dma();
			continue;
		}
		switch ((enum op)(op % OPS)) {
		case ACCESS: do_access(); break;
		case POKE: do_poke(); break;
		case LOAD: do_load(); break;
		case SAVE: do_save(); break;
		case INPUT: do_input(); break;
		case ROOM: do_room(); break;
		case TIMER: do_timer(); break;
		case WORKED: finish_work(number(1) % N_CHIPS); break;
		case ASK: do_ask(); break;
		case VIRTIO: do_virtio(); break;
		case FRAME: do_frame(); break;
		case OPS:
		case DMA_FROM: break;
		}
	}
	do_save();
	FUZZ_CHECK(do_load());
	return 0;
}
