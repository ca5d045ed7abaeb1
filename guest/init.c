/* init.c - the guest's first process: sets up a small Linux, runs the user's command, ends the
 * machine.
 *
 * scripts/guest-image puts it into the base image as /init (32-bit, static).  The command is in the
 * archive that vmp appends for each run: vmm/cli/guest/initramfs.h describes /vmp/command,
 * /vmp/environ and /vmp/cwd.  Without a command the user gets a shell on the console.  The same
 * image boots an unpatched kernel under QEMU, the reference machine of the tests.
 *
 * The command's three streams and its exit status leave the machine in one of two ways:
 *
 *   stream device   /dev/vmp-in, -out, -err, and the status, as text, to /dev/vmp-exit
 *                   (base/guest_abi.h).  The command holds the devices themselves: no byte is
 *                   copied on its way.
 *   framed          where that device is missing (QEMU): packets over a serial line that is not the
 *                   console.  A channel byte tells them apart; the kernel's log is one channel.
 *                   Standard input is the file /vmp/stdin, if there is one.
 *                   tests/machine/unframe.c reads the packets.
 *
 * Beside it runs the agent (guest_agent.c), which carries out `vmp exec`.  `poweroff`, `halt` and
 * `reboot` send signals to this process (power.c).
 *
 * Nothing here polls, except for the window's size, once a second beside a shell.  All of it must
 * work when one of the machine's disks or devices does not: a step of the set-up that fails is
 * named on the console, and the boot goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "guest/guest.h"

enum { SYSLOG_READ_ALL = 3 }; /* klogctl(2) */

/* A framed packet: channel, two bytes of length (little endian), the bytes.  The status is four
 * bytes. */
enum channel { CHANNEL_OUT = 1, CHANNEL_ERR = 2, CHANNEL_EXIT = 3, CHANNEL_LOG = 4 };

void complain(const char *what, const char *name)
{
	fprintf(stderr, "init: %s %s: %s\n", what, name, strerror(errno));
}

/* ---- An ordinary small Linux ---- */

static const struct {
	const char *type, *where, *options;
	unsigned long flags;
} mounts[] = {
	{ "devtmpfs", "/dev", "mode=0755", MS_NOSUID },
	{ "proc", "/proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC },
	{ "sysfs", "/sys", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC },
	{ "devpts", "/dev/pts", "mode=0620,ptmxmode=0666", MS_NOSUID | MS_NOEXEC },
	{ "tmpfs", "/dev/shm", "mode=1777", MS_NOSUID | MS_NODEV },
	{ "tmpfs", "/tmp", "mode=1777", MS_NOSUID | MS_NODEV },
	{ "tmpfs", "/run", "mode=0755", MS_NOSUID | MS_NODEV },
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "/dev/fd", "/proc/self/fd" },
	{ "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" },
	{ "/dev/stderr", "/proc/self/fd/2" },
};

static void mount_all(void)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof *mounts; i++) {
		mkdir(mounts[i].where, 0755);
		/* EBUSY: the kernel has mounted /dev already (DEVTMPFS_MOUNT). */
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, mounts[i].flags,
			  mounts[i].options) < 0 &&
		    errno != EBUSY)
			complain("cannot mount", mounts[i].where);
	}
	for (size_t i = 0; i < sizeof(links) / sizeof *links; i++)
		if (symlink(links[i].target, links[i].path) < 0 && errno != EEXIST)
			complain("cannot link", links[i].path);
}

/* A live folder of the host's, if the machine has one. */
static void mount_share(void)
{
	char how[3] = "";
	FILE *file = fopen("/vmp/live", "re");

	if (!file)
		return;
	if (fread(how, 1, sizeof how - 1, file) != sizeof how - 1)
		how[0] = 0;
	fclose(file);
	if (mount("share", "/share", "9p",
		  MS_NOSUID | MS_NODEV | (strcmp(how, "ro") ? 0 : MS_RDONLY),
		  "trans=virtio,version=9p2000.L,msize=65536,access=any,cache=mmap") < 0)
		complain("cannot mount", "/share");
}

/* The kernel gives init its console as 0, 1 and 2, unless it has none. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd < 2)
		fd = dup(fd);
	if (fd > 2)
		close(fd);
}

static void set_host_name(void)
{
	char name[65] = "";
	FILE *file = fopen("/etc/hostname", "re");

	if (file && fscanf(file, "%64s", name) != 1)
		name[0] = 0;
	if (file)
		fclose(file);
	if (sethostname(*name ? name : "vmp", *name ? strlen(name) : 3) < 0)
		complain("cannot set", "the host's name");
}

static void bring_loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		complain("cannot bring up", "lo");
	if (fd >= 0)
		close(fd);
}

static bool set_address(int fd, struct ifreq *request, unsigned long what, const char *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&request->ifr_addr;

	*in = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, address, &in->sin_addr);
	return ioctl(fd, what, request) == 0;
}

static bool set_gateway(int fd, const char *address)
{
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct sockaddr_in *gateway = (struct sockaddr_in *)&route.rt_gateway;

	gateway->sin_family = route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
	inet_pton(AF_INET, address, &gateway->sin_addr);
	return ioctl(fd, SIOCADDRT, &route) == 0;
}

/* The image's own file is a comment; one that the user brought stays. */
static void name_servers(void)
{
	static const char path[] = "/etc/resolv.conf", servers[] = "nameserver 10.0.2.3\n";
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char first = '#';

	if (fd < 0 || read(fd, &first, 1) < 0 ||
	    (first == '#' &&
	     (ftruncate(fd, 0) || pwrite(fd, servers, sizeof servers - 1, 0) < 0)))
		complain("cannot write", path);
	if (fd >= 0)
		close(fd);
}

/* Sets up the network card of `--net user`.  Its IPv4 addresses are always the same
 * (iosrv/vmp_net.c), so no time is lost in asking for them.  The guest gets its IPv6 address and
 * route from the router's advertisement. */
static void bring_network_up(bool in_root)
{
	struct ifreq request = { .ifr_name = "eth0" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0) { /* there is none */
		if (fd >= 0)
			close(fd);
		return;
	}
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0 ||
	    !set_address(fd, &request, SIOCSIFADDR, "10.0.2.15") ||
	    !set_address(fd, &request, SIOCSIFNETMASK, "255.255.255.0") ||
	    !set_gateway(fd, "10.0.2.2"))
		complain("cannot bring up", "eth0");
	close(fd);
	if (in_root)
		root_name_servers();
	else
		name_servers();
}

/* ---- What to run ---- */

/* The folder /vmp; it is there, too, when a disk has become the root. */
static int vmp_folder = -1;

/* Reads a whole file of /vmp and puts a NUL byte after it; its length is in *bytes.  NULL: there is
 * none.  The caller owns the result and keeps it. */
static char *read_file(const char *name, size_t *bytes)
{
	struct stat st;
	char *text = NULL;
	int fd = openat(vmp_folder, name, O_RDONLY | O_CLOEXEC);

	*bytes = 0;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && (text = malloc((size_t)st.st_size + 1))) {
		ssize_t n;

		while (*bytes < (size_t)st.st_size &&
		       (n = read(fd, text + *bytes, (size_t)st.st_size - *bytes)) > 0)
			*bytes += (size_t)n;
		text[*bytes] = 0;
	}
	close(fd);
	return text;
}

char **split_strings(char *text, size_t bytes)
{
	size_t n = 0, i = 0;
	char **vector;

	for (size_t at = 0; at < bytes; at += strlen(text + at) + 1)
		n++;
	vector = calloc(n + 1, sizeof *vector);
	for (size_t at = 0; vector && at < bytes; at += strlen(text + at) + 1)
		vector[i++] = text + at;
	return vector;
}

void user_to_environment(const struct user *user)
{
	setenv("HOME", user->home, 1);
	setenv("USER", user->name, 1);
	setenv("LOGNAME", user->name, 1);
}

static void set_environment(const struct user *user, bool in_root)
{
	size_t bytes;
	char *text = read_file("environ", &bytes);
	char **extra = text ? split_strings(text, bytes) : NULL;

	clearenv();
	setenv("PATH", in_root ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
			       : "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	user_to_environment(user);
	setenv("SHELL", "/bin/sh", 1);
	setenv("TERM", "vt100", 1);
	/* putenv() takes the string itself: it lives as long as init. */
	for (char **e = extra; e && *e; e++)
		if (strchr(*e, '='))
			putenv(*e);
}

void make_folders(char *path)
{
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
	mkdir(path, 0755);
}

/* The folder of --workdir, if it cannot be entered, and errno's reason. */
static char *cannot_start;
static int cannot_start_error;

static void change_to_start_folder(const struct user *user)
{
	size_t bytes;
	char *folder = read_file("cwd", &bytes);
	const char *start = folder && *folder ? folder : user->home;

	if (folder && *folder)
		make_folders(folder);
	if (chdir(start) == 0)
		return;
	cannot_start_error = errno;
	if (faccessat(vmp_folder, "workdir", F_OK, 0) == 0)
		cannot_start = folder; /* kept */
	else
		complain("cannot start in", start);
}

/* Says on its standard error that the command or shell cannot start in the folder of --workdir. */
static bool says_cannot_start(void)
{
	errno = cannot_start_error;
	if (cannot_start)
		complain("cannot start in", cannot_start);
	return cannot_start;
}

/* ---- Who ---- */

/* Who the command shall be. */
static void read_user(struct user *user)
{
	size_t bytes;
	char *text = read_file("user", &bytes);

	user_of_text(user, text ? text : "");
	free(text);
}

/* ---- The command ---- */

struct streams {
	int in, out, err; /* what the command gets */
	int from_out, from_err; /* framed: our ends of the two pipes, or -1 */
	int line;		/* framed: the serial line, or -1 */
};

static bool open_stream_device(struct streams *s)
{
	s->in = open("/dev/vmp-in", O_RDONLY | O_CLOEXEC);
	s->out = open("/dev/vmp-out", O_WRONLY | O_CLOEXEC);
	s->err = open("/dev/vmp-err", O_WRONLY | O_CLOEXEC);
	s->from_out = s->from_err = s->line = -1;
	return s->in >= 0 && s->out >= 0 && s->err >= 0;
}

/* Opens a serial line that passes every byte as it is.  -1: there is no such chip, which the device
 * node does not tell. */
static int open_raw_line(const char *path)
{
	struct termios t;
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || tcgetattr(fd, &t) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL;
	cfsetspeed(&t, B115200);
	tcsetattr(fd, TCSANOW, &t);
	return fd;
}

/* Whether kernel messages go to ttyS0. */
static bool console_is_serial(void)
{
	char name[64] = "";
	FILE *consoles = fopen("/proc/consoles", "re");

	if (consoles && fscanf(consoles, "%63s", name) != 1)
		name[0] = 0;
	if (consoles)
		fclose(consoles);
	return strcmp(name, "ttyS0") == 0;
}

static bool open_framed(struct streams *s)
{
	int out[2], err[2];

	s->line = open_raw_line("/dev/ttyS1");
	if (s->line < 0 && !console_is_serial())
		s->line = open_raw_line("/dev/ttyS0");
	if (s->line < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return false;
	s->in = openat(vmp_folder, "stdin", O_RDONLY | O_CLOEXEC);
	if (s->in < 0)
		s->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	s->out = out[1];
	s->err = err[1];
	s->from_out = out[0];
	s->from_err = err[0];
	return true;
}

void write_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno != EINTR)
			return;
		if (done > 0)
			at += done, n -= (size_t)done;
	}
}

static void send_frame(int line, enum channel channel, const void *bytes, size_t n)
{
	uint8_t head[3] = { (uint8_t)channel, (uint8_t)n, (uint8_t)(n >> 8) };

	write_all(line, head, sizeof head);
	write_all(line, bytes, n);
}

/* Passes on what a pipe holds now; false at its end. */
static bool pump(int line, enum channel channel, int fd)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof bytes);

	if (n > 0)
		send_frame(line, channel, bytes, (size_t)n);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Reaps whatever has ended; true once `command` is among it, with its wait status in *status. */
bool reap_command(pid_t command, int *status, int options)
{
	int s;
	pid_t pid;

	power_listen(true);
	while ((pid = waitpid(-1, &s, options)) > 0 || (pid < 0 && errno == EINTR))
		if (pid == command) {
			*status = s;
			break;
		}
	power_listen(false);
	return pid == command;
}

/* Two full pipes of 64 KiB, 4 KiB at a time. */
enum { MAX_LAST_PUMPS = 32 };

static void on_child(int signal) { (void)signal; }

/* The framed way: copies both pipes until the command has ended, and then what is left in them.  An
 * orphan that still holds a pipe, or fills it for ever, does not keep the machine up.  SIGCHLD is
 * unblocked in ppoll() alone, so that no death is missed. */
static int wait_and_pump(const struct streams *s, pid_t command)
{
	struct pollfd fds[2] = { { s->from_out, POLLIN, 0 }, { s->from_err, POLLIN, 0 } };
	static const enum channel channels[2] = { CHANNEL_OUT, CHANNEL_ERR };
	const struct timespec now = { 0, 0 };
	sigset_t none;
	bool ended = false;
	int status = 0, left = MAX_LAST_PUMPS;

	sigemptyset(&none);
	for (;;) {
		int n;

		ended = ended || reap_command(command, &status, WNOHANG);
		n = ppoll(fds, 2, ended ? &now : NULL, &none);
		if (n == 0 || (ended && left-- == 0))
			return status;
		for (int i = 0; n > 0 && i < 2; i++)
			if (fds[i].revents && !pump(s->line, channels[i], fds[i].fd))
				fds[i].fd = -1;
	}
}

void exec_or_explain(char **argv)
{
	int status;

	execvp(argv[0], argv);
	status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
	if (status == STATUS_NOT_FOUND && strchr(argv[0], '/') && access(argv[0], F_OK) == 0)
		fprintf(stderr, "%s: its interpreter or loader is missing in the guest\n", argv[0]);
	else
		fprintf(stderr, "%s: %s\n", argv[0],
			status == STATUS_NOT_FOUND ? "not found" : strerror(errno));
	_exit(status);
}

void forget_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	power_forget();
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? STATUS_BY_SIGNAL + WTERMSIG(wait_status)
					: WEXITSTATUS(wait_status);
}

static int run_command(char **argv, const struct streams *s, const struct user *user)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0) {
		complain("cannot fork for", argv[0]);
		return STATUS_CANNOT_EXECUTE;
	}
	if (pid == 0) {
		setsid();
		dup2(s->in, 0);
		dup2(s->out, 1);
		dup2(s->err, 2);
		forget_signals();
		if (says_cannot_start())
			_exit(STATUS_CANNOT_EXECUTE);
		become(user);
		exec_or_explain(argv);
	}
	/* Our own copies would keep the streams open after the command has closed its. */
	close(s->in);
	close(s->out);
	close(s->err);
	if (s->line < 0)
		reap_command(pid, &status, 0);
	else
		status = wait_and_pump(s, pid);
	return exit_status(status);
}

/* ---- The end ---- */

static void send_kernel_log(int line)
{
	static char log[1 << 18];
	int n = klogctl(SYSLOG_READ_ALL, log, sizeof log);

	for (int at = 0; at < n; at += 4096)
		send_frame(line, CHANNEL_LOG, log + at, (size_t)(n - at < 4096 ? n - at : 4096));
}

/* Reports the status, then ends the machine.  The framed way reboots: without ACPI, QEMU can end by
 * `-no-reboot` alone. */
__attribute__((noreturn)) static void end_machine(int status, int line)
{
	int fd = open("/dev/vmp-exit", O_WRONLY | O_CLOEXEC);

	disks_leave();
	fflush(NULL);
	if (fd >= 0) {
		console_drain(STDOUT_FILENO);
		dprintf(fd, "%d\n", status);
	} else if (line >= 0) {
		int32_t value = status;

		send_kernel_log(line);
		send_frame(line, CHANNEL_EXIT, &value, sizeof value);
		tcdrain(line);
	} else {
		printf("init: exit status %d\n", status);
		fflush(stdout);
		tcdrain(STDOUT_FILENO);
	}
	reboot(fd >= 0 ? RB_POWER_OFF : RB_AUTOBOOT);
	for (;;)
		pause();
}

int main(void)
{
	struct streams streams = { -1, -1, -1, -1, -1, -1 };
	struct sigaction action = { .sa_handler = on_child };
	sigset_t child;
	size_t bytes;
	char *text, **command;
	bool have_streams;
	struct winsize window;
	int window_device;
	struct user user;
	struct root root = { NULL, false };

	mount_all();
	console_choose();
	if (fcntl(STDERR_FILENO, F_GETFD) < 0)
		open_console();
	vmp_folder = open("/vmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	set_host_name();
	mount_share();
	text = read_file("root", &bytes);
	if (text && !root_enter(&root, split_strings(text, bytes)))
		end_machine(STATUS_CANNOT_EXECUTE, -1);
	if (!root.boots) {
		bring_loopback_up();
		bring_network_up(root.device != NULL);
	}
	more_cpus_bring_up();
	read_user(&user);
	set_environment(&user, root.device != NULL);
	change_to_start_folder(&user);
	console_give(&user);
	/* Asked in any case: the machine regards the first access to its stream device as the end
	 * of the boot. */
	window_device = open("/dev/vmp-window", O_RDONLY | O_CLOEXEC);
	window = console_window_size(window_device);

	agent_start(&user);
	if (root.boots) {
		console_follow_window(window_device, window);
		root_run_init();
		end_machine(STATUS_CANNOT_EXECUTE, -1);
	}

	text = read_file("command", &bytes);
	command = text ? split_strings(text, bytes) : NULL;
	if (!command || !*command) {
		if (says_cannot_start())
			end_machine(STATUS_CANNOT_EXECUTE, -1);
		console_follow_window(window_device, window);
		power_take_requests();
		end_machine(console_run_shell(&window, &user), -1);
	}

	power_take_requests();
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &action, NULL);
	have_streams = open_stream_device(&streams) || open_framed(&streams);
	if (!have_streams) {
		fprintf(stderr, "init: neither a stream device nor a free serial line: the command "
			"uses the console\n");
		streams = (struct streams){ dup(0), dup(1), dup(2), -1, -1, -1 };
	}
	end_machine(run_command(command, &streams, &user), streams.line);
}
