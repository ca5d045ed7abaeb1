/* monitor.c - fuzzes a monitor of the direct engine with what its VM processes write: their calls,
 * the memory that they share with the monitor, their CPU's slot, all doorbells, and guest RAM.
 *
 * An input is a list of operations (enum op).  WRITE operations change memory now.  LATER changes
 * it in the middle of a call: when the monitor has read the shared memory a number of times.  Only
 * the fuzzer counts reads (the compiler's trace-loads); the replay of the corpus counts the
 * monitor's messages and system calls instead.  SERVE makes a call.
 *
 * Whatever comes, the monitor refuses it, does what a guest may cause anyway, or ends the machine
 * with one line.  It does not abort, it writes nowhere outside its objects, it leaves no pin behind
 * and no address of its own in the shared memory, and the daemon accepts its messages.
 *
 * All of the monitor is linked except its start, its socket, debug registers and virtio rings
 * (virtqueue.c fuzzes those).  A VM process that is started takes its steps, or dies, as the input
 * says.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/packet.h"
#include "tests/fuzz/fuzz.h"

static pid_t fuzz_fork(void);
static pid_t fuzz_waitpid(pid_t pid, int *status, int how);
static int fuzz_kill(pid_t pid, int signal);
static long fuzz_syscall(long number, ...);
static int fuzz_ioctl(int fd, unsigned long request, ...);
#define fork fuzz_fork
#define waitpid fuzz_waitpid
#define kill fuzz_kill
#define syscall fuzz_syscall
#define ioctl fuzz_ioctl
#define direct_run monitor_direct_run /* its loop does not end here */
#include "monitor/pages.c"
#include "monitor/process.c"
#include "monitor/direct_serve.c"
#undef fork
#undef waitpid
#undef kill
#undef syscall
#undef ioctl

enum { CPUS = 4, PAGES = 64, LATER_MOST = 8, REQUESTS = 24, NO_PID = 0x3fffffff };
enum op { WRITE_SHARED, WRITE_CPU, WRITE_SLOT, WRITE_RAM, LATER, SERVE, SERVE_THAT, RIGHTS, OPS };

static struct monitor monitor;
static struct { const uint8_t *at; size_t left; } w;
static struct { unsigned count; uint8_t *at; uint64_t value; unsigned bytes; } later[LATER_MOST];
static unsigned n_later, requests;
static gfn_t wanted;
static uint32_t last_seq;
static jmp_buf ended;

static uint64_t number(unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes && w.left; i++, w.left--)
		value |= (uint64_t)*w.at++ << 8 * i;
	return value;
}

/* Read a value: mostly a small one, or one near a limit. */
static uint64_t word(void)
{
	static const uint64_t limits[] = { UINT64_MAX,	 INT64_MAX,	 UINT32_MAX,
					   INT32_MAX,	 0x80000000,	 PAGE_BYTES,
					   PAGES << PAGE_BITS, VMP_USER_LIMIT };
	unsigned how = number(1);

	return how < 0xc0 ? how : how < 0xf0 ? limits[how & 7] - (how >> 3 & 1) : number(8);
}

/* --- memory that changes meanwhile --- */

#ifdef __clang__
#define NOT_COUNTED __attribute__((no_sanitize("coverage")))
#else
#define NOT_COUNTED
#endif

NOT_COUNTED static void count_reads(void)
{
	for (unsigned i = 0; i < n_later; i++)
		if (later[i].count && !--later[i].count)
			memcpy(later[i].at, &later[i].value, later[i].bytes);
}

NOT_COUNTED static void on_read_of(uintptr_t at)
{
	if (at - (uintptr_t)monitor.vm.stub < STUB_FD_BYTES ||
	    at - (uintptr_t)monitor.slot < sizeof *monitor.slot ||
	    at - ((uintptr_t)monitor.shm + offsetof(struct host_shm, doorbell)) <
		    sizeof monitor.shm->doorbell)
		count_reads();
}

#define ON_READ(bytes) \
	void __sanitizer_cov_load##bytes(void *at); \
	NOT_COUNTED void __sanitizer_cov_load##bytes(void *at) \
	{ \
		on_read_of((uintptr_t)at); \
	}
ON_READ(1)
ON_READ(2)
ON_READ(4)
ON_READ(8)
ON_READ(16)

/* --- replaces the host's kernel --- */

static pid_t fuzz_fork(void)
{
	if (number(1) & 1)
		return NO_PID;
	errno = EAGAIN;
	return -1;
}

/* A VM process that starts takes its next step, or dies. */
static bool dies;
static long fuzz_syscall(long call, ...)
{
	count_reads();
	if (call == SYS_pidfd_open || call == SYS_pidfd_getfd) {
		errno = number(1);
		return errno ? -1 : 1 << 20;
	}
	if (call == SYS_futex && monitor.direct->turn == TURN_MONITOR) {
		unsigned step = w.left ? (unsigned)number(1) : 0xff;

		dies = step == 0xff;
		atomic_store(&monitor.direct->setup, step);
	}
	return 0;
}

/* Its userfaultfd, or another descriptor that hostile code has named. */
static int fuzz_ioctl(int fd, unsigned long request, ...)
{
	static const int errors[] = { 0, 0, 0, ENOENT, ESRCH, ENOTTY, EBADF, EINVAL };

	(void)fd, (void)request;
	errno = errors[number(1) & 7];
	return errno ? -1 : 0;
}

static pid_t fuzz_waitpid(pid_t pid, int *status, int how)
{
	(void)how;
	if (status)
		*status = 0;
	return dies ? pid : 0;
}

static int fuzz_kill(pid_t pid, int signal)
{
	FUZZ_CHECK(pid == NO_PID && signal);
	return 0;
}

/* --- replaces monitor.c, channel.c, watch.c, rings.c --- */

void monitor_announce(struct monitor *m) { (void)m; }
void monitor_wait_for_start(struct monitor *m) { m->started = true; }
void monitor_sleep(struct monitor *m, _Atomic uint32_t *word, uint32_t value)
{
	(void)m, (void)word, (void)value;
}
bool rings_write(struct monitor *m, gpa_t gpa, unsigned size, uint32_t value)
{
	(void)m, (void)gpa, (void)size, (void)value;
	return false;
}
void rings_stopped(struct monitor *m) { (void)m; }
bool rings_wait(void) { return false; }
void rings_serve(struct monitor *m) { (void)m; }
bool rings_leave(struct monitor *m) { (void)m; return false; }
void rings_back(struct monitor *m) { (void)m; }
int watch_start(struct monitor *m, pid_t pid) { (void)m, (void)pid; return 0; }
bool watch_hit(struct monitor *m) { (void)m; return number(1) & 1; }
void watch_set_guest(struct monitor *m, const struct debug_watch *watch)
{
	FUZZ_CHECK(!(watch->control & ~0xffff0055u));
	m->debug.told.guest = *watch;
}
uint32_t watch_guest_hits(struct monitor *m) { (void)m; return number(1) & 0xf; }
int watch_set(struct monitor *m, const struct debug_watch *watch)
{
	(void)m, (void)watch;
	return 0;
}

/* The monitor sends a message: the daemon must accept it. */
void channel_send(struct monitor *m, enum msg_type type, vnode_t to, const void *body,
		  size_t body_bytes, const void *payload, size_t payload_bytes)
{
	static struct packet_buffer packet;
	struct msg_header header = packet_header(type, to, m->shm->node,
						 (uint32_t)(body_bytes + payload_bytes));
	struct message checked;
	char why[200];

	FUZZ_CHECK(body_bytes <= MAX_BODY_BYTES && payload_bytes <= MAX_MSG_PAYLOAD);
	memcpy(packet.bytes, &header, sizeof header);
	memcpy(packet.bytes + sizeof header, body, body_bytes);
	if (payload_bytes)
		memcpy(packet.bytes + sizeof header + body_bytes, payload, payload_bytes);
	FUZZ_CHECK(!packet_check(packet.bytes, sizeof header + header.bytes, LINK_MONITOR_TO_NODE,
				 &checked, why, sizeof why));
	if (type == MSG_IO_REQUEST)
		last_seq = ((const struct msg_io_request *)body)->seq;
	if (type == MSG_PAGE_WANT) {
		const struct msg_page_want *want = body;

		FUZZ_CHECK(want->gfn < PAGES && want->cpu == m->cpu);
		wanted = want->gfn;
	}
	count_reads();
}

static uint8_t answer_bytes[MAX_MSG_PAYLOAD];
void channel_wait(struct monitor *m, enum msg_type type, void *body, size_t body_bytes,
		  void *payload, size_t payload_room, size_t *payload_bytes)
{
	count_reads();
	memset(body, 0, body_bytes);
	if (type == MSG_IO_REPLY)
		((struct msg_io_reply *)body)->seq = last_seq;
	if (type == MSG_PAGE_READY)
		m->shm->page_right[wanted] = PAGE_WRITE;
	if (payload_room)
		memcpy(payload, answer_bytes, payload_room);
	if (payload_bytes)
		*payload_bytes = payload_room;
}

static void request_of_debugger(struct monitor *m, unsigned op, uint32_t address)
{
	static const union { uint8_t bytes[PAGE_BYTES]; struct debug_registers r; } zeros;
	struct msg_debug request = { .cpu = m->cpu, .op = op, .address = address, .bytes = 64 };
	struct message message = { .body = &request, .payload = zeros.bytes };

	if (op == DEBUG_WRITE)
		message.payload_bytes = 64;
	else if (op == DEBUG_SET_REGISTERS)
		message.payload_bytes = sizeof zeros.r;
	debug_on_request(m, &message, &request);
}

static void step_of_snapshot(struct monitor *m, unsigned step)
{
	freeze_on_step(m, NULL, &(struct msg_snapshot){ .of = m->cpu, .step = step, .seq = 1 });
}

/* An unrequested message from the daemon.  After some, only those that let the CPU go on. */
void channel_serve(struct monitor *m)
{
	unsigned what = ++requests > REQUESTS || !w.left ? 0 : (unsigned)number(1);

	count_reads();
	if (what & 0x80)
		request_of_debugger(m, what % DEBUG_OPS, (uint32_t)word());
	else if (what & 0x40)
		step_of_snapshot(m, SNAPSHOT_SAVE);
	else
		step_of_snapshot(m, SNAPSHOT_THAW), request_of_debugger(m, DEBUG_GO, 0);
}

void channel_drain(struct monitor *m)
{
	unsigned what = number(1);

	if (++requests > REQUESTS)
		return;
	switch (what & 7) {
	case 0: step_of_snapshot(m, SNAPSHOT_FREEZE); return;
	case 1: m->handover.give_wanted = true; return;
	case 2: m->dump_wanted = true; return;
	case 3: request_of_debugger(m, DEBUG_STOP, 0); return;
	case 4: request_of_debugger(m, what % DEBUG_OPS, (uint32_t)word()); return;
	}
}

/* --- a monitor --- */

static void on_die(const char *line)
{
	FUZZ_CHECK(line[0]);
	longjmp(ended, 1);
}

static void make_shared_memory(void)
{
	int head = memfd_create("head", MFD_CLOEXEC), cpus = memfd_create("cpus", MFD_CLOEXEC);

	FUZZ_CHECK(!ftruncate(head, HOSTSHM_HEAD_BYTES) &&
		   !ftruncate(cpus, (off_t)hostshm_cpus_bytes(PAGES)));
	monitor.shm = hostshm_map(head, cpus, PAGES);
	monitor.ram = aligned_alloc(PAGE_BYTES, PAGES * PAGE_BYTES);
	FUZZ_CHECK(monitor.shm && monitor.ram);
	process_prepare(&monitor);
}

/* The mappings are made once; each input begins with the same content. */
static void begin(unsigned how)
{
	static struct { struct host_shm *shm; uint8_t *ram; struct shadow shadow; } made;
	static struct { int fd; struct stub_page *stub; } stub;
	static struct vm_process first;

	if (!made.shm) {
		make_shared_memory();
		made.shm = monitor.shm, made.ram = monitor.ram;
		first = monitor.vm;
		stub.fd = monitor.vm.stub_fd, stub.stub = monitor.vm.stub;
		pages_init(&monitor);
		made.shadow = monitor.shadow;
	}
	memset(&monitor, 0, sizeof monitor);
	monitor.shm = made.shm, monitor.ram = made.ram, monitor.vm = first;
	monitor.shadow = made.shadow;
	monitor.shadow_host.ctx = &monitor;
	memset(made.shm, 0, hostshm_bytes(PAGES));
	memset(made.ram, 0, PAGES * PAGE_BYTES);
	memset(stub.stub, 0, STUB_FD_BYTES);
	monitor.direct = (struct direct_shared *)((char *)stub.stub + STUB_FD_DIRECT);
	monitor.shm->n_cpus = CPUS, monitor.shm->ram_pages = PAGES;
	monitor.shm->host_tsc_khz = 1000000;
	hostclock_set(&monitor.shm->clock, (struct clock_line){ 0, 0, 0 });
	memset((void *)monitor.shm->page_right, how & 1 ? 0 : PAGE_WRITE, PAGES);
	monitor.cpu = 1;
	monitor.slot = &monitor.shm->slot[1];
	monitor.bell = &monitor.shm->doorbell[1];
	monitor.many_hosts = how & 1;
	monitor.shm->many_hosts = how & 1;
	monitor.direct_engine = true;
	monitor.strict = how >> 2 & 1;
	monitor.started = true;
	monitor.debug.told.attached = how >> 1 & 1;
	ptrace_run_prepare(&monitor);
	env_init(&monitor);
	vcpu_init(&monitor.vcpu, 1, CPUS, PAGES, &monitor.env);
	vcpu_start(&monitor.vcpu, 0x1000, 0);
	for (unsigned space = 0; space < MAX_SPACES; space++)
		monitor.vm.space[space].userfault_fd = -1;
	monitor.vm.space[0].pid = NO_PID;
	monitor.direct->has_cpu[0] = 1;
	give_vcpu(&monitor);
	n_later = requests = 0;
	dies = false;
}

static bool has_pins(void)
{
	for (unsigned i = 0; i < PINS_PER_CPU; i++)
		if (monitor.slot->pin[i])
			return true;
	return false;
}

/* Hostile code must not learn where the monitor's objects are.  The monitor leaves no pin: pins
 * that are there now are hostile code's own. */
static void check_what_is_left(bool pinned)
{
	const char *shared = (const char *)monitor.vm.stub;
	uintptr_t value;

	for (size_t at = 0; at + sizeof value <= STUB_FD_BYTES; at += sizeof value) {
		memcpy(&value, shared + at, sizeof value);
		FUZZ_CHECK(value - (uintptr_t)&monitor >= sizeof monitor);
	}
	FUZZ_CHECK(pinned || n_later || !has_pins());
}

/* --- operations --- */

static void write_in(uint8_t *area, size_t size, size_t at, bool now)
{
	unsigned count = now ? 0 : (unsigned)number(1), bytes = 1u << (number(1) & 3);
	uint64_t value = word();

	at %= size - sizeof value;
	if (now)
		memcpy(area + at, &value, bytes);
	else if (n_later < LATER_MOST)
		later[n_later++] = (__typeof__(*later)){ count + 1, area + at, value, bytes };
}

static void write_some(enum op where, bool now)
{
	struct direct_shared *s = monitor.direct;
	size_t at;

	switch (where) {
	case WRITE_SHARED:
		write_in((uint8_t *)monitor.vm.stub, STUB_FD_BYTES, number(2), now);
		return;
	case WRITE_CPU: write_in((uint8_t *)&s->vcpu, sizeof s->vcpu, number(2), now); return;
	case WRITE_SLOT:
		at = number(2);
		if (at < 0x8000)
			write_in((uint8_t *)monitor.slot, sizeof *monitor.slot, at, now);
		else
			write_in((uint8_t *)monitor.shm->doorbell, sizeof monitor.shm->doorbell, at,
				 now);
		return;
	default: write_in(monitor.ram, PAGES * PAGE_BYTES, number(3), now);
	}
}

static void serve_call(unsigned call)
{
	bool pinned = has_pins();

	monitor.direct->call = call;
	for (unsigned i = 0, n = number(1) % 7; i < n; i++)
		monitor.direct->arg[i] = word();
	atomic_store(&monitor.direct->turn, TURN_MONITOR);
	serve(&monitor);
	check_signals(&monitor);
	check_what_is_left(pinned);
}

static void operate(void)
{
	unsigned what = number(1), gfn;

	switch ((enum op)(what % OPS)) {
	case WRITE_SHARED:
	case WRITE_CPU:
	case WRITE_SLOT:
	case WRITE_RAM: write_some(what % OPS, true); return;
	case LATER: write_some(what / OPS % LATER, false); return;
	case SERVE: serve_call(what / OPS); return;
	case SERVE_THAT: serve_call((unsigned)number(1) % DIRECT_CALL_COUNT); return;
	case RIGHTS: /* the daemon takes a page away, or gives one */
		gfn = number(1) % PAGES;
		monitor.shm->page_right[gfn] = what / OPS % 3;
		return;
	case OPS: return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int nowhere;

	if (!nowhere) {
		nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
		log_open("fuzz", nowhere, LOG_ERROR);
	}
	log_on_die(on_die); /* die() forgets it */
	w.at = data;
	w.left = size;
	begin(number(1));
	if (!setjmp(ended))
		while (w.left && !monitor.ending)
			operate();
	n_later = 0;
	return 0;
}
