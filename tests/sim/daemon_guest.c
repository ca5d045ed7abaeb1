/* daemon_guest.c - what the processors of daemon-sim do with the devices, besides their accesses to
 * memory; see daemons.h.
 *
 * Processor 0 reads standard input, 1 and 2 write standard output and error, 3 writes to the disk
 * and reads back.  Each is a driver with at most one request at a time, whose state is a part of
 * its processor: it moves, is saved and is loaded with it.  Each byte that is typed, printed or
 * written depends on its position alone, so that a byte that is lost or comes twice is noticed at
 * once.  The user decides how much there is to do (guests_plan()).
 */
#include <stdlib.h>
#include <string.h>
#include "base/guest_abi.h"
#include "iosrv/diskimage.h"
#include "tests/sim/daemons.h"

enum { INPUT, OUTPUT, ERRORS, DISK, GUESTS };
enum {
	MOST_BYTES = 4096,
	MOST_LOOKS = 50000,
	PAUSE_NS = 20000,
	WAKES = GUEST_VECTOR,
	HALF = SECTOR_BYTES / 2,
	FLAT = 1 << 11
};
enum {
	ATA_BUSY = 0x80,
	ATA_DRQ = 8,
	ATA_ERROR = 1,
	ATA_READ = 0x20,
	ATA_WRITE = 0x30,
	ATA_FLUSH = 0xe7
};

/* Each of these steps but the last two is one request. */
enum step {
	PIN_HIGH_AT, PIN_HIGH, PIN_LOW_AT, PIN_LOW, LOOK, MOVE, ARM,
	DISK_SET, DISK_BEGIN = DISK_SET + 5, DISK_LOOK, DISK_MOVE, SLEEP, REST,
};

struct guest guests[SIM_MAX_CPUS];

static struct {
	uint32_t seq[GUESTS];  /* of the current request; 0: none */
	uint32_t last, turn[GUESTS];
	uint32_t quota[GUESTS]; /* bytes, or operations */
	bool input_ends;
} host;

uint8_t guest_byte(unsigned stream, uint32_t at)
{
	return (uint8_t)(at * 13 + at / 256 * 7 + stream * 50);
}
uint32_t guest_quota(unsigned of) { return host.quota[of]; }
bool guest_input_ends(void) { return host.input_ends; }
bool guest_waits(unsigned cpu) { return cpu < GUESTS && host.seq[cpu]; }

static void step_soon(unsigned cpu, uint32_t most_ns)
{
	world_after_ns(1 + sim_random(machine, most_ns), WORLD_GUEST, machine->cpus[cpu].node, cpu,
		       ++host.turn[cpu], NULL, 0);
}

static bool has_work(unsigned cpu)
{
	return !guests[cpu].eof && (cpu == INPUT || guests[cpu].pos < host.quota[cpu]);
}

void guest_go(unsigned cpu)
{
	struct guest *g = &guests[cpu];

	if (cpu >= GUESTS || host.seq[cpu])
		return;
	if (g->at == SLEEP && g->woken)
		g->at = LOOK;
	if (g->at == REST && has_work(cpu))
		g->at = cpu == DISK ? DISK_SET : LOOK;
	if (g->at < SLEEP)
		step_soon(cpu, PAUSE_NS);
}

/* the vector of the streams' line */
void guest_interrupt(unsigned cpu)
{
	guests[cpu].woken = true;
	if (!machine->cpus[cpu].held)
		guest_go(cpu);
}

/* ---- requests ---- */

static void ask(unsigned cpu, struct msg_io_request q, const void *data)
{
	unsigned node = machine->cpus[cpu].node;
	bool out = q.kind == IO_PORT_OUT || q.kind == IO_MMIO_WRITE;

	q.cpu = cpu;
	host.seq[cpu] = q.seq = ++host.last;
	if (!q.count)
		q.count = 1;
	children_say(node, cpu, (uint32_t)daemons[node].node.monitor[cpu].pid, MSG_IO_REQUEST, &q,
		     sizeof q, data, out && q.count > 1 ? q.count * q.size : 0);
}

static void write_register(unsigned cpu, uint32_t port, unsigned size, uint32_t value)
{
	ask(cpu,
	    (struct msg_io_request){
		    .kind = IO_PORT_OUT, .address = port, .size = size, .value = value },
	    NULL);
}

static void read_register(unsigned cpu, uint32_t port, unsigned size)
{
	ask(cpu, (struct msg_io_request){ .kind = IO_PORT_IN, .address = port, .size = size },
	    NULL);
}

static void write_mmio(unsigned cpu, uint32_t address, uint32_t value)
{
	ask(cpu,
	    (struct msg_io_request){
		    .kind = IO_MMIO_WRITE, .address = address, .size = 4, .value = value },
	    NULL);
}

static uint32_t stream_port(unsigned stream, unsigned what)
{
	return VMP_STREAM_PORT + 16 * stream + what;
}

static void move_stream(unsigned cpu)
{
	struct guest *g = &guests[cpu];
	struct msg_io_request q = { .kind = cpu == INPUT ? IO_PORT_IN : IO_PORT_OUT,
				    .size = 1,
				    .count = g->n,
				    .address = stream_port(cpu, VMP_STREAM_DATA) };
	uint8_t bytes[MOST_BYTES];

	for (uint32_t i = 0; i < g->n; i++)
		bytes[i] = guest_byte(cpu, g->pos + i);
	q.value = bytes[0];
	ask(cpu, q, bytes);
}

/* ---- the disk: a command's registers, one after the other, then its data, a sector in two halves
 * ---- */

static void choose_operation(struct guest *g)
{
	static const uint8_t commands[] = { ATA_WRITE, ATA_WRITE, ATA_WRITE,
					    ATA_READ,  ATA_READ,  ATA_FLUSH };

	g->command = commands[sim_random(machine, sizeof commands)];
	g->n = 1 + sim_random(machine, 3);
	g->sector = sim_random(machine, DISK_SECTORS - g->n + 1);
	g->half = 0;
}

static void move_sector(unsigned cpu)
{
	struct guest *g = &guests[cpu];
	uint8_t bytes[SECTOR_BYTES];

	io_sector(bytes, g->sector, (uint8_t)(g->version[g->sector] + 1));
	ask(cpu,
	    (struct msg_io_request){ .kind = g->command == ATA_WRITE ? IO_PORT_OUT : IO_PORT_IN,
				     .address = VMP_IDE_PORT,
				     .size = 2,
				     .count = HALF / 2 },
	    bytes + g->half * HALF);
}

static void sector_moved(struct guest *g, const void *data)
{
	uint8_t should_be[SECTOR_BYTES];

	io_sector(should_be, g->sector, g->version[g->sector]);
	if (g->command == ATA_READ && memcmp(data, should_be + g->half * HALF, HALF))
		sim_fail(machine, "sector %u is not read as it was written", g->sector);
	g->half ^= 1;
	if (g->half)
		return;
	g->version[g->sector] += g->command == ATA_WRITE;
	g->sector++;
	g->at = DISK_LOOK;
}

static void disk_seen(struct guest *g, uint32_t status)
{
	if (status & ATA_ERROR)
		sim_fail(machine, "the disk fails at sector %u", g->sector);
	if (++g->looks == MOST_LOOKS)
		sim_fail(machine, "the disk is busy for ever");
	if (status & ATA_BUSY)
		return;
	g->looks = 0;
	if (status & ATA_DRQ) {
		g->at = DISK_MOVE;
		return;
	}
	g->pos++;
	g->at = REST;
}

/* ---- steps ---- */

void guest_step(unsigned cpu, uint32_t turn)
{
	struct guest *g = &guests[cpu];

	if (turn != host.turn[cpu] || machine->cpus[cpu].held || host.seq[cpu])
		return;
	if (g->at == DISK_SET)
		choose_operation(g);
	switch (g->at) {
	case PIN_HIGH_AT: write_mmio(cpu, VMP_IOAPIC_GPA, 0x10 + 2 * VMP_STREAM_IRQ + 1); break;
	case PIN_HIGH:
		write_mmio(cpu, VMP_IOAPIC_GPA + 0x10,
			   (1 << INPUT | 1 << OUTPUT | 1 << ERRORS) << 24);
		break;
	case PIN_LOW_AT: write_mmio(cpu, VMP_IOAPIC_GPA, 0x10 + 2 * VMP_STREAM_IRQ); break;
	case PIN_LOW: write_mmio(cpu, VMP_IOAPIC_GPA + 0x10, FLAT | WAKES); break;
	case LOOK: read_register(cpu, stream_port(cpu, VMP_STREAM_STATUS), 4); break;
	case MOVE: move_stream(cpu); break;
	case ARM:
		g->woken = false;
		write_register(cpu, stream_port(cpu, VMP_STREAM_IRQ_ENABLE), 4, 1);
		break;
	case DISK_SET: write_register(cpu, VMP_IDE_PORT + 2, 1, g->n); break;
	case DISK_SET + 1: write_register(cpu, VMP_IDE_PORT + 3, 1, g->sector); break;
	case DISK_SET + 2: write_register(cpu, VMP_IDE_PORT + 4, 1, 0); break;
	case DISK_SET + 3: write_register(cpu, VMP_IDE_PORT + 5, 1, 0); break;
	case DISK_SET + 4: write_register(cpu, VMP_IDE_PORT + 6, 1, 0xe0); break;
	case DISK_BEGIN: write_register(cpu, VMP_IDE_PORT + 7, 1, g->command); break;
	case DISK_LOOK: read_register(cpu, VMP_IDE_PORT + 7, 1); break;
	case DISK_MOVE: move_sector(cpu); break;
	}
}

/* Moves next as much as the device has room for. */
static void stream_seen(unsigned cpu, uint32_t status)
{
	struct guest *g = &guests[cpu];
	uint32_t left = cpu == INPUT ? MOST_BYTES : host.quota[cpu] - g->pos;

	g->eof = status & VMP_STREAM_EOF;
	g->n = 1 + sim_random(machine, sim_chance(machine, 50) ? 100 : MOST_BYTES);
	if (g->n > status)
		g->n = status;
	if (g->n > left)
		g->n = left;
	g->at = g->eof ? REST : g->n ? MOVE : ARM;
}

static void stream_moved(unsigned cpu, uint32_t value, const uint8_t *data)
{
	struct guest *g = &guests[cpu];

	for (uint32_t i = 0; i < g->n && cpu == INPUT; i++)
		if ((g->n == 1 ? (uint8_t)value : data[i]) != guest_byte(INPUT, g->pos + i))
			sim_fail(machine, "byte %u of the input is not what was typed", g->pos + i);
	g->pos += g->n;
	g->at = has_work(cpu) ? LOOK : REST;
}

void guest_on_reply(unsigned cpu, const struct packet *packet)
{
	struct guest *g = &guests[cpu];
	struct msg_io_reply reply;

	memcpy(&reply, packet->body, sizeof reply);
	if (reply.cpu != cpu || reply.seq != host.seq[cpu])
		sim_fail(machine, "CPU %u gets an answer to request %u of CPU %u, and waits for "
			 "one to %u",
			 cpu, reply.seq, reply.cpu, host.seq[cpu]);
	host.seq[cpu] = 0;
	switch (g->at) {
	case LOOK: stream_seen(cpu, reply.value); break;
	case MOVE: stream_moved(cpu, reply.value, packet->body + sizeof reply); break;
	case ARM: g->at = SLEEP; break;
	case PIN_LOW: g->at = LOOK; break;
	case DISK_LOOK: disk_seen(g, reply.value); break;
	case DISK_MOVE: sector_moved(g, packet->body + sizeof reply); break;
	default: g->at++;
	}
	if (!machine->cpus[cpu].held)
		guest_go(cpu);
}

/* ---- all drivers ---- */

void guests_forget(void)
{
	memset(guests, 0, sizeof guests);
	memset(host.seq, 0, sizeof host.seq);
	for (unsigned cpu = 0; cpu < GUESTS; cpu++)
		host.turn[cpu]++;
}

void guests_open(void)
{
	memset(&host, 0, sizeof host);
	guests_forget();
	for (unsigned cpu = OUTPUT; cpu < GUESTS; cpu++)
		guests[cpu].at = REST;
}

/* Gives each driver some more to do. */
void guests_plan(void)
{
	for (unsigned of = 0; of < GUESTS; of++)
		if (sim_chance(machine, 50) && !(of == INPUT && host.input_ends))
			host.quota[of] += of == DISK ? sim_random(machine, 8)
						     : sim_random(machine, sim_chance(machine, 1)
										   ? 150000
										   : 3000);
	host.input_ends |= sim_chance(machine, 10);
	for (unsigned cpu = 0; cpu < GUESTS; cpu++)
		if (guests[cpu].at != SLEEP)
			guest_go(cpu);
}

void guests_check(void)
{
	for (unsigned cpu = 0; cpu < GUESTS; cpu++)
		if (guests[cpu].pos != host.quota[cpu] && !(guests[cpu].eof && cpu != INPUT))
			sim_fail(machine, "CPU %u has come to %u of %u at its device, in step %u",
				 cpu, guests[cpu].pos, host.quota[cpu], guests[cpu].at);
	if (guests[INPUT].eof != host.input_ends)
		sim_fail(machine, "the input ends, and its reader does not know it, or the other "
			 "way round");
	io_check_disk(guests[DISK].version);
}
