/* ldcache.c - see ldcache.h. */
#include "vmm/cli/guest/ldcache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS_ELF_LIBC6 = 3 /* i386 */, LITTLE_ENDIAN_FILE = 2 };

struct header {
	char magic[20];
	uint32_t count, string_bytes;
	uint8_t flags, pad[3];
	uint32_t extension, unused[3];
};
/* name and path are offsets from the start of the file */
struct entry { uint32_t flags, name, path, os_version; uint64_t hwcap; };
_Static_assert(sizeof(struct header) == 48 && sizeof(struct entry) == 24, "as in the file");

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

int ldcache_compare(const char *a, const char *b)
{
	while (*a) {
		unsigned long x, y;
		char *after;

		if (is_digit(*a) != is_digit(*b))
			return is_digit(*a) ? 1 : -1;
		if (!is_digit(*a)) {
			if (*a != *b)
				return (signed char)*a - (signed char)*b;
			a++, b++;
			continue;
		}
		x = strtoul(a, &after, 10), a = after;
		y = strtoul(b, &after, 10), b = after;
		if (x != y)
			return x > y ? 1 : -1;
	}
	return (signed char)*a - (signed char)*b;
}

static int descending(const void *a, const void *b)
{
	return ldcache_compare((*(const struct library *const *)b)->name,
			       (*(const struct library *const *)a)->name);
}

size_t ldcache_build(const struct elfdeps *deps, const char *folder, uint8_t out[LDCACHE_BYTES])
{
	struct header header = { .magic = "glibc-ld.so.cache1.1",
				 .count = deps->n,
				 .flags = LITTLE_ENDIAN_FILE };
	size_t strings = sizeof header + deps->n * sizeof(struct entry), at = strings;
	const struct library *sorted[MAX_LIBRARIES];

	for (size_t i = 0; i < deps->n; i++)
		sorted[i] = &deps->library[i];
	qsort(sorted, deps->n, sizeof *sorted, descending);
	for (size_t i = 0; i < deps->n; i++) {
		struct entry entry = { .flags = FLAGS_ELF_LIBC6, .path = at };

		/* the name is the last part of the path */
		at += snprintf((char *)out + at, LDCACHE_BYTES - at, "%s/%s", folder,
			       sorted[i]->name) +
		      1;
		entry.name = at - 1 - strlen(sorted[i]->name);
		memcpy(out + sizeof header + i * sizeof entry, &entry, sizeof entry);
	}
	header.string_bytes = at - strings;
	memcpy(out, &header, sizeof header);
	return at;
}
