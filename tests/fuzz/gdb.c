/* gdb.c - fuzzes the debugger's port (vmm/cli/gdb/gdb_session.h).  The first byte: bit 0: raw
 * bytes; otherwise lines, each of which becomes a packet with a correct sum.  Bit 1: the machine
 * was started without waiting.  A line "!CW": CPU C stops for the reason W, if it runs.  There are
 * two CPUs, whose every request is answered at once.
 *
 * Whatever is sent, GDB gets whole packets; and when it is gone and the CPUs have stopped, no
 * breakpoint and no watchpoint is left.
 */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "vmm/cli/gdb/gdb_session.h"

enum { CPUS = 2, MEMORY = 2 * PAGE_BYTES, QUEUE = 8 };

static struct {
	struct gdb_session s;
	uint8_t memory[MEMORY];
	bool runs[CPUS], asked[CPUS];
	struct debug_watch watch[CPUS];
	struct { struct msg_debug answer; uint8_t payload[PAGE_BYTES]; size_t n; } queue[QUEUE];
	unsigned queued;
	bool hung_up;
} w;

static void to_gdb(void *ctx, const char *bytes, size_t n)
{
	char frame[RSP_MAX_TEXT + 8];

	(void)ctx;
	if (n == 1)
		FUZZ_CHECK(bytes[0] == '+' || bytes[0] == '-');
	else if (n)
		FUZZ_CHECK(n >= 4 && n <= sizeof frame && rsp_frame(bytes + 1, n - 4, frame) == n &&
			   !memcmp(bytes, frame, n));
}

static void queue(const struct msg_debug *answer, const void *payload, size_t n)
{
	FUZZ_CHECK(w.queued < QUEUE && n <= PAGE_BYTES);
	w.queue[w.queued].answer = *answer;
	memcpy(w.queue[w.queued].payload, payload, n);
	w.queue[w.queued++].n = n;
}

static void read_memory(struct msg_debug *a)
{
	uint32_t left = PAGE_BYTES - a->address % PAGE_BYTES, n = a->bytes < left ? a->bytes : left;

	a->error = a->address < MEMORY ? 0 : 14;
	queue(a, w.memory + (a->error ? 0 : a->address), a->error ? 0 : n);
}

static void to_machine(void *ctx, const struct msg_debug *request, const void *payload, size_t n)
{
	static const struct debug_registers registers;
	struct msg_debug a = *request;

	(void)ctx;
	FUZZ_CHECK(a.cpu < CPUS && a.op < DEBUG_OPS && n <= MAX_MSG_PAYLOAD);
	switch (a.op) {
	case DEBUG_ATTACH: queue(&a, "", 0); return;
	case DEBUG_DETACH: return;
	case DEBUG_STOP: w.asked[a.cpu] = true; return;
	case DEBUG_GO:
	case DEBUG_STEP:
	case DEBUG_PASS:
	case DEBUG_FREE:
		w.runs[a.cpu] = true;
		if (a.op == DEBUG_FREE)
			w.watch[a.cpu].control = 0;
		return;
	}
	FUZZ_CHECK(!w.runs[a.cpu]);
	switch (a.op) {
	case DEBUG_READ: read_memory(&a); return;
	case DEBUG_WRITE:
		FUZZ_CHECK(a.address < MEMORY && n <= PAGE_BYTES - a.address % PAGE_BYTES);
		memcpy(w.memory + a.address, payload, n);
		queue(&a, "", 0);
		return;
	case DEBUG_WATCH:
		FUZZ_CHECK(n == sizeof(struct debug_watch));
		memcpy(&w.watch[a.cpu], payload, n);
		queue(&a, "", 0);
		return;
	case DEBUG_REGISTERS: queue(&a, &registers, sizeof registers); return;
	case DEBUG_SET_REGISTERS:
		FUZZ_CHECK(n == sizeof registers);
		queue(&a, "", 0);
		return;
	}
}

static void nothing(void *ctx) { (void)ctx; }
static void hang_up(void *ctx) { (void)ctx, w.hung_up = true; }

static void stop(unsigned cpu, unsigned why)
{
	struct msg_debug stop = {
		.cpu = cpu, .op = DEBUG_STOP, .why = why % DEBUG_WHYS, .address = 16 * cpu
	};

	if (!w.runs[cpu])
		return;
	w.runs[cpu] = w.asked[cpu] = false;
	gdb_on_answer(&w.s, &stop, "", 0);
}

static void settle(void)
{
	while (w.queued) {
		struct msg_debug answer = w.queue[0].answer;
		uint8_t payload[PAGE_BYTES];
		size_t n = w.queue[0].n;

		memcpy(payload, w.queue[0].payload, n);
		memmove(w.queue, w.queue + 1, --w.queued * sizeof *w.queue);
		gdb_on_answer(&w.s, &answer, payload, n);
	}
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (w.asked[cpu]) {
			stop(cpu, WHY_ASKED);
			settle();
		}
}

static void take(const uint8_t *bytes, size_t n)
{
	size_t taken;

	for (; n && !w.hung_up; bytes += taken, n -= taken) {
		taken = gdb_take(&w.s, bytes, n);
		FUZZ_CHECK(taken <= n);
		settle();
		if (!taken)
			return;
	}
}

static void line(const uint8_t *text, size_t n)
{
	char frame[RSP_MAX_TEXT + 8];

	if (n == 3 && text[0] == '!')
		stop(text[1] % CPUS, text[2]);
	else if (n <= RSP_MAX_TEXT)
		take((const uint8_t *)frame, rsp_frame((const char *)text, n, frame));
	settle();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gdb_ops ops = { to_gdb, to_machine, nothing, hang_up, nothing };
	const uint8_t *end;

	if (!size)
		return 0;
	memset(&w, 0, sizeof w);
	memset(w.runs, true, sizeof w.runs);
	memset(w.asked, !(*data & 2), sizeof w.asked);
	gdb_init(&w.s, &ops, NULL, CPUS, !(*data & 2));
	settle();
	if (*data & 1) {
		take(data + 1, size - 1);
	} else {
		for (data++, size--; size && !w.hung_up; size -= (size_t)(end - data), data = end) {
			const uint8_t *newline = memchr(data, '\n', size);

			line(data, newline ? (size_t)(newline - data) : size);
			end = newline ? newline + 1 : data + size;
		}
	}
	gdb_gone(&w.s);
	settle();
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		FUZZ_CHECK(!w.s.breakpoint[i].used);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		FUZZ_CHECK(!w.watch[cpu].control);
	FUZZ_CHECK(w.s.state == GDB_ALONE || !w.s.talked);
	return 0;
}
