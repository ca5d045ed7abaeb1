/* busmaster.c - the bus master of the IDE disk (Intel PIIX3; SFF-8038i): it moves a READ DMA's or
 * WRITE DMA's bytes between the disk and the buffers in guest memory that the guest's table
 * describes (monitor/prd.h).
 *
 * The I/O server has no guest memory.  The monitor of the CPU that started the transfer copies its
 * bytes, in steps: a step is at most DMA_STEP_BYTES, and one is under way at a time.
 *
 *	to memory	the monitor gets the step's bytes, in parts, and answers when it has all
 *	from memory	the monitor is asked, and sends the bytes, in parts; then they are written
 *
 * A step begins when the disk waits for DMA, the guest has started the bus master, and the CPU may
 * be sent messages (away.h).  A CPU that stops answers its step before.  So between steps a
 * transfer is the fields below and the disk's, and it goes on when the CPU is back, here or
 * elsewhere.
 *
 * A guest that stops the bus master, or resets the disk, may use the buffers for something else
 * from then on.  Its write is answered when no monitor copies any more.  A step of the writing CPU
 * itself needs no such care: its monitor serves the step before guest code runs again.
 *
 * The guest's table is not trusted.  If it leads out of RAM, both the bus master and the disk
 * report an error.  If it ends before the transfer does, the bus master becomes inactive, the disk
 * waits, and the guest may give another table: the step that did not fit is repeated.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/log.h"
#include "iosrv/away.h"

enum { COMMAND = 0, STATUS = 2, TABLE = 4, REGISTERS = 16 /* of two channels; the second: none */ };
enum { START = 1, TO_MEMORY = 8, COMMAND_BITS = START | TO_MEMORY };
enum {
	ACTIVE = 1, ERROR = 2, INTERRUPT = 4, CAPABLE = 0x60, /* the guest's own notes */
	STATUS_BITS = ACTIVE | ERROR | INTERRUPT | CAPABLE,
};
enum { ENTRY_BUFFER = 0x10000 };

#define STATE(X)                                                                              \
	X(uint8_t, command, , 0, 0xff)                                                        \
	X(uint8_t, status, , 0, 0xff)                                                         \
	X(uint32_t, table, , 0, UINT32_MAX)                                                   \
	X(uint32_t, entry, , 0, UINT32_MAX) /* where the next step begins: an entry's address, */ \
	X(uint32_t, used, , 0, ENTRY_BUFFER - 1) /* and the bytes of its buffer already used */ \
	X(uint32_t, cpu, , 0, MAX_CPUS - 1) /* the CPU that started the transfer */
static struct state { STATE(CHIPSTATE_MEMBER) } master;

/* The step that is under way; no step is, while the machine is saved. */
static struct {
	bool under_way, abandoned, to_memory;
	uint32_t bytes, come; /* come: bytes that have arrived from memory */
	unsigned cpu;
	uint8_t data[DMA_STEP_BYTES];
} step;

static void busmaster_reset(void)
{
	memset(&master, 0, sizeof master);
	step.under_way = step.abandoned = false;
}

static void send_step(void)
{
	struct msg_dma tell = { .cpu = step.cpu, .to_memory = step.to_memory,
				.entry = master.entry, .used = master.used, .bytes = step.bytes };
	uint32_t part;

	if (!step.to_memory) {
		iosrv_send(MSG_DMA_TELL, VNODE_CPU(step.cpu), &tell, sizeof tell, NULL, 0);
		return;
	}
	for (; tell.offset < step.bytes; tell.offset += part) {
		part = step.bytes - tell.offset < MAX_MSG_PAYLOAD ? step.bytes - tell.offset
								  : MAX_MSG_PAYLOAD;
		iosrv_send(MSG_DMA_TELL, VNODE_CPU(step.cpu), &tell, sizeof tell,
			   step.data + tell.offset, part);
	}
}

static void fail(void)
{
	master.status = (master.status & ~ACTIVE) | ERROR;
	ide_dma_fail();
}

void busmaster_run(void)
{
	bool to_memory;

	if (step.under_way || !(master.status & ACTIVE) || !pci_busmaster_enabled() ||
	    !ide_dma_waits(&to_memory) || away_has(master.cpu))
		return;
	if (to_memory != !!(master.command & TO_MEMORY)) {
		fail();
		return;
	}
	step.bytes = ide_dma_begin(step.data, sizeof step.data);
	if (!step.bytes) {
		master.status &= ~ACTIVE;
		return;
	}
	step.under_way = true;
	step.to_memory = to_memory;
	step.come = 0;
	step.cpu = master.cpu;
	send_step();
}

void busmaster_run_on(unsigned cpu)
{
	if (step.under_way)
		return; /* the transfer goes on when that CPU has answered the step */
	master.cpu = cpu;
	away_remove(cpu);
	busmaster_run();
}

void busmaster_interrupt(void)
{
	master.status |= INTERRUPT;
}

void busmaster_suspend(void)
{
	if (!step.under_way)
		return;
	step.abandoned = true;
	if (step.cpu != serve_cpu())
		serve_hold();
}

/* The step is over: go on, or say what prevents it. */
static void end_step(const struct msg_dma *ask)
{
	bool abandoned = step.abandoned;

	step.under_way = step.abandoned = false;
	if (abandoned) {
		serve_release();
	} else if (ask->result == DMA_TABLE_WRONG) {
		fail();
	} else if (ask->result == DMA_TABLE_SHORT) {
		master.status &= ~ACTIVE;
	} else {
		master.entry = ask->entry;
		master.used = ask->used;
		if (ask->result == DMA_TABLE_ENDED)
			master.status &= ~ACTIVE;
		ide_dma_end(step.data, step.bytes);
	}
	busmaster_run();
}

/* Return the error in a message about a step; NULL: none. */
static const char *wrong(const struct msg_dma *ask, uint32_t bytes)
{
	bool moved = ask->result <= DMA_TABLE_ENDED;

	if (!step.under_way || ask->cpu != step.cpu)
		return "there is no such step";
	if (ask->result >= DMA_RESULTS || ask->used >= ENTRY_BUFFER)
		return "no step ends so";
	if (step.to_memory)
		return bytes || !ask->last ? "bytes came back" : NULL;
	if (ask->offset != step.come || bytes > step.bytes - step.come)
		return "its bytes are not those that come next";
	return ask->last && moved != (step.come + bytes == step.bytes) ? "bytes are missing" : NULL;
}

void busmaster_on_ask(void *none, const struct message *m, const struct msg_dma *ask)
{
	const char *why = wrong(ask, m->payload_bytes);

	(void)none;
	if (why) {
		iosrv_fail("CPU %u sent a malformed step of DMA (%s); this is a bug in vmp",
			   ask->cpu, why);
		return;
	}
	if (m->payload_bytes)
		memcpy(step.data + step.come, m->payload, m->payload_bytes);
	step.come += m->payload_bytes;
	if (ask->last)
		end_step(ask);
}

/* --- registers --- */

static uint8_t read_byte(uint32_t at)
{
	switch (at) {
	case COMMAND: return master.command;
	case STATUS: return master.status;
	case TABLE:
	case TABLE + 1:
	case TABLE + 2:
	case TABLE + 3: return master.table >> 8 * (at - TABLE);
	default: return 0;
	}
}

static void write_command(uint8_t value)
{
	bool was_started = master.command & START;

	master.command = value & COMMAND_BITS;
	if (!(value & START)) {
		master.status &= ~ACTIVE;
		busmaster_suspend();
	} else if (!was_started) {
		master.status |= ACTIVE;
		master.entry = master.table;
		master.used = 0;
		busmaster_run_on(serve_cpu());
	}
}

static void write_byte(uint32_t at, uint8_t value)
{
	unsigned shift = 8 * (at - TABLE);

	switch (at) {
	case COMMAND: write_command(value); return;
	case STATUS:
		master.status &= ~(value & (ERROR | INTERRUPT));
		master.status = (master.status & ~CAPABLE) | (value & CAPABLE);
		return;
	case TABLE:
	case TABLE + 1:
	case TABLE + 2:
	case TABLE + 3:
		master.table &= ~(0xffu << shift);
		master.table |= ((uint32_t)value << shift) & ~3u;
		return;
	}
}

static uint32_t busmaster_read(uint32_t offset, unsigned size)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint32_t)read_byte(offset + i) << 8 * i;
	return value;
}

static void busmaster_write(uint32_t offset, unsigned size, uint32_t value)
{
	for (unsigned i = 0; i < size; i++)
		write_byte(offset + i, value >> 8 * i);
}

static const char *busmaster_impossible(void)
{
	if (master.cpu >= iosrv_cpus())
		return "it serves a processor that the machine has not";
	if (master.command & ~COMMAND_BITS || master.status & ~STATUS_BITS || master.table & 3)
		return "a register has bits that it never has";
	return master.status & ACTIVE && !(master.command & START)
		? "it is active and not started" : NULL;
}

const struct chip busmaster_chip = {
	.name = "bus master", .range = { { 0, REGISTERS } }, .base = pci_busmaster_base,
	.reset = busmaster_reset, .read = busmaster_read, .write = busmaster_write,
	.state = CHIPSTATE(master),
	.impossible = busmaster_impossible,
};
