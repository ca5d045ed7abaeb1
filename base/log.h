/* log.h - levels, one line a message, and the three ways to stop.
 *
 * log_*() never fail and keep errno.  A process sets its name and level once with log_open().
 *   die()        the host failed (no memory, no file): log what failed and what to do, exit 125
 *   bug()        vmp failed: log where, dump the trace ring, abort
 *   vcpu_kill()  the guest did what no guest may, and its machine ends (vcpu/vcpu.h)
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* `who` is copied; `fd` receives the lines (2 by default). The level also comes from the
 * environment's VMP_LOG; from `debug` on each line begins with the time.  A terminal gets question
 * marks for control characters. */
void log_open(const char *who, int fd, enum log_level level);
extern enum log_level log_threshold;
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* die() calls this hook once with its line, before the process exits, to notify a process that does
 * not read the log. */
void log_on_die(void (*hook)(const char *line));
void bug_at(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

#define log_at(level, ...) \
	do { if ((level) <= log_threshold) log_line(level, __VA_ARGS__); } while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
/* A warning that a guest can cause at any rate: the first, and then one a minute. */
#define log_warn_rarely(...) \
	do { static uint64_t last_ns; log_warn_at_times(&last_ns, __VA_ARGS__); } while (0)
/* The same, where one place in the code has several kinds of it: `last_ns` is the kind's, 0 at
 * first. */
#define log_warn_at_times(last_ns, ...) \
	do { if (log_is_due(last_ns)) log_warn(__VA_ARGS__); } while (0)
bool log_is_due(uint64_t *last_ns);
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define bug_on(condition) do { if (condition) bug("%s", #condition); } while (0)

/* The trace ring: the last few hundred events of this process, cheap enough to stay on; dumped by
 * bug() and on death. Events are short strings with up to four numbers; `format` must be a
 * literal. */
void trace(const char *format, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
void trace_dump(int fd); /* fd -1: to the log */

#endif
