/* presence.c - tests of vmm/shared/presence.h: a name is one process's; a word to whoever stands by comes from this user alone. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vmm/shared/presence.h"

static char name[MAX_PRESENCE];

static void a_name_is_held_while_its_holder_lives(void)
{
	int fd = presence_hold(name);

	CU_ASSERT(fd >= 0);
	CU_ASSERT_TRUE(presence_is_held(name));
	CU_ASSERT_EQUAL(presence_hold(name), -1);
	close(fd);
	CU_ASSERT_FALSE(presence_is_held(name));
}

static void who_stands_by_is_told(void)
{
	int fd;

	presence_tell(name); /* nobody is there */
	fd = presence_listen(name);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(presence_listen(name), -1);
	CU_ASSERT_FALSE(presence_is_held(name));
	CU_ASSERT_FALSE(presence_heard(fd));
	presence_tell(name);
	presence_tell(name);
	CU_ASSERT_TRUE(presence_heard(fd));
	CU_ASSERT_FALSE(presence_heard(fd));
	close(fd);
	fd = presence_listen(name);
	CU_ASSERT(fd >= 0);
	CU_ASSERT_FALSE(presence_heard(fd));
	close(fd);
}

/* Only root can be another user. */
static void another_user_says_nothing(void)
{
	int fd = presence_listen(name), status;

	if (geteuid() == 0) {
		pid_t pid = fork();
		if (pid == 0) {
			if (setuid(65534))
				_exit(1);
			presence_tell(name);
			_exit(0);
		}
		CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
		CU_ASSERT_FALSE(presence_heard(fd));
	}
	close(fd);
}

int main(void)
{
	char id[PRESENCE_ID + 1];

	snprintf(id, sizeof id, "test%d", (int)getpid());
	presence_name(name, id, "here");
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("presence", NULL, NULL);
	CU_ADD_TEST(suite, a_name_is_held_while_its_holder_lives);
	CU_ADD_TEST(suite, who_stands_by_is_told);
	CU_ADD_TEST(suite, another_user_says_nothing);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
