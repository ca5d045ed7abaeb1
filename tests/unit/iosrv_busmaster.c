/* iosrv_busmaster.c - DMA of the IDE disk as Linux's ata_piix uses it: the PCI bus, the bus
 * master's registers, transfers in steps with a monitor, stops, and what a hostile guest or monitor
 * does. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "iosrv/diskimage.h"
#include "iosrv/virtio.h"
#include "monitor/prd.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum {
	NSECT = VMP_IDE_PORT + 2, LBAL, LBAM, LBAH, DEVICE, COMMAND, STATUS = COMMAND,
	CONTROL = VMP_IDE_CONTROL_PORT, IRQ = VMP_IDE_IRQ,
	BASE = 0xc000, BM_COMMAND = BASE, BM_STATUS = BASE + 2, BM_TABLE = BASE + 4,
	START = 1, TO_MEMORY = 8, ACTIVE = 1, ERROR = 2, INTERRUPT = 4,
	IDLE = 0x50, FAILED = 0x51, BUSY = 0x80, SRST = 4,
	READ_DMA = 0xc8, WRITE_DMA = 0xca, READ_DMA_EXT = 0x25, WRITE_DMA_EXT = 0x35,
	SECTORS = 4096, RAM = 4 << 20, TABLE = 0x1000, BUFFER = 0x100000,
};

static char path[] = "/tmp/vmp-dma-XXXXXX";
static int image_fd;
static uint8_t ram[RAM];
static bool answers_wrong; /* the monitor's last answer is spoilt */

/* --- the guest --- */

static uint32_t config(unsigned device, unsigned at, unsigned size)
{
	port_out(0xcf8, 4, 0x80000000u | device << 11 | (at & 0xfc));
	return port_in(0xcfc + (at & 3), size);
}

static void configure(unsigned device, unsigned at, unsigned size, uint32_t value)
{
	port_out(0xcf8, 4, 0x80000000u | device << 11 | (at & 0xfc));
	port_out(0xcfc + (at & 3), size, value);
}

static uint8_t status(void) { return port_in(BM_STATUS, 1); }

static void issue(uint8_t command, uint32_t lba, unsigned count)
{
	bool ext = command == READ_DMA_EXT || command == WRITE_DMA_EXT;

	if (ext) {
		port_out(NSECT, 1, count >> 8 & 0xff);
		port_out(LBAL, 1, 0), port_out(LBAM, 1, 0), port_out(LBAH, 1, 0);
	}
	port_out(NSECT, 1, count & 0xff);
	port_out(LBAL, 1, lba & 0xff);
	port_out(LBAM, 1, lba >> 8 & 0xff);
	port_out(LBAH, 1, lba >> 16 & 0xff);
	port_out(DEVICE, 1, 0xe0);
	port_out(COMMAND, 1, command);
}

/* A table of buffers of `size` bytes for `bytes`, one after the other at BUFFER. */
static void describe(uint32_t bytes, uint32_t size)
{
	for (uint32_t at = 0, i = 0; at < bytes; at += size, i++) {
		uint32_t part = bytes - at < size ? bytes - at : size,
			 words[2] = { BUFFER + at, (part & 0xffff) |
					(at + part == bytes ? 0x80000000u : 0) };

		memcpy(ram + TABLE + 8 * i, words, sizeof words);
	}
}

static void begin(uint8_t command, uint32_t lba, unsigned count, bool to_memory)
{
	port_out(BM_TABLE, 4, TABLE);
	port_out(BM_COMMAND, 1, to_memory ? TO_MEMORY : 0);
	port_out(BM_STATUS, 1, status() | ERROR | INTERRUPT);
	issue(command, lba, count);
	port_out(BM_COMMAND, 1, (to_memory ? TO_MEMORY : 0) | START);
}

/* As ata_bmdma_stop() and the interrupt's handler. */
static uint8_t end(void)
{
	uint8_t was = status();

	port_out(BM_COMMAND, 1, port_in(BM_COMMAND, 1) & ~START);
	port_out(BM_STATUS, 1, was);
	return was;
}

static void open_disk(const char *mode)
{
	char spec[64], why[256];
	uint32_t sector[128] = { 0 };

	ide_close();
	for (uint32_t i = 0; i < SECTORS; i++) {
		sector[0] = i;
		CU_ASSERT_FATAL(pwrite(image_fd, sector, 512, (off_t)i * 512) == 512);
	}
	snprintf(spec, sizeof spec, "%s%s", path, mode);
	fake_reset();
	CU_ASSERT_FATAL(ide_open(spec, why, sizeof why) == 0);
	configure(1, 0x04, 2, 5);
	memset(ram, 0xcc, sizeof ram);
	answers_wrong = false;
}

/* --- the monitor --- */

#include "tests/unit/virtqueue_ram.h"
static struct prd_place place;

static void answer(struct msg_dma *ask, const void *bytes, uint32_t n)
{
	static uint8_t packet[sizeof *ask + MAX_MSG_PAYLOAD];
	struct msg_header header = packet_header(MSG_DMA_ASK, VNODE_IOSRV, 0,
						 (uint32_t)(sizeof *ask + n));
	struct message m;

	ask->entry = place.entry;
	ask->used = place.used;
	ask->result = place.result;
	memcpy(packet, ask, sizeof *ask);
	if (n)
		memcpy(packet + sizeof *ask, bytes, n);
	m = packet_message(&header, packet);
	busmaster_on_ask(NULL, &m, ask);
}

static void answer_from_memory(struct msg_dma ask)
{
	static uint8_t bytes[MAX_MSG_PAYLOAD];

	for (uint32_t n; ask.offset < ask.bytes; ask.offset += n) {
		bool copied;

		n = ask.bytes - ask.offset < sizeof bytes ? ask.bytes - ask.offset : sizeof bytes;
		copied = prd_copy(&place, &memory, false, bytes, n);
		ask.last = !copied || ask.offset + n == ask.bytes;
		answer(&ask, bytes, copied ? n : 0);
		if (!copied)
			return;
	}
}

/* Serve one step, as monitor/dma.c; false: none was sent to this CPU. */
static bool serve_step(unsigned cpu)
{
	struct msg_dma tell = { .bytes = 1 };
	const struct fake_message *m;

	for (uint32_t done = 0; done < tell.bytes; done += (uint32_t)m->payload_bytes) {
		m = fake_take(MSG_DMA_TELL);
		if (!m)
			return false;
		CU_ASSERT(m->to == VNODE_CPU(cpu));
		memcpy(&tell, m->body, sizeof tell);
		CU_ASSERT(tell.cpu == cpu && tell.offset == done && tell.bytes <= DMA_STEP_BYTES);
		if (!done)
			place = (struct prd_place){ tell.entry, tell.used, DMA_MOVED };
		if (!tell.to_memory)
			break;
		prd_copy(&place, &memory, true, (void *)m->payload, (uint32_t)m->payload_bytes);
	}
	fake.n_messages = 0;
	if (!tell.to_memory) {
		answer_from_memory(tell);
		return true;
	}
	tell.offset = tell.bytes;
	tell.last = 1;
	answer(&tell, NULL, 0);
	return true;
}

static unsigned serve_steps(unsigned cpu)
{
	unsigned n = 0;

	while (serve_step(cpu))
		n++;
	return n;
}

/* --- tests --- */

static void the_bus(void)
{
	open_disk("");
	port_out(0xcf8, 4, 0x80000000u);
	CU_ASSERT(port_in(0xcf8, 4) == 0x80000000u);
	CU_ASSERT(config(0, 0, 4) == 0x12378086 && config(0, 0x0a, 2) == 0x0600);
	CU_ASSERT(config(1, 0, 4) == 0x70108086 && config(1, 8, 4) == 0x01018000 &&
		  config(1, 0x0e, 1) == 0 && config(1, 0x3d, 1) == 0);
	for (unsigned i = 2; i < 32; i++)
		CU_ASSERT(config(i, 0, 4) == 0xffffffff);
	CU_ASSERT(config(1 | 1 << 5, 0, 4) == 0xffffffff); /* another bus */
	port_out(0xcf8, 4, 0x80000900u);		   /* another function */
	CU_ASSERT(port_in(0xcfc, 4) == 0xffffffff);
	port_out(0xcf8, 4, 0x00000800u);
	CU_ASSERT(port_in(0xcfc, 4) == 0xffffffff);
	CU_ASSERT(config(1, 0x41, 1) == 0x80 && config(1, 0x43, 1) == 0);
	CU_ASSERT(config(1, 0x54, 4) == 0 && config(1, 0xfc, 4) == 0);
	configure(1, 0, 4, 0); /* not writable */
	configure(0, 4, 4, 0xffffffff);
	CU_ASSERT(config(1, 0, 4) == 0x70108086 && config(0, 4, 2) == 6);
	configure(1, 0x04, 2, 0xffff);
	CU_ASSERT(config(1, 0x04, 2) == 5);
	configure(1, 0x20, 4, 0xffffffff); /* its size */
	CU_ASSERT(config(1, 0x20, 4) == 0xfff1);
	configure(1, 0x20, 4, 0xd004);
	CU_ASSERT(config(1, 0x20, 4) == 0xd001);
	port_out(0xd004, 4, 0x12345678);
	CU_ASSERT(port_in(0xd004, 4) == 0x12345678 && port_in(0xd006, 1) == 0x34 &&
		  port_in(BM_TABLE, 4) == 0xffffffff && port_in(0xd008, 4) == 0);
	configure(1, 0x04, 2, 4);
	CU_ASSERT(port_in(0xd004, 4) == 0xffffffff);
	configure(1, 0x04, 2, 5);
	configure(1, 0x20, 4, 0);
	CU_ASSERT(port_in(0xd004, 4) == 0xffffffff && port_in(4, 4) == 0xffffffff);
	/* accesses that no driver makes */
	port_out(0xcf8, 1, 0xff), port_out(0xcfb, 4, 0xffffffff), port_in(0xcfb, 4);
	port_in(0xcff, 4), port_out(0xcff, 4, 0xffffffff);
	ide_close();
	fake_reset();
	CU_ASSERT(config(0, 0, 4) == 0xffffffff && port_in(BM_STATUS, 1) == 0xff);
}

static void reads(void)
{
	open_disk("");
	fake.cpu = 1;
	describe(8 * 512, 512);
	begin(READ_DMA, 10, 8, true);
	CU_ASSERT(port_in(CONTROL, 1) == BUSY && status() == ACTIVE && !fake_edges(IRQ));
	port_out(COMMAND, 1, 0xec); /* a busy disk takes no command */
	CU_ASSERT(serve_steps(1) == 1);
	CU_ASSERT(fake_edges(IRQ) == 1 && port_in(CONTROL, 1) == IDLE && status() == INTERRUPT);
	CU_ASSERT(end() == INTERRUPT && status() == 0);
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT(*(uint32_t *)(ram + BUFFER + i * 512) == 10 + i);
	CU_ASSERT(ram[BUFFER - 1] == 0xcc && ram[BUFFER + 8 * 512] == 0xcc);
	/* several steps, and a command of 48 bits; started before the command */
	describe(700 * 512, 0x10000);
	port_out(BM_TABLE, 4, TABLE);
	port_out(BM_COMMAND, 1, TO_MEMORY | START);
	issue(READ_DMA_EXT, 3000, 700);
	CU_ASSERT(serve_steps(1) == 3 && end() == INTERRUPT && fake_edges(IRQ) == 1);
	for (unsigned i = 0; i < 700; i++)
		CU_ASSERT(*(uint32_t *)(ram + BUFFER + i * 512) == 3000 + i);
	CU_ASSERT(ram[BUFFER + 700 * 512] == 0xcc);
}

static void writes(void)
{
	uint32_t word;

	open_disk("");
	describe(300 * 512, 3000);
	for (unsigned i = 0; i < 300; i++)
		*(uint32_t *)(ram + BUFFER + i * 512) = 0xabc000 + i;
	begin(WRITE_DMA_EXT, 1000, 300, false);
	CU_ASSERT(serve_steps(0) == 2 && end() == INTERRUPT && fake_edges(IRQ) == 1 &&
		  port_in(STATUS, 1) == IDLE);
	for (unsigned i = 0; i < 302; i++) {
		CU_ASSERT(pread(image_fd, &word, 4, (off_t)(999 + i) * 512) == 4);
		CU_ASSERT(word == (i && i < 301 ? 0xabc000 + i - 1 : 999 + i));
	}
	/* a disk without a cache flushes first */
	port_out(VMP_IDE_PORT + 1, 1, 0x82);
	port_out(COMMAND, 1, 0xef);
	fake_edges(IRQ);
	fake.slow = true;
	describe(512, 512);
	begin(WRITE_DMA, 5, 1, false);
	CU_ASSERT(serve_steps(0) == 1 && port_in(CONTROL, 1) == BUSY && !fake_edges(IRQ));
	fake_work();
	CU_ASSERT(port_in(CONTROL, 1) == IDLE && fake_edges(IRQ) == 1 && end() == INTERRUPT);
}

static void refusals(void)
{
	open_disk("");
	describe(512, 512);
	begin(READ_DMA, SECTORS, 1, true);
	CU_ASSERT(serve_steps(0) == 0 && port_in(STATUS, 1) == FAILED && fake_edges(IRQ) == 1);
	CU_ASSERT(end() == (ACTIVE | INTERRUPT));
	begin(READ_DMA, 0, 1, false); /* the wrong way */
	CU_ASSERT(serve_steps(0) == 0 && port_in(STATUS, 1) == FAILED);
	CU_ASSERT(end() == (ERROR | INTERRUPT) && status() == 0);
	open_disk(",ro");
	describe(512, 512);
	begin(WRITE_DMA, 0, 1, false);
	CU_ASSERT(serve_steps(0) == 0 && port_in(STATUS, 1) == FAILED && end());
	/* without the right to access memory */
	configure(1, 0x04, 2, 1);
	begin(READ_DMA, 7, 1, true);
	CU_ASSERT(serve_steps(0) == 0 && port_in(CONTROL, 1) == BUSY);
	configure(1, 0x04, 2, 5);
	CU_ASSERT(serve_steps(0) == 1 && port_in(STATUS, 1) == IDLE && ram[BUFFER] == 7);
	end();
}

/* A table that is short, leads out of RAM, or is too long. */
static void bad_tables(void)
{
	open_disk("");
	describe(512, 512);
	begin(READ_DMA, 20, 2, true);
	CU_ASSERT(serve_steps(0) == 1 && status() == 0 && port_in(CONTROL, 1) == BUSY &&
		  !fake_edges(IRQ));
	end();
	describe(1024, 512); /* another one: the transfer goes on */
	port_out(BM_COMMAND, 1, TO_MEMORY | START);
	CU_ASSERT(serve_steps(0) == 1 && fake_edges(IRQ) == 1 && port_in(STATUS, 1) == IDLE);
	CU_ASSERT(end() == INTERRUPT && ram[BUFFER + 512] == 21);
	describe(1024, 512);
	memset(ram + TABLE, 0xff, 4);
	for (unsigned write = 0; write < 2; write++) {
		begin(write ? WRITE_DMA : READ_DMA, 20, 2, !write);
		CU_ASSERT(serve_steps(0) == 1 && fake_edges(IRQ) == 1 &&
			  port_in(STATUS, 1) == FAILED);
		CU_ASSERT(end() == (ERROR | INTERRUPT));
	}
	describe(2048, 512);
	begin(READ_DMA, 30, 2, true);
	CU_ASSERT(serve_steps(0) == 1 && port_in(STATUS, 1) == IDLE &&
		  end() == (ACTIVE | INTERRUPT) && status() == 0);
}

/* The guest stops a transfer whose step is under way. */
static void stops(void)
{
	static const struct {
		unsigned cpu;
		uint32_t port;
		uint8_t value;
		bool holds;
	} rows[] = {
		{ 0, BM_COMMAND, TO_MEMORY, false }, { 1, BM_COMMAND, TO_MEMORY, true },
		{ 0, CONTROL, SRST, false },	     { 1, CONTROL, SRST, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		open_disk("");
		describe(600 * 512, 0x8000);
		begin(READ_DMA_EXT, 1, 600, true);
		fake.cpu = rows[i].cpu;
		port_out(rows[i].port, 1, rows[i].value);
		CU_ASSERT(fake.holds == rows[i].holds && !fake.releases);
		CU_ASSERT(serve_steps(0) == 1 && fake.releases == 1 && !fake_edges(IRQ));
		port_out(CONTROL, 1, SRST);
		port_out(CONTROL, 1, 0);
		CU_ASSERT(port_in(STATUS, 1) == IDLE);
		end();
		describe(512, 512);
		begin(READ_DMA, 99, 1, true);
		CU_ASSERT(serve_steps(rows[i].cpu) == 1 && ram[BUFFER] == 99 &&
			  fake_edges(IRQ) == 1);
	}
	/* the bus's right, and a new transfer before the old step is over */
	open_disk("");
	describe(512, 512);
	begin(WRITE_DMA, 40, 1, false);
	fake.cpu = 1;
	configure(1, 0x04, 2, 1);
	CU_ASSERT(fake.holds == 1);
	configure(1, 0x04, 2, 5);
	port_out(CONTROL, 1, SRST), port_out(CONTROL, 1, 0);
	begin(READ_DMA, 50, 1, true);
	CU_ASSERT(serve_steps(0) == 2 && ram[BUFFER] == 50 && fake_edges(IRQ) == 1);
}

static void tell(enum virtio_op op, unsigned cpu)
{
	virtio_on_ask(&(struct msg_virtio){ .cpu = cpu, .op = op }, NULL, 0);
}

/* A CPU that leaves answers its step; the next one waits until it is back. */
static void cpus_leave(void)
{
	open_disk("");
	describe(600 * 512, 0x8000);
	begin(READ_DMA_EXT, 1, 600, true);
	tell(VIRTIO_LEAVE, 0);
	CU_ASSERT(serve_steps(0) == 1 && port_in(CONTROL, 1) == BUSY);
	tell(VIRTIO_BACK, 1);
	CU_ASSERT(serve_steps(0) == 0);
	tell(VIRTIO_BACK, 0);
	CU_ASSERT(serve_steps(0) == 2 && fake_edges(IRQ) == 1 && end() == INTERRUPT);
	for (unsigned i = 0; i < 600; i++)
		CU_ASSERT(*(uint32_t *)(ram + BUFFER + i * 512) == 1 + i);
}

/* A transfer between two steps is saved, and goes on in another I/O server. */
static void saved_and_loaded(void)
{
	static uint8_t form[N_CHIPS][1 << 20];
	char why[160];

	for (unsigned write = 0; write < 2; write++) {
		open_disk("");
		describe(600 * 512, 0x8000);
		for (unsigned i = 0; write && i < 600; i++)
			*(uint32_t *)(ram + BUFFER + i * 512) = 0xd000 + i;
		begin(write ? WRITE_DMA_EXT : READ_DMA_EXT, 1, 600, !write);
		tell(VIRTIO_LEAVE, 0);
		CU_ASSERT(serve_steps(0) == 1);
		for (unsigned i = 0; i < N_CHIPS; i++) {
			CU_ASSERT_FATAL(chipstate_bytes(chips[i]) <= sizeof form[i]);
			chipstate_save(chips[i], form[i]);
		}
		fake_reset();
		for (unsigned i = 0; i < N_CHIPS; i++) {
			CU_ASSERT(!chipstate_check(chips[i], form[i], why, sizeof why));
			chipstate_load(chips[i], form[i]);
			CU_ASSERT(!chips[i]->impossible || !chips[i]->impossible());
		}
		for (unsigned i = 0; i < N_CHIPS; i++)
			if (chips[i]->restored)
				chips[i]->restored();
		tell(VIRTIO_BACK, 1);
		CU_ASSERT(serve_steps(0) == 0);
		tell(VIRTIO_BACK, 0);
		CU_ASSERT(serve_steps(0) == 2 && fake_edges(IRQ) == 1 && end() == INTERRUPT);
		for (unsigned i = 0; i < 600; i++) {
			uint32_t word = *(uint32_t *)(ram + BUFFER + i * 512);

			if (write)
				CU_ASSERT(pread(image_fd, &word, 4, (1 + i) * 512) == 4);
			CU_ASSERT(word == (write ? 0xd000 + i : 1 + i));
		}
	}
}

/* What no monitor sends ends the machine, and changes nothing. */
static void bad_monitors(void)
{
	static const struct {
		struct msg_dma ask;
		uint32_t bytes;
		bool to_memory;
	} rows[] = {
		{ { .cpu = 1, .last = 1 }, 0, true },
		{ { .last = 0 }, 0, true },
		{ { .last = 1 }, 4, true },
		{ { .last = 1, .result = DMA_RESULTS }, 0, true },
		{ { .last = 1, .used = 0x10000 }, 0, true },
		{ { .last = 1 }, 0, false },
		{ { .last = 0, .offset = 4 }, 4, false },
		{ { .last = 0 }, 2048, false },
		{ { .last = 1, .result = DMA_TABLE_SHORT }, 1024, false },
	};
	static const uint8_t bytes[2048];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct msg_dma ask = rows[i].ask;

		open_disk("");
		describe(1024, 512);
		begin(rows[i].to_memory ? READ_DMA : WRITE_DMA, 1, 2, rows[i].to_memory);
		fake.may_fail = true;
		place = (struct prd_place){ ask.entry, ask.used, ask.result };
		answer(&ask, bytes, rows[i].bytes);
		CU_ASSERT(fake.failures == 1 && port_in(CONTROL, 1) == BUSY && !fake_edges(IRQ));
	}
	open_disk("");
	fake.may_fail = true;
	answer(&(struct msg_dma){ .last = 1 }, NULL, 0); /* there is no step */
	CU_ASSERT(fake.failures == 1);
}

static void bad_states(void)
{
	static const struct {
		uint32_t port;
		uint8_t value, status;
	} rows[] = {
		{ BM_COMMAND, 0xff, 0 }, { BM_STATUS, 0xff, 0x60 }, { BM_STATUS, 0x9f, 0 },
	};

	open_disk("");
	for (unsigned i = 1; i < ARRAY_LEN(rows); i++) {
		port_out(rows[i].port, 1, rows[i].value);
		CU_ASSERT(status() == rows[i].status);
	}
	port_out(BM_COMMAND, 1, rows[0].value);
	CU_ASSERT(port_in(BM_COMMAND, 1) == (START | TO_MEMORY) && status() == ACTIVE);
	port_out(BM_COMMAND, 1, START | TO_MEMORY); /* again: no new start */
	port_out(BM_TABLE, 4, 0xffffffff);
	CU_ASSERT(port_in(BM_TABLE, 4) == 0xfffffffc && port_in(BM_COMMAND, 4) == 0x00010009);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "the bus", the_bus },
		{ "reads", reads },
		{ "writes", writes },
		{ "refusals", refusals },
		{ "bad tables", bad_tables },
		{ "stops", stops },
		{ "CPUs leave", cpus_leave },
		{ "saved and loaded", saved_and_loaded },
		{ "bad monitors", bad_monitors },
		{ "registers", bad_states },
		UNIT_END
	};
	int status;

	image_fd = mkstemp(path);
	if (image_fd < 0)
		return 1;
	status = UNIT_RUN("bus master", tests);
	ide_close();
	close(image_fd);
	unlink(path);
	return status;
}
