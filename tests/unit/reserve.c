/* reserve.c - the computers of a machine that was taken over are reserved anew
 * (vmm/cli/cluster/reserve.h).  This program is also what stands for vmp-peer: a computer lends if
 * there is a file of its name, and each question adds a line to the file "asked". */
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vmm/cli/cluster/reserve.h"
#include "vmm/shared/hostmem.h"

enum { MANY = 500 };

static char folder[] = "/tmp/vmp-reserve-XXXXXX";
static struct event_base *base;
static struct loop loop;
static struct peers_held held;
static struct reserve reserve;
static struct problem p;
static char said[4096], gone[MAX_HOST_NAME];

/* ---- in place of vmp-peer ---- */

static int hand_over(void)
{
	char done[] = "done\n";
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = { { 0 } };
	struct iovec iov = { done, sizeof done - 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	int fd = open("/dev/null", O_RDWR);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(1, &message, 0) < 0;
}

/* peer borrow OTHERS CPUS MEMORY LEAST HOW NICK */
static int be_peer(char **argv)
{
	const char *cpus = argv[4], *mem = argv[5], *nick = argv[8];
	FILE *asked = fopen("asked", "a");

	fprintf(asked, "%s %s %s\n", nick, cpus, mem);
	fclose(asked);
	if (access(nick, F_OK))
		return printf("no %s lends no more processors\n", nick) < 0;
	printf("%s cpus=%s\n", nick, cpus);
	fflush(stdout);
	return hand_over();
}

/* ---- the tests ---- */

static void lends(const char *nick) { close(open(nick, O_CREAT | O_WRONLY, 0600)); }

/* Returns how often a computer was asked with these words. */
static unsigned asked(const char *words)
{
	char line[256];
	FILE *in = fopen("asked", "r");
	unsigned n = 0;

	while (in && fgets(line, sizeof line, in))
		n += !strncmp(line, words, strlen(words));
	if (in)
		fclose(in);
	return n;
}

static bool is_held(const char *nick)
{
	for (unsigned i = 0; i < MAX_NODES; i++)
		if (!strcmp(held.later[i].nick, nick))
			return fcntl(held.later[i].fd, F_GETFD) >= 0;
	return false;
}

static bool is_host(void *context, const char *nick)
{
	(void)context;
	return strcmp(nick, gone) != 0;
}

static void say(void *context, const char *line)
{
	(void)context;
	strncat(said, line, sizeof said - strlen(said) - 2);
	strcat(said, "\n");
}

static void begin(void)
{
	static const struct cluster_host hosts[] = {
		{ .name = "here", .cpus = 2 }, { .name = "none", .cpus = 0 },
		{ .name = "one", .cpus = 1 },  { .name = "two", .cpus = 3 },
	};

	remove("asked");
	*said = *gone = 0;
	peers_held_begin(&held, -1);
	reserve = (struct reserve){ .loop = &loop, .held = &held, .is_host = is_host, .say = say,
				    .again_ms = 20 };
	CU_ASSERT_EQUAL(reserve_begin(&reserve, hosts, ARRAY_LEN(hosts), 256, &p), 0);
}

static void end(void)
{
	reserve_end(&reserve);
	peers_held_end(&held);
	remove("here"), remove("one"), remove("two"), remove("asked");
}

/* Runs until nothing is left to be reserved, or a computer was asked so often. */
static void run_until(const char *nick, unsigned often)
{
	for (int i = 0; i < 100 * MANY && reserve.n && (!nick || asked(nick) < often); i++)
		event_base_loop(base, EVLOOP_ONCE);
}

static void test_all_are_reserved(void)
{
	char words[80];

	lends("here"), lends("one"), lends("two");
	begin();
	run_until(NULL, 0);
	CU_ASSERT_EQUAL(reserve.n, 0);
	CU_ASSERT(is_held("here") && is_held("one") && is_held("two") && !is_held("none"));
	snprintf(words, sizeof words, "here 2 %u\n", (unsigned)hostmem_needed_mib(256, 1, 2));
	CU_ASSERT_EQUAL(asked(words), 1);
	snprintf(words, sizeof words, "two 3 %u\n", (unsigned)hostmem_needed_mib(256, 1, 3));
	CU_ASSERT_EQUAL(asked(words), 1);
	CU_ASSERT_EQUAL(asked(""), 3);
	CU_ASSERT_STRING_EQUAL(said, "");
	end();
}

/* A lender that still counts the owner before is asked again, and the log says so once. */
static void test_refused_at_first(void)
{
	lends("here"), lends("two");
	begin();
	run_until("one ", 3);
	CU_ASSERT(is_held("here") && is_held("two") && !is_held("one"));
	lends("one");
	run_until(NULL, 0);
	CU_ASSERT(is_held("one"));
	CU_ASSERT(asked("one ") >= 4);
	CU_ASSERT_EQUAL(asked("two "), 1);
	CU_ASSERT_STRING_EQUAL(said, "one is not reserved for this machine yet: --peers: one lends "
				     "no more processors\n");
	end();
}

/* A host that leaves the machine is not asked for any more; what it has lent goes back. */
static void test_host_leaves(void)
{
	lends("here"), lends("two");
	begin();
	run_until("one ", 2);
	strcpy(gone, "one");
	run_until(NULL, 0);
	CU_ASSERT_EQUAL(reserve.n, 0);
	CU_ASSERT_FALSE(is_held("one"));
	end();
	lends("here");
	begin();
	strcpy(gone, "here");	/* which has been asked already */
	run_until("one ", 1);
	CU_ASSERT_FALSE(is_held("here"));
	end();
}

/* The machine ends while a computer is asked. */
static void test_end_while_asking(void)
{
	begin();
	CU_ASSERT_PTR_NOT_NULL(reserve.on_asked);
	end();
	CU_ASSERT_PTR_NULL(reserve.on_asked);
	end();		/* twice does no harm */
}

/* vmp-rsh, and vmp-peer beside it, are where the environment says. */
static void begin_folder(char *self)
{
	char path[64], *program = realpath(self, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(program);
	CU_ASSERT_EQUAL_FATAL(chdir(mkdtemp(folder)), 0);
	CU_ASSERT_EQUAL(symlink(program, "vmp-peer"), 0);
	unsetenv("VMP_SSH");
	CU_ASSERT_EQUAL(peers_use_rsh_of_here(&p), -1);
	snprintf(path, sizeof path, "%s/vmp-rsh", folder);
	setenv("VMP_SSH", path, 1);
	CU_ASSERT_EQUAL(peers_use_rsh_of_here(&p), 0);
	free(program);
}

static char *self;
static void test_rsh(void) { begin_folder(self); }

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "vmp-peer lies beside vmp-rsh", test_rsh },
		{ "all are reserved", test_all_are_reserved },
		{ "one refuses at first", test_refused_at_first },
		{ "a host leaves", test_host_leaves },
		{ "the end while one is asked", test_end_while_asking },
		UNIT_END
	};

	if (argc > 8 && !strcmp(argv[1], "peer"))
		return be_peer(argv);
	self = argv[0];
	base = event_base_new();
	loop = loop_on_event_base(base);
	int status = UNIT_RUN("reserve", tests);
	remove("vmp-peer");
	rmdir(folder);
	event_base_free(base);
	return status;
}
