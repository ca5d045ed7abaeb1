/* standby_sender.c - the owner's side (vmm/cli/standby/sender.c) against a standby that answers as
 * a script says, rightly or wrongly. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/clock.h"
#include "tests/unit/standby.h"
#include "vmm/cli/standby/sender.h"

static struct problem p;

enum { DOUBT_MS = 1500, HANG_MS = 300000 };
enum { ROOM = (256 << 10) + MAX_MSG_PAYLOAD + 2 * HEAD, MANY_PAGES = 2000 };

static struct sender s;
static struct {
	unsigned done, failed;
	enum sender_state before;
	/* the script of another standby, which is started when this one has failed */
	const char *next;
} told;

static uint64_t now_ms(void) { return clock_now_ns() / 1000000; }

static void start(const char *script, const char *orders_text)
{
	static const struct cluster_host host = { .name = "far" };

	setenv("VMP_FAKE", script, 1);
	CU_ASSERT_EQUAL_FATAL(sender_start(&s, &host, "hash", orders_text), 0);
	CU_ASSERT_EQUAL(s.state, SENDER_STARTS);
}

static void on_done(void *context, enum sender_state before)
{
	CU_ASSERT_PTR_EQUAL(context, &s);
	told.done++;
	told.before = before;
	CU_ASSERT_EQUAL(s.state, before == SENDER_GOES ? SENDER_OFF : SENDER_IDLE);
}

static void on_failed(void *context, enum sender_state before)
{
	CU_ASSERT_PTR_EQUAL(context, &s);
	told.failed++;
	told.before = before;
	if (told.next && s.state == SENDER_OFF) {
		start(told.next, "orders");
		told.next = NULL;
	}
}

static void open_sender(const char *script)
{
	char self[4096] = "";

	CU_ASSERT_FATAL(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	setenv("VMP_SSH", self, 1);
	CU_ASSERT_EQUAL_FATAL(ftruncate(HEARD_FD, 0) | (int)lseek(HEARD_FD, 0, SEEK_SET), 0);
	memset(&told, 0, sizeof told);
	s = (struct sender){ .base = event_base_new(),
			     .silence = silence_of(SILENCE_PROMPT),
			     .log_fd = -1,
			     .context = &s,
			     .done = on_done,
			     .failed = on_failed };
	start(script, "orders");
}

static void run_for(uint64_t ms)
{
	static const struct timeval moment = { 0, 5000 };

	for (uint64_t until = now_ms() + ms; now_ms() < until;) {
		event_base_loopexit(s.base, &moment);
		event_base_loop(s.base, EVLOOP_ONCE);
	}
}

/* Runs until so many answers have arrived, of whatever kind, or the test has failed. */
static void run_until(unsigned answers)
{
	for (uint64_t until = now_ms() + HANG_MS;
	     told.done + told.failed < answers && now_ms() < until;)
		run_for(1);
	CU_ASSERT_EQUAL(told.done + told.failed, answers);
}

static void run_until_off(void)
{
	for (uint64_t until = now_ms() + HANG_MS; s.state != SENDER_OFF && now_ms() < until;)
		run_for(1);
	CU_ASSERT(s.state == SENDER_OFF);
}

/* Starts a standby with a script. */
static void run_until_it_stops(void)
{
	siginfo_t info = { 0 };

	for (uint64_t until = now_ms() + HANG_MS; !info.si_pid && now_ms() < until;) {
		run_for(1);
		CU_ASSERT_EQUAL_FATAL(waitid(P_PID, (id_t)s.ssh.pid, &info,
					     WSTOPPED | WEXITED | WNOHANG | WNOWAIT),
				      0);
	}
	CU_ASSERT_EQUAL(info.si_code, CLD_STOPPED);
}

static void close_sender(void)
{
	if (s.ssh.pid)
		kill(s.ssh.pid, SIGCONT);
	sender_close(&s);
	CU_ASSERT(s.state == SENDER_OFF && !s.ssh.to && !s.ssh.from && !s.ssh.err && !s.alive &&
		  !s.kept && !s.prepared);
	event_base_free(s.base);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Returns what the standby has received, except signs of life. */
static const char *heard(void)
{
	static char line[200];
	char all[400];
	ssize_t n = pread(HEARD_FD, all, sizeof all - 1, 0);
	size_t to = 0;

	for (ssize_t i = 0; i < n; i++)
		if (all[i] != '.')
			line[to++] = all[i];
	line[to] = 0;
	return line;
}

static bool is(enum sender_state state, unsigned done, unsigned failed, enum sender_state before,
	       const char *why)
{
	bool right = s.state == state && told.done == done && told.failed == failed &&
		     told.before == before && !strcmp(s.why, why);

	if (!right)
		printf("\n    state %d, %u done, %u failed, before %d: %s\n", s.state, told.done,
		       told.failed, told.before, s.why);
	return right;
}

/* Makes a checkpoint of a machine with so many pages that are not zero. */
static struct kept *make_kept(uint32_t pages)
{
	const struct snapshot_machine machine = { .machine = "hosts 2\ncpus 1\nmem 64M\n" };
	struct kept *k = kept_new();
	uint8_t data[MAX_MSG_PAYLOAD] = { 1 };

	kept_begin(k, false);
	CU_ASSERT_EQUAL(kept_add(k,
				 &(struct snapfile_record){
					 SNAPSHOT_MACHINE, 0,
					 (uint32_t)saved_describe(&machine, "line", "/k", data) },
				 data, &p),
			0);
	CU_ASSERT_EQUAL(kept_add(k, &(struct snapfile_record){ SNAPSHOT_CPU, 0, 1 }, data, &p), 0);
	CU_ASSERT_EQUAL(kept_add(k, &(struct snapfile_record){ SNAPSHOT_CHIP, 0, 1 }, data, &p), 0);
	for (uint32_t i = 0; i < pages; i++) {
		memset(data, (int)(i % 255 + 1), PAGE_BYTES);
		CU_ASSERT_EQUAL(kept_add(k,
					 &(struct snapfile_record){ SNAPSHOT_PAGE, i, PAGE_BYTES },
					 data, &p),
				0);
	}
	CU_ASSERT_EQUAL_FATAL(kept_commit(k, &p), 0);
	return k;
}

/* Returns fake_on_record()'s sum for a complete copy. */
static const char *as_heard(const struct kept *k)
{
	static char line[40];
	struct kept_cursor cursor = { 0 };
	struct snapfile_record record;
	uint8_t data[MAX_MSG_PAYLOAD];
	unsigned n = 0;
	uint32_t sum = 0;

	for (; kept_next(k, &cursor, &record, data); n++)
		sum = add_up(sum, &record, data);
	snprintf(line, sizeof line, "OB0C(%u %x)", n, sum);
	return line;
}

static void bring_to(enum sender_state state, struct kept *k)
{
	run_until(1);
	switch (state) {
	case SENDER_COPIES:
		sender_copy(&s, k, now_ms() * 1000000, NULL);
		break;
	case SENDER_PREPARES:
		sender_prepare(&s);
		break;
	case SENDER_GOES:
		sender_prepare(&s);
		run_until(2);
		sender_go(&s);
		break;
	default:
		break;
	}
}

static void a_whole_life(void)
{
	struct kept *k = make_kept(10);

	open_sender("ready,kept,ready,prepared,prepared,up");
	run_until(1);
	CU_ASSERT(is(SENDER_IDLE, 1, 0, SENDER_STARTS, "") && !s.prepared);
	sender_copy(&s, k, now_ms() * 1000000, NULL);
	CU_ASSERT_EQUAL(s.state, SENDER_COPIES);
	run_until(2);
	CU_ASSERT(is(SENDER_IDLE, 2, 0, SENDER_COPIES, "") && !s.kept);
	CU_ASSERT_STRING_EQUAL(heard(), as_heard(k));
	sender_order(&s, "others");
	run_until(3);
	CU_ASSERT(is(SENDER_IDLE, 3, 0, SENDER_STARTS, ""));
	sender_prepare(&s);
	run_until(4);
	CU_ASSERT(is(SENDER_IDLE, 4, 0, SENDER_PREPARES, "") && s.prepared);
	sender_release(&s);
	CU_ASSERT(s.state == SENDER_IDLE && !s.prepared);
	sender_prepare(&s);
	run_until(5);
	sender_go(&s);
	CU_ASSERT_EQUAL(s.state, SENDER_GOES);
	run_until(6);
	CU_ASSERT(is(SENDER_OFF, 6, 0, SENDER_GOES, "") && !s.is_over);
	CU_ASSERT_PTR_NOT_NULL(strstr(heard(), ")OPRPG"));
	close_sender();
	kept_free(k);
}

/* Each line in each state: the expected answer, the refusal, and all others, which end it. */
static void each_answer_in_each_state(void)
{
	static const enum sender_state states[] = { SENDER_STARTS, SENDER_COPIES, SENDER_PREPARES,
						    SENDER_GOES };
	static const char *const to_there[] = { "", "ready,", "ready,", "ready,prepared," };
	static const struct {
		const char *line;
		enum sender_state state;
		int done /* -1: it fails */, after;
		const char *why;
	} answers[] = {
		{ "ready", SENDER_STARTS, 1, SENDER_IDLE, "" },
		{ "refused no room", SENDER_STARTS, -1, SENDER_OFF, "no room" },
		{ "kept", SENDER_COPIES, 1, SENDER_IDLE, "" },
		{ "refused no room", SENDER_COPIES, -1, SENDER_OFF, "no room" },
		{ "prepared", SENDER_PREPARES, 1, SENDER_IDLE, "" },
		{ "unprepared why", SENDER_PREPARES, -1, SENDER_IDLE, "why" },
		{ "up", SENDER_GOES, 1, SENDER_OFF, "" },
		{ "failed why", SENDER_GOES, -1, SENDER_OFF, "why" },
	};
	static const char *const lines[] = { "ready",	   "refused no room", "kept",
					     "prepared",   "unprepared why",  "up",
					     "failed why", "over it is lost", "",
					     "Ready",	   " ready",	      "nonsense" };
	struct kept *k = make_kept(1);

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		for (size_t j = 0; j < ARRAY_LEN(lines); j++) {
			char script[200], why[200];
			unsigned before = states[i] == SENDER_GOES ? 2 : states[i] != SENDER_STARTS;
			bool over = !strncmp(lines[j], "over ", 5);
			int done = -1, after = SENDER_OFF;

			snprintf(script, sizeof script, "%s%s", to_there[i], lines[j]);
			snprintf(why, sizeof why, over ? "%s" : "it says \"%s\"",
				 over ? lines[j] + 5 : lines[j]);
			for (size_t a = 0; a < ARRAY_LEN(answers); a++)
				if (answers[a].state == states[i] &&
				    !strcmp(answers[a].line, lines[j])) {
					done = answers[a].done;
					after = answers[a].after;
					strcpy(why, answers[a].why);
				}
			open_sender(script);
			if (before)
				bring_to(states[i], k);
			run_until(before + 1);
			CU_ASSERT(is((enum sender_state)after, before + (done > 0), done < 0,
				     states[i], why));
			CU_ASSERT_EQUAL(s.is_over, over);
			CU_ASSERT_EQUAL(s.prepared, states[i] == SENDER_PREPARES && done > 0);
			close_sender();
		}
	kept_free(k);
}

/* "alive" is no answer.  Silence for a while makes the owner doubt that the standby lives. */
static void it_says_that_it_lives(void)
{
	struct kept *k = make_kept(1);

	open_sender("alive|ready|alive,alive|kept|alive");
	CU_ASSERT_FALSE(sender_is_silent(&s, DOUBT_MS));
	run_until(1);
	s.heard_ns -= 2 * DOUBT_MS * 1000000ull;
	CU_ASSERT_TRUE(sender_is_silent(&s, DOUBT_MS));
	sender_copy(&s, k, now_ms() * 1000000, NULL);
	run_until(2);
	run_for(20);
	CU_ASSERT(is(SENDER_IDLE, 2, 0, SENDER_COPIES, "") && !sender_is_silent(&s, DOUBT_MS));
	s.heard_ns -= 2 * DOUBT_MS * 1000000ull;
	close_sender();
	CU_ASSERT_TRUE(sender_is_silent(&s, DOUBT_MS)); /* it was */
	kept_free(k);
}

/* Only an answer to a sign of life proves that the standby followed this owner, and since when: a
 * line may have waited while this computer stood still. */
static void it_proves_that_it_follows(void)
{
	const uint64_t long_ms = silence_gone_on_ms(silence_of(SILENCE_PROMPT)) + 1000;
	uint64_t sent_ms = now_ms();
	char script[100];

	open_sender("alive|ready");
	s.proved_ns -= long_ms * 1000000;
	run_until(1);
	CU_ASSERT_TRUE(sender_may_have_gone_on(&s) && !sender_is_silent(&s, 60000));
	close_sender();
	CU_ASSERT_TRUE(sender_may_have_gone_on(&s)); /* it might have before the end */
	CU_ASSERT_TRUE(sender_unproved_ns(&s) >= long_ms * 1000000);

	snprintf(script, sizeof script, "alive %u|ready", (uint32_t)sent_ms);
	open_sender(script);
	s.proved_ns -= (now_ms() - sent_ms + long_ms) * 1000000;
	run_until(1);
	CU_ASSERT_EQUAL(s.proved_ns / 1000000, sent_ms);
	s.proved_ns = now_ms() * 1000000;
	close_sender();

	snprintf(script, sizeof script, "alive %u|ready", (uint32_t)(sent_ms - 60000));
	open_sender(script);
	run_until(1);
	CU_ASSERT(s.proved_ns / 1000000 >= sent_ms); /* an old answer takes nothing back */
	close_sender();
}

/* A line when nothing was asked. */
static void answers_out_of_turn(void)
{
	open_sender("ready|ready");
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_IDLE, "it says \"ready\"") && !s.is_over);
	close_sender();
	open_sender("ready|over it is lost");
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_IDLE, "it is lost") && s.is_over);
	close_sender();
}

static void lines_without_an_end(void)
{
	char script[1500];

	open_sender("+rea");
	run_for(100);
	CU_ASSERT(is(SENDER_STARTS, 0, 0, SENDER_OFF, ""));
	close_sender();
	memset(script, 'x', sizeof script);
	script[0] = '+';
	script[SENDER_LINE + 2] = 0;
	open_sender(script);
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "it says a line without an end"));
	close_sender();
	script[SENDER_LINE + 1] = 0; /* as much as there may be */
	open_sender(script);
	run_for(100);
	CU_ASSERT(is(SENDER_STARTS, 0, 0, SENDER_OFF, ""));
	close_sender();
}

static void a_long_reason_is_cut(void)
{
	char script[SENDER_LINE + 200] = "refused ";

	memset(script + 8, 'r', sizeof script - 9);
	open_sender(script);
	run_until(1);
	CU_ASSERT(s.state == SENDER_OFF && strlen(s.why) == SENDER_LINE - 1);
	close_sender();
}

/* In each state; the reason is ssh's message. */
static void the_connection_ends(void)
{
	static const enum sender_state states[] = { SENDER_STARTS, SENDER_COPIES, SENDER_PREPARES,
						    SENDER_GOES };
	static const char *const scripts[] = { "leaves", "ready,leaves", "ready,leaves",
					       "ready,prepared,leaves" };
	struct kept *k = make_kept(1);

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		unsigned before = states[i] == SENDER_GOES ? 2 : states[i] != SENDER_STARTS;

		open_sender(scripts[i]);
		if (before)
			bring_to(states[i], k);
		run_until(before + 1);
		CU_ASSERT(is(SENDER_OFF, before, 1, states[i], "its ssh connection ended") &&
			  !s.is_over);
		close_sender();
	}
	open_sender("dies ssh: connect to host far port 22: no route");
	run_until(1);
	CU_ASSERT(
		is(SENDER_OFF, 0, 1, SENDER_STARTS, "ssh: connect to host far port 22: no route"));
	close_sender();
	open_sender("dies Warning: Permanently added 'far' to the list of known hosts.");
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "its ssh connection ended"));
	close_sender();
	open_sender("ready");
	run_until(1);
	kill(s.ssh.pid, SIGKILL); /* nothing is under way */
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_IDLE, "its ssh connection ended"));
	close_sender();
	kept_free(k);
}

/* What the standby has sent counts, even if it reads nothing any more; above all that it has taken
 * over the machine. */
static void its_last_word_is_heard(void)
{
	struct kept *k = make_kept(MANY_PAGES);

	open_sender("ready|stops|deaf|over it is lost|leaves");
	run_until(1);
	sender_copy(&s, k, now_ms() * 1000000, NULL);
	run_until_it_stops();
	run_for(50); /* the pipe to it is full */
	kill(s.ssh.pid, SIGCONT);
	CU_ASSERT_EQUAL(waitid(P_PID, (id_t)s.ssh.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	run_until(2);
	CU_ASSERT(is(SENDER_OFF, 1, 1, SENDER_COPIES, "it is lost") && s.is_over);
	close_sender();
	kept_free(k);
}

/* Another standby is started at once, and no line of the first is taken for one of its own. */
static void another_one_takes_its_place(void)
{
	static const char *const first[] = { "refused no room", "refused no room|ready", "leaves",
					     "nonsense|ready|kept" };

	for (size_t i = 0; i < ARRAY_LEN(first); i++) {
		open_sender(first[i]);
		told.next = "nothing";
		run_until(1);
		run_for(100);
		CU_ASSERT(is(SENDER_STARTS, 0, 1, SENDER_STARTS, ""));
		close_sender();
		open_sender(first[i]);
		told.next = "ready,prepared,unprepared why";
		run_until(2);
		CU_ASSERT(is(SENDER_IDLE, 1, 1, SENDER_STARTS, ""));
		sender_prepare(&s);
		run_until(3);
		CU_ASSERT(is(SENDER_IDLE, 2, 1, SENDER_PREPARES, ""));
		close_sender();
	}
}

static void orders_go_in_pieces(void)
{
	static char much[2 * MAX_MSG_PAYLOAD + 1];

	memset(much, 'o', sizeof much - 1);
	for (size_t less = 0; less < 2; less++) {
		much[sizeof much - 1 - less] = 0;
		open_sender("ready,ready");
		run_until(1);
		sender_order(&s, much);
		run_until(2);
		CU_ASSERT_STRING_EQUAL(heard(), "OOO");
		much[sizeof much - 1 - less] = 'o';
		close_sender();
	}
	much[sizeof much - 1] = 0;
}

/* No more is queued than there is room for, however slow the standby is. */
static void a_copy_goes_as_there_is_room(void)
{
	struct kept *k = make_kept(MANY_PAGES);
	bool bounded;

	open_sender("ready|stops,kept");
	run_until(1);
	sender_copy(&s, k, now_ms() * 1000000, NULL);
	bounded = evbuffer_get_length(bufferevent_get_output(s.ssh.to)) <= ROOM;
	run_until_it_stops();
	CU_ASSERT(s.state == SENDER_COPIES && s.kept == k &&
		  evbuffer_get_length(bufferevent_get_output(s.ssh.to)) > 0);
	kill(s.ssh.pid, SIGCONT);
	while (s.kept) {
		event_base_loop(s.base, EVLOOP_ONCE);
		bounded &= evbuffer_get_length(bufferevent_get_output(s.ssh.to)) <= ROOM;
	}
	CU_ASSERT(bounded);
	run_until(2);
	CU_ASSERT(is(SENDER_IDLE, 2, 0, SENDER_COPIES, ""));
	CU_ASSERT_STRING_EQUAL(heard(), as_heard(k));
	close_sender();
	kept_free(k);
}

/* The standby gets END after whole records; the owner's callbacks are not called any more. */
static void the_end_in_each_state(void)
{
	static const struct {
		enum sender_state state;
		unsigned before;
		const char *script, *heard;
	} ends[] = {
		{ SENDER_STARTS, 0, "stops|ready", "OE" },
		{ SENDER_IDLE, 1, "ready|stops|over it is lost", "OE" },
		{ SENDER_COPIES, 1, "ready|stops", "OB0E" },
		{ SENDER_PREPARES, 1, "ready,stops|prepared", "OPE" },
		{ SENDER_GOES, 2, "ready,prepared,stops|up", "OPGE" },
	};
	struct kept *k = make_kept(MANY_PAGES);

	sender_end(&(struct sender){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		open_sender(ends[i].script);
		if (ends[i].before)
			bring_to(ends[i].state, k);
		run_until_it_stops();
		CU_ASSERT(s.state == ends[i].state && told.done == ends[i].before);
		sender_end(&s);
		sender_end(&s);
		CU_ASSERT(s.state != SENDER_OFF && !s.kept);
		kill(s.ssh.pid, SIGCONT);
		run_until_off();
		CU_ASSERT(told.done == ends[i].before && !told.failed && !s.is_over);
		CU_ASSERT_STRING_EQUAL(heard(), ends[i].heard);
		close_sender();
	}
	kept_free(k);
}

/* ssh cannot be started, or is not there. */
static void no_ssh(void)
{
	open_sender("nothing");
	close_sender();
	setenv("VMP_SSH", "/nowhere/ssh", 1);
	memset(&told, 0, sizeof told);
	s.base = event_base_new();
	start("nothing", "orders");
	run_until(1);
	CU_ASSERT(is(SENDER_OFF, 0, 1, SENDER_STARTS, "cannot run /nowhere/ssh: No such file or "
		     "directory"));
	close_sender();
}

const struct unit_test tests_of_sender[] = {
	{ "a whole life", a_whole_life },
	{ "each answer in each state", each_answer_in_each_state },
	{ "it says that it lives", it_says_that_it_lives },
	{ "it proves that it follows", it_proves_that_it_follows },
	{ "answers out of turn", answers_out_of_turn },
	{ "lines without an end", lines_without_an_end },
	{ "a long reason is cut", a_long_reason_is_cut },
	{ "the connection ends", the_connection_ends },
	{ "its last word is heard", its_last_word_is_heard },
	{ "another one takes its place", another_one_takes_its_place },
	{ "orders go in pieces", orders_go_in_pieces },
	{ "a copy goes as there is room", a_copy_goes_as_there_is_room },
	{ "the end in each state", the_end_in_each_state },
	{ "no ssh", no_ssh },
	UNIT_END
};
