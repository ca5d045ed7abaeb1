/* env.c - the virtual CPU's environment (struct vcpu_env) in a monitor: implemented with messages
 * to the daemon and the I/O server, the host's shared memory, and the host's own instructions.
 */
#include "monitor/monitor.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/virtio_abi.h"

static void *env_pin(void *ctx, gpa_t gpa, bool write)
{
	struct monitor *m = ctx;

	if (!ram_has(m->shm->ram_pages, gpa_to_gfn(gpa)))
		return NULL;
	return guestmem_pin(m, gpa_to_gfn(gpa), write ? PAGE_WRITE : PAGE_READ);
}

static void env_unpin(void *ctx, gpa_t gpa)
{
	guestmem_unpin(ctx, gpa_to_gfn(gpa));
}

static void env_fetch(void *ctx, gfn_t first, unsigned count, bool write)
{
	struct monitor *m = ctx;
	enum page_right right = write ? PAGE_WRITE : PAGE_READ;
	gfn_t frames[AHEAD_NAMED_MOST];
	unsigned n;

	if (!m->many_hosts)
		return;
	m->frames_ahead[right].without = atomic_load_explicit(&m->shm->without,
							      memory_order_relaxed);
	n = ahead_named(&m->frames_ahead[right], first, count, write, m->shm->page_right,
			m->shm->ram_pages, frames);
	if (n)
		guestmem_ask(m, frames[0], right, frames + 1, n - 1);
}

/* One round trip to the I/O server. */
static uint32_t io(struct monitor *m, struct msg_io_request request, const void *out, void *in)
{
	struct msg_io_reply reply;
	size_t bytes = (size_t)request.size * request.count, got;

	request.cpu = m->cpu;
	request.seq = ++m->io_seq;
	channel_send(m, MSG_IO_REQUEST, VNODE_IOSRV, &request, sizeof request, out,
		     out ? bytes : 0);
	do
		channel_wait(m, MSG_IO_REPLY, &reply, sizeof reply, in, in ? bytes : 0, &got);
	while (reply.seq != request.seq);
	if (in && got < bytes)
		memset((char *)in + got, 0xff, bytes - got);
	return reply.value;
}

static uint32_t env_port_in(void *ctx, uint16_t port, unsigned size)
{
	return io(ctx,
		  (struct msg_io_request){
			  .address = port, .kind = IO_PORT_IN, .size = size, .count = 1 },
		  NULL, NULL);
}

static void env_port_out(void *ctx, uint16_t port, unsigned size, uint32_t value)
{
	io(ctx,
	   (struct msg_io_request){
		   .address = port, .kind = IO_PORT_OUT, .size = size, .count = 1, .value = value },
	   NULL, NULL);
}

static void env_port_in_string(void *ctx, uint16_t port, unsigned size, unsigned count, void *data)
{
	uint32_t value;

	if (count > 1) {
		io(ctx,
		   (struct msg_io_request){
			   .address = port, .kind = IO_PORT_IN, .size = size, .count = count },
		   NULL, data);
		return;
	}
	value = env_port_in(ctx, port, size);
	memcpy(data, &value, size);
}

static void env_port_out_string(void *ctx, uint16_t port, unsigned size, unsigned count,
				const void *data)
{
	uint32_t value = 0;

	if (count > 1) {
		io(ctx,
		   (struct msg_io_request){
			   .address = port, .kind = IO_PORT_OUT, .size = size, .count = count },
		   data, NULL);
		return;
	}
	memcpy(&value, data, size);
	env_port_out(ctx, port, size, value);
}

static uint32_t env_mmio_read(void *ctx, gpa_t gpa, unsigned size)
{
	if (gpa > UINT32_MAX)
		return UINT32_MAX; /* no device is there */
	if (virtio_only_tells(gpa, false))
		return VIRTIO_INTERRUPT_CHAINS;
	return io(ctx,
		  (struct msg_io_request){
			  .address = (uint32_t)gpa,
			  .kind = IO_MMIO_READ,
			  .size = size,
			  .count = 1 },
		  NULL, NULL);
}

static void env_mmio_write(void *ctx, gpa_t gpa, unsigned size, uint32_t value)
{
	struct monitor *m = ctx;
	unsigned slot, offset;

	if (gpa > UINT32_MAX || virtio_only_tells(gpa, true) || rings_write(m, gpa, size, value))
		return;
	io(m,
	   (struct msg_io_request){ .address = (uint32_t)gpa,
				    .kind = IO_MMIO_WRITE,
				    .size = size,
				    .count = 1,
				    .value = value },
	   NULL, NULL);
	if (virtio_register_of(gpa, &slot, &offset) && virtio_write_stops(offset, size, value))
		rings_stopped(m);
}

static void env_flush_range(void *ctx, gva_t first, uint32_t pages)
{
	shadow_drop_range(&((struct monitor *)ctx)->shadow, first, pages);
}
static void env_flush_all(void *ctx) { shadow_drop_all(&((struct monitor *)ctx)->shadow); }
static void env_switch_space(void *ctx, bool keep)
{
	(void)keep; /* this engine has one address space */
	shadow_switch_space(&((struct monitor *)ctx)->shadow);
}

static void env_segment_changed(void *ctx, unsigned index, const struct vcpu_segment *segment)
{
	process_set_segment(ctx, index, segment);
}

void env_send_interrupt(void *ctx, uint32_t cpus, uint8_t vector, bool nmi)
{
	struct monitor *m = ctx;
	struct msg_interrupt away = { .vector = vector,
				      .kind = nmi ? INTERRUPT_NMI : INTERRUPT_FIXED };

	for (unsigned cpu = 0; cpu < m->shm->n_cpus; cpu++)
		if (cpus >> cpu & 1 && !hostshm_try_interrupt(m->shm, cpu, vector, nmi))
			away.cpu_mask |= 1u << cpu;
	if (away.cpu_mask)
		channel_send(m, MSG_INTERRUPT, VNODE_CPU(__builtin_ctz(away.cpu_mask)), &away,
			     sizeof away, NULL, 0);
}

static int env_start_cpu(void *ctx, unsigned cpu, uint32_t eip)
{
	struct monitor *m = ctx;
	struct msg_cpu_start start = { .cpu = cpu, .eip = eip };

	if (cpu >= m->shm->n_cpus)
		return -EINVAL;
	channel_send(m, MSG_CPU_START, VNODE_CPU(cpu), &start, sizeof start, NULL, 0);
	return 0;
}

static uint64_t env_now_ns(void *ctx)
{
	struct monitor *m = ctx;

	return hostclock_now(&m->shm->clock, clock_now_ns);
}

static uint64_t env_wallclock_ns(void *ctx)
{
	(void)ctx;
	return clock_date_ns();
}

static uint32_t env_tsc_khz(void *ctx)
{
	return ((struct monitor *)ctx)->shm->tsc_khz;
}

static uint64_t env_tsc(void *ctx)
{
	(void)ctx;
	return __rdtsc();
}

static void env_host_cpuid(void *ctx, uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
	struct monitor *m = ctx;

	__cpuid_count(leaf, subleaf, out[0], out[1], out[2], out[3]);
	cpufeatures_hide(&m->shm->features, leaf, subleaf, out);
}

static uint64_t env_host_xcr0(void *ctx)
{
	struct monitor *m = ctx;

	return cpufeatures_hide_state(&m->shm->features, cpufeatures_xcr0());
}

static void env_print(void *ctx, const char *text, unsigned bytes)
{
	struct monitor *m = ctx;
	struct msg_log line = { .level = LOG_INFO, .node = m->shm->node, .cpu = m->cpu };

	if (bytes > MAX_MSG_PAYLOAD)
		bytes = MAX_MSG_PAYLOAD;
	channel_send(m, MSG_LOG, VNODE_CLI, &line, sizeof line, text, bytes);
}

static void env_machine_end(void *ctx, unsigned why, uint32_t status)
{
	struct monitor *m = ctx;

	if (why == VMP_EXIT_PANIC)
		monitor_end(m, END_PANIC, EXIT_VMP_FAILURE,
			    "the guest kernel panicked");
	else if (why == VMP_EXIT_REBOOT)
		monitor_end(m, END_REBOOT, status, "the guest has restarted its machine");
	else
		monitor_end(m, END_POWEROFF, status, "the guest has switched itself off");
}

/* The guest waits for another CPU: yield the processor; if that has not helped for a while, sleep
 * briefly. */
static void env_yield(void *ctx, unsigned times)
{
	struct monitor *m = ctx;

	if (times % 16)
		sched_yield();
	else
		engine_nap(&m->engine);
}

/* The daemon reads it when it next looks at its slots. */
static void env_crowded(void *ctx)
{
	struct monitor *m = ctx;

	atomic_store(&m->engine.slot->crowded, 1);
}

/* The VM process of the direct engine has its own. */
static int env_barrier(void *ctx, const struct barrier_call *call)
{
	(void)ctx, (void)call;
	return -ENOSYS;
}

void env_init(struct monitor *m)
{
	m->env = (struct vcpu_env){
		.ctx = m,
		.pin = env_pin,
		.unpin = env_unpin,
		.fetch = env_fetch,
		VCPU_ENV_CALLS(env_)
	};
}
