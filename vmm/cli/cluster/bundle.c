/* bundle.c - see bundle.h. */
#include "vmm/cli/cluster/bundle.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "vmm/cli/digest.h"

#define SYSTEM_LOADER "/lib64/ld-linux-x86-64.so.2"
enum { BLOCK = 512, RECORD = 10240, MAX_LIBRARIES = 64, LIBRARY_PATH = 512 };

static const char *const programs[] = { "vmp-host",  "vmp-node", "vmp-monitor",
					"vmproc",    "vmp-iosrv", "vmp-net",
					"vmp-share", "vmp-tunnel", "vmp" };
static const char run_vmp[] = "#!/bin/sh\n"
			      "# vmp, with the libraries that lie beside it.\n"
			      "d=$(dirname \"$(readlink -f \"$0\")\")\n"
			      "exec \"$d/" BESIDE_LOADER
			      "\" --library-path \"$d\" \"$d/vmp\" \"$@\"\n";

/* What the programs of one folder need to run. */
struct libraries {
	const char *folder;
	/* the folder also has the loader and the libraries: it is an unpacked bundle */
	bool came_along;
	char loader[LIBRARY_PATH];
	char path[MAX_LIBRARIES][LIBRARY_PATH];
	size_t n;
};

extern char **environ;

/* ---- tar ---- */

/* POSIX.1-1988's header ("ustar"), as far as files need it. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
		magic[8], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "a block");

static int grow(struct bundle *b, size_t more)
{
	uint8_t *data;

	if (b->bytes + more > b->room) {
		b->room = (b->bytes + more) * 3 / 2 + RECORD;
		data = realloc(b->data, b->room);
		if (!data)
			return -1;
		b->data = data;
	}
	memset(b->data + b->bytes, 0, more);
	b->bytes += more;
	return 0;
}

int bundle_put(struct bundle *b, const char *name, const void *data, size_t bytes)
{
	struct tar_header header = { .mode = "0000700",
				     .uid = "0000000",
				     .gid = "0000000",
				     .mtime = "00000000000",
				     .type = '0',
				     .magic = "ustar\00000",
				     .checksum = "        " };
	size_t at = b->bytes, padded = (bytes + BLOCK - 1) / BLOCK * BLOCK;
	unsigned sum = 0;

	if (strlen(name) >= sizeof header.name || grow(b, BLOCK + padded))
		return -1;
	strcpy(header.name, name);
	snprintf(header.size, sizeof header.size, "%011zo", bytes);
	memset(header.checksum, ' ', sizeof header.checksum);
	for (size_t i = 0; i < sizeof header; i++)
		sum += ((const uint8_t *)&header)[i];
	snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
	memcpy(b->data + at, &header, sizeof header);
	if (bytes)
		memcpy(b->data + at + BLOCK, data, bytes);
	return 0;
}

/* Reads the whole file.  Returns 0; or -1 with errno set, which is 0 if the file became shorter. */
static int read_all(int fd, uint8_t *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = read(fd, data, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : 0;
			return -1;
		}
		data += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int put_file(struct bundle *b, const char *name, const char *path, struct problem *p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result = -1;
	struct stat st;
	uint8_t *data = NULL;

	if (fd < 0 || fstat(fd, &st) || !(data = malloc((size_t)st.st_size + 1)) ||
	    read_all(fd, data, (size_t)st.st_size))
		problem(p, "cannot read %s, which other hosts need: %s", path,
			errno ? strerror(errno) : "it became shorter meanwhile");
	else if (bundle_put(b, name, data, (size_t)st.st_size))
		problem(p, "no memory for the programs that other hosts need");
	else
		result = 0;
	free(data);
	if (fd >= 0)
		close(fd);
	return result;
}

/* ---- libraries ---- */

/* Takes a line of the loader's list, such as "	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1
 * (0x00007f...)".  The line of the vDSO has no path; that of the loader has a path as its name. */
static int add_library(struct libraries *all, const char *line, struct problem *p)
{
	const char *name = line + strspn(line, " \t"), *arrow = strstr(name, " => /"),
		   *end = strrchr(name, '(');
	char path[LIBRARY_PATH];

	if (strstr(line, "not found"))
		return problem(p, "a library that other hosts need is missing here:%s", line);
	if (*name == '/' || !arrow || !end || end < arrow)
		return 0;
	if (snprintf(path, sizeof path, "%.*s", (int)(end - arrow - 5), arrow + 4) >=
	    (int)sizeof path)
		return problem(p, "the path of a library that other hosts need is too long:%s",
			       line);
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->path[i], path))
			return 0;
	if (all->n == MAX_LIBRARIES)
		return problem(p, "vmp's programs need more than %d libraries", MAX_LIBRARIES);
	strcpy(all->path[all->n++], path);
	return 0;
}

/* Whether this file names a loader: a static program does not. */
static bool needs_loader(const uint8_t *file, size_t bytes)
{
	Elf64_Ehdr elf;
	Elf64_Phdr part;

	if (bytes < sizeof elf)
		return false;
	memcpy(&elf, file, sizeof elf);
	if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (size_t i = 0; i < elf.e_phnum; i++) {
		size_t at = elf.e_phoff + i * sizeof part;

		if (elf.e_phoff > bytes || at + sizeof part > bytes)
			return false;
		memcpy(&part, file + at, sizeof part);
		if (part.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* Starts the loader, which lists the libraries of a program.  Returns the end of a pipe from which
 * its list is read, or -1 with the problem. */
static int start_list(const struct libraries *all, const char *program, pid_t *pid,
		      struct problem *p)
{
	char *system[] = { (char *)all->loader, "--list", (char *)program, NULL };
	char *own[] = { (char *)all->loader, "--library-path", (char *)all->folder,
			"--list",	     (char *)program,  NULL },
	     *nothing[] = { NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return problem(p, "cannot make a pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	error = posix_spawn(pid, all->loader, &actions, NULL, all->came_along ? own : system,
			    all->came_along ? nothing : environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!error)
		return ends[0];
	close(ends[0]);
	return problem(p, "cannot run %s: %s", all->loader, strerror(error));
}

/* Adds the libraries that the loader would load for a program. */
static int add_libraries(struct libraries *all, const char *program, struct problem *p)
{
	char line[2 * LIBRARY_PATH + 64];
	int fd, result = 0, status;
	pid_t pid;
	FILE *list;

	fd = start_list(all, program, &pid, p);
	if (fd < 0)
		return -1;
	list = fdopen(fd, "r");
	if (!list) {
		result = problem(p, "cannot read the list of libraries: %s", strerror(errno));
		close(fd);
	}
	while (list && !result && fgets(line, sizeof line, list))
		result = add_library(all, line, p);
	if (list)
		fclose(list);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!result && status)
		result = problem(p, "%s cannot list the libraries of %s, which other hosts need",
				 all->loader, program);
	return result;
}

/* ---- all ---- */

static int name_by_contents(struct bundle *b)
{
	unsigned char digest[DIGEST_BYTES];

	if (!digest_of(b->data, b->bytes, digest))
		return -1;
	for (int i = 0; i < BUNDLE_HASH / 2; i++)
		snprintf(b->hash + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

int bundle_make_of(struct bundle *b, const char *folder, struct problem *p)
{
	static struct libraries all;
	char path[LIBRARY_PATH];
	size_t at;

	all.folder = folder;
	all.n = 0;
	all.came_along = !beside_loader(folder, all.loader, sizeof all.loader);
	if (!all.came_along)
		strcpy(all.loader, SYSTEM_LOADER);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		if (snprintf(path, sizeof path, "%s/%s", folder, programs[i]) >= (int)sizeof path)
			return problem(p, "the path of vmp's programs is too long");
		at = b->bytes + BLOCK;
		if (put_file(b, programs[i], path, p))
			return -1;
		if (needs_loader(b->data + at, b->bytes - at) && add_libraries(&all, path, p))
			return -1;
	}
	for (size_t i = 0; i < all.n; i++)
		if (put_file(b, strrchr(all.path[i], '/') + 1, all.path[i], p))
			return -1;
	if (put_file(b, BESIDE_LOADER, all.loader, p))
		return -1;
	/* "complete" is the last file, so that its presence says that all others are there. */
	if (bundle_put(b, "run-vmp", run_vmp, strlen(run_vmp)) ||
	    bundle_put(b, "complete", "", 0) || grow(b, 2 * BLOCK) ||
	    grow(b, (RECORD - b->bytes % RECORD) % RECORD) || name_by_contents(b))
		return problem(p, "no memory for the programs that other hosts need");
	return 0;
}

int bundle_make(struct bundle *b, struct problem *p)
{
	char folder[LIBRARY_PATH];

	if (beside_folder(folder, sizeof folder))
		return problem(p, "the path of vmp's programs is too long");
	return bundle_make_of(b, folder, p);
}

void bundle_free(struct bundle *b)
{
	free(b->data);
	*b = (struct bundle){ 0 };
}
