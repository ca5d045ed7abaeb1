/* cpu_handover.c - moves this CPU to another host, or receives it from one.
 *
 * The source's side.  The daemon's CPU_GIVE is served in the trap loop only: the page or the reply
 * of the I/O server for which the CPU waited has arrived by then, and the CPU is at an instruction
 * boundary.  The monitor makes the CPU absent, collects its posts, sends it to the daemon and
 * waits, with its whole state.  Either its daemon ends it, because the CPU runs elsewhere, or
 * CPU_BACK makes it continue.
 *
 * The target's side.  A spare monitor waits for the CPU's start; CPU_STATE arrives instead.  It
 * reports the result, and from then on is a monitor like any other.  Host mappings are not sent:
 * they are made on demand.
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"

enum { MOST_BEHIND_NS = 100000000 };

static void save_counters(const struct vcpu_slot *slot, struct cpu_counters *to)
{
	for (unsigned i = 0; i < TRAP_KIND_COUNT; i++)
		to->traps[i] = atomic_load(&slot->traps[i]);
	for (unsigned i = 0; i < TIME_KIND_COUNT; i++)
		to->time_ns[i] = atomic_load(&slot->time_ns[i]);
	for (unsigned i = 0; i < FETCH_BUCKETS; i++)
		to->fetch_us8[i] = atomic_load(&slot->fetch_us8[i]);
}

static void load_counters(struct vcpu_slot *slot, const struct cpu_counters *from)
{
	for (unsigned i = 0; i < TRAP_KIND_COUNT; i++)
		atomic_store(&slot->traps[i], from->traps[i]);
	for (unsigned i = 0; i < TIME_KIND_COUNT; i++)
		atomic_store(&slot->time_ns[i], from->time_ns[i]);
	for (unsigned i = 0; i < FETCH_BUCKETS; i++)
		atomic_store(&slot->fetch_us8[i], from->fetch_us8[i]);
}

void handover_give(struct monitor *m)
{
	struct msg_cpu_state body = { .cpu = m->cpu, .frozen_ns = m->env.now_ns(m) };
	struct msg_cpu_handover back;
	uint8_t payload[CPU_PAYLOAD_BYTES];
	struct cpu_counters counters;
	int n;

	m->handover.give_wanted = false;
	m->handover.frozen = true;
	n = state_save(m, m->started, payload);
	if (n < 0) { /* hostile code may have damaged them */
		monitor_end(m, END_FAILURE, EXIT_VMP_FAILURE, "CPU %u cannot be moved: %s", m->cpu,
			    strerror(-n));
		return;
	}
	save_counters(m->slot, &counters);
	memcpy(payload + n, &counters, sizeof counters);
	if (fault_on(FAULT_MOVE_DAMAGE))
		payload[n / 2] ^= 1;
	body.state_bytes = n;
	channel_send(m, MSG_CPU_STATE, VNODE_DAEMON(m->shm->node), &body, sizeof body, payload,
		     n + sizeof counters);
	if (fault_on(FAULT_MOVE_SOURCE_DIES))
		_exit(1);
	channel_wait(m, MSG_CPU_BACK, &back, sizeof back, NULL, 0, NULL);
	m->handover.frozen = false;
}

static void answer(struct monitor *m, int error, const char *why)
{
	struct msg_cpu_step step = { .cpu = m->cpu, .step = STEP_TAKEN, .error = error };

	if (!error)
		step.pause_us = (m->env.now_ns(m) - m->handover.arrived.frozen_ns) / 1000;
	channel_send(m, MSG_CPU_STEP, VNODE_DAEMON(m->shm->node), &step, sizeof step, why,
		     strlen(why));
}

/* Wait until this host's clock has reached the value of the other host's clock at which the CPU was
 * frozen.  The clocks differ by less than the transfer takes, so the wait is close to zero.  False:
 * the clock is too far behind, with the reason in `why`.  (TRICKS: clock-goes-along) */
static bool wait_for_clock(struct monitor *m, char *why, size_t why_bytes)
{
	int64_t behind;

	while ((behind = (int64_t)(m->handover.arrived.frozen_ns - m->env.now_ns(m))) > 0) {
		if (behind > MOST_BEHIND_NS) {
			snprintf(why, why_bytes, "the machine's clock there is %lld ms behind",
				 (long long)behind / 1000000);
			return false;
		}
		nanosleep(&(struct timespec){ .tv_nsec = behind }, NULL);
	}
	return true;
}

void handover_take(struct monitor *m)
{
	size_t n = m->handover.arrived.state_bytes;
	struct cpu_counters counters;
	char why[160] = "";

	if (fault_on(FAULT_MOVE_TARGET_DIES))
		_exit(1);
	if (m->handover.payload_bytes < sizeof counters ||
	    n != m->handover.payload_bytes - sizeof counters) {
		answer(m, EPROTO, "the message with the CPU is malformed");
	} else if (!wait_for_clock(m, why, sizeof why)) {
		answer(m, EAGAIN, why);
	} else if (state_load(m, m->handover.payload, n, &m->started, why, sizeof why)) {
		answer(m, EBADMSG, why);
	} else {
		memcpy(&counters, m->handover.payload + n, sizeof counters);
		load_counters(m->slot, &counters);
		/* A CPU that is not started yet makes its own descriptors at its start. */
		if (m->started)
			state_resume(m);
		answer(m, 0, "");
		rings_back(m);
	}
	m->handover.arrived.state_bytes = 0;
}
