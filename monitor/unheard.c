/* unheard.c - the direct engine: ends the machine if its VM process lets no message through.
 *
 * A VM process takes the CPU's posts at each kick; only then its monitor reads the daemon's
 * messages.  Hostile 64-bit code in the guest can block the kicks by rt_sigreturn, or write to its
 * slot that it was kicked already; then the CPU could not be saved, moved or looked at, and whoever
 * asked for it would wait for ever.
 *
 * So the monitor looks once a second.  A look counts if a message waits, and the VM process either
 * has used the processor since the last look, or sleeps though it waits for no page.  A CPU that
 * waits for a page of another host, or of a slow disk, does not count, nor does time in which this
 * computer or the monitor stood still.  Each such look posts the message again.  A CPU that waits
 * for a barrier's sum counts: it looks for messages each millisecond.
 */
#include "monitor/monitor.h"

#include <poll.h>
#include <time.h>

enum { LOOK_NS = 1000000000, USED_NS = LOOK_NS / 16, LOOKS = 30 };

/* A message waits, or what was asked for by one that was read during a call. */
static bool message_waits(const struct monitor *m)
{
	struct pollfd channel = { .fd = m->channel, .events = POLLIN };

	return m->freeze_wanted || m->handover.give_wanted || m->dump_wanted || m->frames ||
	       m->debug.stop_wanted || (poll(&channel, 1, 0) == 1 && channel.revents == POLLIN);
}

/* Returns the processor time of all VM processes of this CPU, ns. */
static uint64_t used_ns(const struct monitor *m)
{
	uint64_t sum = 0;

	for (unsigned space = 0; space < MAX_SPACES; space++) {
		pid_t pid = m->vm.space[space].pid;
		clockid_t clock = (clockid_t)(~(uint32_t)pid << 3 | 2); /* clock_getcpuclockid() */
		struct timespec t;

		if (pid && !clock_gettime(clock, &t))
			sum += (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	}
	return sum;
}

void unheard_look(struct monitor *m)
{
	uint64_t now = clock_now_ns(), used;
	bool busy;

	if (now - m->unheard.looked_ns < LOOK_NS)
		return;
	m->unheard.looked_ns = now;
	if (!message_waits(m)) {
		m->unheard.looks = 0;
		return;
	}
	used = used_ns(m);
	busy = used - m->unheard.used_ns >= USED_NS;
	m->unheard.used_ns = used;
	if (!busy && atomic_load(&m->slot->want) == WANT_ASKED)
		return;
	hostshm_post(m->shm, m->cpu, POST_MESSAGE);
	if (++m->unheard.looks >= LOOKS)
		monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "CPU %u does not stop for a "
			    "message: its guest has changed what is the engine's", m->cpu);
}
