/* logs.c - `vmp logs`: the log of a running machine, read through the open file of the process that
 * writes it. */
#include "vmm/cli/query/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "base/printable.h"
#include "vmm/cli/query/query.h"
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

/* Reads as much as there is.  Returns how much, or -1 with errno set. */
static ssize_t read_at(int fd, char *bytes, size_t n, off_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, bytes + done, n - done, at + (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static void remember(struct logs_reader *r, const char *bytes, size_t n)
{
	size_t kept = sizeof r->last - n;

	if (n >= sizeof r->last) {
		memcpy(r->last, bytes + n - sizeof r->last, sizeof r->last);
		r->n_last = sizeof r->last;
		return;
	}
	if (kept > r->n_last)
		kept = r->n_last;
	memmove(r->last, r->last + r->n_last - kept, kept);
	memcpy(r->last + kept, bytes, n);
	r->n_last = kept + n;
}

/* Whether what was printed last is still where it was. */
static bool is_in_place(const struct logs_reader *r)
{
	char bytes[LOGS_LAST];

	return read_at(r->fd, bytes, r->n_last, r->at - (off_t)r->n_last) == (ssize_t)r->n_last &&
	       !memcmp(bytes, r->last, r->n_last);
}

/* Returns the place behind what was printed last, in a file that was cut; 0 if it is not there. */
static off_t find_last(const struct logs_reader *r)
{
	struct stat st;
	char *text = fstat(r->fd, &st) ? NULL : malloc((size_t)st.st_size + 1);
	ssize_t n = text ? read_at(r->fd, text, (size_t)st.st_size, 0) : -1;
	off_t at = 0;

	for (ssize_t end = n; !at && end >= (ssize_t)r->n_last; end--)
		if (!memcmp(text + end - r->n_last, r->last, r->n_last))
			at = end;
	free(text);
	return at;
}

/* Goes to where printing goes on.  Returns false if the next look shall decide. */
static bool find_place(struct logs_reader *r, bool ended)
{
	if (is_in_place(r)) {
		r->lost = false;
		return true;
	}
	r->at = find_last(r);
	/* Whoever cuts it may be about to write what it keeps. */
	if (!r->at && !ended && !r->lost) {
		r->lost = true;
		r->at = (off_t)r->n_last;
		return false;
	}
	if (!r->at)
		r->n_last = 0;
	r->lost = false;
	return true;
}

int logs_print(struct logs_reader *r, bool ended, FILE *out, struct problem *p)
{
	char bytes[65536];
	ssize_t n;
	bool shown = isatty(fileno(out));

	if (!find_place(r, ended))
		return 0;
	while ((n = read_at(r->fd, bytes, sizeof bytes, r->at)) > 0) {
		r->at += n;
		remember(r, bytes, (size_t)n);
		if (shown)
			printable_text(bytes, (size_t)n);
		if (fwrite(bytes, 1, (size_t)n, out) != (size_t)n)
			return problem(p, "cannot write the log: %s", strerror(errno));
	}
	if (n < 0)
		return problem(p, "cannot read the log: %s", strerror(errno));
	return fflush(out) ? problem(p, "cannot write the log: %s", strerror(errno)) : 0;
}

static int print_log(const struct options *o, struct problem *p)
{
	static struct machine_info info;
	struct logs_reader reader = { .fd = -1 };
	struct rundir dir;
	bool ended = !o->follow;
	int result;

	if (rundir_find(&dir, o->name, p) || rundir_read_info(&dir, &info, p))
		return -1;
	if (info.elsewhere[0])
		return problem(p, "the machine %s goes on on %s", dir.name, info.elsewhere);
	reader.fd = open_log(&dir, &info, p);
	if (reader.fd < 0)
		return -1;
	/* After the machine's end, the loop prints once more what was written before the end. */
	while (!(result = logs_print(&reader, !o->follow, stdout, p)) && !ended)
		ended = !rundir_wait_gone(&dir, LOOK_MS);
	if (o->follow && !result)
		result = logs_print(&reader, true, stdout, p);
	close(reader.fd);
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
