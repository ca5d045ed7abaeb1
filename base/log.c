/* log.c - see log.h. One write per line, so that lines of several processes do not mix. */
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/printable.h"

enum { LOG_RARELY_S = 60 };
#define LOG_RARELY_NS (LOG_RARELY_S * 1000000000ull)

enum log_level log_threshold = LOG_WARN;
static int log_fd = 2;
static bool log_shown; /* maybe on a terminal, which obeys control characters */
static char log_who[32] = "vmp";

void log_open(const char *who, int fd, enum log_level level)
{
	const char *wanted = getenv("VMP_LOG");
	static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
	struct stat st;
	int saved = errno;

	snprintf(log_who, sizeof log_who, "%s", who);
	log_fd = fd;
	/* not by isatty(): a monitor that is started later may make no such call */
	log_shown = fstat(fd, &st) || S_ISCHR(st.st_mode);
	errno = saved;
	log_threshold = level;
	for (unsigned i = 0; wanted && i < sizeof names / sizeof *names; i++)
		if (!strcmp(wanted, names[i]))
			log_threshold = i;
}

/* Print the seconds since the computer's start, which are the same for all of its processes. */
static void print_time(char *text, size_t bytes)
{
	unsigned long long ms = clock_now_ns() / 1000000;

	snprintf(text, bytes, "%llu.%03llu ", ms / 1000, ms % 1000);
}

static void put_line(const char *format, va_list args, const char *mark)
{
	char line[1024], when[32] = "";
	int saved = errno, n;

	if (log_threshold >= LOG_DEBUG)
		print_time(when, sizeof when);
	n = snprintf(line, sizeof line, "%s%s: %s", when, log_who, mark);

	n += vsnprintf(line + n, sizeof line - n, format, args);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	if (log_shown) /* other computers, and files, may have chosen a part of it */
		printable_line(line);
	line[n++] = '\n';
	if (write(log_fd, line, n) < 0) {
		/* the log's reader has gone: there is nobody to notify */
	}
	errno = saved;
}

void log_line(enum log_level level, const char *format, ...)
{
	static const char *const marks[] = { "", "warning: ", "", "debug: ", "trace: " };
	va_list args;

	va_start(args, format);
	put_line(format, args, marks[level]);
	va_end(args);
}

bool log_is_due(uint64_t *last_ns)
{
	uint64_t now = clock_now_ns();

	if (*last_ns && now - *last_ns < LOG_RARELY_NS)
		return false;
	*last_ns = now;
	return true;
}

static void (*die_hook)(const char *line);

void log_on_die(void (*hook)(const char *line))
{
	die_hook = hook;
}

void die(const char *format, ...)
{
	void (*hook)(const char *line) = die_hook;
	va_list args, again;
	char line[512];

	va_start(args, format);
	va_copy(again, args);
	put_line(format, args, "");
	die_hook = NULL; /* the hook may die too */
	if (hook) {
		vsnprintf(line, sizeof line, format, again);
		hook(line);
	}
	va_end(again);
	va_end(args);
	exit(EXIT_VMP_FAILURE);
}

void bug_at(const char *file, int line, const char *format, ...)
{
	va_list args;
	char mark[128];

	snprintf(mark, sizeof mark, "bug at %s:%d: ", file, line);
	va_start(args, format);
	put_line(format, args, mark);
	va_end(args);
	trace_dump(log_fd);
	abort();
}

enum { TRACE_EVENTS = 256 };
static struct { const char *format; uint64_t number[4]; } ring[TRACE_EVENTS];
static _Atomic unsigned ring_next;

void trace(const char *format, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	unsigned i = atomic_fetch_add_explicit(&ring_next, 1, memory_order_relaxed) % TRACE_EVENTS;

	ring[i].format = format;
	ring[i].number[0] = a;
	ring[i].number[1] = b;
	ring[i].number[2] = c;
	ring[i].number[3] = d;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void trace_dump(int fd)
{
	unsigned end = ring_next, count = end < TRACE_EVENTS ? end : TRACE_EVENTS;

	if (fd < 0)
		fd = log_fd;

	for (unsigned i = end - count; i != end; i++) {
		uint64_t *n = ring[i % TRACE_EVENTS].number;
		const char *format = ring[i % TRACE_EVENTS].format;

		if (!format)
			continue;
		dprintf(fd, "%s: trace %u: ", log_who, i);
		dprintf(fd, format, n[0], n[1], n[2], n[3]);
		dprintf(fd, "\n");
	}
}
