/* cpu_freeze.c - freezes a CPU while the machine is saved, or until a loaded machine continues.
 *
 * The daemon requests it by a message; the trap loop calls freeze_guest() between two instructions,
 * when no request of its own is outstanding.  Interrupts that are on their way arrive in the slot
 * meanwhile and are part of the saved state.
 */
#include <string.h>
#include "base/log.h"
#include "monitor/cpu_state.h"
#include "monitor/monitor.h"

/* Process a start that has arrived: it is part of the state as well. */
static void collect_start(struct monitor *m)
{
	if (m->started || !(atomic_fetch_and(&m->slot->post, ~POST_START) & POST_START))
		return;
	m->started = true;
	vcpu_start(&m->vcpu, atomic_load(&m->slot->start_eip), m->cpu ? 0 : VMP_BOOT_PARAMS_GPA);
}

static void save(struct monitor *m, uint32_t seq)
{
	struct msg_snapshot_item item = {
		.of = m->shm->node, .seq = seq, .kind = SNAPSHOT_CPU, .index = m->cpu
	};
	uint8_t state[CPU_STATE_MAX_BYTES];
	int bytes;

	collect_start(m);
	collect_posts(m);
	bytes = state_save(m, m->started, state);
	if (bytes < 0) {
		monitor_end(m, END_FAILURE, EXIT_VMP_FAILURE, "CPU %u cannot be saved: %s", m->cpu,
			    strerror(-bytes));
		return;
	}
	channel_send(m, MSG_SNAPSHOT_ITEM, VNODE_DAEMON(m->shm->node), &item, sizeof item, state,
		     bytes);
}

void freeze_on_step(struct monitor *m, const struct message *message,
		    const struct msg_snapshot *snapshot)
{
	(void)message;
	switch (snapshot->step) {
	case SNAPSHOT_FREEZE:
		m->freeze_wanted = true;
		return;
	case SNAPSHOT_SAVE:
		save(m, snapshot->seq);
		return;
	case SNAPSHOT_THAW:
		m->frozen = false;
		return;
	default:
		log_warn("CPU %u: unexpected step %u of a snapshot", m->cpu, snapshot->step);
	}
}

void freeze_until_thaw(struct monitor *m)
{
	while (m->frozen && !m->ending)
		channel_serve(m);
}

void freeze_guest(struct monitor *m)
{
	struct msg_snapshot frozen = { .of = m->cpu, .step = SNAPSHOT_FROZEN };
	enum time_kind before = time_switch(m, TIME_IDLE);
	bool has_left;

	m->freeze_wanted = false;
	has_left = rings_leave(m);
	m->frozen = true;
	pages_protect(m);
	channel_send(m, MSG_SNAPSHOT, VNODE_DAEMON(m->shm->node), &frozen, sizeof frozen, NULL, 0);
	freeze_until_thaw(m);
	if (has_left)
		rings_back(m);
	time_switch(m, before);
}

void freeze_on_item(struct monitor *m, const struct message *message,
		    const struct msg_snapshot_item *item)
{
	char why[160];

	(void)item;
	if (m->started) {
		log_warn("CPU %u runs already, and was given a state to load", m->cpu);
		return;
	}
	m->frozen = true;
	if (state_load(m, message->payload, message->payload_bytes, &m->started, why, sizeof why))
		monitor_end(m, END_FAILURE, EXIT_VMP_FAILURE, "CPU %u cannot be loaded: %s", m->cpu,
			    why);
}
