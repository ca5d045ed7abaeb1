/* snapshot.c - the devices as items of a snapshot (base/wire.h): each chip's state in parts, and,
 * one disk after the other, its identity and the blocks that the guest has written apart from the
 * image, or has changed since the last checkpoint; then the live folder, and what is open in it.
 *
 * Saving: everything is copied at one moment, while no CPU runs (snapshot_capture()); the copy is
 * sent item by item later, when the guest runs again.  Loading: items arrive in the same order;
 * after the last one, all are checked, then all chips are loaded.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "iosrv/diskimage.h"
#include "iosrv/ninep.h"

static struct {
	bool taken;
	void *chip[N_CHIPS];		      /* the copy of its state */
	struct snapshot_disk disk[MAX_DISKS]; /* bytes 0: none */
	struct diskimage_copy *blocks[MAX_DISKS];
	struct snapshot_folder folder;
	uint8_t *files; /* the state of vmp-share; NULL: no folder */
	size_t files_bytes;
	/* where the next item is */
	unsigned at_chip, at_part, at_disk, at_files;
	bool folder_sent;
	bool disk_sent; /* at_disk's identity */
	uint64_t at_block;
	uint32_t items;
} copy;
/* The part of each chip's state that has arrived. */
static struct { uint8_t *bytes; size_t count; } loaded[N_CHIPS];
/* The identities of disks that have arrived; bytes 0: none */
static struct snapshot_disk loaded_disk[MAX_DISKS];
/* The part of the state of vmp-share that has arrived. */
static struct { uint8_t *bytes; size_t count; } loaded_files;

static void forget_loaded(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		free(loaded[i].bytes);
	memset(loaded, 0, sizeof loaded);
	memset(loaded_disk, 0, sizeof loaded_disk);
	free(loaded_files.bytes);
	memset(&loaded_files, 0, sizeof loaded_files);
}

void snapshot_forget(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		free(copy.chip[i]);
	for (unsigned i = 0; i < MAX_DISKS; i++)
		diskimage_copy_free(copy.blocks[i]);
	free(copy.files);
	memset(&copy, 0, sizeof copy);
	forget_loaded();
}

/* Return disk `number`, in the order of --disk; NULL: there is none.  Numbers have no gap, so the
 * IDE disk has the number that no virtio disk has. */
static struct diskimage *image_at(unsigned number)
{
	unsigned free = 0;

	while (free < MAX_DISKS && blk_image(free))
		free++;
	return number == free ? ide_image() : blk_image(number);
}

static int capture_disk(unsigned number, enum snapshot_mode mode)
{
	struct diskimage *image = image_at(number);
	struct snapshot_disk *disk = &copy.disk[number];
	int error;

	if (!image)
		return 0;
	error = diskimage_identity(image, disk);
	if (error)
		return error;
	disk->ide = image == ide_image();
	disk->cut = diskimage_cut(image, mode);
	if (disk->mode != IMAGE_SNAPSHOT)
		return 0;
	if ((disk->bytes - 1) / IMAGE_BLOCK_BYTES > SNAPSHOT_BLOCK_MASK)
		return -EFBIG;
	return diskimage_copy_make(image, mode, &copy.blocks[number]);
}

static int capture_folder(void)
{
	ssize_t bytes = virtio9p_save(&copy.folder, &copy.files);

	copy.files_bytes = bytes > 0 ? (size_t)bytes : 0;
	return bytes < 0 ? (int)bytes : 0;
}

int snapshot_capture(enum snapshot_mode mode)
{
	int error = 0;

	snapshot_forget();
	chips_flush();
	for (unsigned i = 0; i < N_CHIPS; i++) {
		copy.chip[i] = malloc(chipstate_bytes(chips[i]));
		if (!copy.chip[i])
			return -ENOMEM;
		chipstate_save(chips[i], copy.chip[i]);
	}
	for (unsigned i = 0; i < MAX_DISKS && !error; i++)
		error = capture_disk(i, mode);
	if (!error)
		error = capture_folder();
	if (error)
		return error;
	copy.taken = true;
	return 0;
}

static void send_item(uint32_t seq, enum snapshot_kind kind, uint32_t index, const void *data,
		      size_t bytes)
{
	struct msg_snapshot_item item = {
		.of = SNAPSHOT_OF_IOSRV, .seq = seq, .kind = kind, .index = index
	};

	copy.items += kind != SNAPSHOT_LAST;
	iosrv_send(MSG_SNAPSHOT_ITEM, VNODE_CLI, &item, sizeof item, data, bytes);
}

static size_t part_bytes(const struct chip *chip, unsigned part)
{
	size_t at = (size_t)part * SNAPSHOT_PART_BYTES, all = chipstate_bytes(chip);

	return at >= all ? 0 : all - at < SNAPSHOT_PART_BYTES ? all - at : SNAPSHOT_PART_BYTES;
}

static bool send_chip(uint32_t seq)
{
	while (copy.at_chip < N_CHIPS) {
		const struct chip *chip = chips[copy.at_chip];
		size_t bytes = part_bytes(chip, copy.at_part);

		if (bytes) {
			send_item(seq, SNAPSHOT_CHIP, copy.at_chip << 16 | copy.at_part,
				  (uint8_t *)copy.chip[copy.at_chip] +
					  (size_t)copy.at_part * SNAPSHOT_PART_BYTES,
				  bytes);
			copy.at_part++;
			return true;
		}
		copy.at_chip++;
		copy.at_part = 0;
	}
	return false;
}

static bool send_identity(uint32_t seq)
{
	if (copy.disk_sent || !copy.disk[copy.at_disk].bytes)
		return false;
	copy.disk_sent = true;
	send_item(seq, SNAPSHOT_DISK, copy.at_disk, &copy.disk[copy.at_disk], sizeof copy.disk[0]);
	return true;
}

static bool send_block(uint32_t seq)
{
	struct diskimage_copy *blocks = copy.blocks[copy.at_disk];
	uint8_t data[IMAGE_BLOCK_BYTES];
	int bytes;

	if (!blocks)
		return false;
	bytes = diskimage_copy_next(blocks, &copy.at_block, data);
	if (bytes < 0)
		iosrv_fail("the copy of the disk's blocks cannot be read: %s", strerror(-bytes));
	if (bytes <= 0)
		return false;
	send_item(seq, SNAPSHOT_BLOCK,
		  copy.at_disk << SNAPSHOT_DISK_SHIFT | (uint32_t)copy.at_block++, data, bytes);
	return true;
}

static bool send_disk(uint32_t seq)
{
	for (; copy.at_disk < MAX_DISKS; copy.at_disk++) {
		if (send_identity(seq) || send_block(seq))
			return true;
		copy.disk_sent = false;
		copy.at_block = 0;
	}
	return false;
}

static bool send_folder(uint32_t seq)
{
	size_t at = (size_t)copy.at_files * SNAPSHOT_PART_BYTES, left = copy.files_bytes - at;

	if (at >= copy.files_bytes)
		return false;
	if (!copy.folder_sent) {
		copy.folder_sent = true;
		send_item(seq, SNAPSHOT_FOLDER, 0, &copy.folder, sizeof copy.folder);
		return true;
	}
	send_item(seq, SNAPSHOT_FILES, copy.at_files++, copy.files + at,
		  left < SNAPSHOT_PART_BYTES ? left : SNAPSHOT_PART_BYTES);
	return true;
}

void snapshot_pull(const struct msg_snapshot_pull *pull)
{
	for (uint32_t n = 0; n < pull->count && copy.taken; n++) {
		if (send_chip(pull->seq) || send_disk(pull->seq) || send_folder(pull->seq))
			continue;
		send_item(pull->seq, SNAPSHOT_LAST, copy.items, NULL, 0);
		snapshot_forget();
	}
}

/* --- loading --- */

/* Append a part of a chip's state; the parts arrive in order. */
static void load_chip(uint32_t index, const void *data, size_t bytes)
{
	unsigned number = index >> 16, part = index & 0xffff;

	if (number >= N_CHIPS || !bytes || bytes != part_bytes(chips[number], part) ||
	    loaded[number].count != (size_t)part * SNAPSHOT_PART_BYTES) {
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

static void load_disk(uint32_t number, const void *data, size_t bytes)
{
	struct diskimage *image = number < MAX_DISKS ? image_at(number) : NULL;
	struct snapshot_disk was, is;

	if (bytes != sizeof was || !image) {
		iosrv_fail("the snapshot's disk is not there");
		return;
	}
	memcpy(&was, data, sizeof was);
	was.path[sizeof was.path - 1] = 0;
	if (diskimage_identity(image, &is) || is.bytes != was.bytes ||
	    (!was.cut && is.mtime_ns != was.mtime_ns))
		iosrv_fail("disk image %s has changed since the snapshot was saved", was.path);
	else
		loaded_disk[number] = was;
}

static int seek_back(struct diskimage *image, const struct snapshot_disk *was)
{
	int error = diskimage_seek(image, was->cut);

	if (error)
		iosrv_fail("disk image %s cannot go back to the checkpoint: %s", was->path,
			   error == -ENOENT ? "what it held then is not known" : strerror(-error));
	return error;
}

/* Take all disks back to the checkpoint, if they have been written to since.  False: the machine
 * has been ended; either no disk has gone back, or the next machine with it completes that. */
static bool take_disks_back(void)
{
	static int (*const steps[])(struct diskimage *) = { diskimage_prepare_back,
							    diskimage_go_back };

	for (unsigned i = 0; i < MAX_DISKS; i++)
		if (loaded_disk[i].bytes && seek_back(image_at(i), &loaded_disk[i]))
			return false;
	for (unsigned step = 0; step < ARRAY_LEN(steps); step++)
		for (unsigned i = 0; i < MAX_DISKS; i++) {
			int error = loaded_disk[i].bytes ? steps[step](image_at(i)) : 0;

			if (!error)
				continue;
			iosrv_fail("disk image %s cannot go back to the checkpoint: %s",
				   loaded_disk[i].path, strerror(-error));
			return false;
		}
	return true;
}

static void load_block(uint32_t index, const void *data, size_t bytes)
{
	unsigned number = index >> SNAPSHOT_DISK_SHIFT;
	uint32_t block = index & SNAPSHOT_BLOCK_MASK;
	struct diskimage *image = number < MAX_DISKS ? image_at(number) : NULL;
	int error = image ? diskimage_put_block(image, block, data, bytes) : -ENODEV;

	if (error)
		iosrv_fail("the snapshot's block %u of disk %u cannot be put back: %s", block,
			   number, strerror(-error));
}

/* Append a part of what was open in the live folder; the parts arrive in order. */
static void load_files(uint32_t index, const void *data, size_t bytes)
{
	uint8_t *longer;

	if (!virtio9p_is_there()) {
		iosrv_fail("the snapshot's live folder is not there");
		return;
	}
	if (!bytes || loaded_files.count != (size_t)index * SNAPSHOT_PART_BYTES ||
	    bytes > NINEP_STATE_BYTES - loaded_files.count) {
		iosrv_fail("the snapshot's live folder cannot be loaded: "
			   "its state is not in order");
		return;
	}
	longer = realloc(loaded_files.bytes, loaded_files.count + bytes);
	if (!longer)
		die("no memory for the snapshot's live folder");
	memcpy(longer + loaded_files.count, data, bytes);
	loaded_files.bytes = longer;
	loaded_files.count += bytes;
}

/* Open again what was open in the live folder.  False: the machine has been ended. */
static bool open_files(void)
{
	char why[200] = "its state is missing";

	if (!virtio9p_is_there() ||
	    (loaded_files.count &&
	     !virtio9p_load(loaded_files.bytes, loaded_files.count, why, sizeof why)))
		return true;
	iosrv_fail("the snapshot's live folder cannot be loaded: %s", why);
	return false;
}

/* Check all parts of all chips; no chip is changed.  False: the machine has been ended. */
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

/* Load all chips, after the last item; if a part is not legal, the machine ends. */
static void finish_load(void)
{
	if (!check_loaded())
		return;
	for (unsigned i = 0; i < N_CHIPS; i++)
		chipstate_load(chips[i], loaded[i].bytes);
	for (unsigned i = 0; i < N_CHIPS; i++) {
		const char *why = chips[i]->impossible ? chips[i]->impossible() : NULL;

		if (why) {
			chips_reset(); /* CPUs may continue for a moment */
			iosrv_fail("the snapshot's %s cannot be loaded: %s", chips[i]->name, why);
			return;
		}
	}
	if (!take_disks_back() || !open_files())
		return;
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (chips[i]->restored)
			chips[i]->restored();
	chips_flush();
}

void snapshot_load(const struct msg_snapshot_item *item, const void *data, size_t bytes)
{
	struct msg_snapshot taken = {
		.of = SNAPSHOT_OF_IOSRV, .seq = item->seq, .step = SNAPSHOT_TAKEN,
	};

	switch (item->kind) {
	case SNAPSHOT_CHIP: load_chip(item->index, data, bytes); break;
	case SNAPSHOT_DISK: load_disk(item->index, data, bytes); break;
	case SNAPSHOT_BLOCK: load_block(item->index, data, bytes); break;
	case SNAPSHOT_FOLDER: break; /* for the command line, which has chosen the folder */
	case SNAPSHOT_FILES: load_files(item->index, data, bytes); break;
	case SNAPSHOT_LAST:
		finish_load();
		forget_loaded();
		break;
	default:
		iosrv_fail("the I/O server was given an item of kind %u; this is a bug in vmp",
			   item->kind);
	}
	iosrv_send(MSG_SNAPSHOT, VNODE_CLI, &taken, sizeof taken, NULL, 0);
}
