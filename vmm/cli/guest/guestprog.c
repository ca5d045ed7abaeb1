/* guestprog.c - see guestprog.h.
 *
 * A command is searched for in this order:
 *   a name without '/'    the guest's own programs (as its shell finds them), then the top of
 *                         --share DIR
 *   a relative path       below --share DIR, then below the current folder of the host
 *   an absolute path      the host, then the guest's own programs
 * A file of the host must be a 32-bit program, or a script whose interpreter the guest has.
 */
#include "vmm/cli/guest/guestprog.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/cli/guest/elfdeps.h"
#include "vmm/cli/guest/guestplace.h"
#include "vmm/cli/guest/initramfs.h"
#include "vmm/cli/guest/ldcache.h"
#include "vmm/cli/guest/libgomp.h"

#define SHARE "/share"
#define PROGRAMS "/vmp/bin"

struct guestprog {
	const struct options *o;
	const struct image *image;
	struct initramfs archive;
	struct elfdeps deps;
	char host_path[PATH_MAX];  /* the program on the host, or "" */
	char guest_path[PATH_MAX]; /* argv[0] in the guest */
	bool copy;		   /* copy it to PROGRAMS, since it is not in the share */
};

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

/* The command is a name: of a program of the guest, or of a file in the share. */
static int find_by_name(struct guestprog *g, const char *name, struct problem *p)
{
	char found[PATH_MAX];

	snprintf(g->guest_path, sizeof g->guest_path, "%s", name);
	if (image_find_command(g->image, name, found, sizeof found))
		return 0;
	if (g->o->share && snprintf(found, sizeof found, "%s/%s", g->o->share, name) < PATH_MAX &&
	    is_file(found)) {
		snprintf(g->host_path, sizeof g->host_path, "%s", found);
		snprintf(g->guest_path, sizeof g->guest_path, SHARE "/%.4000s", name);
		return 0;
	}
	if (is_file(name) && access(name, X_OK))
		return problem(p, "no such command: %s is a file of this computer, and no program; "
			       "a disk is --disk %s, a root --root %s, an initrd --image %s", name,
			       name, name, name);
	return problem(p, "no such command: %s is not a program of the guest%s%s; a 32-bit program "
		       "of this computer is named by its path, as in ./%s; another root is --root "
		       "DIR|TAR|IMAGE", name, g->o->share ? ", nor in " : "",
		       g->o->share ? g->o->share : "", name);
}

static int find_by_path(struct guestprog *g, const char *path, struct problem *p)
{
	const char *name = strrchr(path, '/') + 1;

	snprintf(g->guest_path, sizeof g->guest_path, "%s", path);
	if (*path == '/' && !is_file(path) && image_has(g->image, path))
		return 0;
	if (*path != '/' && g->o->share &&
	    snprintf(g->host_path, sizeof g->host_path, "%s/%s", g->o->share, path) < PATH_MAX &&
	    is_file(g->host_path)) {
		/* The guest starts in the share, where the relative path is the same, unless there
		 * is --workdir. */
		if (g->o->workdir)
			snprintf(g->guest_path, sizeof g->guest_path, SHARE "/%.4000s", path);
		return 0;
	}
	snprintf(g->host_path, sizeof g->host_path, "%s", path);
	snprintf(g->guest_path, sizeof g->guest_path, PROGRAMS "/%.4000s", name);
	g->copy = true;
	if (access(path, F_OK))
		return problem(p, "no such command: %s: %s%s", path, strerror(errno),
			       strchr("./", *path) ? "" : "; another root is --root DIR|TAR|IMAGE");
	if (!is_file(path))
		return problem(p, "%s is a folder, not a program", path);
	return 0;
}

static int check_script(struct guestprog *g, struct problem *p)
{
	char interpreter[PATH_MAX], argument[PATH_MAX], found[PATH_MAX];

	if (elfdeps_script_interpreter(g->host_path, interpreter, argument, sizeof interpreter, p))
		return -1;
	if (!image_has(g->image, interpreter))
		return problem(p, "the script %s needs %s, which the guest does not have",
			       g->host_path, interpreter);
	if (!strcmp(strrchr(interpreter, '/') + 1, "env") && *argument && *argument != '-' &&
	    !strchr(argument, '=') && !image_find_command(g->image, argument, found, sizeof found))
		return problem(p, "the script %s needs %s, which the guest does not have",
			       g->host_path, argument);
	return 0;
}

static int refuse_64_bit(const struct guestprog *g, struct problem *p)
{
	const char *name = strrchr(g->host_path, '/') + 1;
	char found[PATH_MAX], hint[160] = "";

	if (image_find_command(g->image, name, found, sizeof found) && strlen(name) < 64)
		snprintf(hint, sizeof hint, "; the guest's own is named without a path: %s", name);
	return problem(p, "%s is a 64-bit program, and the guest is a 32-bit machine; build it "
		       "with gcc -m32%s",
		       g->host_path, hint);
}

/* Checks whether a program of the host can run in the guest, and finds what it needs there. */
static int check_program(struct guestprog *g, struct problem *p)
{
	int kind = elfdeps_file_kind(g->host_path, p);

	if (kind < 0)
		return -1;
	if (access(g->host_path, X_OK))
		return problem(p, "%s is not executable; chmod +x makes it so", g->host_path);
	switch (kind) {
	case FILE_ELF32:
		return elfdeps_add(&g->deps, g->host_path, "", p);
	case FILE_SCRIPT:
		return check_script(g, p);
	case FILE_ELF64:
		return refuse_64_bit(g, p);
	case FILE_ELF_OTHER:
		return problem(p, "%s is a program for another processor; the guest is 32-bit x86 "
			       "(gcc -m32)",
			g->host_path);
	}
	return problem(p, "%s is neither a program nor a script that starts with #!", g->host_path);
}

/* For the callback: nftw() passes no argument of the caller's. */
static struct elfdeps *needs;

static int on_shared_file(const char *path, const struct stat *st, int type, struct FTW *where)
{
	struct problem ignored;

	(void)where;
	if (type == FTW_F && S_ISREG(st->st_mode) && st->st_mode & 0111 &&
	    elfdeps_file_kind(path, &ignored) == FILE_ELF32)
		elfdeps_add(needs, path, "", &ignored);
	return 0;
}

/* Adds the libraries of the share's other programs, as far as the host has them. */
static void add_share_needs(struct guestprog *g)
{
	enum { OPEN_FOLDERS = 16 };

	needs = &g->deps;
	nftw(g->o->share, on_shared_file, OPEN_FOLDERS, FTW_PHYS);
}

static int check_share(const struct options *o, struct problem *p)
{
	int64_t limit = ((int64_t)o->machine.mem_mib << 20) / 4, bytes;
	struct stat st;

	if (stat(o->share, &st))
		return problem(p, "--share %s: %s%s", o->share, strerror(errno),
			       errno == ENOENT && options_has_words(o->share)
				       ? "; behind DIR may come ,live, and then ,ro"
				       : "");
	if (!S_ISDIR(st.st_mode))
		return problem(p, "--share %s: not a folder", o->share);
	if (o->share_live)
		return 0;
	bytes = initramfs_tree_bytes(o->share, limit);
	if (bytes < 0)
		return problem(p, "--share %s: %s", o->share, strerror(-bytes));
	if (bytes > limit)
		return problem(p, "--share %s: larger than a quarter of the guest's memory "
			       "(%lld MiB of %u MiB); give more --mem or share less",
			       o->share, (long long)(limit >> 20), o->machine.mem_mib);
	return 0;
}

static void add_libraries(struct guestprog *g)
{
	static uint8_t cache[LDCACHE_BYTES]; /* large */
	char folder[MAX_HOST_PATH], path[2 * MAX_HOST_PATH];
	const char *where;

	if (!*g->deps.loader)
		return;
	elfdeps_add_optional(&g->deps, "libgcc_s.so.1", "");
	libgomp_choose(&g->deps, g->o->machine.hosts, g->o->machine.without);
	where = elfdeps_folder(&g->deps, folder, sizeof folder);
	initramfs_add_file(&g->archive, g->deps.loader, g->deps.loader);
	for (size_t i = 0; i < g->deps.n; i++) {
		snprintf(path, sizeof path, "%s/%s", where, g->deps.library[i].name);
		initramfs_add_file(&g->archive, path, g->deps.library[i].path);
	}
	initramfs_add_bytes(&g->archive, "/etc/ld.so.cache", 0644, cache,
			    ldcache_build(&g->deps, where, cache));
}

/* Adds a file of strings, each with its NUL. */
static void add_strings(struct initramfs *archive, const char *path, const char *const *strings,
			size_t n)
{
	size_t bytes = 0, at = 0;
	char *all;

	for (size_t i = 0; i < n; i++)
		bytes += strlen(strings[i]) + 1;
	all = malloc(bytes + 1);
	if (!all) {
		archive->error = archive->error ? archive->error : -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(all + at, strings[i], strlen(strings[i]) + 1);
		at += strlen(strings[i]) + 1;
	}
	initramfs_add_bytes(archive, path, 0644, all, bytes);
	free(all);
}

static void add_environment(struct guestprog *g)
{
	const char *strings[MAX_ENV_OPTIONS + 2];
	const char *language = guestplace_language(), *terminal = getenv("TERM");
	char term[64];
	size_t n = 0;

	snprintf(term, sizeof term, "TERM=%s",
		 terminal && *terminal && strlen(terminal) < 48 ? terminal : "vt100");
	strings[n++] = term;
	if (language)
		strings[n++] = language;
	for (uint32_t i = 0; i < g->o->n_env; i++)
		strings[n++] = g->o->env[i];
	add_strings(&g->archive, "/vmp/environ", strings, n);
}

static void add_command(struct guestprog *g)
{
	char **command = g->o->command;
	size_t n = 0;
	char *first;

	if (!command)
		return;
	while (command[n])
		n++;
	first = command[0];
	command[0] = g->guest_path;
	add_strings(&g->archive, "/vmp/command", (const char *const *)command, n);
	command[0] = first;
}

/* Which disk is the root, and what runs there (guest/root.c). */
static void add_root(struct guestprog *g)
{
	const char *const strings[] = {
		g->o->root_device,
		g->o->root_read_only ? "ro" : "rw",
		options_root_boots(g->o) ? "init" : "command",
	};

	if (*g->o->root_device)
		add_strings(&g->archive, "/vmp/root", strings, ARRAY_LEN(strings));
}

static int write_archive(struct guestprog *g, int fd, struct problem *p)
{
	int64_t limit = ((int64_t)g->o->machine.mem_mib << 20) / 4;
	int error;

	initramfs_start(&g->archive, fd);
	if (g->o->share_live) { /* for the guest's init, which mounts it */
		initramfs_add_folder(&g->archive, SHARE, 0755);
		initramfs_add_bytes(&g->archive, "/vmp/live", 0644,
				    g->o->share_read_only ? "ro" : "rw", 3);
	} else if (g->o->share)
		initramfs_add_tree(&g->archive, SHARE, g->o->share);
	if (g->archive.left_out)
		log_warn("--share %s: %u sockets or devices are left out, %s first", g->o->share,
			 g->archive.left_out, g->archive.first_left_out);
	add_libraries(g);
	if (g->copy)
		initramfs_add_file(&g->archive, g->guest_path, g->host_path);
	guestplace_add(&g->archive, g->o, "");
	add_environment(g);
	add_command(g);
	add_root(g);
	error = initramfs_finish(&g->archive);
	if (error && *g->archive.failed)
		return problem(p, "cannot copy %s into the guest: %s", g->archive.failed,
			       strerror(-error));
	if (error)
		return problem(p, "cannot make the archive for the guest: %s", strerror(-error));
	if ((int64_t)g->archive.bytes > limit)
		return problem(p, "the share, the program and its libraries are larger than a "
			       "quarter of the guest's memory (%lld MiB of %u MiB); give more "
			       "--mem",
			(long long)(limit >> 20), g->o->machine.mem_mib);
	return 0;
}

/* The command and the user are those of the guest.  What a root has, the guest will see. */
static int find_command(struct guestprog *g, struct problem *p)
{
	const struct options *o = g->o;
	const char *name = o->command ? o->command[0] : NULL;

	if (*o->root_device) {
		snprintf(g->guest_path, sizeof g->guest_path, "%s", name ? name : "");
		return 0;
	}
	if (name && (strchr(name, '/') ? find_by_path(g, name, p) : find_by_name(g, name, p)))
		return -1;
	if (o->user && (*o->user < '0' || *o->user > '9') && !image_has_user(g->image, o->user))
		return problem(p, "--user %s: the guest has no such user; give a number, as 1000",
			       o->user);
	return *g->host_path ? check_program(g, p) : 0;
}

int guestprog_archive(const struct options *o, const struct image *image, struct problem *p)
{
	static struct guestprog g; /* large */
	int fd;

	memset(&g, 0, sizeof g);
	g.o = o;
	g.image = image;
	if (o->share && check_share(o, p))
		return -1;
	if (find_command(&g, p))
		return -1;
	if (o->share && !o->share_live)
		add_share_needs(&g);
	fd = memfd_create("vmp-archive", MFD_CLOEXEC);
	if (fd < 0)
		return problem(p, "cannot make the archive for the guest: %s", strerror(errno));
	if (write_archive(&g, fd, p)) {
		close(fd);
		return -1;
	}
	return fd;
}
