/* presence.c - see presence.h. */
#include "vmm/shared/presence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/filepass.h"
#include "vmm/shared/private_folder.h"

/* Short prefixes: with the longest name the path must fit into a socket's address. */
#define HOST_PREFIX "h-"
#define STANDBY_PREFIX "s-"
#define VOTE_PREFIX "v-"
enum { FOLDER = 20, PATH = FOLDER + 2 + MAX_PRESENCE, MOMENTS = 100 };
_Static_assert(PATH <= sizeof((struct sockaddr_un *)0)->sun_path, "a socket's path");

void presence_name(char name[MAX_PRESENCE], const char *id, const char *host)
{
	snprintf(name, MAX_PRESENCE, "%.*s-%s", PRESENCE_ID, id, host);
}

/* ---- the folder ---- */

/* Writes the folder of the names.  It is not the run folder, which may be another one for a login
 * of another kind. */
static int folder(char path[FOLDER], struct problem *p)
{
	snprintf(path, FOLDER, PRIVATE_TMP_FORMAT, geteuid());
	return private_folder(path, p);
}

/* Returns 0, or -1 if this is no name. */
static int path_of(char path[PATH], const char *prefix, const char *name)
{
	char ours[FOLDER];
	struct problem p;

	if (strchr(name, '/') || folder(ours, &p))
		return -1;
	return snprintf(path, PATH, "%s/%s%s", ours, prefix, name) < PATH ? 0 : -1;
}

/* Removes a file, and the folder with its last file. */
static void forget_file(const char *path)
{
	char ours[FOLDER];

	unlink(path);
	snprintf(ours, sizeof ours, PRIVATE_TMP_FORMAT, geteuid());
	rmdir(ours);
}

/* ---- hosts ---- */

/* Locks a file.  Returns a descriptor; -EWOULDBLOCK if another process has the lock; -ESTALE if the
 * file has lost its name meanwhile; or another -errno. */
static int lock_file(const char *path, int flags)
{
	struct stat named, ours;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600), error = 0;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		error = -errno;
	else if (fstat(fd, &ours) || stat(path, &named) || ours.st_ino != named.st_ino ||
		 ours.st_dev != named.st_dev)
		error = -ESTALE;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Returns whether the file is locked.  A process that was killed has left its file; this removes
 * it. */
static bool is_locked(const char *path)
{
	int fd = lock_file(path, 0);

	if (fd < 0)
		return fd != -ENOENT && fd != -ESTALE;
	forget_file(path);
	close(fd);
	return false;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Removes a socket that has no reader any more. */
static void forget_stale(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = open_socket();

	memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) &&
	    errno == ECONNREFUSED)
		unlink(path);
	if (fd >= 0)
		close(fd);
}

/* Removes what killed processes have left. */
static void sweep(void)
{
	char ours[FOLDER], path[FOLDER + sizeof((struct dirent *)0)->d_name + 1];
	struct dirent *entry;
	struct problem p;
	DIR *names = folder(ours, &p) ? NULL : opendir(ours);

	while (names && (entry = readdir(names))) {
		snprintf(path, sizeof path, "%s/%s", ours, entry->d_name);
		if (!strncmp(entry->d_name, HOST_PREFIX, strlen(HOST_PREFIX)) ||
		    !strncmp(entry->d_name, VOTE_PREFIX, strlen(VOTE_PREFIX)))
			is_locked(path);
		else if (!strncmp(entry->d_name, STANDBY_PREFIX, strlen(STANDBY_PREFIX)))
			forget_stale(path);
	}
	if (names)
		closedir(names);
}

/* Retries, since a process that checks the lock holds it for a moment, and the folder may be
 * removed between two steps.  On a loaded computer a moment may be long: a host that gave up would
 * seem to be gone, and its standby would take over from an owner that lives. */
int presence_hold(const char *name)
{
	enum { TRIES = 1000 };
	const struct timespec moment = { 0, 1000000 };
	char path[PATH];
	int fd = -1;

	if (strchr(name, '/'))
		return -1;
	sweep();
	for (unsigned tries = 0; tries < TRIES && fd < 0; tries++) {
		if (tries)
			nanosleep(&moment, NULL);
		fd = path_of(path, HOST_PREFIX, name) ? -1 : lock_file(path, O_CREAT);
	}
	return fd < 0 ? -1 : fd;
}

void presence_release(int fd, const char *name)
{
	char path[PATH];

	if (fd < 0)
		return;
	if (!path_of(path, HOST_PREFIX, name))
		forget_file(path);
	close(fd);
}

/* Nothing is known if the folder is not ours, so another user cannot make a standby take over.
 * (TRICKS: ask-presence) */
bool presence_is_held(const char *name)
{
	char path[PATH];

	return path_of(path, HOST_PREFIX, name) || is_locked(path);
}

/* ---- votes ---- */

/* In the file: the owner's name, and RUNS if it runs the machine. */
#define RUNS '+'

static enum vote_lock lock_of(int fd)
{
	return fd >= 0				       ? VOTE_LOCK_TAKEN
	       : fd == -EWOULDBLOCK || fd == -ESTALE ? VOTE_LOCK_LOCKED
						       : VOTE_LOCK_BARRED;
}

static enum vote_holder holder_in(const char *path, const char *owner)
{
	char text[PRESENCE_ID + 2] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? 0 : read(fd, text, PRESENCE_ID + 1);
	bool runs = n > 0 && text[n - 1] == RUNS;

	if (fd >= 0)
		close(fd);
	if (runs)
		text[n - 1] = 0;
	return n <= 0		      ? VOTE_HOLDER_NOBODY
	       : !strcmp(text, owner) ? VOTE_HOLDER_ASKER
	       : runs		      ? VOTE_HOLDER_RUNNER
				      : VOTE_HOLDER_OTHER;
}

/* (TRICKS: one-vote) */
enum vote presence_vote(int *held, const char *name, const char *owner)
{
	char path[PATH];
	bool barred = path_of(path, VOTE_PREFIX, name);
	int fd = -EACCES;
	size_t n = strnlen(owner, PRESENCE_ID);
	enum vote_holder holder;

	/* the folder, or the file, may be removed between two steps (forget_file()) */
	for (unsigned tries = 0; tries < MOMENTS && !barred; tries++) {
		fd = lock_file(path, O_CREAT);
		if (fd != -ENOENT && fd != -ESTALE)
			break;
		barred = path_of(path, VOTE_PREFIX, name);
	}
	if (fd == -ENOENT)
		fd = -ESTALE;
	holder = barred ? VOTE_HOLDER_NOBODY : holder_in(path, owner);
	if (fd >= 0 && (ftruncate(fd, 0) || pwrite(fd, owner, n, 0) != (ssize_t)n)) {
		/* a full disk: the holder's name is missing, and askers wait */
	}
	*held = fd < 0 ? -1 : fd;
	return vote_answer(lock_of(fd), holder);
}

void presence_vote_runs(int fd)
{
	static const char runs = RUNS;
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || pwrite(fd, &runs, 1, st.st_size) != 1)) {
		/* a full disk: askers wait for longer */
	}
}

void presence_unvote(int fd, const char *name)
{
	char path[PATH];

	if (fd < 0)
		return;
	if (!path_of(path, VOTE_PREFIX, name))
		forget_file(path);
	close(fd);
}

/* ---- standbys ---- */

static int address_of(struct sockaddr_un *address, const char *name)
{
	char path[PATH];

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (path_of(path, STANDBY_PREFIX, name))
		return -1;
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

int presence_listen(const char *name)
{
	struct sockaddr_un address;
	int fd = open_socket(), on = 1;

	/* the folder may be removed between two steps */
	for (unsigned n = 0; fd >= 0 && n < MOMENTS && !address_of(&address, name); n++) {
		forget_stale(address.sun_path);
		if (!bind(fd, (struct sockaddr *)&address, sizeof address) &&
		    !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
			return fd;
		if (errno != ENOENT)
			break;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

void presence_unlisten(int fd, const char *name)
{
	struct sockaddr_un address;

	if (fd < 0)
		return;
	if (!address_of(&address, name))
		forget_file(address.sun_path);
	close(fd);
}

bool presence_heard(int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr aligned;
	} control;
	struct ucred who;
	char word;
	struct iovec iov = { &word, 1 };
	bool heard = false;

	for (;;) {
		struct msghdr message = { .msg_iov = &iov,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof control };
		if (recvmsg(fd, &message, 0) < 0)
			return heard;
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof who);
		heard |= who.uid == geteuid();
	}
}

/* Makes no folder, since a confined daemon may not. */
bool presence_tell(const char *name)
{
	struct sockaddr_un address;
	char ours[FOLDER];
	struct stat st;
	int fd;
	bool alone = false;

	snprintf(ours, sizeof ours, PRIVATE_TMP_FORMAT, geteuid());
	if (lstat(ours, &st))
		return errno != ENOENT;
	fd = open_socket();
	if (fd >= 0 && !address_of(&address, name))
		alone = sendto(fd, "", 1, 0, (struct sockaddr *)&address, sizeof address) < 0 &&
			(errno == ENOENT || errno == ECONNREFUSED);
	if (fd >= 0)
		close(fd);
	return !alone;
}

/* ---- connections that are passed on ---- */

bool presence_pass(const char *name, const int fds[PRESENCE_PASSED])
{
	union filepass_control control;
	struct sockaddr_un address;
	char word = 0;
	struct iovec iov = { &word, 1 };
	struct msghdr message = { .msg_name = &address,
				  .msg_namelen = sizeof address,
				  .msg_iov = &iov,
				  .msg_iovlen = 1 };
	int fd = address_of(&address, name) ? -1 : open_socket();
	bool passed;

	filepass_put(&message, &control, fds, PRESENCE_PASSED);
	passed = fd >= 0 && sendmsg(fd, &message, 0) == 1;
	if (fd >= 0)
		close(fd);
	return passed;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

/* Takes what one message has; closes descriptors that are not as they should be. */
static bool take_passed(struct msghdr *message, int fds[PRESENCE_PASSED])
{
	struct ucred who = { .uid = (uid_t)-1 };
	int got[PRESENCE_PASSED];
	unsigned n = filepass_take(message, got, PRESENCE_PASSED);

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&who, CMSG_DATA(c), sizeof who);
	if (who.uid != geteuid() || n != PRESENCE_PASSED) {
		close_all(got, n < PRESENCE_PASSED ? n : PRESENCE_PASSED);
		return false;
	}
	memcpy(fds, got, sizeof got);
	return true;
}

bool presence_passed(int fd, int fds[PRESENCE_PASSED])
{
	union filepass_control control;
	char word;
	struct iovec iov = { &word, 1 };
	bool passed = false;

	for (;;) {
		int before[PRESENCE_PASSED] = { fds[0], fds[1], fds[2] };
		struct msghdr message = { .msg_iov = &iov,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof control };

		if (recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
			return passed;
		if (!take_passed(&message, fds))
			continue;
		if (passed) /* by one that came later */
			close_all(before, PRESENCE_PASSED);
		passed = true;
	}
}
