/* initramfs.h - a small writer of newc cpio archives, and what the appended archive holds for the guest's init.
 *
 * The guest's base image (scripts/guest-image) is followed by an uncompressed archive that vmp writes for each run; the
 * kernel unpacks both into one root file system.  The contract with the guest's init:
 *
 *   /vmp/command   the command: its arguments, each ended by a NUL byte; argv[0] is found through PATH unless it holds '/'.
 *                  If the file is absent, init starts an interactive shell on the console instead.
 *   /vmp/environ   NAME=VALUE strings, each ended by a NUL byte, to be put into the command's environment (over init's
 *                  own defaults); always there.
 *   /vmp/cwd       the folder in which the command or shell starts, ended by a NUL byte; always there.
 *   /share/...     the copy of --share DIR, if given (then /vmp/cwd is "/share").
 *   /vmp/bin/NAME  a program that was named by a path on the host; scripts find their interpreter in the guest.
 *   libraries      at their own absolute path on the host (the loader), and in one folder (the rest), with an /etc/ld.so.cache.
 */
#ifndef VMM_CLI_GUEST_INITRAMFS_H
#define VMM_CLI_GUEST_INITRAMFS_H

#include <sys/types.h>
#include "base/types.h"

/* Writes to `fd`, which is seekable or not. The first error sticks and is returned by initramfs_finish(). */
struct initramfs {
	int fd;
	int error; /* 0 or the first -errno */
	uint32_t next_inode;
	uint64_t bytes; /* written so far */
	/* Folders already in the archive, so that each is made once. Owned; freed by initramfs_finish(). */
	char **folders;
	size_t n_folders;
	void *linked; /* the host's files of several names that are in the archive, a tree of tsearch(3); owned likewise */
	uint32_t left_out; /* sockets and devices that were not copied, and the first of them */
	char first_left_out[256];
};

void initramfs_start(struct initramfs *archive, int fd);

/* Add one thing. `path` is absolute, as the guest sees it; missing parent folders are added with mode 0755. */
void initramfs_add_folder(struct initramfs *archive, const char *path, mode_t mode);
void initramfs_add_bytes(struct initramfs *archive, const char *path, mode_t mode, const void *bytes, size_t n);
void initramfs_add_link(struct initramfs *archive, const char *path, const char *target);
/* A regular file of the host. A file that shrinks meanwhile is filled up with zeros, one that grows is cut off. */
void initramfs_add_file(struct initramfs *archive, const char *path, const char *host_path);
/* A folder of the host with all below it; times of change, links and FIFOs stay what they are.
 * Sockets and devices are left out, and counted. */
void initramfs_add_tree(struct initramfs *archive, const char *path, const char *host_path);

/* End the archive. 0, or the first error. */
int initramfs_finish(struct initramfs *archive);

/* Bytes that initramfs_add_tree() would take, or -errno; stops counting above `limit`. */
int64_t initramfs_tree_bytes(const char *host_path, int64_t limit);

#endif
