/* cluster.c - tests of machines on several computers: which computers fit together, the errors of
 * those that fail, names and numbers, and the archive of programs.  The cluster file has
 * cluster_file.c. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "tests/unit/unit.h"
#include "vmm/cli/cluster/bundle.h"
#include "vmm/cli/cluster/cluster.h"
#include "vmm/cli/cluster/ssh_streams.h"

static struct problem p;

/* ---- which computers fit together ---- */

static void test_facts(void)
{
	static struct host_facts a = {
		.cpu = { "AuthenticAMD", true, { { 1, 2, 3, 4, 5, 6, 7, 0xffffffff, 9 } } },
		.processors = 2,
		/* padding is zero */
		.memory = { 4321, true },
		.address = "fe80::1"
	};
	struct host_facts b;
	char line[512];

	facts_print(&a, line, sizeof line);
	CU_ASSERT_EQUAL(facts_parse(&b, line), 0);
	CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
	a.address[0] = 0;
	facts_print(&a, line, sizeof line);
	CU_ASSERT_EQUAL(facts_parse(&b, line), 0);
	CU_ASSERT_STRING_EQUAL(b.address, "");
	strcat(line, " more");
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, line), 0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, "here"), 0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, ""), 0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, "here vendor=x hides=0 features=0,0,0,0,0,0,0,0 "
					    "processors=1 memory=1 group=0 address=-"),
			    0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, "here vendor=x hides=0 features=0,0,0,0,0,0,0,0,0 "
					    "processors=0 memory=1 group=0 address=-"),
			    0);
}

enum { AVX2 = 1 << 5, SHA = 1 << 29 }; /* of word 2 */

static void test_common_subset(void)
{
	static const struct {
		const char *what, *vendor; /* of the new host */
		bool guest_hides, hides, shrinks;
		/* word 2 of the machine, of the new host, and of the machine afterwards */
		uint32_t guest, word, left;
		const char *complaint;
	} cases[] = {
		{ "alike", "AuthenticAMD", 0, 0, 1, AVX2, AVX2, AVX2, NULL },
		{ "another vendor", "GenuineIntel", 1, 1, 1, AVX2, AVX2, AVX2,
		  "another vendor's (GenuineIntel) than the guest's (AuthenticAMD)" },
		{ "lacks, and nobody hides", "AuthenticAMD", 0, 0, 1, AVX2, 0, AVX2,
		  "processor has no AVX2" },
		{ "lacks, and the others do not hide", "AuthenticAMD", 0, 1, 1, AVX2, 0, AVX2,
		  "no AVX2" },
		{ "lacks, and need not hide", "AuthenticAMD", 1, 0, 1, AVX2, 0, 0, NULL },
		{ "lacks, and both hide", "AuthenticAMD", 1, 1, 1, AVX2 | SHA, SHA, SHA, NULL },
		{ "lacks, and the guest runs", "AuthenticAMD", 1, 1, 0, AVX2 | SHA, SHA, AVX2 | SHA,
		  "no AVX2" },
		{ "has more, and cannot hide it", "AuthenticAMD", 1, 0, 1, AVX2, AVX2 | SHA, AVX2,
		  "has SHA, which the guest has not" },
		{ "has more, and hides it", "AuthenticAMD", 0, 1, 0, AVX2, AVX2 | SHA, AVX2, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct hostcpu guest = { "AuthenticAMD",
					 cases[i].guest_hides,
					 { { [2] = cases[i].guest } } };
		struct hostcpu host = { .hides = cases[i].hides,
					.features = { { [2] = cases[i].word } } };
		int error;

		strcpy(host.vendor, cases[i].vendor);
		error = hostcpu_agree(&guest, &host, cases[i].shrinks, &p);
		CU_ASSERT_EQUAL(error, cases[i].complaint ? -1 : 0);
		CU_ASSERT_EQUAL(guest.features.word[2], cases[i].left);
		if (!error)
			CU_ASSERT_EQUAL(guest.hides, cases[i].guest_hides && cases[i].hides);
		if (cases[i].complaint)
			CU_ASSERT_PTR_NOT_NULL(strstr(p.line, cases[i].complaint));
		if (error != (cases[i].complaint ? -1 : 0))
			printf("\n    %s: %s\n", cases[i].what, error ? p.line : "");
	}
}

/* ---- errors ---- */

static void test_explanations(void)
{
	static const struct { int status; const char *said, *line;
	} cases[] = {
		{ 255 << 8, "user@b: Permission denied (publickey).",
		  "host b: user@b: Permission denied (publickey).; ssh must log in there without a "
		  "password; set up a key with ssh-copy-id" },
		{ 255 << 8, "ssh: connect to host b port 22: Connection refused",
		  "does sshd run there" },
		{ 255 << 8, "ssh: connect to host b port 22: Connection timed out",
		  "switched on and reachable" },
		{ 255 << 8, "ssh: Could not resolve hostname b: Name or service not known",
		  "is its name right?" },
		{ 255 << 8, "Host key verification failed.", "connect once by hand" },
		{ 1 << 8, "tar: vmproc: Wrote only 2048 of 10240 bytes: No space left on device",
		  "need 30 MB" },
		{ 126 << 8, "sh: 1: exec: /home/u/.cache/vmp/bin-1/ld.so: Permission denied",
		  "host b: sh: 1: exec: /home/u/.cache/vmp/bin-1/ld.so: Permission denied; "
		  "~/.cache must be writable there" },
		{ 1 << 8, "mkdir: cannot create directory '/home/u/.cache': Permission denied",
		  "~/.cache must be writable there" },
		{ 1 << 8, "mkdir: cannot create directory '/home/u/.cache': Read-only file system",
		  "need 30 MB" },
		{ 255 << 8, "kex_exchange_identification: Connection closed by remote host",
		  "too many logins" },
		{ 255 << 8,
		  "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures",
		  "IdentityFile" },
		{ 125 << 8, "cannot run ssh: No such file or directory",
		  "install ssh on this computer" },
		{ 255 << 8, "", "host b: its ssh connection ended" },
		{ 3 << 8, "",
		  "host b: what ssh started there ended with status 3; does `ssh b true`" },
		{ 9, "", "host b: its ssh died of signal 9 (Killed)" },
	};
	const struct cluster_host host = { .name = "b" };
	char why[FAR_LINE];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		far_explain(&host, cases[i].status, cases[i].said, why, sizeof why);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, cases[i].line));
	}
}

static void test_losses(void)
{
	static const struct { int status; const char *ended; bool lost;
	} cases[] = {
		{ 0, "", false }, /* its daemon has ended in order */
		{ 125 << 8, "with status 125; try --log FILE", false },
		{ 137 << 8, "died of signal 9 (Killed)", true },
		{ 139 << 8, "died of signal 11 (Segmentation fault)", true },
		{ 9, "", true },
		{ 15, "", true }, /* its ssh was killed */
		/* the connection broke; vmp-host was killed */
		{ 255 << 8, "", true },
		{ 137 << 8, "", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_EQUAL(far_is_lost(cases[i].status, cases[i].ended), cases[i].lost);
}

static void test_destinations(void)
{
	static const struct { struct cluster_host host; const char *text;
	} cases[] = {
		{ { .name = "harp" }, "ssh://harp" },
		{ { .name = "harp", .user = "u" }, "ssh://u@harp" },
		{ { .name = "harp", .user = "u", .port = 2222 }, "ssh://u@harp:2222" },
		{ { .name = "fe80::1", .port = 22 }, "ssh://[fe80::1]:22" },
	};
	char text[160];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		far_destination(&cases[i].host, text, sizeof text);
		CU_ASSERT_STRING_EQUAL(text, cases[i].text);
	}
}

static void test_names(void)
{
	static const struct host_names names = { .name = { "here", "harp", "", [12] = "csc10" } };
	static const struct { const char *line, *out;
	} cases[] = {
		{ "host 1 is gone after 3 ms", "host 1 (harp) is gone after 3 ms" },
		{ "the daemon of host 12 died: host 0 hears nothing",
		  "the daemon of host 12 (csc10) died: host 0 (here) hears nothing" },
		{ "host 2 stays", "host 2 stays" },
		{ "host 99 stays", "host 99 stays" },
		{ "ghost 1", "ghost 1" },
		{ "host x", "host x" },
		{ "host 1", "host 1 (harp)" },
		{ "", "" },
		{ "host 1 (b) is lost, and host 0", "host 1 (b) is lost, and host 0 (here)" },
	};
	char out[128];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		names_explain(&names, cases[i].line, out, sizeof out);
		CU_ASSERT_STRING_EQUAL(out, cases[i].out);
		for (size_t room = 1; room < 12; room++) {
			names_explain(&names, cases[i].line, out, room);
			CU_ASSERT(strlen(out) < room);
		}
	}
	CU_ASSERT(names_find(&names, "csc10") == 12 && names_find(&names, "") == -1 &&
		  names_find(&names, "x") == -1);
}

/* ---- the archive ---- */

/* Returns tar's own messages about an archive.  Nothing follows an archive's end, since tar does
 * not wait for it; an archive without an end is allowed. */
static void unpack(const struct bundle *b, const char *folder)
{
	char command[200];
	FILE *tar;

	snprintf(command, sizeof command, "tar xf - -C '%s'", folder);
	tar = popen(command, "w");
	CU_ASSERT_FATAL(tar != NULL);
	CU_ASSERT_EQUAL(fwrite(b->data, 1, b->bytes, tar), b->bytes);
	CU_ASSERT_EQUAL_FATAL(pclose(tar), 0);
}

static void test_archive(void)
{
	static const char block[512] = "x";
	struct bundle b = { 0 };
	char folder[] = "/tmp/vmp-unit.XXXXXX", command[200], text[16] = "";
	FILE *out;

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	CU_ASSERT(!bundle_put(&b, "one", "1", 1) && !bundle_put(&b, "empty", "", 0) &&
		  !bundle_put(&b, "block", block, sizeof block));
	CU_ASSERT_EQUAL(b.bytes, 512 * 5);
	unpack(&b, folder);
	snprintf(command, sizeof command,
		 "cd %s && cat one && wc -c <block && test -x empty && rm -r %s", folder, folder);
	out = popen(command, "r");
	CU_ASSERT(out && fread(text, 1, 5, out) == 5 && pclose(out) == 0);
	CU_ASSERT_STRING_EQUAL(text, "1512\n");
	CU_ASSERT_EQUAL(bundle_put(&b, "a name that is longer than the hundred characters which "
				   "the header of a tar archive has room for, alas",
				   "", 0),
			-1);
	bundle_free(&b);
}

/* Returns how often this command prints a line. */
static int lines_of(const char *command)
{
	FILE *out = popen(command, "r");
	char line[1000];
	int n = 0;

	CU_ASSERT_FATAL(out != NULL);
	while (fgets(line, sizeof line, out))
		n++;
	CU_ASSERT_EQUAL(pclose(out), 0);
	return n;
}

/* A copy has everything that a machine's first host needs, and makes the same copy again. */
static void test_copy_of_a_copy(void)
{
	struct bundle here = { 0 }, there = { 0 }, changed = { 0 };
	char folder[] = "/tmp/vmp unit.XXXXXX", programs[4096], command[4500];

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	CU_ASSERT_FATAL(!beside_path("../..", programs, sizeof programs));
	CU_ASSERT_EQUAL_FATAL(bundle_make_of(&here, programs, &p), 0);
	unpack(&here, folder);
	CU_ASSERT_EQUAL_FATAL(bundle_make_of(&there, folder, &p), 0);
	CU_ASSERT_STRING_EQUAL(here.hash, there.hash);
	CU_ASSERT(here.bytes == there.bytes && !memcmp(here.data, there.data, here.bytes));
	/* No program uses anything of the computer's; the vDSO has no path. */
	snprintf(command, sizeof command,
		 "cd '%s' && for p in vmp vmp-host vmp-node vmp-monitor vmp-iosrv; do "
		 "\"$PWD/ld.so\" --library-path \"$PWD\" --list \"./$p\" || echo fails; done | "
		 "grep -vF -e \"$PWD/\" -e linux-vdso; true",
		 folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	/* Every program of the build that these name is there. */
	snprintf(command, sizeof command,
		 "cd '%s' && for p in vmp-host vmp-node vmp-monitor vmp-iosrv; do "
		 "for q in vmp*; do "
		 "! grep -qaw -e $q $p || [ -x '%s'/$q ] || echo $p: $q; done; done",
		 programs, folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	snprintf(command, sizeof command, "ln -s '%s/run-vmp' '%s/link' && cd / && '%s/link' help",
		 folder, folder, folder);
	CU_ASSERT(lines_of(command) > 3);
	/* And where the computer's loader and libraries are different. */
	snprintf(command, sizeof command,
		 "cd '%s' && mkdir others && for f in *.so*; do echo >>$f && cp $f others; done",
		 folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	CU_ASSERT_EQUAL_FATAL(bundle_make_of(&changed, folder, &p), 0);
	unpack(&changed, folder);
	snprintf(command, sizeof command, "cd '%s/others' && for f in *; do cmp $f ../$f; done",
		 folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	/* A loader that fails: there is no copy without libraries. */
	bundle_free(&changed);
	snprintf(command, sizeof command,
		 "cd '%s' && printf '#!/bin/sh\nexit 127\n' >ld.so && chmod +x ld.so", folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	CU_ASSERT_EQUAL(bundle_make_of(&changed, folder, &p), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(p.line, "cannot list the libraries of"));
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	bundle_free(&here);
	bundle_free(&there);
	bundle_free(&changed);
}

/* ---- a host that says far more than anybody wants to know ---- */

enum { TALK_BYTES = 900000, PIPE_BYTES = 1 << 20, TALK_MOST = 2 << 20 };

/* Makes a program in the place of ssh. */
static void make_talker(char *path, const char *command)
{
	int fd = mkstemp(path);

	CU_ASSERT_FATAL(fd >= 0 && !fchmod(fd, 0700));
	dprintf(fd, "#!/bin/sh\n%s\n", command);
	close(fd);
	setenv("VMP_SSH", path, 1);
}

static void remove_talker(const char *path, pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unsetenv("VMP_SSH");
	unlink(path);
}

static int in_pipe(int fd)
{
	int n = 0;

	ioctl(fd, FIONREAD, &n);
	return n;
}

/* Other events get their turn when a little was read. */
static void test_talkative_start(void)
{
	for (int stream = 1; stream <= 2; stream++) {
		static const struct bundle none;
		struct far far = { .host = { .name = "b" }, .bundle = &none, .log_fd = -1,
				   .base = event_base_new() };
		char path[] = "/tmp/vmp-test-ssh.XXXXXX", command[80];
		pid_t pid;
		int fd;

		snprintf(command, sizeof command, "read go; head -c %d /dev/zero >&%d\n"
			 "exec sleep 1000", TALK_BYTES, stream);
		make_talker(path, command);
		CU_ASSERT_FATAL(!far_start(&far));
		pid = far.pid;
		fd = stream == 1 ? far.out : far.err;
		CU_ASSERT_FATAL(fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES) >= TALK_BYTES);
		CU_ASSERT(write(far.in, "\n", 1) == 1);
		while (in_pipe(fd) < TALK_BYTES)
			usleep(1000);
		event_base_loop(far.base, EVLOOP_ONCE);
		CU_ASSERT(in_pipe(fd) > TALK_BYTES / 2 && in_pipe(fd) < TALK_BYTES);
		far_close(&far);
		event_base_free(far.base);
		remove_talker(path, pid);
	}
}

static size_t at_end;

static void on_talk(void *context, struct evbuffer *input) { (void)context, (void)input; }

static void on_talk_room(void *context) { (void)context; }

static void on_talk_end(void *context)
{
	struct ssh_streams *s = context;

	at_end = evbuffer_get_length(bufferevent_get_input(s->from));
	ssh_streams_close(s);
}

/* Nobody takes what it says: it stays in the pipe, also when the other stream ends. */
static void test_talkative_streams(void)
{
	static const struct cluster_host host = { .name = "b" };
	struct ssh_streams s = { .base = event_base_new(), .log_fd = -1, .context = &s,
				 .on_bytes = on_talk, .on_room = on_talk_room,
				 .on_end = on_talk_end };
	char path[] = "/tmp/vmp-test-ssh.XXXXXX";
	struct evbuffer *input;
	int nobody[2], still;
	struct ssh ssh;

	signal(SIGPIPE, SIG_IGN);
	make_talker(path, "exec cat /dev/zero");
	CU_ASSERT_FATAL(!ssh_start(&ssh, &host, NULL, "true", false) && !pipe(nobody));
	close(nobody[0]);
	dup2(nobody[1], ssh.in);
	close(nobody[1]);
	CU_ASSERT_FATAL(!ssh_streams_open(&s, &ssh));
	input = bufferevent_get_input(s.from);
	for (still = 0; still < 100 && evbuffer_get_length(input) < TALK_MOST; still++) {
		size_t before = evbuffer_get_length(input);

		event_base_loop(s.base, EVLOOP_NONBLOCK);
		usleep(1000);
		if (!before || evbuffer_get_length(input) > before)
			still = 0;
	}
	CU_ASSERT(evbuffer_get_length(input) < TALK_MOST);
	bufferevent_write(s.to, "x", 1);
	while (s.pid)
		event_base_loop(s.base, EVLOOP_ONCE);
	CU_ASSERT(at_end && at_end < TALK_MOST);
	event_base_free(s.base);
	remove_talker(path, ssh.pid);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "a talkative host starts", test_talkative_start },
		{ "a talkative host's streams", test_talkative_streams },
		{ "facts", test_facts },
		{ "common subset", test_common_subset },
		{ "explanations", test_explanations },
		{ "losses", test_losses },
		{ "destinations", test_destinations },
		{ "names", test_names },
		{ "archive", test_archive },
		{ "copy of a copy", test_copy_of_a_copy },
		UNIT_END
	};

	return UNIT_RUN("cluster", tests);
}
