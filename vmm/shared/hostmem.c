/* hostmem.c - see hostmem.h. */
#include "vmm/shared/hostmem.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	/* Private memory of the machine's processes, estimated generously: page tables, buffers,
	 * libc. */
	HOST_MIB = 4,
	CPU_MIB = 4,
	SPARE_PART = 16, /* of what a control group allows a host */
};

static uint64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long number;
	int found = file ? fscanf(file, "%llu", &number) : 0;

	if (file)
		fclose(file);
	return found == 1 ? number : UINT64_MAX; /* "max" is not a number */
}

static uint64_t available_bytes(const char *root)
{
	char path[PATH_MAX], line[128];
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof path, "%s/proc/meminfo", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			bytes = kib << 10;
	if (file)
		fclose(file);
	return bytes;
}

/* Returns how much memory the group at `folder` and all groups above it, up to `top`, still
 * allow. */
static uint64_t group_room(const char *top, const char *group, const char *max_name,
			   const char *usage_name)
{
	char folder[PATH_MAX], path[PATH_MAX + 64];
	uint64_t room = UINT64_MAX;

	snprintf(folder, sizeof folder, "%s%s", top, group);
	for (;;) {
		uint64_t max, usage;
		char *slash;

		snprintf(path, sizeof path, "%s/%s", folder, max_name);
		max = read_number(path);
		snprintf(path, sizeof path, "%s/%s", folder, usage_name);
		usage = read_number(path);
		/* version 1 writes a huge number for "no limit" */
		if (max < 1ull << 60 && usage != UINT64_MAX) {
			uint64_t left = max > usage ? max - usage : 0;

			room = left < room ? left : room;
		}
		slash = strrchr(folder, '/');
		if (!slash || (size_t)(slash - folder) < strlen(top))
			return room;
		*slash = 0;
	}
}

static uint64_t cgroup_bytes(const char *root)
{
	char path[PATH_MAX], line[PATH_MAX], top[PATH_MAX];
	uint64_t room = UINT64_MAX, here;
	FILE *file;

	snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		char *controllers = strchr(line, ':'),
		     *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!group)
			continue;
		*group++ = 0;
		group[strcspn(group, "\n")] = 0;
		if (!strcmp(controllers, ":")) {
			snprintf(top, sizeof top, "%s/sys/fs/cgroup", root);
			here = group_room(top, group, "memory.max", "memory.current");
		} else if (strstr(controllers, "memory")) {
			snprintf(top, sizeof top, "%s/sys/fs/cgroup/memory", root);
			here = group_room(top, group, "memory.limit_in_bytes",
					  "memory.usage_in_bytes");
		} else {
			continue;
		}
		room = here < room ? here : room;
	}
	if (file)
		fclose(file);
	return room;
}

void hostmem_look(struct hostmem *memory, const char *root)
{
	uint64_t available = available_bytes(root), group = cgroup_bytes(root);
	uint64_t least = available < group ? available : group;

	memory->group = group < available;
	memory->mib = least == UINT64_MAX ? UINT64_MAX : least >> 20;
}

const char *hostmem_name(const struct hostmem *memory)
{
	return memory->group ? "the control group's limit (cgroup)" : "free memory";
}

uint64_t hostmem_needed_mib(uint32_t guest_mib, uint32_t hosts, uint32_t cpus)
{
	return guest_mib + (uint64_t)hosts * HOST_MIB + (uint64_t)cpus * CPU_MIB;
}

uint32_t hostmem_share_mib(const struct hostmem *memory, uint32_t guest_mib, uint32_t cpus)
{
	uint64_t own = hostmem_needed_mib(0, 1, cpus), left;

	if (!memory->group || own + guest_mib <= memory->mib || memory->mib <= own)
		return 0;
	left = memory->mib - own;
	return (uint32_t)(left - left / SPARE_PART);
}
