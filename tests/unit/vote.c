/* vote.c - tests of the votes of computers: each cell of vmm/shared/vote.def; that a vote belongs
 * to one owner at a time (vmm/shared/presence.h); and vmp-host, which asks for it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/beside.h"
#include "tests/unit/unit.h"
#include "vmm/shared/presence.h"

static char name[MAX_PRESENCE], another[MAX_PRESENCE];

static void each_cell(void)
{
	static const enum vote cells[VOTE_LOCK_COUNT][VOTE_HOLDER_COUNT] = {
		/* NOBODY, ASKER, OTHER, RUNNER */
		{ VOTE_GIVEN, VOTE_GIVEN, VOTE_GIVEN, VOTE_GIVEN }, /* TAKEN */
		{ VOTE_WAITS, VOTE_WAITS, VOTE_HELD, VOTE_TAKEN },  /* LOCKED */
		{ VOTE_NONE, VOTE_NONE, VOTE_NONE, VOTE_NONE },	    /* BARRED */
	};

	for (unsigned lock = 0; lock < VOTE_LOCK_COUNT; lock++)
		for (unsigned holder = 0; holder < VOTE_HOLDER_COUNT; holder++) {
			enum vote vote = vote_answer((enum vote_lock)lock,
						     (enum vote_holder)holder);

			CU_ASSERT_EQUAL(vote, cells[lock][holder]);
			/* nobody has a vote without the lock */
			CU_ASSERT_EQUAL(vote == VOTE_GIVEN, lock == VOTE_LOCK_TAKEN);
			CU_ASSERT_NOT_EQUAL(vote, VOTE_UNASKED);
		}
}

static void words(void)
{
	for (unsigned vote = 0; vote < VOTE_COUNT; vote++)
		CU_ASSERT_EQUAL(vote_of_word(vote_word((enum vote)vote)), vote);
	CU_ASSERT_EQUAL(vote_of_word("given"), VOTE_COUNT);
}

/* Asks until the answer is another one than "wait": a process that removes what others have left
 * locks each file for a moment. */
static enum vote vote_of(int *held, const char *what, const char *owner)
{
	enum vote vote = VOTE_WAITS;

	for (unsigned tries = 0; tries < 1000 && vote == VOTE_WAITS; tries++) {
		if (tries)
			usleep(1000);
		vote = presence_vote(held, what, owner);
	}
	return vote;
}

static void one_owner_at_a_time(void)
{
	int first, second;

	CU_ASSERT_EQUAL(vote_of(&first, name, "alice"), VOTE_GIVEN);
	CU_ASSERT_EQUAL(vote_of(&second, name, "bob"), VOTE_HELD);
	CU_ASSERT_EQUAL(second, -1);
	CU_ASSERT_EQUAL(presence_vote(&second, name, "alice"), VOTE_WAITS);
	CU_ASSERT_EQUAL(vote_of(&second, another, "bob"), VOTE_GIVEN);
	presence_unvote(second, another);
	presence_vote_runs(first);
	CU_ASSERT_EQUAL(vote_of(&second, name, "bob"), VOTE_TAKEN);
	CU_ASSERT_EQUAL(presence_vote(&second, name, "alice"), VOTE_WAITS);
	close(first); /* as when its process is killed */
	CU_ASSERT_EQUAL(vote_of(&second, name, "bob"), VOTE_GIVEN);
	CU_ASSERT_EQUAL(vote_of(&first, name, "alice"), VOTE_HELD);
	presence_unvote(second, name);
	CU_ASSERT_EQUAL(vote_of(&first, name, "alice"), VOTE_GIVEN);
	presence_unvote(first, name);
}

/* A name of a machine's host is another thing (presence.h). */
static void is_no_presence(void)
{
	int held, fd = presence_hold(name);

	CU_ASSERT_EQUAL(vote_of(&held, name, "alice"), VOTE_GIVEN);
	presence_release(fd, name);
	CU_ASSERT_FALSE(presence_is_held(name));
	presence_unvote(held, name);
	CU_ASSERT_EQUAL(presence_vote(&held, "a/b", "alice"), VOTE_NONE);
}

/* Many processes ask again and again, for a second: never do two have it. */
static void no_two_have_it(void)
{
	enum { ASKERS = 4, SECONDS = 1 };
	int ours[2], status, held;
	char token;

	CU_ASSERT_FATAL(!pipe2(ours, O_NONBLOCK));
	CU_ASSERT_EQUAL(write(ours[1], "t", 1), 1);
	for (unsigned i = 0; i < ASKERS; i++)
		if (!fork()) {
			char owner[8];
			bool wrong = false;

			snprintf(owner, sizeof owner, "o%u", i);
			for (time_t end = time(NULL) + SECONDS; time(NULL) <= end && !wrong;) {
				if (presence_vote(&held, name, owner) != VOTE_GIVEN)
					continue;
				/* the token is not there while another one has the vote */
				wrong = read(ours[0], &token, 1) != 1;
				wrong |= write(ours[1], &token, 1) != 1;
				presence_unvote(held, name);
			}
			_exit(wrong);
		}
	for (unsigned i = 0; i < ASKERS; i++) {
		CU_ASSERT(wait(&status) > 0);
		CU_ASSERT_EQUAL(status, 0);
	}
	close(ours[0]), close(ours[1]);
}

/* ---- vmp-host ---- */

struct child { pid_t pid; FILE *in, *out; };

static struct child start(void)
{
	struct child child;
	char program[4096];
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || (child.pid = fork()) < 0)
		return (struct child){ 0 };
	if (!child.pid) {
		dup2(in[0], 0), dup2(out[1], 1);
		close(in[0]), close(in[1]), close(out[0]), close(out[1]);
		if (!beside_path("../../vmp-host", program, sizeof program))
			execl(program, "vmp-host", NULL);
		_exit(127);
	}
	close(in[0]), close(out[1]);
	child.in = fdopen(in[1], "w"), child.out = fdopen(out[0], "r");
	return child;
}

static bool says(struct child *child, const char *wanted)
{
	char line[1024];

	return fgets(line, sizeof line, child->out) && !strncmp(line, wanted, strlen(wanted));
}

static void ask(struct child *child, const char *owner)
{
	fprintf(child->in, "vote %s %s\n", owner, name);
	fflush(child->in);
}

static void end(struct child *child)
{
	fclose(child->in);
	CU_ASSERT_EQUAL(waitpid(child->pid, NULL, 0), child->pid);
	fclose(child->out);
}

static void vmp_host_asks(void)
{
	struct child first = start(), second = start();
	int held;

	CU_ASSERT(says(&first, "here ") && says(&second, "here "));
	ask(&first, "alice");
	CU_ASSERT(says(&first, "vote GIVEN\n"));
	CU_ASSERT_EQUAL(presence_vote(&held, name, "bob"), VOTE_HELD);
	ask(&second, "bob");
	CU_ASSERT(says(&second, "vote WAITS\n"));
	CU_ASSERT(says(&second, "vote HELD\n"));
	end(&first);
	CU_ASSERT(says(&second, "vote GIVEN\n"));
	end(&second);
	CU_ASSERT_EQUAL(presence_vote(&held, name, "carol"), VOTE_GIVEN);
	presence_unvote(held, name);
}

/* A second line is ignored, and so is one that is none. */
static void vmp_host_asks_once(void)
{
	struct child child = start();

	CU_ASSERT(says(&child, "here "));
	fputs("vote nonsense\n", child.in);
	ask(&child, "an-owner-with-too-long-a-name");
	ask(&child, "alice");
	ask(&child, "bob");
	CU_ASSERT(says(&child, "vote GIVEN\n"));
	end(&child);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_cell),
		UNIT_TEST(words),
		UNIT_TEST(one_owner_at_a_time),
		UNIT_TEST(is_no_presence),
		UNIT_TEST(no_two_have_it),
		UNIT_TEST(vmp_host_asks),
		UNIT_TEST(vmp_host_asks_once),
		UNIT_END
	};
	char id[PRESENCE_ID + 1];

	snprintf(id, sizeof id, "test%012x", (unsigned)getpid());
	presence_name(name, id, "b");
	presence_name(another, id, "c");
	return UNIT_RUN("votes", tests);
}
