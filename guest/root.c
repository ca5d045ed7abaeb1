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

/* Says on the console, and on the command's standard error, why nothing starts.  Returns false. */
static bool refuse(const char *what, const char *name)
{
	char line[256];
	int fd, n;

	n = snprintf(line, sizeof line, "init: %s %.64s: %s\n", what, name, strerror(errno));
	fputs(line, stderr);
	fd = open("/dev/vmp-err", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		write_all(fd, line, (size_t)n);
		close(fd);
	}
	return false;
}

/* Makes those folders of the new root on which something will be mounted.  A root that cannot be
 * written to gets those that it lacks from a second layer below it, which holds nothing else. */
static void add_missing(const char *const *folders, size_t n)
{
	static const char layer[] = "/vmp-layer";
	char path[64];
	bool lacks = false;

	mkdir(layer, 0755);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof path, NEW "%s", folders[i]);
		if (mkdir(path, 0755) == 0 || errno != EROFS)
			continue;
		lacks = true;
		snprintf(path, sizeof path, "%s%s", layer, folders[i]);
		mkdir(path, 0755);
	}
	snprintf(path, sizeof path, "lowerdir=" NEW ":%s", layer);
	if (lacks && mount("vmp-root", NEW, "overlay", MS_RDONLY, path) < 0)
		complain("the read-only root cannot have", folders[0]);
}

/* Moves what is mounted at `where` to the same place of the new root. */
static void move(const char *where)
{
	char to[64];

	snprintf(to, sizeof to, NEW "%s", where);
	if (mount(where, to, NULL, MS_MOVE, NULL) < 0)
		complain("the root cannot have", where);
}

/* The share stays where it is, in memory or on the host. */
static bool keep_share(void)
{
	return mount("/share", NEW "/share", NULL, MS_BIND | MS_REC, NULL) == 0 ||
	       refuse("the root cannot have", "/share");
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
	/* without the first one if the root's own init runs, without the last one if nothing is
	 * shared */
	static const char *const folders[] = { "/tmp", "/dev", "/proc", "/sys", "/run", "/share" };
	bool read_only = false, shares = access("/share", F_OK) == 0;

	if (!read_plan(strings, root, &read_only)) {
		fprintf(stderr, "init: /vmp/root does not say which disk is the root\n");
		return false;
	}
	mkdir(NEW, 0755);
	/* The driver of ext4 mounts ext2 and ext3, too. */
	if (mount(root->device, NEW, "ext4", read_only ? MS_RDONLY : 0, NULL) < 0)
		return refuse("cannot mount as the root:", root->device);
	root->boots = root->boots && has_init();
	add_missing(folders + root->boots,
		     sizeof folders / sizeof *folders - root->boots - !shares);
	if (shares && !keep_share()) /* while /dev is here, where init reports the status */
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
