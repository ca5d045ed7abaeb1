/* ide.c - one ATA disk at VMP_IDE_PORT, master, by bus-master DMA and by programmed I/O
 * (ATA/ATAPI-6); its slave is absent.
 *
 * The driver that it serves is Linux's ata_piix, which finds the disk's controller on the PCI bus
 * (pci.c), resets the disk by SRST, identifies it with interrupts off (nIEN), and moves data by
 * READ and WRITE DMA: the bytes go between the image and guest memory in steps (busmaster.c), and
 * the disk is busy until the last.  Without DMA (the guest's libata.dma=0), data moves by READ and
 * WRITE MULTIPLE, with one interrupt per block of MULTIPLE sectors; a sector is one string access,
 * hence one message.
 *
 * A command has one row in `commands`: its handler and its kind.  Data goes through one block
 * buffer.  For a read, the buffer is filled when a block begins; for a write, it is written to the
 * image when it is full.  The line follows INTRQ and nIEN; a read of the status register clears it.
 * The host's page cache serves reads and writes.  A flush waits for the host's disk, which may take
 * long.  Therefore it runs in a thread: the disk is busy meanwhile, and other devices are not
 * delayed.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <string.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "iosrv/diskimage.h"
#include "iosrv/ide_identify.h"

/* Offsets: the command block's eight ports, then the control block's one (device control, alternate
 * status). */
enum {
	DATA, ERROR_FEATURES, COUNT, LBA_LOW, LBA_MID, LBA_HIGH, DEVICE, STATUS_COMMAND, CONTROL,
	COMMAND_BLOCK = CONTROL,
};
enum {
	BUSY = 0x80, READY = 0x40, SEEK_DONE = 0x10, DRQ = 0x08, ERR = 0x01,
	IDLE = READY | SEEK_DONE,
};
/* Bits of the error register.  PROTECTED is the bit of UNCORRECTABLE, for a write. */
enum { ABORTED = 0x04, NOT_FOUND = 0x10, UNCORRECTABLE = 0x40, PROTECTED = 0x40 };
enum {
	CONTROL_HOB = 0x80, CONTROL_RESET = 4, CONTROL_NIEN = 2, DEVICE_LBA = 0x40,
	DEVICE_SLAVE = 0x10,
};
enum { BUFFER_BYTES = IDE_MULTIPLE_MAX * SECTOR_BYTES };

#define STATE(X)                                                                                   \
	/* The registers as last written [0], and as written before [1], for 48-bit commands. */   \
	X(uint8_t, file, [2][8], 0, 0xff)                                                          \
	X(uint8_t, status, , 0, 0xff)                                                              \
	X(uint8_t, error, , 0, 0xff)                                                               \
	X(uint8_t, control, , 0, 0xff)                                                             \
	X(uint8_t, command, , 0, 0xff)                                                             \
	X(bool, irq, , 0, 1) /* INTRQ */                                                           \
	X(bool, line, , 0, 1) /* INTRQ, unless nIEN disables it */                                 \
	X(bool, cache, , 0, 1) /* a write needs no flush of its own */                             \
	X(uint32_t, multiple, , 0, IDE_MULTIPLE_MAX) /* sectors of a MULTIPLE block; 0: off */     \
	X(uint32_t, heads, , 1, IDE_HEADS)                                                         \
	X(uint32_t, track_sectors, , 1, 255)                                                       \
	X(uint8_t, dma_mode, , 0, 0xff) /* as SET FEATURES chose it */                             \
	/* The current transfer: `at` and `block_bytes` are 0 unless DRQ is set, `left` unless     \
	 * DRQ or `dma` is. */                                                                     \
	X(bool, dma, , 0, 1) /* it waits for the bus master */                                     \
	X(bool, writing, , 0, 1)                                                                   \
	X(bool, identifying, , 0, 1)                                                               \
	X(uint64_t, sector, , 0, UINT64_MAX)                                                       \
	X(uint32_t, left, , 0, 65536) /* sectors still to be moved, this block's included */       \
	X(uint32_t, block_sectors, , 0, IDE_MULTIPLE_MAX) /* of a full block */                    \
	X(uint32_t, at, , 0, BUFFER_BYTES) /* bytes of the buffer that are moved */                \
	X(uint32_t, block_bytes, , 0, BUFFER_BYTES) /* of those that it holds */                   \
	X(uint8_t, buffer, [BUFFER_BYTES], 0, 0xff)
static struct state { STATE(CHIPSTATE_MEMBER) } ide;
/* The state of the host's flush, which the guest does not see.  FLUSH_ABANDONED: by a reset. */
static enum { NO_FLUSH, FLUSH_ABANDONED, FLUSHING, FLUSH_AGAIN } flushing;

static struct diskimage *image; /* NULL: there is no disk */

static uint64_t disk_sectors(void)
{
	return image ? diskimage_sectors(image) : 0;
}

static bool slave_selected(void)
{
	return ide.file[0][DEVICE] & DEVICE_SLAVE;
}

static void update_line(void)
{
	bool line = ide.irq && !(ide.control & CONTROL_NIEN) && !slave_selected();

	if (line && !ide.line) {
		busmaster_interrupt();
		iosrv_raise(VMP_IDE_IRQ);
	}
	ide.line = line;
}

static void interrupt(void)
{
	ide.irq = true;
	update_line();
}

static void drop_interrupt(void)
{
	ide.irq = false;
	update_line();
}

static void end_transfer(void)
{
	ide.left = ide.block_bytes = ide.at = 0;
	ide.identifying = ide.dma = false;
}

/* Set the registers as after a reset: they identify an ATA disk without errors. */
static void show_signature(void)
{
	end_transfer();
	memset(ide.file, 0, sizeof ide.file);
	ide.file[0][COUNT] = ide.file[0][LBA_LOW] = 1;
	ide.error = 1;
	ide.status = IDLE;
}

static void ide_reset(void)
{
	memset(&ide, 0, sizeof ide);
	ide.cache = true;
	ide.multiple = IDE_MULTIPLE_MAX;
	ide.heads = IDE_HEADS;
	ide.track_sectors = IDE_TRACK_SECTORS;
	ide.dma_mode = IDE_DMA_MODE_DEFAULT;
	show_signature();
	flushing = NO_FLUSH;
}

static void finish(uint8_t error)
{
	end_transfer();
	ide.error = error;
	ide.status = IDLE | (error ? ERR : 0);
	interrupt();
}

/* Store the failed sector's number in the registers. */
static void name_sector(uint64_t sector)
{
	for (unsigned i = 0; i < 3; i++) {
		ide.file[0][LBA_LOW + i] = sector >> 8 * i;
		ide.file[1][LBA_LOW + i] = sector >> (24 + 8 * i);
	}
	ide.file[0][DEVICE] = (ide.file[0][DEVICE] & 0xf0) | (sector >> 24 & 0xf);
}

static void finish_with(int result)
{
	if (!result) {
		finish(0);
		return;
	}
	name_sector(ide.sector);
	if (result == -ERANGE)
		finish(NOT_FOUND | ABORTED);
	else
		finish(result == -EROFS ? PROTECTED | ABORTED : UNCORRECTABLE);
}

static void complain(bool writing, int error)
{
	static uint64_t warned[2];

	log_warn_at_times(&warned[writing], "disk: %s sector %llu: %s",
			  writing ? "writing" : "reading", (unsigned long long)ide.sector,
			  strerror(-error));
}

/* --- blocks --- */

static void begin_block(void)
{
	uint32_t sectors = ide.left < ide.block_sectors ? ide.left : ide.block_sectors;

	ide.at = 0;
	ide.block_bytes = sectors * SECTOR_BYTES;
	ide.status = IDLE | DRQ;
}

static void read_block(void)
{
	int result;

	begin_block();
	result = diskimage_read(image, ide.sector, ide.block_bytes / SECTOR_BYTES, ide.buffer);
	if (result) {
		complain(false, result);
		finish_with(result);
		return;
	}
	interrupt();
}

/* End a block that the guest has read completely.  After the last one no interrupt is raised: the
 * driver has its data. */
static void end_read_block(void)
{
	uint32_t sectors = ide.block_bytes / SECTOR_BYTES;

	ide.left -= sectors;
	ide.sector += sectors;
	if (ide.identifying || !ide.left) {
		end_transfer();
		ide.status = IDLE;
		return;
	}
	read_block();
}

static bool ide_has_work(void) { return image; }

/* Flush the image; runs in the disk's thread. */
static int ide_work(void)
{
	return diskimage_flush(image);
}

static void ide_on_worked(int result)
{
	bool again = flushing == FLUSH_AGAIN, wanted = flushing == FLUSHING;

	flushing = again ? FLUSHING : NO_FLUSH;
	if (result)
		log_warn_rarely("disk: flushing: %s", strerror(-result));
	if (again)
		iosrv_start_work(&ide_chip);
	else if (wanted)
		finish(result ? UNCORRECTABLE : 0);
}

static void flush(void)
{
	/* a running flush began before the last write and may not cover it */
	bool one_runs = flushing != NO_FLUSH;

	ide.status = BUSY;
	flushing = one_runs ? FLUSH_AGAIN : FLUSHING;
	if (!one_runs)
		iosrv_start_work(&ide_chip);
}

static void end_write_block(void)
{
	uint32_t sectors = ide.block_bytes / SECTOR_BYTES;
	int result = diskimage_write(image, ide.sector, sectors, ide.buffer);

	if (result) {
		complain(true, result);
		finish_with(result);
		return;
	}
	ide.left -= sectors;
	ide.sector += sectors;
	if (ide.left) {
		begin_block();
		interrupt();
	} else if (ide.cache)
		finish(0);
	else
		flush();
}

/* --- DMA --- */

bool ide_dma_waits(bool *to_memory)
{
	*to_memory = !ide.writing;
	return ide.dma;
}

uint32_t ide_dma_begin(void *data, uint32_t most)
{
	uint32_t sectors = ide.left < most / SECTOR_BYTES ? ide.left : most / SECTOR_BYTES;
	int result = ide.writing ? 0 : diskimage_read(image, ide.sector, sectors, data);

	if (!result)
		return sectors * SECTOR_BYTES;
	complain(false, result);
	finish_with(result);
	return 0;
}

void ide_dma_end(const void *data, uint32_t bytes)
{
	uint32_t sectors = bytes / SECTOR_BYTES;
	int result = ide.writing ? diskimage_write(image, ide.sector, sectors, data) : 0;

	if (result) {
		complain(true, result);
		finish_with(result);
		return;
	}
	ide.left -= sectors;
	ide.sector += sectors;
	if (ide.left)
		return;
	ide.dma = false;
	if (ide.writing && !ide.cache)
		flush();
	else
		finish(0);
}

void ide_dma_fail(void)
{
	finish(ABORTED);
}

/* --- commands --- */

enum { EXT = 1, MULTI = 2, WRITE = 4, DMA = 8 };

static uint64_t first_sector(bool ext)
{
	const uint8_t *low = ide.file[0], *high = ide.file[1];
	uint64_t lba = low[LBA_LOW] | low[LBA_MID] << 8 | (uint32_t)low[LBA_HIGH] << 16;
	uint32_t head = low[DEVICE] & 0xf, cylinder = low[LBA_MID] | low[LBA_HIGH] << 8;

	if (ext)
		return lba | (uint64_t)high[LBA_LOW] << 24 | (uint64_t)high[LBA_MID] << 32 |
		       (uint64_t)high[LBA_HIGH] << 40;
	if (low[DEVICE] & DEVICE_LBA)
		return lba | head << 24;
	if (!low[LBA_LOW] || low[LBA_LOW] > ide.track_sectors || head >= ide.heads)
		return ~0ull; /* an invalid address: sectors count from 1 */
	return ((uint64_t)cylinder * ide.heads + head) * ide.track_sectors + low[LBA_LOW] - 1;
}

static uint32_t sector_count(bool ext)
{
	uint32_t count = ext ? ide.file[1][COUNT] << 8 | ide.file[0][COUNT] : ide.file[0][COUNT];

	return count ? count : ext ? 65536 : 256;
}

/* Set `sector` and `left` from the registers, and check the range. */
static int take_range(unsigned flags)
{
	ide.sector = first_sector(flags & EXT);
	ide.left = sector_count(flags & EXT);
	return ide.sector < disk_sectors() && ide.left <= disk_sectors() - ide.sector ? 0 : -ERANGE;
}

static void command_transfer(unsigned flags)
{
	int result = take_range(flags);

	ide.writing = flags & WRITE;
	ide.block_sectors = flags & MULTI ? ide.multiple : 1;
	if (!ide.block_sectors) {
		finish(ABORTED);
		return;
	}
	if (!result && ide.writing && diskimage_read_only(image))
		result = -EROFS;
	if (result) {
		finish_with(result);
	} else if (flags & DMA) {
		ide.dma = true;
		ide.status = BUSY;
		busmaster_run_on(serve_cpu());
	} else if (ide.writing)
		begin_block(); /* the first block is requested without an interrupt */
	else
		read_block();
}

static void command_verify(unsigned flags)
{
	int result = take_range(flags);

	for (uint32_t n; !result && ide.left; ide.left -= n, ide.sector += n) {
		n = ide.left < IDE_MULTIPLE_MAX ? ide.left : IDE_MULTIPLE_MAX;
		result = diskimage_read(image, ide.sector, n, ide.buffer);
		if (result)
			break;
	}
	finish_with(result);
}

static void command_identify(unsigned flags)
{
	uint16_t words[SECTOR_BYTES / 2];

	(void)flags;
	ide_identify(&(struct ide_parameters){ .sectors = disk_sectors(), .heads = ide.heads,
					       .track_sectors = ide.track_sectors,
					       .multiple = ide.multiple, .cache = ide.cache,
					       .dma_mode = ide.dma_mode }, words);
	memcpy(ide.buffer, words, sizeof words);
	ide.writing = false;
	ide.identifying = true;
	ide.left = ide.block_sectors = 1;
	begin_block();
	interrupt();
}

static void command_set_multiple(unsigned flags)
{
	uint8_t n = ide.file[0][COUNT];

	(void)flags;
	if (n > IDE_MULTIPLE_MAX || (n & (n - 1))) {
		finish(ABORTED);
		return;
	}
	ide.multiple = n;
	finish(0);
}

static void command_set_features(unsigned flags)
{
	enum {
		CACHE_ON = 0x02, MODE = 0x03, LOOK_AHEAD_OFF = 0x55, KEEP = 0x66, CACHE_OFF = 0x82,
		LOOK_AHEAD_ON = 0xaa, REVERT = 0xcc,
		PIO_DEFAULT = 1, PIO_FLOW_FIRST = 8, PIO_FLOW_LAST = 12,
	};
	uint8_t mode = ide.file[0][COUNT];
	bool is_known = mode <= PIO_DEFAULT || (mode >= PIO_FLOW_FIRST && mode <= PIO_FLOW_LAST),
	     is_dma = ide_knows_dma_mode(mode);

	(void)flags;
	switch (ide.file[0][ERROR_FEATURES]) {
	case CACHE_ON:
		ide.cache = true;
		finish(0);
		return;
	case CACHE_OFF:
		ide.cache = false;
		flush(); /* write the cache to the disk */
		return;
	case MODE:
		if (is_dma)
			ide.dma_mode = mode;
		finish(is_known || is_dma ? 0 : ABORTED);
		return;
	case LOOK_AHEAD_OFF:
	case LOOK_AHEAD_ON:
	case KEEP:
	case REVERT:
		finish(0);
		return;
	default:
		finish(ABORTED);
	}
}

static void command_initialize_parameters(unsigned flags)
{
	(void)flags;
	if (!ide.file[0][COUNT]) {
		finish(ABORTED);
		return;
	}
	ide.heads = (ide.file[0][DEVICE] & 0xf) + 1;
	ide.track_sectors = ide.file[0][COUNT];
	finish(0);
}

static void command_flush(unsigned flags)
{
	(void)flags;
	flush();
}

static void command_diagnose(unsigned flags)
{
	(void)flags;
	show_signature();
	interrupt();
}

static void command_power_mode(unsigned flags)
{
	(void)flags;
	ide.file[0][COUNT] = 0xff; /* active or idle */
	finish(0);
}

static void command_nothing(unsigned flags)
{
	(void)flags;
	finish(0);
}

static const struct command {
	uint8_t code;
	void (*run)(unsigned flags);
	unsigned flags;
} commands[] = {
	{ 0x10, command_nothing, 0 }, /* RECALIBRATE */
	{ 0x20, command_transfer, 0 }, /* READ SECTORS */
	{ 0x21, command_transfer, 0 },
	{ 0x24, command_transfer, EXT },
	{ 0x25, command_transfer, EXT | DMA }, /* READ DMA EXT */
	{ 0x29, command_transfer, EXT | MULTI },
	{ 0x30, command_transfer, WRITE }, /* WRITE SECTORS */
	{ 0x31, command_transfer, WRITE },
	{ 0x34, command_transfer, WRITE | EXT },
	{ 0x35, command_transfer, WRITE | EXT | DMA },
	{ 0x39, command_transfer, WRITE | EXT | MULTI },
	{ 0x40, command_verify, 0 }, /* READ VERIFY SECTORS */
	{ 0x41, command_verify, 0 },
	{ 0x42, command_verify, EXT },
	{ 0x70, command_nothing, 0 }, /* SEEK */
	{ 0x90, command_diagnose, 0 },
	{ 0x91, command_initialize_parameters, 0 },
	{ 0xc4, command_transfer, MULTI }, /* READ MULTIPLE */
	{ 0xc5, command_transfer, WRITE | MULTI },
	{ 0xc6, command_set_multiple, 0 },
	{ 0xc8, command_transfer, DMA }, /* READ DMA */
	{ 0xc9, command_transfer, DMA },
	{ 0xca, command_transfer, WRITE | DMA },
	{ 0xcb, command_transfer, WRITE | DMA },
	/* STANDBY IMMEDIATE: flushes the cache, then the motor stops */
	{ 0xe0, command_flush, 0 },
	{ 0xe1, command_nothing, 0 }, /* IDLE IMMEDIATE, STANDBY, IDLE */
	{ 0xe2, command_flush, 0 },
	{ 0xe3, command_nothing, 0 },
	{ 0xe5, command_power_mode, 0 },
	{ 0xe6, command_flush, 0 }, /* SLEEP */
	{ 0xe7, command_flush, 0 }, /* FLUSH CACHE */
	{ 0xea, command_flush, EXT },
	{ 0xec, command_identify, 0 },
	{ 0xef, command_set_features, 0 },
};

static void begin_command(uint8_t code)
{
	drop_interrupt();
	if (slave_selected() && code != 0x90)
		return; /* no such device */
	if (ide.status & BUSY)
		return; /* held in reset, or a flush or DMA is running */
	ide.command = code;
	ide.error = 0;
	end_transfer();
	for (unsigned i = 0; i < ARRAY_LEN(commands); i++)
		if (commands[i].code == code) {
			commands[i].run(commands[i].flags);
			return;
		}
	log_debug("disk: command %02x is not known", code);
	finish(ABORTED);
}

int ide_open(const char *spec, char *error, size_t error_bytes)
{
	image = diskimage_open(spec, error, error_bytes);
	return image ? 0 : -EINVAL;
}

void ide_close(void)
{
	diskimage_close(image);
	image = NULL;
}

/* --- registers --- */

/* Move up to `count` bytes through the data port; return the number moved.  Ends of blocks are
 * handled meanwhile. */
static uint32_t move_data(bool out, uint8_t *bytes, uint32_t count)
{
	uint32_t done = 0;

	while (done < count && ide.status & DRQ && ide.writing == out && !slave_selected()) {
		uint32_t part = ide.block_bytes - ide.at;

		if (part > count - done)
			part = count - done;
		if (out)
			memcpy(ide.buffer + ide.at, bytes + done, part);
		else
			memcpy(bytes + done, ide.buffer + ide.at, part);
		ide.at += part;
		done += part;
		if (ide.at == ide.block_bytes)
			out ? end_write_block() : end_read_block();
	}
	return done;
}

static uint8_t read_status(void)
{
	return slave_selected() ? 0 : ide.status;
}

static void write_control(uint8_t value)
{
	bool was_reset = ide.control & CONTROL_RESET;

	ide.control = value;
	if (value & CONTROL_RESET) {
		ide.irq = false;
		if (ide.dma)
			busmaster_suspend();
		end_transfer();
		ide.status = BUSY;
		if (flushing != NO_FLUSH)
			flushing = FLUSH_ABANDONED;
	} else if (was_reset)
		show_signature();
	update_line();
}

static uint32_t ide_read(uint32_t offset, unsigned size)
{
	uint32_t value = 0;

	if (!disk_sectors())
		return size == 4 ? ~0u : (1u << 8 * size) - 1;
	switch (offset) {
	case DATA:
		move_data(false, (uint8_t *)&value, size);
		return value;
	case ERROR_FEATURES:
		return slave_selected() ? 0 : ide.error;
	case STATUS_COMMAND:
		if (!slave_selected())
			drop_interrupt();
		return read_status();
	case CONTROL:
		return read_status();
	case DEVICE:
		return ide.file[0][DEVICE] | 0xa0;
	default:
		return slave_selected() ? 0 : ide.file[ide.control & CONTROL_HOB ? 1 : 0][offset];
	}
}

static void ide_write(uint32_t offset, unsigned size, uint32_t value)
{
	if (!disk_sectors())
		return;
	if (offset == DATA) {
		move_data(true, (uint8_t *)&value, size);
		return;
	}
	if (offset == CONTROL) {
		write_control(value);
		return;
	}
	ide.control &= ~CONTROL_HOB;
	if (offset == STATUS_COMMAND) {
		begin_command(value);
		return;
	}
	if (offset != DEVICE)
		ide.file[1][offset] = ide.file[0][offset];
	ide.file[0][offset] = value;
	update_line(); /* another device may be selected now */
}

static unsigned ide_read_string(uint32_t offset, unsigned size, unsigned count, void *data)
{
	uint8_t *to = data;

	if (offset == DATA && disk_sectors())
		return move_data(false, data, size * count) / size;
	for (unsigned i = 0; i < count; i++) {
		uint32_t value = ide_read(offset, size);

		memcpy(to + i * size, &value, size);
	}
	return count;
}

static void ide_write_string(uint32_t offset, unsigned size, unsigned count, const void *data)
{
	const uint8_t *from = data;

	if (offset == DATA && disk_sectors()) {
		move_data(true, (uint8_t *)data, size * count);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		uint32_t value = 0;

		memcpy(&value, from + i * size, size);
		ide_write(offset, size, value);
	}
}

/* Return the contradiction in a transfer that waits for the guest; NULL: none. */
static const char *impossible_transfer(void)
{
	uint64_t sectors = disk_sectors();
	uint32_t block = ide.left < ide.block_sectors ? ide.left : ide.block_sectors;

	if (ide.dma ? ide.block_bytes || ide.at || !ide.left
		    : !block || ide.block_bytes != block * SECTOR_BYTES ||
			      ide.at >= ide.block_bytes)
		return "its transfer's counts contradict each other";
	if (ide.identifying)
		return ide.writing || ide.dma || ide.left != 1
			? "it is being written to, and identified" : NULL;
	if (ide.sector >= sectors || ide.left > sectors - ide.sector)
		return "its transfer leads beyond the disk's end";
	return ide.writing && diskimage_read_only(image)
		? "it is read-only, and being written to" : NULL;
}

static const char *ide_impossible(void)
{
	bool idle = ide.status == IDLE || ide.status == (IDLE | ERR),
	     moves = ide.status == (IDLE | DRQ);

	if (ide.multiple & (ide.multiple - 1))
		return "its blocks have a size that no disk has";
	/* no flush runs while the machine is saved */
	if (ide.status == BUSY ? !(ide.control & CONTROL_RESET) == !ide.dma : !idle && !moves)
		return "it has a status that no disk has";
	if (!ide_knows_dma_mode(ide.dma_mode))
		return "it has a mode that it does not know";
	if (ide.dma && ide.status != BUSY)
		return "it moves data in two ways";
	if (moves || ide.dma)
		return impossible_transfer();
	if (ide.left || ide.at || ide.block_bytes || ide.identifying)
		return "it has a transfer that nobody waits for";
	return NULL;
}

struct diskimage *ide_image(void)
{
	return image;
}

const struct chip ide_chip = {
	.name = "disk", .range = { { VMP_IDE_PORT, COMMAND_BLOCK }, { VMP_IDE_CONTROL_PORT, 1 } },
	.reset = ide_reset,
	.read = ide_read, .write = ide_write, .read_string = ide_read_string,
	.write_string = ide_write_string,
	.work = ide_work, .has_work = ide_has_work, .on_worked = ide_on_worked,
	.state = CHIPSTATE(ide),
	.impossible = ide_impossible,
};
