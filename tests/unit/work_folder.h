/* work_folder.h - a folder for a test's files. */
#ifndef TESTS_UNIT_WORK_FOLDER_H
#define TESTS_UNIT_WORK_FOLDER_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

static char work[] = "/tmp/vmp-test-XXXXXX";

/* Make the folder.  Returns 0, or -1 with errno. */
static inline int work_folder_make(void)
{
	return mkdtemp(work) ? 0 : -1;
}

/* Remove the folder and its content: a suite's clean-up function. */
static inline int work_folder_remove(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", work);
	return system(command);
}

/* Return a path below the folder.  A path is valid until the eighth call after it. */
static inline const char *at(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", work, name);
	return path;
}

/* Run a shell command in the folder; it must succeed. */
static inline void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void shell(const char *format, ...)
{
	char command[2048];
	va_list args;
	int n = snprintf(command, sizeof command, "cd %s && ", work);

	va_start(args, format);
	vsnprintf(command + n, sizeof command - n, format, args);
	va_end(args);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

#endif
