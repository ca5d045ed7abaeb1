/* snapshot.c - the devices as items of a snapshot (base/wire.h): each chip's state in parts, the disk's identity, and the
 * blocks that the guest has written apart from the image, or has changed since the last checkpoint.
 *
 * Saving: everything is copied at one moment, while no CPU runs (snapshot_capture); the copy is handed out item by item
 * later, when the guest runs again.  Loading: items come in the same order, and a chip is told when its state is whole.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "iosrv/diskimage.h"

enum { PART_BYTES = MAX_MSG_PAYLOAD };

static struct {
	bool taken;
	void *chip[N_CHIPS]; /* the copy of its state */
	struct snapshot_disk disk;
	struct diskimage_copy *blocks;
	/* where the next item is */
	unsigned at_chip, at_part;
	bool disk_sent;
	uint64_t at_block;
	uint32_t items;
} copy;
static size_t loaded[N_CHIPS]; /* bytes of each chip's state that have come */

void snapshot_forget(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		free(copy.chip[i]);
	diskimage_copy_free(copy.blocks);
	memset(&copy, 0, sizeof copy);
	memset(loaded, 0, sizeof loaded);
}

int snapshot_capture(enum snapshot_mode mode)
{
	snapshot_forget();
	chips_flush();
	for (unsigned i = 0; i < N_CHIPS; i++) {
		copy.chip[i] = malloc(chips[i]->state_bytes);
		if (!copy.chip[i])
			return -ENOMEM;
		memcpy(copy.chip[i], chips[i]->state, chips[i]->state_bytes);
	}
	if (ide_image()) {
		int error = diskimage_identity(ide_image(), &copy.disk);

		if (!error && copy.disk.mode == IMAGE_SNAPSHOT)
			error = diskimage_copy_make(ide_image(), mode, &copy.blocks);
		if (error)
			return error;
	}
	copy.taken = true;
	return 0;
}

static void send_item(uint32_t seq, enum snapshot_kind kind, uint32_t index, const void *data, size_t bytes)
{
	struct msg_snapshot_item item = { .of = SNAPSHOT_OF_IOSRV, .seq = seq, .kind = kind, .index = index };

	copy.items += kind != SNAPSHOT_LAST;
	iosrv_send(MSG_SNAPSHOT_ITEM, VNODE_CLI, &item, sizeof item, data, bytes);
}

static size_t part_bytes(const struct chip *chip, unsigned part)
{
	size_t at = (size_t)part * PART_BYTES;

	return at >= chip->state_bytes ? 0 : chip->state_bytes - at < PART_BYTES ? chip->state_bytes - at : PART_BYTES;
}

static bool send_chip(uint32_t seq)
{
	while (copy.at_chip < N_CHIPS) {
		const struct chip *chip = chips[copy.at_chip];
		size_t bytes = part_bytes(chip, copy.at_part);

		if (bytes) {
			send_item(seq, SNAPSHOT_CHIP, copy.at_chip << 16 | copy.at_part,
				  (uint8_t *)copy.chip[copy.at_chip] + (size_t)copy.at_part * PART_BYTES, bytes);
			copy.at_part++;
			return true;
		}
		copy.at_chip++;
		copy.at_part = 0;
	}
	return false;
}

static bool send_disk(uint32_t seq)
{
	if (copy.disk_sent || !copy.disk.bytes)
		return false;
	copy.disk_sent = true;
	send_item(seq, SNAPSHOT_DISK, 0, &copy.disk, sizeof copy.disk);
	return true;
}

static bool send_block(uint32_t seq)
{
	uint8_t data[IMAGE_BLOCK_BYTES];
	int bytes;

	if (!copy.blocks)
		return false;
	bytes = diskimage_copy_next(copy.blocks, &copy.at_block, data);
	if (bytes < 0)
		iosrv_fail("the copy of the disk's blocks cannot be read: %s", strerror(-bytes));
	if (bytes <= 0)
		return false;
	send_item(seq, SNAPSHOT_BLOCK, (uint32_t)copy.at_block++, data, bytes);
	return true;
}

void snapshot_pull(const struct msg_snapshot_pull *pull)
{
	for (uint32_t n = 0; n < pull->count && copy.taken; n++) {
		if (send_chip(pull->seq) || send_disk(pull->seq) || send_block(pull->seq))
			continue;
		send_item(pull->seq, SNAPSHOT_LAST, copy.items, NULL, 0);
		snapshot_forget();
	}
}

/* --- loading --- */

static void load_chip(uint32_t index, const void *data, size_t bytes)
{
	unsigned number = index >> 16, part = index & 0xffff;

	if (number >= N_CHIPS || !bytes || bytes != part_bytes(chips[number], part)) {
		iosrv_fail("the snapshot's devices are not those of this version of vmp");
		return;
	}
	memcpy((uint8_t *)chips[number]->state + (size_t)part * PART_BYTES, data, bytes);
	loaded[number] += bytes;
}

static void load_disk(const void *data, size_t bytes)
{
	struct snapshot_disk was, is;

	if (bytes != sizeof was || !ide_image()) {
		iosrv_fail("the snapshot's disk is not there");
		return;
	}
	memcpy(&was, data, sizeof was);
	was.path[sizeof was.path - 1] = 0;
	if (diskimage_identity(ide_image(), &is) || is.bytes != was.bytes || is.mtime_ns != was.mtime_ns)
		iosrv_fail("disk image %s has changed since the snapshot was saved", was.path);
}

static void load_block(uint32_t block, const void *data, size_t bytes)
{
	int error = ide_image() ? diskimage_put_block(ide_image(), block, data, bytes) : -ENODEV;

	if (error)
		iosrv_fail("the snapshot's disk block %u cannot be put back: %s", block, strerror(-error));
}

/* All parts are there: each chip looks whether its state can be, and takes up what time has to do with it. */
static void finish_load(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++) {
		bool whole = loaded[i] == chips[i]->state_bytes;

		loaded[i] = 0;
		if (!whole) {
			iosrv_fail("the snapshot lacks a part of the %s", chips[i]->name);
			return;
		}
	}
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (chips[i]->restored && !chips[i]->restored()) {
			iosrv_fail("the snapshot's state of the %s cannot be", chips[i]->name);
			return;
		}
	chips_flush();
}

void snapshot_load(const struct msg_snapshot_item *item, const void *data, size_t bytes)
{
	struct msg_snapshot taken = { .of = SNAPSHOT_OF_IOSRV, .seq = item->seq, .step = SNAPSHOT_TAKEN };

	switch (item->kind) {
	case SNAPSHOT_CHIP: load_chip(item->index, data, bytes); break;
	case SNAPSHOT_DISK: load_disk(data, bytes); break;
	case SNAPSHOT_BLOCK: load_block(item->index, data, bytes); break;
	case SNAPSHOT_LAST: finish_load(); break;
	default: iosrv_fail("the I/O server was given an item of kind %u; this is a bug in vmp", item->kind);
	}
	iosrv_send(MSG_SNAPSHOT, VNODE_CLI, &taken, sizeof taken, NULL, 0);
}
