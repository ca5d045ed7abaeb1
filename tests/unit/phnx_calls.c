/* phnx_calls.c - phnx_net's tests of the calls: a node that only forwards, handlers, a program
 * that calls nothing, message logs, leaving, and every call at the wrong time. */
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/unit/phnx_net.h"

/* ---- a node in the middle that only forwards; handlers; the descriptor ---- */

static void answer(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg;
	ph_send(source, msg->body, msg->len, 9);
	if (ph_recv(PH_MSG_ANY_TAG))	/* refused: a handler must not wait */
		abort();
}

static int role_middle(int role)
{
	start(role == 1, role != 1, NULL);
	if (role == 2) {
		CHECK(ph_set_handler(5, answer, NULL) == 0);
		assume_range(32, SPACE);
		CHECK(ph_timed_recv(77, PATIENCE));
		CHECK(errors[-PH_EINVAL] == 1);
	} else if (role == 0) {
		int fd = ph_get_fd();
		struct pollfd p = { fd, POLLIN, 0 };
		CHECK(fd >= 0 && poll(&p, 1, 0) == 0);
		ph_send(33, "ping", 5, 5);
		CHECK(poll(&p, 1, PATIENCE / 1000) == 1);
		ph_msg_t m = ph_try_recv(PH_MSG_ANY_TAG);
		CHECK(m && m->tag == 9 && !strcmp(m->body, "ping"));
		CHECK(ph_get_source(m) != ph_get_resource_name());
		ph_msg_destroy(m);
		CHECK(poll(&p, 1, 0) == 0);
		ph_send(33, "", 0, 77);
		ph_send(20, "", 0, 78);
	} else {
		assume_range(16, 32);
		CHECK(ph_timed_recv(78, PATIENCE));
		CHECK(ph_timed_recv(79, 300000) == NULL);
	}
	ph_finalize(NULL, 5);
	return 0;
}

static void test_middle(void)
{
	run_roles(role_middle, 3);
}

/* ---- a program that calls nothing: the library's thread does the rest ---- */

static atomic_bool handled;

static void on_late(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg, (void)msg, (void)source;
	handled = true;
}

/* Role 1 pauses so long between its answers that the library's thread takes over, in vain; then
 * it calls nothing any more. */
static int role_idle(int role)
{
	enum { ROUNDS = 30, PAUSE_US = 5000, LATE = 5 };

	start(role == 0, role == 1, NULL);
	if (role == 1)
		CHECK(ph_set_handler(LATE, on_late, NULL) == 0);
	assume_range(role, role + 1);
	for (int i = 0; i < ROUNDS; i++) {
		if (role == 0)
			ph_send(1, "", 0, 1);
		ph_msg_t m = ph_timed_recv(1, PATIENCE);
		CHECK(m);
		ph_msg_destroy(m);
		if (role == 1)
			ph_send(0, "", 0, 1);
		usleep(PAUSE_US);
	}
	if (role == 0) {
		ph_send(1, "", 0, 2);		/* the question is received but not answered */
		while (!ph_mqueue_is_empty())
			usleep(1000);
		ph_send(1, "", 0, LATE);
	} else {
		ph_msg_t m = ph_timed_recv(2, PATIENCE);
		CHECK(m);
		ph_msg_destroy(m);
		while (!handled)
			usleep(1000);
	}
	ph_finalize(NULL, 5);
	return 0;
}

static void test_idle(void)
{
	run_roles(role_idle, 2);
}

/* ---- a log keeps a message while no node is there ---- */

/* Changes each byte, and shortens to each length; leaves the file damaged. */
static int damaged_logs_are_refused(const char *file)
{
	unsigned char whole[1000];
	int was = errors[-PH_ELOG], times = 0;
	FILE *f = fopen(file, "r");
	size_t n = f ? fread(whole, 1, sizeof whole, f) : 0;

	CHECK(n > 100 && n < sizeof whole && fclose(f) == 0);
	ph_init(0, SPACE, NULL, NULL, NULL, NULL);
	for (size_t at = 0; at < n; at++)
		for (int cut = 0; cut < 2; cut++) {
			CHECK((f = fopen(file, "w")));
			whole[at] ^= 1;
			CHECK(fwrite(whole, 1, cut ? at : n, f) == (cut ? at : n) &&
			      fclose(f) == 0);
			whole[at] ^= 1;
			ph_load_msgs(file);
			times++;
			CHECK(errors[-PH_ELOG] == was + times && ph_mqueue_is_empty());
		}
	errors[-PH_ELOG] = was;
	ph_finalize(NULL, 0);
	return 0;
}

static int role_logger(int role)
{
	char file[64];

	(void)role;
	snprintf(file, sizeof file, "%s/log", folder);
	start(0, 0, NULL);
	ph_send(7, "kept", 5, 3);
	CHECK(!ph_mqueue_is_empty());
	ph_finalize(file, 0);
	ph_init(0, SPACE, NULL, NULL, NULL, file);
	assume_range(0, 10);
	ph_msg_t m = ph_timed_recv(3, PATIENCE);
	CHECK(m && m->dest == 7 && !strcmp(m->body, "kept"));
	ph_msg_destroy(m);
	ph_finalize(NULL, 0);
	CHECK(errors[-PH_ELOG] == 0);
	CHECK(damaged_logs_are_refused(file) == 0);
	ph_init(0, SPACE, NULL, NULL, NULL, file);	/* damaged */
	CHECK(errors[-PH_ELOG] == 1 && ph_mqueue_is_empty());
	ph_store_msgs("/dev/null/nowhere");
	CHECK(errors[-PH_ELOG] == 2);
	struct rlimit little = { 100, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
	signal(SIGXFSZ, SIG_IGN);
	unlink(file);
	ph_send(7,
		"much too long for what is left of the disk "
		"............................................................",
		100, 3);
	CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
	ph_store_msgs(file);	/* as with a full disk: an error, and no half of a file */
	CHECK(errors[-PH_ELOG] == 3 && access(file, F_OK));
	setrlimit(RLIMIT_FSIZE, &all);
	ph_store_msgs(file);
	CHECK(errors[-PH_ELOG] == 3 && !access(file, F_OK));
	ph_finalize(NULL, 0);
	setenv("PHNX_SECRET", "of another session", 1);
	ph_init(0, SPACE, NULL, NULL, "tests", file);
	CHECK(errors[-PH_ELOG] == 4 && ph_mqueue_is_empty());
	ph_finalize(NULL, 0);
	unlink(file);
	return 0;
}

static bool write_to(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");
	bool ok = f && fputs(text, f) >= 0;

	return f && fclose(f) == 0 && ok;
}

/* Mounts a file system of 64 KiB that ends with this process. */
static int make_little_disk(const char *at)
{
	char user[64], group[64];

	snprintf(user, sizeof user, "0 %u 1", geteuid());
	snprintf(group, sizeof group, "0 %u 1", getegid());
	CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
	CHECK(write_to("/proc/self/setgroups", "deny") && write_to("/proc/self/uid_map", user) &&
	      write_to("/proc/self/gid_map", group));
	CHECK(mount("none", at, "tmpfs", 0, "size=64k") == 0);
	return 0;
}

static unsigned files_in(const char *at)
{
	DIR *d = opendir(at);
	unsigned n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* Returns whether this user may create namespaces, for a disk of its own. */
static bool may_make_namespaces(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* With a full disk there is an error that says so, and no half of a file; with room again,
 * everything is written. */
static int role_full_disk(int role)
{
	static char much[3 << 14], filler[16 << 10];
	char disk[64], log[80], other[80];

	(void)role;
	snprintf(disk, sizeof disk, "%s/disk", folder);
	snprintf(log, sizeof log, "%s/log", disk);
	snprintf(other, sizeof other, "%s/other", disk);
	CHECK(make_little_disk(disk) == 0);
	memset(filler, 'x', sizeof filler - 1);
	CHECK(write_to(other, filler));
	start(0, 0, NULL);
	ph_send(7, much, sizeof much, 3);
	ph_store_msgs(log);
	CHECK(errors[-PH_ELOG] == 1 && strstr(told, "No space left on device"));
	CHECK(files_in(disk) == 1 && !ph_mqueue_is_empty());
	CHECK(unlink(other) == 0);
	ph_finalize(log, 0);
	CHECK(errors[-PH_ELOG] == 1 && files_in(disk) == 1);
	ph_init(0, SPACE, NULL, NULL, NULL, log);
	assume_range(0, 10);
	ph_msg_t m = ph_timed_recv(3, PATIENCE);
	CHECK(m && m->len == sizeof much);
	ph_msg_destroy(m);
	ph_finalize(NULL, 0);
	return 0;
}

/* Something that is no file is no log: it is not replaced, nobody waits for it, and the messages
 * stay.  What a process with the same number has left behind does no harm. */
static int role_no_file(int role)
{
	char pipe[64], left[96], log[64];
	const char *not_files[] = { folder, pipe, "/dev/full", "/dev/zero" };
	enum { N = sizeof not_files / sizeof *not_files };

	(void)role;
	snprintf(pipe, sizeof pipe, "%s/pipe", folder);
	snprintf(log, sizeof log, "%s/log", folder);
	snprintf(left, sizeof left, "%s.%d", log, (int)getpid());
	CHECK(mkfifo(pipe, 0600) == 0 && write_to(left, "half a log"));
	start(0, 0, NULL);
	ph_send(7, "kept", 5, 3);
	for (int i = 0; i < N; i++) {
		ph_load_msgs(not_files[i]);
		CHECK(errors[-PH_ELOG] == 2 * i + 1 && strstr(told, "is not a file"));
		ph_store_msgs(not_files[i]);
		CHECK(errors[-PH_ELOG] == 2 * i + 2 && strstr(told, "else than a file"));
		CHECK(!ph_mqueue_is_empty());
	}
	ph_store_msgs(log);
	CHECK(errors[-PH_ELOG] == 2 * N && ph_mqueue_is_empty());
	ph_finalize(NULL, 0);
	CHECK(unlink(pipe) == 0 && unlink(left) == 0 && unlink(log) == 0);
	return 0;
}

/* A node that keeps much for others has more in its log than it may send itself. */
static int role_much(int role)
{
	enum { MUCH = 15 << 20, N = 3, TIMES = 3 };
	char files[TIMES][64], *much = calloc(1, MUCH);

	(void)role;
	for (int i = 0; i < TIMES; i++) {
		snprintf(files[i], sizeof files[i], "%s/much%d", folder, i);
		start(0, 0, NULL);
		for (int k = 0; k < N; k++)
			ph_send(7, much, MUCH, 3);
		ph_finalize(files[i], 0);
	}
	free(much);
	start(0, 0, NULL);
	for (int i = 0; i < TIMES; i++)
		ph_load_msgs(files[i]);
	ph_finalize(files[0], 0);
	ph_init(0, SPACE, NULL, NULL, NULL, files[0]);
	for (int i = 0; i < TIMES; i++)
		unlink(files[i]);
	assume_range(0, 10);
	for (int i = 0; i < N * TIMES; i++) {
		ph_msg_t m = ph_timed_recv(3, PATIENCE);
		CHECK(m && m->len == MUCH);
		ph_msg_destroy(m);
	}
	CHECK(ph_try_recv(3) == NULL && errors[-PH_ELOG] == 0);
	ph_finalize(NULL, 0);
	return 0;
}

/* ---- a log is loaded once ---- */

/* Writes a log of the messages "1" and "2", a copy of it, and a later log of "1" to "3". */
static int write_logs(const char *first, const char *copy, const char *later)
{
	char bytes[1000];

	start(0, 0, NULL);
	ph_send(7, "1", 2, 3);
	ph_send(7, "2", 2, 3);
	ph_store_msgs(first);
	ph_send(7, "3", 2, 3);
	ph_store_msgs(later);
	ph_finalize(NULL, 0);
	FILE *from = fopen(first, "r"), *to = fopen(copy, "w");
	CHECK(from && to);
	size_t n = fread(bytes, 1, sizeof bytes, from);
	CHECK(n > 0 && n < sizeof bytes && fwrite(bytes, 1, n, to) == n && fclose(to) == 0 &&
	      fclose(from) == 0);
	return 0;
}

/* Starts another process, which loads the file when it is told to. */
static pid_t load_later(const char *file, int *tell)
{
	int ends[2];
	char c;
	pid_t pid = pipe(ends) ? -1 : fork();

	if (pid == 0) {
		close(ends[1]);
		if (read(ends[0], &c, 1) != 1)
			_exit(2);
		start(0, 0, NULL);
		ph_load_msgs(file);
		_exit(!(errors[-PH_ELOG] == 1 && ph_mqueue_is_empty()));
	}
	close(ends[0]);
	*tell = ends[1];
	return pid;
}

static int take_all(const char *file, const char *want)
{
	ph_msg_t m;

	assume_range(0, 10);
	for (; *want; want++) {
		CHECK((m = ph_timed_recv(3, PATIENCE)) && *(char *)m->body == *want);
		ph_msg_destroy(m);
	}
	CHECK(ph_try_recv(3) == NULL);
	ph_send(17, "own", 4, 3);
	ph_store_msgs(file);
	ph_load_msgs(file);		/* the node's own log: its messages would exist twice */
	return 0;
}

static void pause_after(int tell)
{
	if (write(tell, "x", 1) == 1)
		pause();
	_exit(0);
}

static int role_twice(int role)
{
	char first[64], copy[64], later[64];
	int tell, status = -1;

	(void)role;
	snprintf(first, sizeof first, "%s/first", folder);
	snprintf(copy, sizeof copy, "%s/copy", folder);
	snprintf(later, sizeof later, "%s/later", folder);
	pid_t other = load_later(first, &tell);
	CHECK(write_logs(first, copy, later) == 0);
	start(0, 0, NULL);
	ph_load_msgs(first);
	CHECK(errors[-PH_ELOG] == 0);
	ph_load_msgs(first);
	CHECK(errors[-PH_ELOG] == 1 && strstr(told, "loaded before"));
	ph_load_msgs(copy);
	CHECK(errors[-PH_ELOG] == 2 && strstr(told, "loaded before"));
	CHECK(write(tell, "x", 1) == 1 && waitpid(other, &status, 0) == other && status == 0);
	ph_load_msgs(later);
	CHECK(errors[-PH_ELOG] == 2);
	CHECK(take_all(later, "123") == 0);
	CHECK(errors[-PH_ELOG] == 3 && strstr(told, "own"));
	int ends[2];
	char c;
	CHECK(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		alarm(60);
		pause_after(ends[1]);
	}
	CHECK(read(ends[0], &c, 1) == 1);	/* the child runs */
	ph_finalize(NULL, 0);
	start(0, 0, NULL);
	/* the child does not lock it, and does not know what its parent had received */
	ph_load_msgs(first);
	kill(child, SIGKILL);
	CHECK(errors[-PH_ELOG] == 3 && !ph_mqueue_is_empty());
	ph_finalize(NULL, 0);
	return unlink(first) || unlink(copy) || unlink(later) ? __LINE__ : 0;
}

static void test_log(void)
{
	char disk[64];

	run_roles(role_logger, 1);
	run_roles(role_no_file, 1);
	run_roles(role_much, 1);
	run_roles(role_twice, 1);
	snprintf(disk, sizeof disk, "%s/disk", folder);
	CU_ASSERT(mkdir(disk, 0700) == 0);
	/* The thread of the thread sanitizer keeps the process from having a file system of its
	 * own. */
#ifndef __SANITIZE_THREAD__
	if (may_make_namespaces())
		run_roles(role_full_disk, 1);
	else
		printf("\nskipped: a full disk: this host does not let ordinary users make "
		       "namespaces\n");
#else
	(void)role_full_disk;
	(void)may_make_namespaces;
#endif
	rmdir(disk);
}

/* ---- leaving by the low-level calls (A.6.2), and messages for a virtual node that is released
 * ---- */

/* Role 0 sends to virtual nodes that nobody assumes yet, and to its own.  Role 1 gets the
 * messages when it assumes them: those to 50 and 51 were kept by role 1 itself, those to 40 and
 * 41 come from a log. */
static int role_leaves(int role)
{
	char file[64];
	ph_msg_t m;

	snprintf(file, sizeof file, "%s/away", folder);
	start(role + 1, role ? 1 : 2, NULL);
	if (role == 0) {
		assume_range(0, 1);
		CHECK((m = ph_timed_recv(1, PATIENCE)));	/* role 1 is there */
		ph_msg_destroy(m);
		ph_send(50, "for good", 9, 2);
		assume_range(51, 52);
		ph_send(51, "for good", 9, 2);
		ph_invalidate_routing();
		while (!ph_mqueue_is_empty())
			usleep(10000);
		ph_finalize_runtime();

		start(1, 2, NULL);
		ph_send(40, "for a while", 12, 2);
		assume_range(41, 42);
		ph_send(41, "for a while", 12, 2);
		ph_invalidate_routing();
		ph_store_msgs(file);
		CHECK(ph_mqueue_is_empty());
		/* long enough for a connection: the messages of the log must not be sent */
		usleep(300000);
		ph_finalize_runtime();
		start(1, 2, NULL);
		ph_load_msgs(file);
		assume_range(0, 1);
		CHECK((m = ph_timed_recv(3, PATIENCE)));
		ph_msg_destroy(m);
		unlink(file);
	} else {
		ph_send(0, NULL, 0, 1);
		usleep(300000);
		for (int vp = 50; vp < 52; vp++) {
			assume_range(vp, vp + 1);
			CHECK((m = ph_timed_recv(2, PATIENCE)) && m->dest == vp &&
			      !strcmp(m->body, "for good"));
			ph_msg_destroy(m);
		}
		for (int vp = 40; vp < 42; vp++) {
			assume_range(vp, vp + 1);
			CHECK((m = ph_timed_rcv(2, PATIENCE)) && m->dest == vp &&
			      !strcmp(m->body, "for a while"));
			ph_msg_destroy(m);
		}
		CHECK(ph_timed_rcv(2, 100000) == NULL);
		ph_send(0, NULL, 0, 3);
	}
	ph_finalize(NULL, 10);
	CHECK(errors[-PH_ELOG] == 0);
	return 0;
}

static int role_releases(int role)
{
	enum { N = 50 };
	ph_msg_t m;

	start(role + 1, role ? 1 : 2, NULL);
	if (role == 0) {
		ph_vps_t some = ph_vps_create_range(5, 10);
		assume_range(0, 32);
		/* the last message; the others wait here */
		CHECK((m = ph_timed_recv(2, PATIENCE)));
		ph_vp_t sender = ph_get_source(m);
		ph_msg_destroy(m);
		ph_release_vps(some);
		ph_send(sender, NULL, 0, 4);
		ph_vps_t mine = ph_get_assumed_vps();
		CHECK(ph_vps_is_exclusive(mine, some) && ph_vps_get_min_elem(mine) == 0 &&
		      ph_vps_get_max_elem(mine) == 31);
		ph_vps_destroy(mine);
		ph_vps_destroy(some);
		ph_release_vp(0);
		CHECK((m = ph_timed_recv(3, PATIENCE)) && m->dest == 1);
		ph_msg_destroy(m);
	} else {
		for (int i = 0; i < N; i++)
			ph_send(7, &i, sizeof i, 1);
		ph_send(7, NULL, 0, 2);
		CHECK((m = ph_timed_recv(4, PATIENCE)) && m->dest == ph_get_resource_name());
		ph_msg_destroy(m);
		assume_range(5, 10);
		for (int i = 0; i < N; i++) {
			CHECK((m = ph_timed_recv(1, PATIENCE)) && m->dest == 7 &&
			      *(int *)m->body == i);
			ph_msg_destroy(m);
		}
		CHECK(ph_timed_recv(1, 100000) == NULL);
		ph_send(1, NULL, 0, 3);
	}
	ph_finalize(NULL, 10);
	return 0;
}

static void test_leaving(void)
{
	run_roles(role_leaves, 2);
	run_roles(role_releases, 2);
}

/* ---- calls at the wrong time ---- */

static int role_wrong(int role)
{
	int ends[2], own = dup(2);
	char said[200] = "";

	(void)role;
	/* without a callback reports go to standard error */
	CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
	ph_try_recv(1);
	CHECK(dup2(own, 2) == 2 && read(ends[0], said, sizeof said - 1) > 0);
	CHECK(!strcmp(said, "phnx: the library is not initialised: ph_try_recv()\n"));
	CHECK(ph_get_vp_lower_bound() == 0 && ph_get_random_vp() == PH_INVALID_VP);
	ph_set_error_callback(count_error, NULL);
	ph_send(1, "x", 1, 1);
	CHECK(ph_recv(1) == PH_MSG_INVALID);
	ph_finalize(NULL, -1);
	CHECK(errors[-PH_ENOTINIT] == 3);
	ph_init(0, SPACE, "/", NULL, NULL, NULL);	/* it opens, but is not a file */
	CHECK(errors[-PH_ECONFIG] == 1);
	ph_finalize(NULL, 0);
	ph_init(0, SPACE, "/nonexistent", NULL, NULL, NULL);
	CHECK(errors[-PH_ECONFIG] == 2);
	CHECK(PH_VP_UPPER_BOUND == SPACE && ph_get_vp_upper_bound() == SPACE);
	CHECK(ph_get_resource_name() >= 1LL << 62);
	CHECK(ph_get_vp_lower_bound() == PH_VP_LOWER_BOUND);
	for (int i = 0; i < 1000; i++)
		CHECK(ph_get_random_vp() >= 0 && ph_get_random_vp() < SPACE);
	/* the virtual node "adjacent" to the upper bound: an error, without waiting */
	ph_send(SPACE, "x", 1, 1);
	ph_send(-1, "x", 1, 1);
	CHECK(errors[-PH_EBOUND] == 2);
	ph_assume_vp(SPACE);
	CHECK(errors[-PH_EBOUND] == 3);
	assume_range(0, SPACE);
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)(base_port + 8)) };
	int taken = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(taken, (struct sockaddr *)&in, sizeof in) == 0 && listen(taken, 1) == 0);
	/* in use, and the only port of the range */
	ph_set_listen_port(base_port + 8, base_port + 9);
	CHECK(errors[-PH_EPORT] == 1);
	ph_set_listen_port(base_port + 8, base_port + 10);
	CHECK(errors[-PH_EPORT] == 1);
	close(taken);
	CHECK(ph_hand_over(1, 1, 1000000) == PH_EBOUND);
	CHECK(ph_sendx(1, "x", PH_MSG_MAX + 1, 1, 0) == PH_ETOOBIG);
	ph_add_port_tcp("no.such.host.invalid", 1);
	for (int i = 0; i < PATIENCE / 100000 && !errors[-PH_EHOST]; i++)
		CHECK(ph_timed_recv(99, 100000) == NULL);
	CHECK(errors[-PH_EHOST] == 1);
	pid_t pid = fork();
	if (pid == 0) {
		ph_send(1, "x", 1, 1);
		_exit(errors[-PH_EFORK] != 1);
	}
	int status;
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	ph_timed_send(5, "x", 1, 50, 1000);
	usleep(20000);
	CHECK(ph_try_recv(50) == NULL);
	ph_send(5, "any", 4, PH_MSG_ANY_TAG);
	ph_msg_t m = ph_try_rcv(17);
	CHECK(m && m->tag == PH_MSG_ANY_TAG);
	ph_msg_destroy(m);
	ph_finalize(NULL, 0);
	ph_finalize(NULL, 0);
	CHECK(errors[-PH_ENOTINIT] == 4);
	return 0;
}

static void test_wrong_calls(void)
{
	run_roles(role_wrong, 1);
}

/* ---- the suite ---- */

const struct unit_test tests_of_calls[] = {
	{ "a node in the middle, a handler, a descriptor", test_middle },
	{ "programs that call nothing", test_idle },
	{ "message log", test_log },
	{ "leaving by the low-level calls; a release", test_leaving },
	{ "calls at the wrong time", test_wrong_calls },
	UNIT_END
};
