/* rootdisk.c - see rootdisk.h.  A folder and an archive become an image by `vmp-image pack`, in the
 * folder for temporary files.  Its name is removed as soon as it is open, so that nothing is left
 * behind, whichever process dies; the I/O server opens it through /proc. */
#include "vmm/cli/image/rootdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "vmm/cli/image/image.h"

enum { MAGIC_AT = 56, MAGIC = 0xef53, LABEL_AT = 120, LABEL_BYTES = 16 };

/* Returns whether this is the superblock of ext2, ext3 or ext4; its name is in `label`. */
static bool is_ext(const uint8_t block[SUPERBLOCK_BYTES], char label[17])
{
	memcpy(label, block + LABEL_AT, LABEL_BYTES);
	label[LABEL_BYTES] = 0;
	return (block[MAGIC_AT] | block[MAGIC_AT + 1] << 8) == MAGIC;
}

/* Returns whether the file `path`, of `n` bytes, is such an image. */
static bool is_image(const char *path, size_t n, char label[17])
{
	uint8_t block[SUPERBLOCK_BYTES];
	char name[PATH_MAX];
	bool found = false;
	int fd = -1;

	if (snprintf(name, sizeof name, "%.*s", (int)n, path) < (int)sizeof name)
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && pread(fd, block, sizeof block, SUPERBLOCK_AT) == sizeof block)
		found = is_ext(block, label);
	if (fd >= 0)
		close(fd);
	return found;
}

/* ---- A signal while an image is packed ---- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
static volatile pid_t packer;
static volatile sig_atomic_t ended_by;

/* Ends the packer, which removes what it has made; the rest is done when it is gone. */
static void on_ending(int signal)
{
	int error = errno;

	ended_by = signal;
	if (packer > 0)
		kill(packer, SIGTERM);
	errno = error;
}

/* A signal that is ignored stays so. */
static void catch_ending(struct sigaction before[ARRAY_LEN(ending)])
{
	const struct sigaction ours = { .sa_handler = on_ending, .sa_flags = SA_RESTART };

	for (unsigned i = 0; i < ARRAY_LEN(ending); i++) {
		sigaction(ending[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(ending[i], &ours, NULL);
	}
}

static void leave_ending(const struct sigaction before[ARRAY_LEN(ending)])
{
	for (unsigned i = 0; i < ARRAY_LEN(ending); i++)
		sigaction(ending[i], &before[i], NULL);
	if (ended_by)
		raise(ended_by);
}

/* Forks.  A signal waits until the parent knows the child's number. */
static pid_t fork_packer(void)
{
	sigset_t these, before;
	pid_t pid;

	sigemptyset(&these);
	for (unsigned i = 0; i < ARRAY_LEN(ending); i++)
		sigaddset(&these, ending[i]);
	sigprocmask(SIG_BLOCK, &these, &before);
	pid = fork();
	packer = pid;
	if (pid > 0 && ended_by)
		kill(pid, SIGTERM);
	if (!pid)
		for (unsigned i = 0; i < ARRAY_LEN(ending); i++) {
			struct sigaction its;

			sigaction(ending[i], NULL, &its);
			if (its.sa_handler == on_ending)
				signal(ending[i], SIG_DFL);
		}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* ---- A folder or an archive ---- */

static void become_packer(const char *source, const char *file, int errors, pid_t parent)
{
	char program[PATH_MAX], *arguments[] = { program, "pack", (char *)source, (char *)file,
						 NULL };

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(errors, 2) < 0 || dup2(2, 1) < 0)
		_exit(EXIT_VMP_FAILURE);
	if (!image_program(program, sizeof program))
		execv(program, arguments);
	dprintf(2, "cannot run %s: %s\n", program, strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

/* Reads to the end; keeps the last line, without the packer's name. */
static void last_line(int fd, char *line, size_t bytes)
{
	FILE *lines = fdopen(fd, "r");
	char one[512];

	*line = 0;
	while (lines && fgets(one, sizeof one, lines)) {
		one[strcspn(one, "\n")] = 0;
		snprintf(line, bytes, "%s", one + strlen(IMAGE_SAYS) *
							  !strncmp(one, IMAGE_SAYS,
								   strlen(IMAGE_SAYS)));
	}
	if (lines)
		fclose(lines);
	else
		close(fd);
}

static int run_packer(const char *source, const char *file, struct problem *p)
{
	char line[512];
	int ends[2], status = 0;
	pid_t parent = getpid(), pid;

	if (pipe2(ends, O_CLOEXEC) || (pid = fork_packer()) < 0)
		return problem(p, "--root %s: %s", source, strerror(errno));
	if (!pid)
		become_packer(source, file, ends[1], parent);
	close(ends[1]);
	last_line(ends[0], line, sizeof line);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	packer = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return problem(p, "--root: %s", *line ? line : "vmp-image was killed");
}

/* Returns the open image, or -1 with the problem. */
static int pack(const char *source, struct problem *p)
{
	const char *temporary = getenv("TMPDIR");
	char folder[PATH_MAX - 16], file[PATH_MAX];
	struct sigaction before[ARRAY_LEN(ending)];
	int fd = -1;

	snprintf(folder, sizeof folder, "%s/vmp-root.XXXXXX",
		 temporary && *temporary ? temporary : "/var/tmp");
	catch_ending(before);
	if (!mkdtemp(folder)) {
		problem(p, "--root: cannot make a folder %s: %s; see TMPDIR", folder,
			strerror(errno));
		leave_ending(before);
		return -1;
	}
	snprintf(file, sizeof file, "%s/image", folder);
	if (!run_packer(source, file, p)) {
		fd = open(file, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			problem(p, "--root: cannot open %s: %s", file, strerror(errno));
	}
	unlink(file);
	rmdir(folder);
	leave_ending(before);
	return fd;
}

/* A guest that restarts its machine finds what it has written. */
static int packed = -1;

static int name_packed(struct options *o, const char *source, struct problem *p)
{
	if (packed < 0)
		packed = pack(source, p);
	if (packed < 0)
		return -1;
	snprintf(o->root_image, sizeof o->root_image, "/proc/%d/fd/%d", getpid(), packed);
	return 0;
}

/* ---- Which disk ---- */

static int add_disk(struct options *o, const char *spec, struct problem *p)
{
	struct machine_list *disks = &o->machine.disk;

	if (disks->n == ARRAY_LEN(disks->item))
		return problem(p, "--root is one more disk, and there are %u already", disks->n);
	disks->item[disks->n++] = spec;
	return 0;
}

/* The disk number `disk` is the root: the driver gives letters to the virtio disks in order. */
static void say_which(struct options *o, unsigned disk)
{
	unsigned letter = 0;
	size_t n;

	for (unsigned i = 0; i < disk; i++)
		letter += !options_disk_is_ide(o->machine.disk.item[i]);
	snprintf(o->root_device, sizeof o->root_device, "/dev/vd%c", 'a' + letter);
	o->root_read_only = options_disk_mode(o->machine.disk.item[disk], &n) == DISK_READ_ONLY;
	if (options_root_boots(o) && !o->machine.net)
		o->machine.net = "user";
}

static int choose_given(struct options *o, struct problem *p)
{
	char label[17];
	struct stat st;
	size_t n;

	if (options_disk_is_ide(o->root))
		return problem(p, "--root %s: the root is a virtio disk; without ,ide", o->root);
	options_disk_mode(o->root, &n);
	if (is_image(o->root, n, label))
		return add_disk(o, o->root, p);
	if (o->root[n] && !stat(o->root, &st))
		n = strlen(o->root); /* the comma belongs to the name */
	if (o->root[n])
		return problem(p, "--root %s: %.*s is not an image of ext4; a folder or an "
			       "archive takes no %s", o->root, (int)n, o->root, o->root + n);
	return name_packed(o, o->root, p) ? -1 : add_disk(o, o->root_image, p);
}

int rootdisk_choose(struct options *o, struct problem *p)
{
	char label[17];

	if (o->root && choose_given(o, p))
		return -1;
	if (o->root)
		say_which(o, o->machine.disk.n - 1);
	for (unsigned i = 0; !o->root && options_root_boots(o) && i < o->machine.disk.n; i++) {
		const char *spec = o->machine.disk.item[i];
		size_t n;

		options_disk_mode(spec, &n);
		if (options_disk_is_ide(spec))
			continue;
		if (is_image(spec, n, label) && !strcmp(label, ROOT_LABEL))
			say_which(o, i);
		break; /* the first disk alone */
	}
	return 0;
}
