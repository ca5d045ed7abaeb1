/* trace.h - the payload of TRACE messages: what happened to the pages of guest RAM, one event each.
 *
 * Times are in nanoseconds of the machine's clock (base/hostclock.h), which all hosts share as
 * closely as they are synchronized.  0: the time is not known.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include "base/limits.h"
#include "base/types.h"

enum trace_kind {
	TRACE_FETCH, /* a CPU waited for a page */
	TRACE_TAKE,  /* a host took a page, or the right to write to it, from its CPUs */
};

/* at_ns of a TRACE_FETCH. */
enum trace_time {
	TRACE_FAULT,	/* the guest touched the page; known on the direct engine alone */
	TRACE_SEEN,	/* the daemon saw the request, and sent it to the page's home */
	TRACE_CAME,	/* the answer came: the page, a copy, or a right */
	TRACE_ANSWERED, /* the daemon woke the CPU: all other hosts have given up their copies */
	TRACE_RESUMED,	/* the guest went on; as TRACE_FAULT */
	TRACE_TIMES,
	/* of a TRACE_TAKE */
	TRACE_BEGIN = 0,
	TRACE_END = 1,
};

/* What came.  X(name, text) */
#define TRACE_ANSWERS(X) \
	X(HERE, "was here") \
	X(COPY, "copy") \
	X(PAGE, "page") \
	X(UPGRADE, "right to write") \
	X(ZERO, "page of zeros")
enum trace_answer {
#define X(name, text) TRACE_ANSWER_##name,
	TRACE_ANSWERS(X)
#undef X
	TRACE_ANSWER_COUNT
};

struct trace_event {
	uint64_t at_ns[TRACE_TIMES];
	uint32_t gfn;
	uint32_t gva, eip;   /* of a fetch on the direct engine; 0: the engine itself touched it */
	uint8_t kind;	     /* enum trace_kind */
	uint8_t cpu;	     /* of a fetch */
	uint8_t right;	     /* enum page_right: wanted, or left by a take */
	uint8_t answer;	     /* enum trace_answer */
	uint32_t from;	     /* the host that sent the answer, or MAX_NODES */
	uint32_t reserved;
};

enum {
	TRACE_EVENTS_MOST = 1 << 18, /* per host; later ones are counted, not kept */
	TRACE_EVENTS_PER_PART = MAX_MSG_PAYLOAD / sizeof(struct trace_event),
};

#endif
