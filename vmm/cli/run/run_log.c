/* run_log.c - where a machine's log goes: to the file of --log, or, for a machine in the
 * background, into memory, for `vmp logs`.
 *
 * In memory it is a file without a name, as the guest's memory is; so nothing is left behind,
 * whichever process dies.  `vmp logs` opens it through /proc.  It contains the guest's console, so
 * the guest decides how long it gets: it is cut, and loses its beginning.  The machine's other
 * processes write to the same file without passing here, so a timer looks at it, too; none of them
 * repeats a warning quickly (base/log.h).
 */
#include "vmm/cli/run/run_log.h"
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/printable.h"
#include "vmm/shared/hostcpu.h"

enum { LOG_MOST = 1 << 20, LOG_KEPT = 1 << 19, LOG_LOOK_NS = 1000000000 };

static int open_kept(void)
{
	int fd = memfd_create("vmp-log", MFD_CLOEXEC);

	if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND)) {
		close(fd);
		return -1;
	}
	return fd;
}

int run_open_log(struct run *run, struct problem *p)
{
	const char *path = run->o->log;

	run->log_kept = !path && !run->o->machine.verbose && run->background;
	if (run->log_kept)
		run->log_fd = open_kept();
	else if (!path && !run->o->machine.verbose)
		run->log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	else if (!path || !strcmp(path, "-"))
		run->log_fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
	else
		/* for its owner alone, since the console is in it */
		run->log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (run->log_fd < 0)
		return problem(p, "cannot write the log %s: %s", path ? path : "", strerror(errno));
	run->log_shown = isatty(run->log_fd);
	if (!hostcpu_has_cpuid_faulting())
		dprintf(run->log_fd, "vmp: this processor cannot make CPUID trap: the guest's "
			"programs see the host's own CPUID; the guest kernel manages all the state "
			"that it names\n");
	return 0;
}

/* What other processes write at this moment may be lost.  If cutting fails, the log just grows. */
int run_log_cut(int fd, size_t most, size_t kept)
{
	struct stat st;
	char *end;
	ssize_t n;
	int result = -1;

	if (fstat(fd, &st) || (size_t)st.st_size <= most)
		return 0;
	end = malloc(kept);
	n = end ? pread(fd, end, kept, st.st_size - (off_t)kept) : -1;
	if (n > 0 && !ftruncate(fd, 0)) {
		const char *line = memchr(end, '\n', (size_t)n), *from = line ? line + 1 : end;

		result = write(fd, from, (size_t)(end + n - from)) < 0 ? -1 : 0;
	}
	free(end);
	return result;
}

/* Returns false if it cannot be written. */
static bool write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

/* Returns false if it cannot be written. */
static bool write_shown(struct run *run, const char *bytes, size_t n)
{
	char shown[4096];

	while (run->log_shown && n) {
		size_t part = n < sizeof shown ? n : sizeof shown;

		memcpy(shown, bytes, part);
		printable_text(shown, part);
		if (!write_all(run->log_fd, shown, part))
			return false;
		bytes += part;
		n -= part;
	}
	return write_all(run->log_fd, bytes, n);
}

/* A full disk under the log does not stop the machine: its end says so. */
void run_log_write(struct run *run, const char *bytes, size_t n)
{
	if (!write_shown(run, bytes, n) && !run->log_error)
		run->log_error = errno;
	else if (run->log_kept)
		run_log_cut(run->log_fd, LOG_MOST, LOG_KEPT);
}

bool run_log_is_whole(const struct run *run, struct problem *p)
{
	const char *path = run->o->log;

	if (run->log_error)
		problem(p, "cannot write the log%s%s: %s", path ? " " : "", path ? path : "",
			strerror(run->log_error));
	return !run->log_error;
}

static void on_look(void *context)
{
	struct run *run = context;

	run_log_cut(run->log_fd, LOG_MOST, LOG_KEPT);
	loop_after(run->log_look, LOG_LOOK_NS);
}

int run_log_watch(struct run *run)
{
	if (!run->log_kept)
		return 0;
	run->log_look = loop_timer(&run->loop, on_look, run);
	return run->log_look ? loop_after(run->log_look, LOG_LOOK_NS) : -1;
}
