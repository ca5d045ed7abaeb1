/* tracefile.c - see tracefile.h. */
#include "vmm/cli/query/tracefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/hostshm.h"
#include "base/log.h"
#include "base/wire.h"
#include "vmm/cli/query/pageheat.h"

enum { DAEMON = MAX_CPUS /* the thread number of a host's daemon */ };

static const char *const answers[TRACE_ANSWER_COUNT] = {
#define X(name, text) [TRACE_ANSWER_##name] = text,
	TRACE_ANSWERS(X)
#undef X
};

/* ---- what the hosts send ---- */

int tracefile_open(struct tracefile *trace, const char *path, struct problem *p)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	trace->file = fd >= 0 ? fdopen(fd, "w") : NULL;
	return trace->file ? 0 : problem(p, "cannot write --trace %s: %s", path, strerror(errno));
}

void tracefile_on_part(struct tracefile *trace, const void *body, size_t bytes)
{
	size_t n = (bytes - sizeof(struct msg_trace)) / sizeof(struct trace_event);
	struct trace_event *more;
	struct trace_of_host *host;
	struct msg_trace part;

	memcpy(&part, body, sizeof part);
	if (!trace->file || part.node >= MAX_NODES)
		return;
	host = &trace->host[part.node];
	if (host->complete || host->count + n > TRACE_EVENTS_MOST)
		return;
	more = realloc(host->event, (host->count + n + 1) * sizeof *more);
	if (!more)
		die("no memory for the trace");
	host->event = more;
	memcpy(host->event + host->count, (const char *)body + sizeof part, n * sizeof *more);
	host->count += n;
	host->lost = part.lost;
	host->complete = part.last;
}

void tracefile_free(struct tracefile *trace)
{
	for (unsigned i = 0; i < MAX_NODES; i++)
		free(trace->host[i].event);
	if (trace->file)
		fclose(trace->file);
	trace->file = NULL;
}

/* ---- writing ---- */

struct writer { FILE *file; const char *comma; const struct symbols *symbols; };

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...)
{
	va_list args;

	fprintf(w->file, "%s\n", w->comma);
	va_start(args, format);
	vfprintf(w->file, format, args);
	va_end(args);
	w->comma = ",";
}

static void put_name(struct writer *w, unsigned host, int thread, const char *format, unsigned n)
{
	char name[40];

	snprintf(name, sizeof name, format, n);
	put(w, "{\"ph\": \"M\", \"name\": \"%s_name\", \"pid\": %u, \"tid\": %d, "
	    "\"args\": {\"name\": \"%s\"}}", thread < 0 ? "process" : "thread", host,
	    thread < 0 ? 0 : thread, name);
}

/* A slice, without its arguments and its end. */
static bool begin_slice(struct writer *w, const char *name, unsigned host, unsigned thread,
			uint64_t from_ns, uint64_t to_ns)
{
	if (!from_ns || to_ns < from_ns)
		return false;
	put(w, "{\"ph\": \"X\", \"cat\": \"page\", \"name\": \"%s\", \"pid\": %u, \"tid\": %u, "
	    "\"ts\": %.3f, \"dur\": %.3f", name, host, thread, from_ns / 1e3,
	    (to_ns - from_ns) / 1e3);
	return true;
}

static void put_stage(struct writer *w, const char *name, unsigned host, unsigned thread,
		      uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns && begin_slice(w, name, host, thread, from_ns, to_ns))
		fputs("}", w->file);
}

/* The kernel's objects in the page; user pages have no symbol. */
static void put_page(struct writer *w, gfn_t gfn)
{
	char text[160];

	pageheat_describe_frame(w->symbols, gfn, text, sizeof text);
	fprintf(w->file, ", \"args\": {\"page\": \"0x%08lx\"", gfn_to_gpa(gfn));
	if (text[0])
		fprintf(w->file, ", \"holds\": \"%s\"", text);
}

static void put_instruction(struct writer *w, const struct trace_event *e)
{
	char text[100];

	if (!e->gva)
		return;
	pageheat_function(w->symbols, e->eip, text, sizeof text);
	fprintf(w->file, ", \"address\": \"0x%08x\", \"eip\": \"0x%08x\"", e->gva, e->eip);
	if (text[0])
		fprintf(w->file, ", \"function\": \"%s\"", text);
}

static void put_fetch(struct writer *w, unsigned host, const struct trace_event *e)
{
	const uint64_t *at = e->at_ns;
	uint64_t begin = at[TRACE_FAULT] ? at[TRACE_FAULT] : at[TRACE_SEEN];
	uint64_t end = at[TRACE_RESUMED] ? at[TRACE_RESUMED] : at[TRACE_ANSWERED];
	uint64_t came = at[TRACE_CAME] ? at[TRACE_CAME] : at[TRACE_ANSWERED];

	if (!begin_slice(w, e->right == PAGE_WRITE ? "write" : "read", host, e->cpu, begin, end))
		return;
	put_page(w, e->gfn);
	put_instruction(w, e);
	fprintf(w->file, ", \"answer\": \"%s\"",
		e->answer < TRACE_ANSWER_COUNT ? answers[e->answer] : "?");
	if (e->from < MAX_NODES)
		fprintf(w->file, ", \"from\": \"host %u\"", e->from);
	fputs("}}", w->file);
	put_stage(w, "to the daemon", host, e->cpu, at[TRACE_FAULT], at[TRACE_SEEN]);
	put_stage(w, "request and answer", host, e->cpu, at[TRACE_SEEN], came);
	put_stage(w, "other copies go", host, e->cpu, at[TRACE_CAME], at[TRACE_ANSWERED]);
	put_stage(w, "to the guest", host, e->cpu, at[TRACE_ANSWERED], at[TRACE_RESUMED]);
}

static void put_take(struct writer *w, unsigned host, const struct trace_event *e)
{
	if (!begin_slice(w, e->right == PAGE_READ ? "right to write goes" : "page goes", host,
			 DAEMON, e->at_ns[TRACE_BEGIN], e->at_ns[TRACE_END]))
		return;
	put_page(w, e->gfn);
	fputs("}}", w->file);
}

static void put_host(struct writer *w, unsigned number, const struct trace_of_host *host)
{
	uint64_t cpus = 0;

	put_name(w, number, -1, "host %u", number);
	put_name(w, number, DAEMON, "daemon of host %u", number);
	for (size_t i = 0; i < host->count; i++) {
		const struct trace_event *e = &host->event[i];

		if (e->kind == TRACE_TAKE)
			put_take(w, number, e);
		else if (e->kind == TRACE_FETCH && e->cpu < MAX_CPUS)
			put_fetch(w, number, e);
		if (e->kind == TRACE_FETCH && e->cpu < MAX_CPUS && !(cpus >> e->cpu & 1)) {
			cpus |= 1ull << e->cpu;
			put_name(w, number, e->cpu, "CPU %u", e->cpu);
		}
	}
}

int tracefile_write(struct tracefile *trace, const char *kernel, struct problem *p)
{
	struct symbols symbols = { 0 };
	struct writer w = { trace->file, "", &symbols };
	uint64_t lost = 0;
	int error;

	if (!trace->file)
		return 0;
	pageheat_load_symbols(&symbols, kernel ? kernel : "");
	error = ftruncate(fileno(trace->file), 0) && errno != EINVAL; /* a pipe has no length */
	fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", trace->file);
	for (unsigned i = 0; i < MAX_NODES; i++) {
		if (trace->host[i].complete)
			put_host(&w, i, &trace->host[i]);
		lost += trace->host[i].lost;
	}
	fprintf(trace->file, "\n], \"otherData\": {\"lost_events\": %llu}}\n",
		(unsigned long long)lost);
	error |= fflush(trace->file) || ferror(trace->file);
	pageheat_free_symbols(&symbols);
	return error ? problem(p, "%s", strerror(errno)) : 0;
}
