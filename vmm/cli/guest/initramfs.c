/* initramfs.c - see initramfs.h. The format is "newc" (cpio(5)): a header of 110 hexadecimal characters, the name and the
 * bytes, each padded to four.  Owners are root, times zero: the same input gives the same archive.
 */
#include "vmm/cli/guest/initramfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 110, COPY_BYTES = 65536 };

static void fail(struct initramfs *archive, int error)
{
	if (!archive->error)
		archive->error = error;
}

static void put(struct initramfs *archive, const void *bytes, size_t n)
{
	const char *at = bytes;

	archive->bytes += n;
	while (n && !archive->error) {
		ssize_t done = write(archive->fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			fail(archive, -errno);
			return;
		}
		at += done;
		n -= done;
	}
}

static void pad(struct initramfs *archive)
{
	put(archive, "\0\0\0", -archive->bytes & 3);
}

/* Header and name; `bytes` of contents must follow, then pad(). */
static void put_header(struct initramfs *archive, const char *name, mode_t mode, uint64_t bytes)
{
	char header[HEADER_BYTES + 1];

	if (bytes > UINT32_MAX) {
		fail(archive, -EFBIG);
		return;
	}
	snprintf(header, sizeof header, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", archive->next_inode++,
		 mode, 0, 0, S_ISDIR(mode) ? 2 : 1, 0, (unsigned)bytes, 0, 0, 0, 0, (unsigned)strlen(name) + 1, 0);
	put(archive, header, HEADER_BYTES);
	put(archive, name, strlen(name) + 1);
	pad(archive);
}

static bool has_folder(const struct initramfs *archive, const char *path)
{
	for (size_t i = 0; i < archive->n_folders; i++)
		if (!strcmp(archive->folders[i], path))
			return true;
	return false;
}

static void remember_folder(struct initramfs *archive, const char *path)
{
	char **folders = reallocarray(archive->folders, archive->n_folders + 1, sizeof *folders);
	char *copy = strdup(path);

	if (folders)
		archive->folders = folders;
	if (!folders || !copy) {
		free(copy);
		fail(archive, -ENOMEM);
		return;
	}
	folders[archive->n_folders++] = copy;
}

static void add_parents(struct initramfs *archive, const char *path)
{
	char folder[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (slash - path >= PATH_MAX) {
			fail(archive, -ENAMETOOLONG);
			return;
		}
		memcpy(folder, path, slash - path);
		folder[slash - path] = 0;
		initramfs_add_folder(archive, folder, 0755);
	}
}

void initramfs_start(struct initramfs *archive, int fd)
{
	*archive = (struct initramfs){ .fd = fd, .next_inode = 1 };
}

void initramfs_add_folder(struct initramfs *archive, const char *path, mode_t mode)
{
	if (!path[1] || has_folder(archive, path)) /* the root is there */
		return;
	add_parents(archive, path);
	remember_folder(archive, path);
	put_header(archive, path + 1, S_IFDIR | (mode & 07777), 0);
}

void initramfs_add_bytes(struct initramfs *archive, const char *path, mode_t mode, const void *bytes, size_t n)
{
	add_parents(archive, path);
	put_header(archive, path + 1, S_IFREG | (mode & 07777), n);
	put(archive, bytes, n);
	pad(archive);
}

void initramfs_add_link(struct initramfs *archive, const char *path, const char *target)
{
	add_parents(archive, path);
	put_header(archive, path + 1, S_IFLNK | 0777, strlen(target));
	put(archive, target, strlen(target));
	pad(archive);
}

/* Exactly `bytes` bytes, as the header has promised. */
static void copy_contents(struct initramfs *archive, int fd, uint64_t bytes)
{
	static char buffer[COPY_BYTES];

	while (bytes && !archive->error) {
		size_t part = bytes < COPY_BYTES ? bytes : COPY_BYTES;
		ssize_t n = read(fd, buffer, part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fail(archive, -errno);
			return;
		}
		if (n == 0)
			memset(buffer, 0, n = part);
		put(archive, buffer, n);
		bytes -= n;
	}
}

void initramfs_add_file(struct initramfs *archive, const char *path, const char *host_path)
{
	int fd = open(host_path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0) {
		fail(archive, -errno);
		return;
	}
	if (fstat(fd, &st)) {
		fail(archive, -errno);
	} else if (!S_ISREG(st.st_mode)) {
		fail(archive, -EINVAL);
	} else {
		add_parents(archive, path);
		put_header(archive, path + 1, S_IFREG | (st.st_mode & 07777), st.st_size);
		copy_contents(archive, fd, st.st_size);
		pad(archive);
	}
	close(fd);
}

static void add_entry(struct initramfs *archive, const char *path, const char *host_path)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(host_path, &st)) {
		fail(archive, -errno);
	} else if (S_ISDIR(st.st_mode)) {
		initramfs_add_folder(archive, path, st.st_mode);
		initramfs_add_tree(archive, path, host_path);
	} else if (S_ISREG(st.st_mode)) {
		initramfs_add_file(archive, path, host_path);
	} else if (S_ISLNK(st.st_mode)) {
		n = readlink(host_path, target, sizeof target - 1);
		if (n < 0) {
			fail(archive, -errno);
			return;
		}
		target[n] = 0;
		initramfs_add_link(archive, path, target);
	}
}

void initramfs_add_tree(struct initramfs *archive, const char *path, const char *host_path)
{
	DIR *folder = opendir(host_path);
	struct dirent *entry;

	if (!folder) {
		fail(archive, -errno);
		return;
	}
	initramfs_add_folder(archive, path, 0755);
	while (!archive->error && (entry = readdir(folder))) {
		char inside[PATH_MAX], outside[PATH_MAX];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= PATH_MAX ||
		    snprintf(outside, sizeof outside, "%s/%s", host_path, entry->d_name) >= PATH_MAX)
			fail(archive, -ENAMETOOLONG);
		else
			add_entry(archive, inside, outside);
	}
	closedir(folder);
}

int initramfs_finish(struct initramfs *archive)
{
	put_header(archive, "TRAILER!!!", 0, 0);
	for (size_t i = 0; i < archive->n_folders; i++)
		free(archive->folders[i]);
	free(archive->folders);
	archive->folders = NULL;
	archive->n_folders = 0;
	return archive->error;
}

int64_t initramfs_tree_bytes(const char *host_path, int64_t limit)
{
	DIR *folder = opendir(host_path);
	struct dirent *entry;
	int64_t total = 0;

	if (!folder)
		return -errno;
	while (total <= limit && (entry = readdir(folder))) {
		char path[PATH_MAX];
		struct stat st;
		int64_t below = 0;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		total += HEADER_BYTES + strlen(entry->d_name);
		if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode))
			below = st.st_size;
		else if (S_ISDIR(st.st_mode) && snprintf(path, sizeof path, "%s/%s", host_path, entry->d_name) < PATH_MAX)
			below = initramfs_tree_bytes(path, limit - total);
		if (below < 0) {
			total = below;
			break;
		}
		total += below;
	}
	closedir(folder);
	return total;
}
