/* halted.c - see halted.h. */
#include "vmm/node/halted.h"

static const uint64_t FRESH_NS = 3000000000, ALL_FOR_NS = 5000000000;

bool halted_take(struct halted *h, unsigned cpus, const struct msg_cpu_halted *said,
		 uint64_t now_ns)
{
	uint64_t oldest_ns = now_ns;

	if (said->cpu >= cpus)
		return false;
	h->heard_ns[said->cpu] = now_ns;
	h->started = (h->started & ~(1u << said->cpu)) | (uint32_t)!!said->started << said->cpu;
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		uint64_t heard_ns = h->heard_ns[cpu];

		if (!heard_ns || now_ns - heard_ns > FRESH_NS) {
			h->since_ns = 0;
			return false;
		}
		oldest_ns = heard_ns < oldest_ns ? heard_ns : oldest_ns;
	}
	if (!h->since_ns)
		h->since_ns = now_ns;
	return h->started && oldest_ns >= h->since_ns + ALL_FOR_NS;
}
