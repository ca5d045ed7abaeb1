/* keptfile.c - see keptfile.h. */
#include "vmm/cli/snapshot/keptfile.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "vmm/cli/snapshot/savefile.h"

/* ---- the child ---- */

enum { END = 3 /* descriptor of the child's end of the socket */, NICE = 10 };

static bool owner_waits(void)
{
	char byte;

	return recv(END, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static int write_all(struct savefile *to, const struct kept *kept, struct problem *p)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct kept_cursor cursor = { 0 };
	struct snapfile_record record;

	while (kept_next(kept, &cursor, &record, data))
		if (!owner_waits())
			return problem(p, "nobody waits for it");
		else if (savefile_add(to, &record, data, p))
			return -1;
	return savefile_commit(to, p);
}

/* Closes all other files, which belong to the owner: a process that waits for the owner's end by
 * one of them must not wait for this child too. */
static void be_writer(const char *path, const struct kept *kept, int end) __attribute__((noreturn));
static void be_writer(const char *path, const struct kept *kept, int end)
{
	struct savefile to;
	struct problem p;
	int result;

	if (dup2(end, END) < 0 || close_range(END + 1, ~0u, 0))
		_exit(EXIT_VMP_FAILURE);
	setpriority(PRIO_PROCESS, 0, NICE);
	result = savefile_begin(&to, path, &p) || write_all(&to, kept, &p);
	savefile_abandon(&to);
	if (result && send(END, p.line, strlen(p.line), MSG_NOSIGNAL) < 0) {
		/* the owner has closed its end */
	}
	_exit(result ? EXIT_VMP_FAILURE : 0);
}

/* ---- its owner ---- */

int keptfile_check(const char *path, struct problem *p)
{
	struct snapfile_writer *file = snapfile_create(path, p);

	snapfile_abandon(file);
	return file ? 0 : -1;
}

static void on_heard(void *context)
{
	struct keptfile *f = context;
	size_t n = strlen(f->said.line);
	ssize_t got = recv(f->end, f->said.line + n, sizeof f->said.line - 1 - n, MSG_DONTWAIT);

	if (got > 0 || (got < 0 && errno == EAGAIN))
		return;
	keptfile_stop(f);
	if (f->said.line[0])
		f->on_trouble(f->context, f->said.line);
}

/* Forks with all signals blocked.  A signal that the child got before its signal mask is set would
 * run the owner's handlers, which belong to the owner's event loop. */
static pid_t fork_deaf(const struct keptfile *f)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = f->fork ? f->fork() : fork();
	if (pid)
		sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static void listen_to(struct keptfile *f, int end)
{
	memset(&f->said, 0, sizeof f->said);
	f->end = end;
	f->heard = loop_add(&f->loop, LOOP_READ, end, on_heard, f);
	if (!f->heard)
		close(end);
	else if (loop_watch(f->heard))
		keptfile_stop(f);
}

void keptfile_write(struct keptfile *f, const struct kept *kept)
{
	int end[2];
	pid_t pid;

	if (!f->path || f->heard)
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end)) {
		f->on_trouble(f->context, "no socket for who writes it");
		return;
	}
	pid = fork_deaf(f);
	if (!pid)
		be_writer(f->path, kept, end[1]);
	close(end[1]);
	if (pid > 0) {
		listen_to(f, end[0]);
		return;
	}
	close(end[0]);
	f->on_trouble(f->context, "no process to write it");
}

void keptfile_stop(struct keptfile *f)
{
	if (!f->heard)
		return;
	close(f->end);
	loop_remove(f->heard);
	f->heard = NULL;
}
