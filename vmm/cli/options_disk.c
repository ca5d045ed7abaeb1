/* options_disk.c - what --disk and --root say about images. */
#include "vmm/cli/options_private.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IDE_SUFFIX ",ide"

bool options_disk_is_ide(const char *spec)
{
	size_t n = strlen(spec), suffix = strlen(IDE_SUFFIX);

	return n > suffix && !strcmp(spec + n - suffix, IDE_SUFFIX);
}

unsigned options_ide_disks(const struct machine *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->disk.n; i++)
		n += options_disk_is_ide(m->disk.item[i]);
	return n;
}

bool options_has_words(const char *path)
{
	const char *comma = strrchr(path, ',');
	char before[PATH_MAX];

	for (; comma; comma = memrchr(path, ',', (size_t)(comma - path))) {
		snprintf(before, sizeof before, "%.*s", (int)(comma - path), path);
		if (comma > path && !access(before, F_OK))
			return true;
	}
	return false;
}

const char *options_disk_written(const struct machine *m)
{
	size_t ignored;

	for (unsigned i = 0; i < m->disk.n; i++)
		if (options_disk_mode(m->disk.item[i], &ignored) == DISK_READ_WRITE)
			return m->disk.item[i];
	return NULL;
}

bool options_root_boots(const struct options *o)
{
	return o->verb == VERB_UP || !o->command;
}

enum disk_mode options_disk_mode(const char *spec, size_t *path_bytes)
{
	static const struct { const char *suffix; enum disk_mode mode; } modes[] = {
		{ ",ro", DISK_READ_ONLY }, { ",snapshot", DISK_SNAPSHOT },
	};
	size_t n = strlen(spec) - (options_disk_is_ide(spec) ? strlen(IDE_SUFFIX) : 0);

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		size_t suffix = strlen(modes[i].suffix);

		if (n > suffix && !strncmp(spec + n - suffix, modes[i].suffix, suffix)) {
			*path_bytes = n - suffix;
			return modes[i].mode;
		}
	}
	*path_bytes = n;
	return DISK_READ_WRITE;
}
