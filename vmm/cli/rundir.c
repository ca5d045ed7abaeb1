/* rundir.c - see rundir.h. */
#include "vmm/cli/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/quantity.h"
#include "vmm/shared/private_folder.h"

/* Writes the path of the folder that holds all machines of this user, and makes the folder. */
static int machines_folder(char *path, size_t bytes, struct problem *p)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (runtime && *runtime == '/' && !stat(runtime, &st) && S_ISDIR(st.st_mode) &&
	    st.st_uid == geteuid()) {
		n = snprintf(path, bytes, "%s/vmp", runtime);
	} else {
		n = snprintf(path, bytes, PRIVATE_TMP_FORMAT, geteuid());
		if (private_folder(path, p))
			return -1;
		n += snprintf(path + n, bytes - n, "/vmp");
	}
	if (n >= (int)bytes)
		return problem(p, "the path in XDG_RUNTIME_DIR is too long for sockets: %s",
			       runtime);
	return private_folder(path, p);
}

/* Removes the folders that machines share, when no machine is left in them.  Another vmp that is
 * about to make a machine there sees ENOENT and tries again. */
static void remove_empty(const char *machines)
{
	char ours[32]; /* the folder that machines_folder() makes */
	int n = snprintf(ours, sizeof ours, PRIVATE_TMP_FORMAT, geteuid());

	if (rmdir(machines) || strncmp(machines, ours, (size_t)n) || strcmp(machines + n, "/vmp"))
		return;
	rmdir(ours);
}

static void remove_contents(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
}

static bool is_named(int fd, const char *file)
{
	struct stat named, ours;

	return !fstat(fd, &ours) && !stat(file, &named) && ours.st_ino == named.st_ino &&
	       ours.st_dev == named.st_dev;
}

/* Takes the lock of a machine's folder.  Returns its descriptor; -EWOULDBLOCK if the machine is
 * alive; -ESTALE if the folder was removed between open and lock, so that the file has no name any
 * more. */
static int take_lock(const char *path, int flags)
{
	char file[RUNDIR_PATH + 8];
	int fd;

	snprintf(file, sizeof file, "%s/lock", path);
	fd = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		int error = -errno;

		close(fd);
		return error;
	}
	if (!is_named(fd, file)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static void remove_if_dead(const char *path)
{
	int fd = take_lock(path, O_CREAT);

	if (fd < 0)
		return;
	remove_contents(path);
	rmdir(path);
	close(fd);
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* Lists the living machines, sorted by name, and removes the folders of dead ones. */
static void living_machines(const char *machines, struct rundir_list *list)
{
	DIR *folder = opendir(machines);
	struct dirent *entry;

	list->n = 0;
	while (folder && (entry = readdir(folder))) {
		char path[RUNDIR_PATH + MAX_NAME];
		int fd;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= MAX_NAME)
			continue;
		snprintf(path, sizeof path, "%s/%s", machines, entry->d_name);
		fd = take_lock(path, 0);
		if (fd >= 0)
			close(fd);
		if (fd != -EWOULDBLOCK)
			remove_if_dead(path);
		else if (list->n < MAX_LISTED)
			snprintf(list->name[list->n++], MAX_NAME, "%s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	qsort(list->name, list->n, sizeof *list->name, compare_names);
}

/* Writes as many names as fit, each with a space before it. */
static void join_names(const struct rundir_list *list, char *names, size_t bytes)
{
	size_t at = 0;

	*names = 0;
	for (unsigned i = 0; i < list->n && at < bytes; i++)
		at += (size_t)snprintf(names + at, bytes - at, " %s", list->name[i]);
}

static int set_path(struct rundir *dir, const char *machines, struct problem *p)
{
	if (snprintf(dir->path, sizeof dir->path, "%s/%s", machines, dir->name) >=
	    (int)sizeof dir->path)
		return problem(p, "the path %s/%s is too long for sockets; use a shorter --name or "
			       "XDG_RUNTIME_DIR",
			       machines, dir->name);
	return 0;
}

/* The folders were empty until the lock was made there.  So another vmp may have removed them since
 * they were looked at, and another user of this computer made others of these names.  Now they
 * cannot be removed any more.  Returns as try_claim(). */
static int is_still_ours(struct rundir *dir, struct problem *p)
{
	char machines[RUNDIR_PATH], file[RUNDIR_PATH + 8];
	int result = -1;

	snprintf(file, sizeof file, "%s/lock", dir->path);
	if (!machines_folder(machines, sizeof machines, p) && !private_folder(dir->path, p)) {
		if (is_named(dir->lock_fd, file))
			return 0;
		result = -ESTALE;
	}
	close(dir->lock_fd);
	dir->lock_fd = -1;
	return result;
}

/* Makes one attempt to claim the folder.  Returns 0; -ESTALE if another vmp was cleaning up
 * meanwhile; -EWOULDBLOCK if the name is taken, or if another vmp is just testing the lock; or -1
 * with the problem. */
static int try_claim(struct rundir *dir, struct problem *p)
{
	struct rundir_list swept;
	char machines[RUNDIR_PATH];

	errno = 0;
	if (machines_folder(machines, sizeof machines, p))
		return errno == ENOENT ? -ESTALE : -1;
	living_machines(machines, &swept);
	if (set_path(dir, machines, p))
		return -1;
	errno = 0;
	if (private_folder(dir->path, p))
		return errno == ENOENT ? -ESTALE : -1;
	dir->lock_fd = take_lock(dir->path, O_CREAT);
	if (dir->lock_fd >= 0)
		return is_still_ours(dir, p);
	if (dir->lock_fd == -ENOENT)
		return -ESTALE;
	if (dir->lock_fd == -ESTALE || dir->lock_fd == -EWOULDBLOCK)
		return dir->lock_fd;
	return problem(p, "cannot lock %s/lock: %s", dir->path, strerror(-dir->lock_fd));
}

/* Writes the secret by which the machine's daemons prove to each other that they belong to it. */
int rundir_make_secret(const struct rundir *dir, struct problem *p)
{
	unsigned char secret[32];
	char path[RUNDIR_PATH + 8];
	int fd;
	bool ok;

	snprintf(path, sizeof path, "%s/secret", dir->path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	ok = fd >= 0 && getrandom(secret, sizeof secret, 0) == sizeof secret &&
	     write(fd, secret, sizeof secret) == sizeof secret;
	if (fd >= 0)
		ok &= !close(fd);
	return ok ? 0 : problem(p, "cannot write %s: %s", path, strerror(errno));
}

int rundir_claim(struct rundir *dir, const char *name, unsigned wait_ms, struct problem *p)
{
	enum { STALE_ATTEMPTS = 200, MOMENT_MS = 2 };
	static const struct timespec moment = { 0, MOMENT_MS * 1000000 };
	unsigned stale = 0, taken = 0;
	int result;

	if (name)
		snprintf(dir->name, sizeof dir->name, "%s", name);
	else
		snprintf(dir->name, sizeof dir->name, "m%d", getpid());
	do {
		result = try_claim(dir, p);
		if (result == 0 && rundir_make_secret(dir, p)) {
			rundir_release(dir);
			return -1;
		}
		if (result == 0 || result == -1)
			return result;
		*(result == -EWOULDBLOCK ? &taken : &stale) += 1;
		nanosleep(&moment, NULL);
	} while (stale < STALE_ATTEMPTS && taken * MOMENT_MS < wait_ms);
	if (result == -EWOULDBLOCK)
		return problem(p, "a machine named %s is running already; choose another --name",
			       dir->name);
	return problem(p, "cannot make the folder %s: others keep removing it", dir->path);
}

void rundir_release(struct rundir *dir)
{
	char machines[RUNDIR_PATH];

	if (dir->lock_fd < 0)
		return;
	remove_contents(dir->path);
	rmdir(dir->path);
	close(dir->lock_fd);
	dir->lock_fd = -1;
	snprintf(machines, sizeof machines, "%s", dir->path);
	*strrchr(machines, '/') = 0;
	remove_empty(machines);
}

/* Replaces the file in one step: a process that reads it meanwhile reads the old one. */
void rundir_write_info(const struct rundir *dir, const struct machine_info *info)
{
	char path[RUNDIR_PATH + 16], written[RUNDIR_PATH + 16], text[MACHINE_TEXT];
	FILE *file;

	snprintf(path, sizeof path, "%s/machine", dir->path);
	snprintf(written, sizeof written, "%s/machine.new", dir->path);
	file = fopen(written, "we");
	if (!file)
		return;
	machine_print(&info->machine, MACHINE_INFO, text, sizeof text);
	fprintf(file, "%spid %d\nbackground %u\nlog_fd %u\nyields %u\nyielded %u\n", text,
		info->pid, info->background, info->log_fd, info->yields, info->yielded);
	fprintf(file, "standby %s\nelsewhere %s\nkernel %s\n", info->standby, info->elsewhere,
		info->kernel);
	if (fclose(file) || rename(written, path))
		unlink(written);
}

/* Takes a line that is not part of the machine's description.  Ignores a line that this version
 * does not know. */
static void take_info(struct machine_info *info, const char *line)
{
	const char *value = strchr(line, ' ');
	size_t n = value ? (size_t)(value++ - line) : 0;
	const struct { const char *word; char *text; size_t room; uint32_t *number; } words[] = {
		{ "pid", NULL, 0, (uint32_t *)&info->pid },
		{ "background", NULL, 0, &info->background },
		{ "log_fd", NULL, 0, &info->log_fd },
		{ "yields", NULL, 0, &info->yields },
		{ "yielded", NULL, 0, &info->yielded },
		{ "standby", info->standby, sizeof info->standby, NULL },
		{ "elsewhere", info->elsewhere, sizeof info->elsewhere, NULL },
		{ "kernel", info->kernel, sizeof info->kernel, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!n || strlen(words[i].word) != n || memcmp(words[i].word, line, n))
			continue;
		if (words[i].number)
			quantity_parse_number(value, words[i].number);
		else
			snprintf(words[i].text, words[i].room, "%s", value);
	}
}

int rundir_read_info(const struct rundir *dir, struct machine_info *info, struct problem *p)
{
	char path[RUNDIR_PATH + 16], line[sizeof info->kernel + 16], why[200];
	FILE *file;
	int error = 0;

	memset(info, 0, sizeof *info);
	machine_defaults(&info->machine);
	snprintf(path, sizeof path, "%s/machine", dir->path);
	file = fopen(path, "re");
	if (!file)
		return problem(p, "the machine %s is only starting; try again", dir->name);
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		if (machine_read_line(&info->machine, MACHINE_INFO, line, strlen(line), why,
				      sizeof why) == -EINVAL)
			error = -EINVAL;
		take_info(info, line);
	}
	fclose(file);
	if (error || !info->pid || !info->machine.cpus || !info->machine.hosts)
		return problem(p, "%s is damaged", path);
	return 0;
}

static int list_in(char machines[RUNDIR_PATH], struct rundir_list *list, struct problem *p)
{
	if (machines_folder(machines, RUNDIR_PATH, p))
		return -1;
	living_machines(machines, list);
	if (!list->n)
		remove_empty(machines);
	return 0;
}

int rundir_list(struct rundir_list *list, struct problem *p)
{
	char machines[RUNDIR_PATH];

	return list_in(machines, list, p);
}

time_t rundir_since(const struct rundir *dir)
{
	char path[RUNDIR_PATH + 8];
	struct stat st;

	snprintf(path, sizeof path, "%s/lock", dir->path);
	return stat(path, &st) ? 0 : st.st_mtime;
}

int rundir_find(struct rundir *dir, const char *name, struct problem *p)
{
	struct rundir_list list;
	char machines[RUNDIR_PATH], names[256];
	int fd;

	dir->lock_fd = -1;
	if (list_in(machines, &list, p))
		return -1;
	join_names(&list, names, sizeof names);
	if (!name && list.n > 1)
		return problem(p, "several machines are running; choose one with --name:%s", names);
	if (!list.n)
		return problem(p, "no machine of yours is running");
	snprintf(dir->name, sizeof dir->name, "%s", name ? name : list.name[0]);
	if (set_path(dir, machines, p))
		return -1;
	fd = take_lock(dir->path, 0);
	if (fd >= 0)
		close(fd);
	if (fd != -EWOULDBLOCK)
		return problem(p, "no machine named %s is running; these are:%s", dir->name, names);
	return 0;
}

int rundir_wait_gone(const struct rundir *dir, unsigned limit_ms)
{
	enum { STEP_MS = 5 };
	static const struct timespec step = { 0, STEP_MS * 1000000 };

	for (unsigned waited = 0; waited < limit_ms; waited += STEP_MS) {
		int fd = take_lock(dir->path, 0);

		if (fd >= 0)
			close(fd);
		if (fd != -EWOULDBLOCK)
			return 0;
		nanosleep(&step, NULL);
	}
	return -ETIMEDOUT;
}
