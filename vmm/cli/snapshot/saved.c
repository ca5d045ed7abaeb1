/* saved.c - see saved.h. */
#include "vmm/cli/snapshot/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t saved_describe(const struct snapshot_machine *machine, const char *command_line, const char *kernel, void *to)
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

/* The machine's description: each line is one that this version knows. */
static bool read_machine(struct saved_machine *s)
{
	const char *at = s->machine.machine, *end;
	char why[200];

	machine_defaults(&s->was);
	if (!memchr(at, 0, sizeof s->machine.machine))
		return false;
	for (; (end = strchr(at, '\n')); at = end + 1)
		if (machine_read_line(&s->was, MACHINE_SAVED, at, (size_t)(end - at), why, sizeof why))
			return false;
	return !*at && s->was.hosts && s->was.cpus;
}

static int add_machine(struct saved_machine *s, const struct snapfile_record *record, const void *data, struct problem *p)
{
	const char *at = (const char *)data + sizeof s->machine, *end = (const char *)data + record->bytes;
	struct snapshot_machine *m = &s->machine;

	if (s->started || record->bytes < sizeof *m)
		return problem(p, "does not describe a machine");
	memcpy(m, data, sizeof *m);
	if (take_string(s->command_line, sizeof s->command_line, &at, end) ||
	    take_string(s->kernel, sizeof s->kernel, &at, end) || !read_machine(s))
		return problem(p, "does not describe a machine");
	s->page_seen = calloc(1, s->was.mem_mib << (20 - PAGE_BITS) >> 3);
	if (!s->page_seen)
		return problem(p, "needs more memory than there is");
	s->started = true;
	return 0;
}

static int add_page(struct saved_machine *s, uint32_t gfn, uint32_t bytes, struct problem *p)
{
	if (gfn >= s->was.mem_mib << (20 - PAGE_BITS) || (bytes != PAGE_BYTES && (bytes || !s->changes)))
		return problem(p, "has a page %u that is not the machine's", gfn);
	if (s->page_seen[gfn / 8] >> gfn % 8 & 1)
		return problem(p, "names page %u twice", gfn);
	s->page_seen[gfn / 8] |= 1 << gfn % 8;
	s->pages++;
	return 0;
}

bool saved_has(const struct saved_machine *s, const struct snapfile_record *record)
{
	return record->kind == SNAPSHOT_PAGE && s->started && record->index < s->was.mem_mib << (20 - PAGE_BITS) &&
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

static int add_disk(struct saved_machine *s, const void *data, uint32_t bytes, struct problem *p)
{
	if (bytes != sizeof s->disk || s->disk.bytes)
		return problem(p, "does not describe its disk");
	memcpy(&s->disk, data, sizeof s->disk);
	if (!s->disk.bytes || s->disk.mode > 2 || !memchr(s->disk.path, 0, sizeof s->disk.path))
		return problem(p, "does not describe its disk");
	return 0;
}

int saved_add(struct saved_machine *s, const struct snapfile_record *record, const void *data, struct problem *p)
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
		return add_disk(s, data, record->bytes, p);
	case SNAPSHOT_BLOCK:
		s->blocks++;
		return s->disk.mode == 2 && s->disk.bytes ? 0 : problem(p, "has blocks of a disk that keeps none apart");
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
	if (!s->chip_parts || !(s->pages || s->changes))
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
	return strstr(s->command_line, "pata_legacy.probe_mask=0 console=ttyS0") == s->command_line ||
	       strstr(s->command_line, "pata_legacy.probe_mask=1 console=ttyS0") == s->command_line;
}

const char *saved_disk(const struct saved_machine *s, char *spec, size_t bytes)
{
	static const char *const suffixes[] = { "", ",ro", ",snapshot" };

	if (!s->disk.bytes || snprintf(spec, bytes, "%s%s", s->disk.path, suffixes[s->disk.mode]) >= (int)bytes)
		return NULL;
	return spec;
}

bool saved_counter_goes_on(const struct saved_machine *s, uint64_t tsc, uint64_t now_ns)
{
	const struct snapshot_machine *m = &s->machine;
	double counted_s = m->tsc_khz ? (double)(int64_t)(tsc - m->tsc) / m->tsc_khz / 1e3 : 0;
	double passed_s = (double)(int64_t)(now_ns - m->saved_ns) / 1e9;

	/* The wall clock may have been set a little. */
	return !m->tsc_khz || (counted_s >= 0 && counted_s > passed_s * 0.99 - 60 && counted_s < passed_s * 1.01 + 60);
}
