/* ide_identify.h - what the IDE disk says of itself.
 *
 * Callers: iosrv/ide.c.
 */
#ifndef IOSRV_IDE_IDENTIFY_H
#define IOSRV_IDE_IDENTIFY_H

#include "base/types.h"
#include "iosrv/diskimage.h"

enum { IDE_MULTIPLE_MAX = 16, IDE_HEADS = 16, IDE_TRACK_SECTORS = 63 };
enum { IDE_DMA_MODE_DEFAULT = 0x22 }; /* multiword DMA mode 2 */

struct ide_parameters {
	uint64_t sectors;
	uint32_t heads, track_sectors; /* as the guest has set them */
	uint32_t multiple;	       /* sectors of a block; 0: off */
	bool cache;
	uint8_t dma_mode;
};

/* True for a mode of DMA that SET FEATURES may choose. */
bool ide_knows_dma_mode(uint8_t mode);
void ide_identify(const struct ide_parameters *p, uint16_t words[SECTOR_BYTES / 2]);

#endif
