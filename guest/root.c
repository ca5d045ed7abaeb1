/* root.c - a machine whose files are those of a disk: an image of `vmp image`, or any other i386
 * Linux (vmp run --root).
 *
 * The disk is mounted, what init has mounted already moves into it, and it becomes the root.  The
 * files of the base image are not seen any more.  Then the root's own init takes over, or a command
 * runs in it.
 */
#include "guest/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define NEW "/newroot"
#define INIT "/sbin/init"

/* The strings of /vmp/root (vmm/cli/guest/initramfs.h). */
enum { ROOT_DEVICE, ROOT_MODE, ROOT_WHAT, ROOT_STRINGS };

static bool read_plan(char **strings, struct root *root, bool *read_only)
{
	unsigned n = 0;

	while (strings && strings[n])
		n++;
	if (n != ROOT_STRINGS)
		return false;
	*read_only = !strcmp(strings[ROOT_MODE], "ro");
	root->device = strings[ROOT_DEVICE];
	root->boots = !strcmp(strings[ROOT_WHAT], "init");
	return true;
}

/* Moves what is mounted at `where` to the same place of the new root.  A root that cannot be
 * written to must have that folder. */
static void move(const char *where)
{
	char to[64];

	snprintf(to, sizeof to, NEW "%s", where);
	mkdir(to, 0755);
	if (mount(where, to, NULL, MS_MOVE, NULL) < 0)
		complain("the root cannot have", where);
}

/* Says on the console, and on the command's standard error, why nothing starts. */
static void say_outside(const char *line)
{
	int fd = open("/dev/vmp-err", O_WRONLY | O_CLOEXEC);

	fputs(line, stderr);
	if (fd < 0)
		return;
	write_all(fd, line, strlen(line));
	close(fd);
}

/* The share stays where it is, in memory or on the host.  A root that cannot be written to must
 * have the folder, as those of `vmp image` do. */
static bool keep_share(void)
{
	if (access("/share", F_OK) < 0)
		return true;
	if (mkdir(NEW "/share", 0755) < 0 && errno == EROFS) {
		say_outside("init: the root has no folder /share, and cannot get one, since it is "
			    "read only; take ,snapshot instead of ,ro\n");
		return false;
	}
	if (mount("/share", NEW "/share", NULL, MS_BIND | MS_REC, NULL) == 0)
		return true;
	complain("the root cannot have", "/share");
	return false;
}

/* A link that leads to a place below the new root would be followed in the old one: it is not
 * followed. */
static bool has_init(void)
{
	struct stat st;

	return lstat(NEW INIT, &st) == 0;
}

bool root_enter(struct root *root, char **strings)
{
	bool read_only = false;

	if (!read_plan(strings, root, &read_only)) {
		fprintf(stderr, "init: /vmp/root does not say which disk is the root\n");
		return false;
	}
	mkdir(NEW, 0755);
	/* The driver of ext4 mounts ext2 and ext3, too. */
	if (mount(root->device, NEW, "ext4", read_only ? MS_RDONLY : 0, NULL) < 0) {
		complain("cannot mount as the root:", root->device);
		return false;
	}
	root->boots = root->boots && has_init();
	if (!keep_share()) /* while /dev is here, where init reports the status */
		return false;
	move("/dev");
	move("/proc");
	move("/sys");
	move("/run");
	if (!root->boots)
		move("/tmp");
	if (chdir(NEW) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0) {
		complain("cannot enter the root", root->device);
		return false;
	}
	return true;
}

void root_name_servers(void)
{
	static const char ours[] = "/run/vmp-resolv.conf", path[] = "/etc/resolv.conf";
	FILE *file = fopen(ours, "we");
	int fd;

	if (!file || fputs("nameserver 10.0.2.3\n", file) < 0)
		complain("cannot write", ours);
	if (file)
		fclose(file);
	if (mount(ours, path, NULL, MS_BIND, NULL) == 0)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	if (mount(ours, path, NULL, MS_BIND, NULL) < 0)
		complain("cannot replace", path);
}

void root_run_init(void)
{
	static char *const arguments[] = { INIT, NULL };
	static char *const environment[] = { "HOME=/", "TERM=linux", NULL };

	execve(INIT, arguments, environment);
	complain("cannot run the root's", INIT);
}
