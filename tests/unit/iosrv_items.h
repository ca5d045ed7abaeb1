/* iosrv_items.h - devices that were saved as items, and a disk, for tests of what comes back. */
#ifndef TESTS_UNIT_IOSRV_ITEMS_H
#define TESTS_UNIT_IOSRV_ITEMS_H

#include "base/guest_abi.h"
#include "tests/unit/iosrv_fake.h"

enum {
	DATA = VMP_IDE_PORT,
	NSECT = DATA + 2,
	LBAL,
	LBAM,
	LBAH,
	DEVICE,
	COMMAND,
	DISK_SECTORS = 100
};
enum { ITEMS = 96 };

extern char image_path[];
extern struct item {
	struct msg_snapshot_item head;
	size_t bytes;
	uint8_t data[MAX_MSG_PAYLOAD];
} items[ITEMS];
extern unsigned n_items;

bool make_image(void); /* false: it cannot be made */
void remove_image(void);
void open_disk(const char *mode); /* what follows the image's name */
uint32_t stream_reg(unsigned stream, unsigned reg);
void put_chips_to_work(void);
void issue(uint8_t command, uint32_t lba); /* to the disk, for one sector */
/* Takes all items of the chips' current state; of the disk, the blocks that the mode asks for. */
void save_as(enum snapshot_mode mode);
void save(void);
void load(void);

#endif
