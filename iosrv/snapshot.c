/* snapshot.c - the devices as items of a snapshot (base/wire.h): each chip's state in parts, the disk's identity, and the
 * blocks that the guest has written apart from the image, or has changed since the last checkpoint.
 *
 * Saving: everything is copied at one moment, while no CPU runs (snapshot_capture); the copy is handed out item by item
 * later, when the guest runs again.  Loading: items come in the same order; when the last one has come, all is checked, then
 * all chips are loaded.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
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
static struct { uint8_t *bytes; size_t count; } loaded[N_CHIPS]; /* what has come of each chip's state */

static void forget_loaded(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		free(loaded[i].bytes);
	memset(loaded, 0, sizeof loaded);
}

void snapshot_forget(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		free(copy.chip[i]);
	diskimage_copy_free(copy.blocks);
	memset(&copy, 0, sizeof copy);
	forget_loaded();
}

int snapshot_capture(enum snapshot_mode mode)
{
	snapshot_forget();
	chips_flush();
	for (unsigned i = 0; i < N_CHIPS; i++) {
		copy.chip[i] = malloc(chipstate_bytes(chips[i]));
		if (!copy.chip[i])
			return -ENOMEM;
		chipstate_save(chips[i], copy.chip[i]);
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
	size_t at = (size_t)part * PART_BYTES, all = chipstate_bytes(chip);

	return at >= all ? 0 : all - at < PART_BYTES ? all - at : PART_BYTES;
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

/* The parts of a chip come in their order. */
static void load_chip(uint32_t index, const void *data, size_t bytes)
{
	unsigned number = index >> 16, part = index & 0xffff;

	if (number >= N_CHIPS || !bytes || bytes != part_bytes(chips[number], part) ||
	    loaded[number].count != (size_t)part * PART_BYTES) {
		iosrv_fail("the snapshot's devices are not those of this version of vmp");
		return;
	}
	if (!loaded[number].bytes)
		loaded[number].bytes = malloc(chipstate_bytes(chips[number]));
	if (!loaded[number].bytes)
		die("no memory for the snapshot's %s", chips[number]->name);
	memcpy(loaded[number].bytes + loaded[number].count, data, bytes);
	loaded[number].count += bytes;
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

/* Checks all parts of all chips. No chip is changed; false if the machine has been ended. */
static bool check_loaded(void)
{
	char why[160];

	for (unsigned i = 0; i < N_CHIPS; i++) {
		if (loaded[i].count != chipstate_bytes(chips[i])) {
			iosrv_fail("the snapshot lacks a part of the %s", chips[i]->name);
			return false;
		}
		if (chipstate_check(chips[i], loaded[i].bytes, why, sizeof why)) {
			iosrv_fail("the snapshot's %s cannot be loaded: %s", chips[i]->name, why);
			return false;
		}
	}
	return true;
}

/* The last item has come: all chips take up what was saved, or, when a part of it is not legal, the machine ends. */
static void finish_load(void)
{
	if (!check_loaded()) {
		forget_loaded();
		return;
	}
	for (unsigned i = 0; i < N_CHIPS; i++)
		chipstate_load(chips[i], loaded[i].bytes);
	forget_loaded();
	for (unsigned i = 0; i < N_CHIPS; i++) {
		const char *why = chips[i]->impossible ? chips[i]->impossible() : NULL;

		if (why) {
			chips_reset(); /* CPUs may go on for a moment */
			iosrv_fail("the snapshot's %s cannot be loaded: %s", chips[i]->name, why);
			return;
		}
	}
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (chips[i]->restored)
			chips[i]->restored();
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
