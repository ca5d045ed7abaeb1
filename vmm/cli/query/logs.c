/* logs.c - `vmp logs`: the log of a running machine, read through the open file of the process that
 * writes it. */
#include "vmm/cli/query/query.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/cli/rundir.h"

enum { LOOK_MS = 200 };

/* Opens the log's file.  Returns its descriptor, or -1 with the problem. */
static int open_log(const struct rundir *dir, const struct machine_info *info, struct problem *p)
{
	char path[64], target[4096] = "";
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/fd/%u", info->pid, info->log_fd);
	if (readlink(path, target, sizeof target - 1) < 0 || stat(path, &st))
		return problem(p, "cannot read the log of the machine %s: %s", dir->name,
			       strerror(errno));
	if (!strcmp(target, "/dev/null"))
		return problem(p, "the machine %s keeps no log: start it with --log FILE",
			       dir->name);
	if (!S_ISREG(st.st_mode))
		return problem(p, "the log of the machine %s goes to %.400s", dir->name, target);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? problem(p, "cannot read the log of the machine %s: %s", dir->name,
				strerror(errno))
		      : fd;
}

/* Prints the log from *at on.  Returns 0, or -1 with the problem. */
static int copy(int fd, off_t *at, struct problem *p)
{
	char bytes[65536];
	struct stat st;
	ssize_t n;

	if (!fstat(fd, &st) && st.st_size < *at)
		*at = 0; /* the file was truncated, so its beginning is lost */
	while ((n = pread(fd, bytes, sizeof bytes, *at)) > 0 || (n < 0 && errno == EINTR)) {
		if (n > 0 && fwrite(bytes, 1, (size_t)n, stdout) != (size_t)n)
			return problem(p, "cannot write the log: %s", strerror(errno));
		*at += n > 0 ? n : 0;
	}
	if (n < 0)
		return problem(p, "cannot read the log: %s", strerror(errno));
	return fflush(stdout) ? problem(p, "cannot write the log: %s", strerror(errno)) : 0;
}

static int print_log(const struct options *o, struct problem *p)
{
	static struct machine_info info;
	struct rundir dir;
	off_t at = 0;
	bool ended = !o->follow;
	int fd, result;

	if (rundir_find(&dir, o->name, p) || rundir_read_info(&dir, &info, p))
		return -1;
	if (info.elsewhere[0])
		return problem(p, "the machine %s goes on on %s", dir.name, info.elsewhere);
	fd = open_log(&dir, &info, p);
	if (fd < 0)
		return -1;
	/* After the machine's end, the loop prints once more what was written before the end. */
	while (!(result = copy(fd, &at, p)) && !ended)
		ended = !rundir_wait_gone(&dir, LOOK_MS);
	if (o->follow && !result)
		result = copy(fd, &at, p);
	close(fd);
	return result;
}

int query_logs(const struct options *o)
{
	struct problem p;

	if (!print_log(o, &p))
		return 0;
	log_error("%s", p.line);
	return EXIT_VMP_FAILURE;
}
