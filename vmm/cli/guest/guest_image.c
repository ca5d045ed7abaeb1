/* guest_image.c - see guest_image.h. */
#include "vmm/cli/guest/guest_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { HEADER_BYTES = 110, MAX_NAME_BYTES = 4096, FIELD_SIZE = 6, FIELD_NAME_BYTES = 11 };

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static uint32_t field(const char *header, unsigned index)
{
	char digits[9];

	memcpy(digits, header + 6 + 8 * index, 8);
	digits[8] = 0;
	return strtoul(digits, NULL, 16);
}

static bool skip(gzFile file, uint64_t bytes)
{
	return gzseek(file, (z_off_t)bytes, SEEK_CUR) >= 0;
}

static bool add_path(struct image *image, const char *name)
{
	char **paths;

	if (image->n_paths % 256 == 0) {
		paths = reallocarray(image->paths, image->n_paths + 256, sizeof *paths);
		if (!paths)
			return false;
		image->paths = paths;
	}
	while (*name == '.' || *name == '/')
		name++;
	if (asprintf(&image->paths[image->n_paths], "/%s", name) < 0)
		return false;
	image->n_paths++;
	return true;
}

/* Reads one entry.  Returns 1; 0 at the end of the archive; -1 if it is malformed. */
static int read_entry(struct image *image, gzFile file)
{
	char header[HEADER_BYTES], name[MAX_NAME_BYTES];
	uint32_t bytes, name_bytes;

	if (gzread(file, header, sizeof header) != sizeof header || memcmp(header, "07070", 5))
		return -1;
	bytes = field(header, FIELD_SIZE);
	name_bytes = field(header, FIELD_NAME_BYTES);
	if (!name_bytes || name_bytes > sizeof name ||
	    gzread(file, name, name_bytes) != (int)name_bytes || name[name_bytes - 1])
		return -1;
	if (!strcmp(name, "TRAILER!!!"))
		return 0;
	if (!skip(file, -(HEADER_BYTES + name_bytes) & 3))
		return -1;
	if (!strcmp(name + 2 * !strncmp(name, "./", 2), "etc/passwd") &&
	    bytes < sizeof image->users) {
		if (gzread(file, image->users, bytes) != (int)bytes || !skip(file, -bytes & 3))
			return -1;
		image->users[bytes] = 0;
	} else if (!skip(file, ((uint64_t)bytes + 3) & ~3ull)) {
		return -1;
	}
	return add_path(image, name) ? 1 : -1;
}

int image_load(struct image *image, const char *path, struct problem *p)
{
	gzFile file = gzopen(path, "rbe");
	int result;

	*image = (struct image){ 0 };
	if (!file)
		return problem(p, "cannot read the guest image %s", path);
	do
		result = read_entry(image, file);
	while (result > 0);
	gzclose(file);
	if (result < 0) {
		image_free(image);
		return problem(p, "the guest image %s is no whole cpio archive", path);
	}
	qsort(image->paths, image->n_paths, sizeof *image->paths, compare);
	return 0;
}

void image_free(struct image *image)
{
	for (size_t i = 0; i < image->n_paths; i++)
		free(image->paths[i]);
	free(image->paths);
	*image = (struct image){ 0 };
}

bool image_has(const struct image *image, const char *path)
{
	return image->n_paths &&
	       bsearch(&path, image->paths, image->n_paths, sizeof *image->paths, compare);
}

bool image_has_user(const struct image *image, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = image->users; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ':')
			return true;
	}
	return !*image->users;
}

/* the PATH of guest/init.c */
static const char *const folders[] = { "/bin", "/sbin", "/usr/bin", "/usr/sbin" };

bool image_is_program(const char *path)
{
	size_t n = (size_t)(strrchr(path, '/') - path);

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (strlen(folders[i]) == n && !memcmp(path, folders[i], n))
			return true;
	return false;
}

const char *image_find_command(const struct image *image, const char *name, char *found,
			       size_t bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (snprintf(found, bytes, "%s/%s", folders[i], name) < (int)bytes &&
		    image_has(image, found))
			return found;
	return NULL;
}
