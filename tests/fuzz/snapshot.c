/* snapshot.c - fuzzes the readers of a saved machine: of the file (snapfile.c), of its records
 * (saved.c), and a checkpoint in memory that is made of such records (kept.c).
 *
 * The first byte says whether the rest is a whole file, or records: kind, index and length, with
 * the following bytes as data, as far as there are any.  The first record describes a machine,
 * unless the input says otherwise.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/cli/snapshot/saved.h"
#include "vmm/cli/snapshot/snapfile.h"

static struct { const uint8_t *at; size_t left; } w;
static uint8_t data[MAX_MSG_PAYLOAD];
static struct problem p;

static uint32_t number(unsigned bytes)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < bytes && w.left; i++, w.left--)
		value |= (uint32_t)*w.at++ << 8 * i;
	return value;
}

static void describe(struct snapfile_record *record)
{
	struct snapshot_machine machine = { .tsc_khz = 0 };
	struct machine of;

	machine_defaults(&of);
	of.hosts = 1;
	of.cpus = 2;
	of.mem_mib = 32;
	machine_print(&of, MACHINE_SAVED, machine.machine, sizeof machine.machine);
	*record = (struct snapfile_record){ .kind = SNAPSHOT_MACHINE };
	record->bytes = (uint32_t)saved_describe(&machine, "pci=off", "/k", data);
}

/* Reads the next record: small and large numbers, and lengths that have a meaning. */
static void next_record(struct snapfile_record *record)
{
	static const uint32_t lengths[] = {
		0, 10, 700, PAGE_BYTES, sizeof(struct snapshot_disk), MAX_MSG_PAYLOAD,
		sizeof(struct snapshot_folder)
	};
	unsigned how = number(1);

	*record = (struct snapfile_record){ .kind = how % (SNAPSHOT_KINDS + 1),
					    .index = number(how & 0x80 ? 4 : 1) };
	record->bytes = lengths[(how >> 4 & 7) % (sizeof lengths / sizeof *lengths)];
	memset(data, 0, sizeof data);
	for (uint32_t i = 0; i < 24 && i < record->bytes && w.left; i++)
		data[i] = (uint8_t)number(1);
}

static void read_back(struct kept *kept)
{
	struct kept_cursor cursor = { 0 };
	struct snapfile_record record;

	while (kept_next(kept, &cursor, &record, data))
		FUZZ_CHECK(record.bytes <= MAX_MSG_PAYLOAD && record.kind < SNAPSHOT_KINDS);
}

static void records(bool described)
{
	struct saved_machine saved = { 0 };
	struct snapfile_record record;
	struct kept *kept = kept_new();
	char spec[64];
	bool bad = false;

	kept_begin(kept, false);
	for (bool first = described; w.left || first; first = false) {
		if (first)
			describe(&record);
		else
			next_record(&record);
		if (!first && number(1) == 0xff) { /* a checkpoint ends here */
			if (bad || kept_commit(kept, &p))
				kept_abandon(kept);
			read_back(kept);
			kept_begin(kept, kept_machine(kept) != NULL);
			bad = false;
		}
		saved_add(&saved, &record, data, &p);
		bad = bad || kept_add(kept, &record, data, &p);
	}
	if (!saved_complete(&saved, &p)) {
		for (unsigned i = 0; i < saved_disks(&saved); i++)
			saved_choose_disk(&saved.disk[i], NULL, true, spec, sizeof spec, &p);
		saved_choose_folder(&saved, NULL, false, true, spec, sizeof spec, &p);
		saved_is_interactive(&saved);
	}
	saved_free(&saved);
	kept_free(kept);
}

static void file(void)
{
	int fd = memfd_create("snapshot", MFD_CLOEXEC);
	struct saved_machine saved = { 0 };
	struct snapfile_record record;
	struct snapfile_reader *reader;
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	FUZZ_CHECK(fd >= 0 && write(fd, w.at, w.left) == (ssize_t)w.left);
	reader = snapfile_open(path, &p);
	while (reader && snapfile_read(reader, &record, data, &p) == 1)
		if (saved_add(&saved, &record, data, &p))
			break;
	snapfile_close(reader);
	saved_free(&saved);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	unsigned how;

	w.at = bytes;
	w.left = size;
	how = number(1) & 3;
	if (how == 0)
		file();
	else
		records(how != 1);
	return 0;
}
