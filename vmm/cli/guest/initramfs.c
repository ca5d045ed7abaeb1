/* initramfs.c - see initramfs.h.  The format is "newc" (cpio(5)): a header of 110 hexadecimal
 * characters, then the name and the bytes, each padded to four.  Owners are root.  Files of the
 * host keep their time of change, all others have time 0, so that the same input gives the same
 * archive.  The guest kernel makes hard links of regular files that have the same inode number.
 */
#include "vmm/cli/guest/initramfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 110, COPY_BYTES = 65536 };

/* What the header of an entry says in addition to its name. */
struct archived {
	uint32_t inode, links;
	mode_t mode;
	time_t changed;
	uint64_t bytes;
};

/* A file of the host with several names, and its inode number in the archive. */
struct linked { dev_t device; ino_t inode; uint32_t as; };

static void fail(struct initramfs *archive, int error)
{
	if (!archive->error)
		archive->error = error;
}

/* The error is about a file of the host. */
static void fail_at(struct initramfs *archive, int error, const char *host_path)
{
	if (!archive->error)
		snprintf(archive->failed, sizeof archive->failed, "%.255s", host_path);
	fail(archive, error);
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

/* Returns a time as the header has it: seconds from 1970 to 2106. */
static uint32_t header_time(time_t changed)
{
	return changed < 0 ? 0 : changed > UINT32_MAX ? UINT32_MAX : (uint32_t)changed;
}

/* Writes header and name.  The entry's contents must follow, then pad(). */
static void put_entry(struct initramfs *archive, const char *name, const struct archived *e)
{
	char header[HEADER_BYTES + 1];

	if (e->bytes > UINT32_MAX) {
		fail(archive, -EFBIG);
		return;
	}
	snprintf(header, sizeof header,
		 "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", e->inode, e->mode, 0,
		 0, e->links, header_time(e->changed), (unsigned)e->bytes, 0, 0, 0, 0,
		 (unsigned)strlen(name) + 1, 0);
	put(archive, header, HEADER_BYTES);
	put(archive, name, strlen(name) + 1);
	pad(archive);
}

static void put_header(struct initramfs *archive, const char *name, mode_t mode, time_t changed,
		       uint64_t bytes)
{
	put_entry(archive, name,
		  &(struct archived){ .inode = archive->next_inode++,
				      .links = S_ISDIR(mode) ? 2 : 1,
				      .mode = mode,
				      .changed = changed,
				      .bytes = bytes });
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

static void add_folder(struct initramfs *archive, const char *path, mode_t mode, time_t changed)
{
	if (!path[1] || has_folder(archive, path)) /* the root is always there */
		return;
	add_parents(archive, path);
	remember_folder(archive, path);
	put_header(archive, path + 1, S_IFDIR | (mode & 07777), changed, 0);
}

void initramfs_add_folder(struct initramfs *archive, const char *path, mode_t mode)
{
	add_folder(archive, path, mode, 0);
}

void initramfs_add_bytes(struct initramfs *archive, const char *path, mode_t mode,
			 const void *bytes, size_t n)
{
	add_parents(archive, path);
	put_header(archive, path + 1, S_IFREG | (mode & 07777), 0, n);
	put(archive, bytes, n);
	pad(archive);
}

static void add_link(struct initramfs *archive, const char *path, const char *target,
		     time_t changed)
{
	add_parents(archive, path);
	put_header(archive, path + 1, S_IFLNK | 0777, changed, strlen(target));
	put(archive, target, strlen(target));
	pad(archive);
}

/* Copies exactly as many bytes as the header says; a file that has become shorter is filled up with
 * zeros. */
static void copy_contents(struct initramfs *archive, int fd, uint64_t bytes,
			  const char *host_path)
{
	static char buffer[COPY_BYTES];

	while (bytes && !archive->error) {
		size_t part = bytes < COPY_BYTES ? bytes : COPY_BYTES;
		ssize_t n = read(fd, buffer, part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fail_at(archive, -errno, host_path);
			return;
		}
		if (n == 0)
			memset(buffer, 0, n = part);
		put(archive, buffer, n);
		bytes -= n;
	}
}

static int compare_linked(const void *left, const void *right)
{
	const struct linked *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* Returns the inode number in the archive of a file of the host; sets *again if the archive has its
 * contents already. */
static uint32_t inode_of(struct initramfs *archive, const struct stat *st, bool *again)
{
	struct linked *link, **known;

	*again = false;
	if (st->st_nlink < 2)
		return archive->next_inode++;
	link = malloc(sizeof *link);
	if (link)
		*link = (struct linked){ st->st_dev, st->st_ino, archive->next_inode };
	known = link ? tsearch(link, &archive->linked, compare_linked) : NULL;
	if (!known) {
		free(link);
		fail(archive, -ENOMEM);
		return 0;
	}
	*again = *known != link;
	if (*again)
		free(link);
	else
		archive->next_inode++;
	return (*known)->as;
}

static void copy_file(struct initramfs *archive, const char *path, int fd, const struct stat *st,
		      const char *host_path)
{
	struct archived e = { .mode = S_IFREG | (st->st_mode & 07777), .changed = st->st_mtime };
	bool again;

	add_parents(archive, path);
	e.inode = inode_of(archive, st, &again);
	/* to the guest kernel all numbers above 1 mean the same */
	e.links = st->st_nlink < 2 ? 1 : 2;
	e.bytes = again ? 0 : (uint64_t)st->st_size;
	put_entry(archive, path + 1, &e);
	copy_contents(archive, fd, e.bytes, host_path);
	pad(archive);
}

/* Closes fd. */
static void copy_opened(struct initramfs *archive, const char *path, int fd, const char *host_path)
{
	struct stat st;

	if (fd < 0) {
		fail_at(archive, -errno, host_path);
		return;
	}
	if (fstat(fd, &st))
		fail_at(archive, -errno, host_path);
	else if (!S_ISREG(st.st_mode))
		fail_at(archive, -EINVAL, host_path);
	else
		copy_file(archive, path, fd, &st, host_path);
	close(fd);
}

void initramfs_add_file(struct initramfs *archive, const char *path, const char *host_path)
{
	copy_opened(archive, path, open(host_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), host_path);
}

static void leave_out(struct initramfs *archive, const char *host_path)
{
	if (!archive->left_out++)
		snprintf(archive->first_left_out, sizeof archive->first_left_out, "%.255s",
			 host_path);
}

static void add_opened_folder(struct initramfs *archive, const char *path, int fd,
			      const char *host_path);

/* Adds what is called `name` in the folder `at`.  Other users who may write there could put a link
 * in its place at any moment, so that none is followed. */
static void add_entry(struct initramfs *archive, const char *path, int at, const char *name,
		      const char *host_path)
{
	enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW };
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW)) {
		fail_at(archive, -errno, host_path);
	} else if (S_ISDIR(st.st_mode)) {
		add_folder(archive, path, st.st_mode, st.st_mtime);
		add_opened_folder(archive, path, openat(at, name, FLAGS | O_DIRECTORY), host_path);
	} else if (S_ISREG(st.st_mode)) {
		copy_opened(archive, path, openat(at, name, FLAGS | O_NONBLOCK), host_path);
	} else if (S_ISLNK(st.st_mode)) {
		n = readlinkat(at, name, target, sizeof target - 1);
		if (n < 0) {
			fail_at(archive, -errno, host_path);
			return;
		}
		target[n] = 0;
		add_link(archive, path, target, st.st_mtime);
	} else if (S_ISFIFO(st.st_mode)) {
		add_parents(archive, path);
		put_header(archive, path + 1, S_IFIFO | (st.st_mode & 07777), st.st_mtime, 0);
	} else {
		leave_out(archive, host_path);
	}
}

/* Closes fd. */
static void add_opened_folder(struct initramfs *archive, const char *path, int fd,
			      const char *host_path)
{
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!folder || fstat(fd, &st)) {
		fail_at(archive, -errno, host_path);
		if (folder)
			closedir(folder);
		else if (fd >= 0)
			close(fd);
		return;
	}
	add_folder(archive, path, 0755, st.st_mtime);
	while (!archive->error && (entry = readdir(folder))) {
		char inside[PATH_MAX], outside[PATH_MAX];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= PATH_MAX ||
		    snprintf(outside, sizeof outside, "%s/%s", host_path, entry->d_name) >=
			    PATH_MAX)
			fail_at(archive, -ENAMETOOLONG, host_path);
		else
			add_entry(archive, inside, fd, entry->d_name, outside);
	}
	closedir(folder);
}

void initramfs_add_tree(struct initramfs *archive, const char *path, const char *host_path)
{
	add_opened_folder(archive, path, open(host_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			  host_path);
}

int initramfs_finish(struct initramfs *archive)
{
	put_header(archive, "TRAILER!!!", 0, 0, 0);
	tdestroy(archive->linked, free);
	archive->linked = NULL;
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
		else if (S_ISDIR(st.st_mode) &&
			 snprintf(path, sizeof path, "%s/%s", host_path, entry->d_name) < PATH_MAX)
			below = initramfs_tree_bytes(path, limit - total);
		total += below > 0 ? below : 0; /* who adds it says what cannot be read */
	}
	closedir(folder);
	return total;
}
