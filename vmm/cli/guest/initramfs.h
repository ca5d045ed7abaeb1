/* initramfs.h - a small writer of newc cpio archives, and what the appended archive holds for the
 * guest's init.
 *
 * The guest's base image (scripts/guest-image) is followed by an uncompressed archive that vmp
 * writes for each run.  The kernel unpacks both into one root file system.  The contract with the
 * guest's init:
 *
 *   /vmp/command   the command: its arguments, each ended by a NUL byte; argv[0] is found
 *                  through PATH unless it holds '/'.  If the file is absent, init starts an
 *                  interactive shell on the console instead.
 *   /vmp/environ   NAME=VALUE strings, each ended by a NUL byte, for the command's
 *                  environment; they override init's own defaults.  Always there.
 *   /vmp/cwd       the folder in which the command or shell starts, ended by a NUL byte; init
 *                  makes it if need be.  Empty: the user's home.  Always there.
 *   /vmp/workdir   is there if --workdir names that folder: without it nothing starts.
 *   /vmp/user      the user of the command or shell: a name of the guest's /etc/passwd, UID or
 *                  UID:GID.  Absent: root.
 *   /etc/hostname, /etc/hosts, /etc/localtime   replace the image's own, where they differ.
 *   /share/...     the copy of --share DIR, if given (then /vmp/cwd is "/share").
 *   /vmp/live      "ro" or "rw", if the folder is live: init mounts it at /share (9p).
 *   /vmp/root      the disk that becomes the root, as strings that each end with a NUL byte: its
 *                  device, "ro" or "rw", and "init" (the root's own init runs, if it has one) or
 *                  "command".  Absent: the image itself is the root.
 *   /vmp/bin/NAME  a program that was named by a path on the host; scripts find their
 *                  interpreter in the guest.
 *   libraries      the loader at its own absolute path on the host, all others in one folder,
 *                  with an /etc/ld.so.cache.
 */
#ifndef VMM_CLI_GUEST_INITRAMFS_H
#define VMM_CLI_GUEST_INITRAMFS_H

#include <sys/types.h>
#include "base/types.h"

/* A writer of an archive.  `fd` need not be seekable.  The first error is kept, and returned by
 * initramfs_finish(). */
struct initramfs {
	int fd;
	int error; /* 0 or the first -errno */
	char failed[256]; /* the file of the host that it is about, or "" */
	uint32_t next_inode;
	uint64_t bytes; /* written so far */
	/* Folders that the archive has already, so that each is made once.  Owned; freed by
	 * initramfs_finish(). */
	char **folders;
	size_t n_folders;
	/* The files of the host with several names that the archive has already: a tree of
	 * tsearch(3), owned likewise. */
	void *linked;
	/* how many sockets and devices were not copied; the first is first_left_out */
	uint32_t left_out;
	char first_left_out[256];
};

void initramfs_start(struct initramfs *archive, int fd);

/* Each of these adds one thing.  `path` is absolute, as the guest sees it; missing parent folders
 * are added with mode 0755. */
void initramfs_add_folder(struct initramfs *archive, const char *path, mode_t mode);
void initramfs_add_bytes(struct initramfs *archive, const char *path, mode_t mode,
			 const void *bytes, size_t n);
/* Adds a regular file of the host.  A file that shrinks meanwhile is filled up with zeros, one that
 * grows is cut off. */
void initramfs_add_file(struct initramfs *archive, const char *path, const char *host_path);
/* Adds a folder of the host with all below it.  Times of change, links and FIFOs are kept.  Sockets
 * and devices are left out, and counted. */
void initramfs_add_tree(struct initramfs *archive, const char *path, const char *host_path);

/* Ends the archive.  Returns 0, or the first error. */
int initramfs_finish(struct initramfs *archive);

/* Returns how many bytes initramfs_add_tree() would write, or -errno if the folder itself cannot be
 * read; what else cannot be read is not counted.  Stops counting above `limit`. */
int64_t initramfs_tree_bytes(const char *host_path, int64_t limit);

#endif
