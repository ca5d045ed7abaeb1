/* faultpoint.c - switching deliberate faults on; see faultpoint.h. */
#include "base/faultpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

uint32_t fault_value[FAULT_POINT_COUNT];

const char *const fault_names[FAULT_POINT_COUNT] = {
#define X(name, text, what) [FAULT_##name] = text,
#include "base/faultpoint.def"
#undef X
};

static void kill_this_process(void)
{
	kill(getpid(), SIGKILL);
}

void (*fault_death)(void) = kill_this_process;

void fault_set(enum fault_point point, uint32_t n)
{
	fault_value[point] = n;
}

/* Parse one "name[:n]" of `length` characters into `values`. */
static int parse_one(const char *text, size_t length, uint32_t *values)
{
	const char *colon = memchr(text, ':', length);
	size_t name_length = colon ? (size_t)(colon - text) : length;
	unsigned long n = 1;

	if (colon) {
		char *end;

		errno = 0;
		n = strtoul(colon + 1, &end, 10);
		if (errno || end != text + length || end == colon + 1 || n == 0 || n > UINT32_MAX)
			return -EINVAL;
	}
	for (unsigned i = 0; i < FAULT_POINT_COUNT; i++) {
		if (strlen(fault_names[i]) == name_length &&
		    !memcmp(fault_names[i], text, name_length)) {
			values[i] = (uint32_t)n;
			return 0;
		}
	}
	return -EINVAL;
}

int fault_parse(const char *list)
{
	uint32_t values[FAULT_POINT_COUNT];

	memcpy(values, fault_value, sizeof(values));
	while (*list) {
		size_t length = strcspn(list, ",");

		if (parse_one(list, length, values))
			return -EINVAL;
		list += length;
		if (*list == ',')
			list++;
	}
	memcpy(fault_value, values, sizeof(values));
	return 0;
}

void fault_open(void)
{
	const char *list = getenv("VMP_FAULT");

	if (list && fault_parse(list))
		die("VMP_FAULT=%s: no such fault point; base/faultpoint.def lists them", list);
}
