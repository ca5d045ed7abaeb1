/* iosrv_ide.c - the disk as Linux's libata-sff and old drivers use it without DMA, its modes, and
 * failures of the host.  DMA: iosrv_busmaster.c. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum {
	DATA = VMP_IDE_PORT,
	ERROR,
	NSECT,
	LBAL,
	LBAM,
	LBAH,
	DEVICE,
	COMMAND,
	STATUS = COMMAND,
	FEATURE = ERROR,
	CONTROL = VMP_IDE_CONTROL_PORT,
	IRQ = VMP_IDE_IRQ
};
enum {
	SECTORS = 4096,
	BYTES = 512,
	IDLE = 0x50,
	DRQ = 0x58,
	FAILED = 0x51,
	LBA = 0x40,
	NIEN = 2,
	SRST = 4,
	HOB = 0x80
};

static char path[] = "/tmp/vmp-ide-XXXXXX", spec[64], why[256];
static int image_fd;

static uint8_t in(uint32_t port) { return port_in(port, 1); }
static void out(uint32_t port, uint8_t value) { port_out(port, 1, value); }

/* Each sector of the image begins with its number. */
static void open_disk(const char *mode)
{
	uint32_t sector[BYTES / 4] = { 0 };

	ide_close();
	CU_ASSERT_FATAL(ftruncate(image_fd, 0) == 0);
	for (uint32_t i = 0; i < SECTORS; i++) {
		sector[0] = i;
		CU_ASSERT_FATAL(pwrite(image_fd, sector, BYTES, (off_t)i * BYTES) == BYTES);
	}
	snprintf(spec, sizeof spec, "%s%s", path, mode);
	fake_reset();
	CU_ASSERT_FATAL(ide_open(spec, why, sizeof why) == 0);
}

static uint32_t on_image(uint32_t sector)
{
	uint32_t word = 0;

	CU_ASSERT(pread(image_fd, &word, 4, (off_t)sector * BYTES) == 4);
	return word;
}

static void issue28(uint8_t command, uint32_t lba, uint8_t count)
{
	out(NSECT, count);
	out(LBAL, lba);
	out(LBAM, lba >> 8);
	out(LBAH, lba >> 16);
	out(DEVICE, 0xa0 | LBA | lba >> 24);
	out(COMMAND, command);
}

static void issue48(uint8_t command, uint64_t lba, uint16_t count)
{
	out(NSECT, count >> 8);
	out(LBAL, lba >> 24);
	out(LBAM, lba >> 32);
	out(LBAH, lba >> 40);
	out(NSECT, count);
	out(LBAL, lba);
	out(LBAM, lba >> 8);
	out(LBAH, lba >> 16);
	out(DEVICE, 0xa0 | LBA);
	out(COMMAND, command);
}

static void read_sector(uint32_t words[BYTES / 4]) { port_ins(DATA, 2, BYTES / 2, words); }
static void write_sector(const uint32_t words[BYTES / 4]) { port_outs(DATA, 4, BYTES / 4, words); }

/* probe_chip_type() of pata_legacy, ata_sff_softreset(), then IDENTIFY polled with interrupts
 * off */
static void test_probe(void)
{
	uint16_t id[256];

	open_disk("");
	out(NSECT, in(NSECT) | 0x80);
	in(LBAH);
	in(CONTROL);
	CU_ASSERT(in(NSECT) & 0x80);
	out(NSECT, 0x55);
	CU_ASSERT(in(NSECT) == 0x55);
	for (unsigned device = 0; device < 2; device++) { /* ata_devchk() */
		out(DEVICE, 0xa0 | device << 4);
		out(NSECT, 0x55), out(LBAL, 0xaa), out(NSECT, 0xaa), out(LBAL, 0x55),
			out(NSECT, 0x55), out(LBAL, 0xaa);
		CU_ASSERT((in(NSECT) == 0x55 && in(LBAL) == 0xaa) == (device == 0));
	}
	out(DEVICE, 0xa0);
	out(CONTROL, 8), out(CONTROL, 8 | SRST);
	CU_ASSERT(in(STATUS) == 0x80);
	out(COMMAND, 0xec); /* held in reset */
	CU_ASSERT(in(STATUS) == 0x80);
	out(CONTROL, 8);
	CU_ASSERT(in(STATUS) == IDLE && in(ERROR) == 1 && in(NSECT) == 1 && in(LBAL) == 1 &&
		  !in(LBAM) && !in(LBAH));
	out(DEVICE, 0xb0);
	CU_ASSERT(in(STATUS) == 0 && in(CONTROL) == 0 && in(ERROR) == 0 && !in(LBAM) && !in(LBAH));
	out(COMMAND, 0xec);
	out(DEVICE, 0xa0);
	CU_ASSERT(in(STATUS) == IDLE && fake_edges(IRQ) == 0);
	out(CONTROL, 8 | NIEN);
	out(COMMAND, 0xec);
	CU_ASSERT(in(CONTROL) == DRQ && fake_edges(IRQ) == 0);
	port_ins(DATA, 2, 256, id);
	CU_ASSERT(in(CONTROL) == IDLE);
	CU_ASSERT(!(id[0] & 0x8000) && (id[49] & 0x0300) == 0x0300 && id[63] == 0x0407 &&
		  id[88] == 0x3f);
	CU_ASSERT((id[83] & 0xc000) == 0x4000 && (id[87] & 0xc000) == 0x4000 &&
		  (id[83] & id[86] & 0x3400) == 0x3400);
	CU_ASSERT(id[60] == SECTORS && id[61] == 0 && id[100] == SECTORS && !id[101] && !id[102] &&
		  !id[103]);
	CU_ASSERT(id[47] == 0x8010 && id[59] == 0x0110 && id[1] * id[3] * id[6] <= SECTORS &&
		  id[93] != 0);
	CU_ASSERT(id[80] & 1 << 6 && id[27] == ('V' << 8 | 'M'));
	/* INTRQ is still up: the command's interrupt comes when it is let through */
	out(CONTROL, 8);
	CU_ASSERT(fake_edges(IRQ) == 1);
	CU_ASSERT(in(STATUS) == IDLE);
	out(CONTROL, 8 | NIEN), out(CONTROL, 8);
	CU_ASSERT(fake_edges(IRQ) == 0);
}

static void test_read(void)
{
	uint32_t words[BYTES / 4];

	open_disk("");
	issue28(0x20, 7, 3); /* READ SECTORS: an interrupt each */
	for (uint32_t i = 7; i < 10; i++) {
		CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == DRQ);
		read_sector(words);
		CU_ASSERT(words[0] == i && words[1] == 0);
	}
	CU_ASSERT(fake_edges(IRQ) == 0 && in(STATUS) == IDLE);
	issue28(0xc4, 100, 40); /* READ MULTIPLE: one for 16 */
	for (uint32_t i = 0; i < 40; i++) {
		CU_ASSERT(fake_edges(IRQ) == (i % 16 == 0));
		CU_ASSERT(in(STATUS) == DRQ);
		read_sector(words);
		CU_ASSERT(words[0] == 100 + i);
	}
	CU_ASSERT(fake_edges(IRQ) == 0 && in(STATUS) == IDLE);
	issue28(0x20, 0, 0); /* 0 means 256 */
	for (uint32_t i = 0; i < 256; i++, read_sector(words))
		CU_ASSERT_FATAL(in(STATUS) == DRQ);
	CU_ASSERT(words[0] == 255 && in(STATUS) == IDLE);
	issue48(0x24, SECTORS - 300, 300);
	for (uint32_t i = 0; i < 300; i++) {
		CU_ASSERT_FATAL(in(STATUS) == DRQ);
		CU_ASSERT(port_in(DATA, 4) == SECTORS - 300 + i);
		for (unsigned w = 4; w < BYTES; w += 2)
			port_in(DATA, 2);
	}
	CU_ASSERT(in(STATUS) == IDLE);
	port_ins(DATA, 2, 2, words); /* nothing there */
	CU_ASSERT(words[0] == ~0u);
	issue28(0x20, 3, 2); /* one string over two sectors */
	port_ins(DATA, 4, BYTES / 4, words);
	uint32_t rest[BYTES / 4 + 1];
	port_ins(DATA, 4, BYTES / 4 + 1, rest);
	CU_ASSERT(words[0] == 3 && rest[0] == 4 && rest[BYTES / 4] == ~0u);
}

static void test_write(void)
{
	uint32_t words[BYTES / 4] = { 0 };

	open_disk("");
	issue28(0x30, 20, 2);
	/* the first block is not announced */
	CU_ASSERT(fake_edges(IRQ) == 0 && in(CONTROL) == DRQ);
	words[0] = 0x1111;
	write_sector(words);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == DRQ);
	port_outs(DATA, 2, BYTES / 2, words);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == IDLE);
	CU_ASSERT(on_image(20) == 0x1111 && on_image(21) == 0x1111 && on_image(22) == 22);
	issue48(0x39, 1000, 20); /* WRITE MULTIPLE EXT: blocks of 16 and 4 */
	for (uint32_t i = 0; i < 20; i++) {
		CU_ASSERT(in(STATUS) == DRQ);
		words[0] = 0x8000 + i;
		write_sector(words);
		CU_ASSERT(fake_edges(IRQ) == (i == 15 || i == 19));
	}
	CU_ASSERT(in(STATUS) == IDLE);
	for (uint32_t i = 0; i < 20; i++)
		CU_ASSERT(on_image(1000 + i) == 0x8000 + i);
	CU_ASSERT(on_image(1020) == 1020);
	port_outs(DATA, 4, BYTES / 4, words); /* nobody asked */
	issue28(0xe7, 0, 0);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == IDLE);
	issue28(0xea, 0, 0);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == IDLE);
	issue28(0x30, 30, 1); /* a reset in the middle of a sector writes nothing */
	port_outs(DATA, 4, 10, words);
	out(CONTROL, SRST), out(CONTROL, 0);
	CU_ASSERT(in(STATUS) == IDLE && on_image(30) == 30);
}

/* The disk is busy until the host has written.  A reset does not wait, and a later flush proves its
 * own writes. */
static void test_flush(void)
{
	open_disk("");
	fake.slow = true;
	issue28(0xea, 0, 0);
	CU_ASSERT(in(STATUS) == 0x80 && fake_edges(IRQ) == 0);
	out(COMMAND, 0xec); /* not heard */
	CU_ASSERT(in(STATUS) == 0x80);
	fake_work();
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == IDLE && fake.works == NULL);
	issue28(0xe7, 0, 0);
	out(CONTROL, SRST), out(CONTROL, 0);
	CU_ASSERT(in(STATUS) == IDLE);
	issue28(0xe7, 0, 0);
	CU_ASSERT(in(STATUS) == 0x80);
	fake_work(); /* the abandoned one */
	CU_ASSERT(in(STATUS) == 0x80 && fake_edges(IRQ) == 0);
	fake_work();
	CU_ASSERT(in(STATUS) == IDLE && fake_edges(IRQ) == 1);
	issue28(0xe7, 0, 0);
	out(CONTROL, SRST), out(CONTROL, 0);
	fake_work(); /* abandoned: not told */
	CU_ASSERT(in(STATUS) == IDLE && fake_edges(IRQ) == 0 && fake.works == NULL);
	/* without a cache each write is flushed */
	out(DEVICE, 0xa0 | LBA), out(FEATURE, 0x82), out(COMMAND, 0xef);
	fake_work();
	fake_edges(IRQ);
	issue28(0x30, 9, 1);
	uint32_t words[BYTES / 4] = { 0x99 };
	write_sector(words);
	CU_ASSERT(in(STATUS) == 0x80 && fake_edges(IRQ) == 0);
	fake_work();
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == IDLE && on_image(9) == 0x99);
}

static void test_range(void)
{
	static const struct { uint8_t command; bool ext; uint64_t lba; uint16_t count;
	} rows[] = {
		{ 0x20, false, SECTORS, 1 },	   { 0x20, false, SECTORS - 1, 2 },
		{ 0x30, false, SECTORS, 1 },	   { 0x20, false, 0x0fffffff, 0 },
		{ 0x24, true, SECTORS, 1 },	   { 0x24, true, 0, 0 },
		{ 0x34, true, 1ull << 40, 1 },	   { 0x39, true, 0xffffffffffffull, 1 },
		{ 0xc4, false, SECTORS - 15, 16 }, { 0x40, false, SECTORS - 1, 2 },
	};

	open_disk("");
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].ext)
			issue48(rows[i].command, rows[i].lba, rows[i].count);
		else
			issue28(rows[i].command, rows[i].lba, rows[i].count);
		CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == FAILED && in(ERROR) & 0x10);
	}
	/* the sector is named in both halves of the registers */
	issue48(0x24, 0x123456789abcull, 1);
	CU_ASSERT(in(LBAL) == 0xbc && in(LBAM) == 0x9a && in(LBAH) == 0x78);
	out(CONTROL, HOB);
	CU_ASSERT(in(LBAL) == 0x56 && in(LBAM) == 0x34 && in(LBAH) == 0x12);
	out(CONTROL, 0);
	issue28(0x40, 0, 0);
	CU_ASSERT(in(STATUS) == IDLE && in(ERROR) == 0);
	issue28(0x20, SECTORS - 1, 1);
	CU_ASSERT(in(STATUS) == DRQ);
}

static void test_cylinders(void)
{
	static const struct {
		uint8_t head, sector, heads, track;
		uint16_t cylinder;
		uint32_t lba;
	} rows[] = {
		{ 0, 1, 16, 63, 0, 0 },	     { 1, 1, 16, 63, 0, 63 }, { 0, 1, 16, 63, 1, 1008 },
		{ 15, 63, 16, 63, 2, 3023 }, { 1, 2, 4, 10, 3, 131 },
	};
	uint32_t words[BYTES / 4];

	open_disk("");
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		out(DEVICE, 0xa0 | (rows[i].heads - 1));
		out(NSECT, rows[i].track);
		out(COMMAND, 0x91); /* INITIALIZE DEVICE PARAMETERS */
		CU_ASSERT(in(STATUS) == IDLE);
		out(NSECT, 1), out(LBAL, rows[i].sector), out(LBAM, rows[i].cylinder),
			out(LBAH, rows[i].cylinder >> 8);
		out(DEVICE, 0xa0 | rows[i].head);
		out(COMMAND, 0x20);
		CU_ASSERT_FATAL(in(STATUS) == DRQ);
		read_sector(words);
		CU_ASSERT(words[0] == rows[i].lba);
	}
	out(LBAL, 0), out(COMMAND, 0x20); /* sectors count from 1 */
	CU_ASSERT(in(STATUS) == FAILED);
	out(NSECT, 0), out(COMMAND, 0x91);
	CU_ASSERT(in(STATUS) == FAILED);
}

static void test_small_commands(void)
{
	static const struct { uint8_t command, feature, count, status;
	} rows[] = {
		{ 0xc6, 0, 8, IDLE },	      { 0xc6, 0, 32, FAILED },
		{ 0xc6, 0, 3, FAILED },	      { 0xef, 0x03, 0x0c, IDLE },
		{ 0xef, 0x03, 0x00, IDLE },   { 0xef, 0x03, 0x01, IDLE },
		{ 0xef, 0x03, 0x0d, FAILED }, { 0xef, 0x03, 0x22, IDLE },
		{ 0xef, 0x03, 0x23, FAILED }, { 0xef, 0x03, 0x45, IDLE },
		{ 0xef, 0x03, 0x46, FAILED }, { 0xef, 0x82, 0, IDLE },
		{ 0xef, 0x02, 0, IDLE },      { 0xef, 0xaa, 0, IDLE },
		{ 0xef, 0x55, 0, IDLE },      { 0xef, 0x66, 0, IDLE },
		{ 0xef, 0x10, 0, FAILED },    { 0x10, 0, 0, IDLE },
		{ 0x70, 0, 0, IDLE },	      { 0xe0, 0, 0, IDLE },
		{ 0xe1, 0, 0, IDLE },	      { 0xe5, 0, 0, IDLE },
		{ 0x90, 0, 0, IDLE },	      { 0x08, 0, 0, FAILED },
		{ 0xa1, 0, 0, FAILED },	      { 0xcc, 0, 1, FAILED },
		{ 0x00, 0, 0, FAILED },	      { 0xff, 0, 0, FAILED },
	};

	open_disk("");
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		out(FEATURE, rows[i].feature);
		out(NSECT, rows[i].count);
		out(DEVICE, 0xa0 | LBA);
		out(COMMAND, rows[i].command);
		CU_ASSERT(fake_edges(IRQ) == 1);
		CU_ASSERT(in(STATUS) == rows[i].status);
		if (rows[i].status == FAILED)
			CU_ASSERT(in(ERROR) == 4);
		if (rows[i].command == 0xe5)
			CU_ASSERT(in(NSECT) == 0xff);
	}
	issue28(0x20, 7, 1);
	out(COMMAND, 0x90); /* another command ends a transfer */
	CU_ASSERT(in(STATUS) == IDLE && port_in(DATA, 2) == 0 && in(STATUS) == IDLE);
	fake_edges(IRQ);
	out(NSECT, 0), out(COMMAND, 0xc6); /* blocks of no size: READ MULTIPLE is off */
	CU_ASSERT(in(STATUS) == IDLE);
	issue28(0xc4, 0, 1);
	CU_ASSERT(in(STATUS) == FAILED && in(ERROR) == 4);
}

static void test_read_only(void)
{
	uint32_t words[BYTES / 4];

	open_disk(",ro");
	issue28(0x30, 5, 1);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == FAILED && in(ERROR) == 0x44);
	issue28(0x20, 5, 1);
	CU_ASSERT(in(STATUS) == DRQ);
	read_sector(words);
	CU_ASSERT(words[0] == 5 && on_image(5) == 5);
	issue28(0xe7, 0, 0);
	CU_ASSERT(in(STATUS) == IDLE);
}

static void test_snapshot(void)
{
	uint32_t words[BYTES / 4] = { 0 };

	open_disk(",snapshot");
	for (uint32_t i = 3; i < 30; i += 5) {
		words[0] = 0x9000 + i;
		issue28(0x30, i, 1);
		write_sector(words);
		CU_ASSERT(in(STATUS) == IDLE);
	}
	issue28(0xe7, 0, 0);
	issue28(0xc4, 0, 32);
	for (uint32_t i = 0; i < 32; i++) {
		read_sector(words);
		CU_ASSERT(words[0] == (i >= 3 && i < 30 && i % 5 == 3 ? 0x9000 + i : i));
		CU_ASSERT(on_image(i) == i);
	}
	ide_close();
	CU_ASSERT_FATAL(ide_open(spec, why, sizeof why) == 0);
	issue28(0x20, 3, 1);
	read_sector(words);
	CU_ASSERT(words[0] == 3);
}

static void test_locks(void)
{
	char other[2][64];
	int status;

	snprintf(other[0], sizeof other[0], "%s,ro", path);
	snprintf(other[1], sizeof other[1], "%s,snapshot", path);
	for (unsigned holder = 0; holder < 3; holder++) {
		const char *modes[] = { "", ",ro", ",snapshot" };

		open_disk(modes[holder]);
		for (unsigned asker = 0; asker < 3; asker++) {
			pid_t child = fork();

			if (!child) { /* another machine */
				char line[256] = "";
				int fd = open(path, O_RDONLY);
				bool got = ide_open(asker ? other[asker - 1] : path, line,
						    sizeof line) == 0;

				close(fd);
				_exit(got ? 1 : strstr(line, "another machine") ? 2 : 3);
			}
			CU_ASSERT_FATAL(child > 0);
			waitpid(child, &status, 0);
			CU_ASSERT(WIFEXITED(status) &&
				  WEXITSTATUS(status) == (holder && asker ? 1 : 2));
		}
	}
}

static void test_bad_images(void)
{
	ide_close();
	CU_ASSERT(ide_open("/nonesuch/image", why, sizeof why) < 0 && strstr(why, "No such file"));
	CU_ASSERT(ide_open("/tmp,ro", why, sizeof why) < 0 && strstr(why, "regular file"));
	CU_ASSERT(ftruncate(image_fd, 1000) == 0);
	CU_ASSERT(ide_open(path, why, sizeof why) < 0 && strstr(why, "512"));
	CU_ASSERT(ftruncate(image_fd, 0) == 0);
	CU_ASSERT(ide_open(path, why, sizeof why) < 0);
	fake_reset(); /* and without a disk nobody answers */
	CU_ASSERT(in(STATUS) == 0xff && in(CONTROL) == 0xff && port_in(DATA, 4) == 0xffffffff);
	out(COMMAND, 0xec);
	out(CONTROL, SRST);
	CU_ASSERT(fake_edges(IRQ) == 0);
}

static void test_host_failures(void)
{
	struct rlimit old, limit;
	uint32_t words[BYTES / 4] = { 0 };

	open_disk("");
	CU_ASSERT(ftruncate(image_fd, 100 * BYTES) == 0); /* somebody cut the image */
	issue28(0x20, 200, 1);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == FAILED && in(ERROR) == 0x40 &&
		  in(LBAL) == 200);
	issue28(0x20, 99, 2); /* the second sector fails */
	CU_ASSERT(in(STATUS) == DRQ);
	read_sector(words);
	CU_ASSERT(in(STATUS) == FAILED && in(ERROR) == 0x40 && in(LBAL) == 100);
	CU_ASSERT(getrlimit(RLIMIT_FSIZE, &old) == 0);
	limit = old;
	limit.rlim_cur = 150 * BYTES;
	signal(SIGXFSZ, SIG_IGN);
	CU_ASSERT(setrlimit(RLIMIT_FSIZE, &limit) == 0); /* the host's disk is full */
	fake_edges(IRQ);
	issue28(0x30, 300, 2);
	write_sector(words);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(STATUS) == FAILED && in(ERROR) != 0 &&
		  in(LBAL) == (300 & 0xff));
	CU_ASSERT(setrlimit(RLIMIT_FSIZE, &old) == 0);
	issue28(0x30, 300, 1);
	write_sector(words);
	CU_ASSERT(in(STATUS) == IDLE); /* and works again */
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "the driver's probe", test_probe },
		{ "read", test_read },
		{ "write", test_write },
		{ "flush", test_flush },
		{ "range", test_range },
		{ "cylinders", test_cylinders },
		{ "small commands", test_small_commands },
		{ "read-only", test_read_only },
		{ "snapshot", test_snapshot },
		{ "locks", test_locks },
		{ "bad images", test_bad_images },
		{ "the host fails", test_host_failures },
		UNIT_END
	};
	int status;

	image_fd = mkstemp(path);
	if (image_fd < 0)
		return 1;
	status = UNIT_RUN("disk", tests);
	ide_close();
	close(image_fd);
	unlink(path);
	return status;
}
