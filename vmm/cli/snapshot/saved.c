/* saved.c - see saved.h. */
#include "vmm/cli/snapshot/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/layout.h"
#include "base/printable.h"
#include "base/virtio_abi.h"

enum { BLOCK_BYTES = 4096 };
_Static_assert(MAX_DISKS == 1 << (32 - SNAPSHOT_DISK_SHIFT), "any block names a disk");

size_t saved_describe(const struct snapshot_machine *machine, const char *command_line,
		      const char *kernel, void *to)
{
	size_t line = strlen(command_line) + 1, file = strlen(kernel) + 1;

	memcpy(to, machine, sizeof *machine);
	memcpy((char *)to + sizeof *machine, command_line, line);
	memcpy((char *)to + sizeof *machine + line, kernel, file);
	return sizeof *machine + line + file;
}

static int take_string(char *to, size_t room, const char **at, const char *end)
{
	size_t n = strnlen(*at, end - *at);

	if (*at + n == end || n >= room)
		return -1;
	memcpy(to, *at, n + 1);
	*at += n + 1;
	return 0;
}

/* Reads the machine's description.  Returns false if this version does not know one of its
 * lines. */
static bool read_machine(struct saved_machine *s)
{
	const char *at = s->machine.machine, *end;
	char why[200];

	machine_defaults(&s->was);
	if (!memchr(at, 0, sizeof s->machine.machine))
		return false;
	for (; (end = strchr(at, '\n')); at = end + 1)
		if (machine_read_line(&s->was, MACHINE_SAVED, at, (size_t)(end - at), why,
				      sizeof why))
			return false;
	return !*at && s->was.hosts && s->was.cpus;
}

static int add_machine(struct saved_machine *s, const struct snapfile_record *record,
		       const void *data, struct problem *p)
{
	const char *at = (const char *)data + sizeof s->machine,
		   *end = (const char *)data + record->bytes;
	struct snapshot_machine *m = &s->machine;

	if (s->started || record->bytes < sizeof *m)
		return problem(p, "does not describe a machine");
	memcpy(m, data, sizeof *m);
	if (take_string(s->command_line, sizeof s->command_line, &at, end) ||
	    take_string(s->kernel, sizeof s->kernel, &at, end) || !read_machine(s))
		return problem(p, "does not describe a machine");
	s->page_seen = calloc(1, ram_pages_of(s->was.mem_mib) >> 3);
	if (!s->page_seen)
		return problem(p, "needs more memory than there is");
	s->started = true;
	return 0;
}

static int add_page(struct saved_machine *s, uint32_t gfn, uint32_t bytes, struct problem *p)
{
	if (!ram_has(ram_pages_of(s->was.mem_mib), gfn) ||
	    (bytes != PAGE_BYTES && (bytes || !s->changes)))
		return problem(p, "has a page %u that is not the machine's", gfn);
	if (s->page_seen[gfn / 8] >> gfn % 8 & 1)
		return problem(p, "names page %u twice", gfn);
	s->page_seen[gfn / 8] |= 1 << gfn % 8;
	s->pages++;
	return 0;
}

bool saved_has(const struct saved_machine *s, const struct snapfile_record *record)
{
	return record->kind == SNAPSHOT_PAGE && s->started &&
	       record->index < ram_pages_of(s->was.mem_mib) &&
	       s->page_seen[record->index / 8] >> record->index % 8 & 1;
}

static int add_cpu(struct saved_machine *s, uint32_t cpu, struct problem *p)
{
	if (cpu >= s->was.cpus)
		return problem(p, "has a processor %u that is not the machine's", cpu);
	if (s->cpus >> cpu & 1)
		return problem(p, "names processor %u twice", cpu);
	s->cpus |= 1u << cpu;
	return 0;
}

static int add_disk(struct saved_machine *s, const struct snapfile_record *record, const void *data,
		    struct problem *p)
{
	uint32_t number = record->index;
	struct snapshot_disk *disk;

	if (record->bytes != sizeof *disk || number >= MAX_DISKS || s->disk[number].bytes)
		return problem(p, "does not describe its disk");
	disk = &s->disk[number];
	memcpy(disk, data, sizeof *disk);
	if (!disk->bytes || disk->mode > 2 || disk->ide > 1 ||
	    !memchr(disk->path, 0, sizeof disk->path))
		return problem(p, "does not describe its disk");
	return 0;
}

static int add_block(struct saved_machine *s, const struct snapfile_record *record,
		     struct problem *p)
{
	const struct snapshot_disk *disk = &s->disk[record->index >> SNAPSHOT_DISK_SHIFT];
	uint64_t at = (uint64_t)(record->index & SNAPSHOT_BLOCK_MASK) * BLOCK_BYTES;

	if (disk->mode != 2 || !disk->bytes)
		return problem(p, "has blocks of a disk that keeps none apart");
	if (record->bytes > BLOCK_BYTES || at + record->bytes > disk->bytes)
		return problem(p, "has a block %u that is not the disk's", record->index);
	s->blocks++;
	return 0;
}

static int add_folder(struct saved_machine *s, const struct snapfile_record *record,
		      const void *data, struct problem *p)
{
	struct snapshot_folder folder;

	if (record->bytes != sizeof folder || record->index || s->folder.path[0])
		return problem(p, "does not describe its live folder");
	memcpy(&folder, data, sizeof folder);
	if (folder.read_only > 1 || folder.reserved || folder.path[0] != '/' ||
	    !memchr(folder.path, 0, sizeof folder.path))
		return problem(p, "does not describe its live folder");
	s->folder = folder;
	return 0;
}

/* The contents are checked by vmp-share, which is confined. */
static int add_files(struct saved_machine *s, const struct snapfile_record *record,
		     struct problem *p)
{
	if (!s->folder.path[0] || record->index != s->file_parts || !record->bytes)
		return problem(p, "has files of a live folder that is not there");
	s->file_parts++;
	return 0;
}

int saved_add(struct saved_machine *s, const struct snapfile_record *record, const void *data,
	      struct problem *p)
{
	if (record->kind != SNAPSHOT_MACHINE && !s->started)
		return problem(p, "does not begin with a machine");
	switch (record->kind) {
	case SNAPSHOT_MACHINE:
		return add_machine(s, record, data, p);
	case SNAPSHOT_CPU:
		return add_cpu(s, record->index, p);
	case SNAPSHOT_CHIP:
		s->chip_parts++;
		return 0;
	case SNAPSHOT_DISK:
		return add_disk(s, record, data, p);
	case SNAPSHOT_BLOCK:
		return add_block(s, record, p);
	case SNAPSHOT_FOLDER:
		return add_folder(s, record, data, p);
	case SNAPSHOT_FILES:
		return add_files(s, record, p);
	case SNAPSHOT_PAGE:
		return add_page(s, record->index, record->bytes, p);
	default:
		return problem(p, "has a record of kind %u", record->kind);
	}
}

int saved_complete(const struct saved_machine *s, struct problem *p)
{
	uint32_t all = s->was.cpus >= 32 ? ~0u : (1u << s->was.cpus) - 1;

	if (!s->started)
		return problem(p, "is empty");
	if (s->cpus != all)
		return problem(p, "lacks processor %u", (unsigned)__builtin_ctz(all & ~s->cpus));
	for (unsigned i = saved_disks(s); i < MAX_DISKS; i++)
		if (s->disk[i].bytes)
			return problem(p, "lacks its disk %u", saved_disks(s));
	if (s->folder.path[0] && !s->file_parts)
		return problem(p, "lacks the files of its live folder");
	if (!s->chip_parts || !(s->pages || s->changes || s->elsewhere))
		return problem(p, "lacks the machine's %s", s->chip_parts ? "memory" : "devices");
	return 0;
}

void saved_free(struct saved_machine *s)
{
	free(s->page_seen);
	s->page_seen = NULL;
}

bool saved_is_interactive(const struct saved_machine *s)
{
	static const char pci[] = "pci=", console[] = " console=";
	const char *line = s->command_line;

	return !strncmp(line, pci, sizeof pci - 1) &&
	       !strncmp(line + strcspn(line, " "), console, sizeof console - 1);
}

unsigned saved_disks(const struct saved_machine *s)
{
	unsigned n = 0;

	while (n < MAX_DISKS && s->disk[n].bytes)
		n++;
	return n;
}

const char *saved_disk(const struct snapshot_disk *disk, char *spec, size_t bytes)
{
	static const char *const suffixes[] = { "", ",ro", ",snapshot" };

	if (snprintf(spec, bytes, "%s%s%s", disk->path, suffixes[disk->mode],
		     disk->ide ? ",ide" : "") >= (int)bytes)
		return NULL;
	return spec;
}

int saved_choose_disk(const struct snapshot_disk *disk, const char *given, bool own, char *spec,
		      size_t bytes, struct problem *p)
{
	struct snapshot_disk named = *disk;
	char path[sizeof disk->path];

	spec[0] = 0;
	if (!given && disk->mode != 0 && own)
		return saved_disk(disk, spec, bytes)
			       ? 0
			       : problem(p, "the path of its disk image is too long");
	snprintf(path, sizeof path, "%s", disk->path);
	printable_line(path); /* it may be any text */
	if (!given)
		return problem(p, "its disk image is %.400s, %s: if that is right, say --disk with "
			       "its path", path, disk->mode ?
			       "by the word of a file that others can write or have made" :
			       "to which the machine writes");
	if (snprintf(named.path, sizeof named.path, "%s", given) >= (int)sizeof named.path ||
	    !saved_disk(&named, spec, bytes))
		return problem(p, "--disk: the path is too long");
	return 0;
}

int saved_check_disks(const struct saved_machine *s, unsigned given, struct problem *p)
{
	unsigned n = saved_disks(s);

	if (!given || given == n)
		return 0;
	if (!n)
		return problem(p, "--disk: the saved machine has no disk");
	return problem(p, "--disk: the saved machine has %u disk%s: say --disk for each, in order",
		       n, n > 1 ? "s" : "");
}

/* Returns whether the machine has a virtio device: its kernel's command line has a word for each
 * (vmm/cli/run/start.c). */
static bool has_virtio(const struct saved_machine *s, unsigned slot)
{
	char word[32];

	snprintf(word, sizeof word, "@0x%x:", VMP_VIRTIO_GPA + slot * VIRTIO_SLOT_BYTES);
	return strstr(s->command_line, word);
}

int saved_check_net(const struct saved_machine *s, const char *net, struct problem *p)
{
	bool user = net && strcmp(net, "none");

	if (has_virtio(s, VIRTIO_NET) && !user)
		return problem(p, "the saved machine has a network card: say --net user, with the "
				  "ports to forward");
	if (!has_virtio(s, VIRTIO_NET) && user)
		return problem(p, "--net: the saved machine has no network card");
	return 0;
}

int saved_choose_folder(const struct saved_machine *s, const char *given, bool given_ro, bool own,
			char *spec, size_t bytes, struct problem *p)
{
	const struct snapshot_folder *folder = &s->folder;
	char path[sizeof folder->path];

	spec[0] = 0;
	if (!folder->path[0])
		return given ? problem(p, "--share: the saved machine has no live folder") : 0;
	if (given_ro && !folder->read_only)
		return problem(p, "--share: the saved machine writes to its live folder: leave ,ro "
			       "away");
	snprintf(path, sizeof path, "%s", folder->path);
	printable_line(path);
	if (!given && !(folder->read_only && own))
		return problem(p, "its live folder is %.400s, %s: if that is right, say --share "
			       "with its path, as DIR,live", path, folder->read_only ?
			       "by the word of a file that others can write or have made" :
			       "in which the machine writes");
	if (snprintf(spec, bytes, "%s%s", given ? given : folder->path,
		     folder->read_only ? ",ro" : "") >= (int)bytes)
		return problem(p, "--share: the path is too long");
	return 0;
}

void saved_devices(const struct saved_machine *s, struct machine *m, char spec[][SAVED_DISK_BYTES],
		   const char *folder)
{
	m->live = (struct machine_list){ .item = { folder }, .n = *folder != 0 };
	m->disk.n = saved_disks(s);
	for (unsigned i = 0; i < m->disk.n; i++)
		m->disk.item[i] = spec[i];
	if (!m->net)
		m->net = has_virtio(s, VIRTIO_NET) ? "user" : NULL;
	m->rng = has_virtio(s, VIRTIO_RNG);
	m->console = has_virtio(s, VIRTIO_CONSOLE) ? CONSOLE_VIRTIO : CONSOLE_SERIAL;
}

bool saved_counter_goes_on(const struct saved_machine *s, uint64_t tsc, uint64_t now_ns)
{
	const struct snapshot_machine *m = &s->machine;
	double counted_s = m->tsc_khz ? (double)(int64_t)(tsc - m->tsc) / m->tsc_khz / 1e3 : 0;
	double passed_s = (double)(int64_t)(now_ns - m->saved_ns) / 1e9;

	/* the wall clock may have been adjusted a little */
	return !m->tsc_khz || (counted_s >= 0 && counted_s > passed_s * 0.99 - 60 &&
			       counted_s < passed_s * 1.01 + 60);
}
