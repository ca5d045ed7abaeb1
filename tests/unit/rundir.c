/* Who gets a machine's name: vmm/cli/rundir.c. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "tests/unit/work_folder.h"
#include "vmm/cli/rundir.h"

/* A process that claims the name, and dies `ms` after the first byte in its pipe. */
struct owner {
	pid_t pid;
	int kill;
};

static struct owner owner_start(const char *name, unsigned ms)
{
	int orders[2], claimed[2];
	struct owner owner;
	char byte = 0;

	CU_ASSERT_FATAL(!pipe(orders) && !pipe(claimed));
	owner.pid = fork();
	CU_ASSERT_FATAL(owner.pid >= 0);
	if (!owner.pid) {
		struct rundir dir;
		struct problem p;

		if (rundir_claim(&dir, name, RUNDIR_TESTED_MS, &p) ||
		    write(claimed[1], "", 1) != 1 || read(orders[0], &byte, 1) != 1)
			_exit(1);
		usleep(ms * 1000);
		_exit(0); /* as when it is killed: nothing is released */
	}
	CU_ASSERT_EQUAL_FATAL(read(claimed[0], &byte, 1), 1);
	close(claimed[0]);
	close(claimed[1]);
	close(orders[0]);
	owner.kill = orders[1];
	return owner;
}

static void owner_kill(struct owner *owner)
{
	CU_ASSERT_EQUAL(write(owner->kill, "", 1), 1);
}

static void owner_end(struct owner *owner)
{
	int status;

	CU_ASSERT(waitpid(owner->pid, &status, 0) == owner->pid && status == 0);
	close(owner->kill);
}

static void test_taken(void)
{
	struct owner owner = owner_start("one", 0);
	struct rundir dir;
	struct problem p;

	CU_ASSERT_EQUAL(rundir_claim(&dir, "one", RUNDIR_TESTED_MS, &p), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(p.line, "a machine named one is running already"));
	CU_ASSERT_EQUAL(rundir_claim(&dir, NULL, RUNDIR_TESTED_MS, &p), 0);
	CU_ASSERT_EQUAL(dir.name[0], 'm');
	rundir_release(&dir);
	owner_kill(&owner);
	owner_end(&owner);
	CU_ASSERT_EQUAL(rundir_claim(&dir, "one", RUNDIR_TESTED_MS, &p), 0);
	CU_ASSERT_STRING_EQUAL(dir.name, "one");
	rundir_release(&dir);
}

/* An owner that is killed takes a while to die; who takes its machine over gets its name. */
static void test_dying(void)
{
	struct owner owner = owner_start("two", 200);
	struct rundir dir;
	struct problem p;

	owner_kill(&owner);
	CU_ASSERT_EQUAL(rundir_claim(&dir, "two", RUNDIR_DIES_MS, &p), 0);
	CU_ASSERT_STRING_EQUAL(dir.name, "two");
	owner_end(&owner);
	rundir_release(&dir);
	CU_ASSERT(access(at("vmp/two"), F_OK) < 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "taken", test_taken },
		{ "dying", test_dying },
		UNIT_END
	};

	int status;

	if (work_folder_make() || setenv("XDG_RUNTIME_DIR", work, 1))
		return 1;
	status = UNIT_RUN("rundir", tests);
	return work_folder_remove() || status;
}
