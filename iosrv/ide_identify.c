/* ide_identify.c - what the IDE disk says of itself: the data of IDENTIFY DEVICE (ATA/ATAPI-6,
 * table 27). */
#include "iosrv/ide_identify.h"

#include <string.h>

enum { MAX_CYLINDERS = 16383 };
enum { MULTIWORD = 0x20, MULTIWORD_LAST = 0x22, ULTRA = 0x40, ULTRA_LAST = 0x45 };
#define LBA28_SECTORS 0x0fffffffu

static void put_text(uint16_t *words, unsigned n, const char *text)
{
	for (unsigned i = 0; i < 2 * n; i++) {
		/* two letters a word, the first one in the high byte */
		uint8_t letter = *text ? *text++ : ' ';

		words[i / 2] |= i & 1 ? letter : letter << 8;
	}
}

bool ide_knows_dma_mode(uint8_t mode)
{
	return (mode >= MULTIWORD && mode <= MULTIWORD_LAST) ||
	       (mode >= ULTRA && mode <= ULTRA_LAST);
}

/* Return the word that lists modes `first` to `last`, and says which of them is chosen. */
static uint16_t modes(uint8_t first, uint8_t last, uint8_t chosen)
{
	uint16_t supported = (1u << (last - first + 1)) - 1;

	return supported | (chosen >= first && chosen <= last ? 0x100u << (chosen - first) : 0);
}

/* Words that are not set here are zero: no power management, no security. */
void ide_identify(const struct ide_parameters *p, uint16_t w[SECTOR_BYTES / 2])
{
	uint64_t sectors = p->sectors;
	uint32_t lba28 = sectors < LBA28_SECTORS ? sectors : LBA28_SECTORS;
	uint64_t cylinders = sectors / (IDE_HEADS * IDE_TRACK_SECTORS);
	uint32_t current = p->heads * p->track_sectors;
	uint32_t current_cylinders = lba28 / current < 65535 ? lba28 / current : 65535;

	memset(w, 0, SECTOR_BYTES);
	w[0] = 0x0040; /* fixed device */
	w[1] = cylinders < MAX_CYLINDERS ? cylinders : MAX_CYLINDERS;
	w[3] = IDE_HEADS;
	w[6] = IDE_TRACK_SECTORS;
	put_text(w + 10, 10, "VMP0000000000001");
	put_text(w + 23, 4, "1.0");
	put_text(w + 27, 20, "VMP DISK");
	w[47] = 0x8000 | IDE_MULTIPLE_MAX;
	w[48] = 1;	/* 32-bit data accesses work */
	w[49] = 0x0300; /* LBA, DMA; no IORDY */
	w[50] = 0x4000;
	w[51] = 0x0200; /* PIO mode 2 */
	w[53] = 7;	/* words 54-58, 64-70 and 88 are valid */
	w[54] = current_cylinders;
	w[55] = p->heads;
	w[56] = p->track_sectors;
	w[57] = current_cylinders * current;
	w[58] = (current_cylinders * current) >> 16;
	w[59] = p->multiple ? 0x100 | p->multiple : 0;
	w[60] = lba28;
	w[61] = lba28 >> 16;
	w[63] = modes(MULTIWORD, MULTIWORD_LAST, p->dma_mode);
	w[64] = 3;	     /* PIO modes 3 and 4 */
	w[65] = w[66] = w[67] = w[68] = 120; /* ns of a cycle, DMA's and PIO's */
	w[80] = 0x7e;	     /* up to ATA/ATAPI-6 */
	w[82] = 0x0020;	     /* write cache */
	w[83] = 0x7400;	     /* FLUSH CACHE, FLUSH CACHE EXT, 48-bit addresses */
	w[84] = 0x4000;
	w[85] = p->cache ? 0x0020 : 0;
	w[86] = 0x3400;
	w[87] = 0x4000;
	w[88] = modes(ULTRA, ULTRA_LAST, p->dma_mode);
	w[93] = 0x4041 | 0x000a; /* hardware reset: device 0 passed, by jumper */
	for (unsigned i = 0; i < 4; i++)
		w[100 + i] = sectors >> 16 * i;
}
