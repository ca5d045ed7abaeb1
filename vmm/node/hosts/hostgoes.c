/* hostgoes.c - node 0 removes a host from the machine, or lets it stay after all; hosts.h describes
 * the steps. */
#include "vmm/node/hosts/hostlead.h"

#include <errno.h>
#include <stdio.h>
#include "base/log.h"

void hosts_begin_remove(struct node *node)
{
	struct hosts *h = node->hosts_state;
	char why[200];

	if (hostplan_may_go(node->hosts, h->host, node->o.machine.mem_mib,
			    node->o.machine.host_mem_mib, why, sizeof why))
		return hosts_fail(node, EINVAL, "%s", why);
	if (!h->host) {
		h->stage = STAGE_YIELD;
		return hosts_tell_owner(node, HOST_YIELD, 0);
	}
	h->stage = STAGE_TELL;
	h->cpus_moved = h->gone = 0;
	h->held_pages = h->room_pages = 0;
	hosts_tell_news(node, node->hosts);
}

/* Returns a CPU that is on this host, or MAX_CPUS. */
static unsigned cpu_on(const struct node *node, unsigned host)
{
	unsigned cpu = 0;

	while (cpu < node->o.machine.cpus && moves_place(node, cpu) != host)
		cpu++;
	return cpu < node->o.machine.cpus ? cpu : MAX_CPUS;
}

static void move_cpu(struct node *node, unsigned cpu, unsigned to)
{
	struct msg_cpu_move move = { .cpu = cpu, .host = to };

	moves_request(node, MOVE_CLIENT_HOSTS, &move, "its host leaves the machine");
}

/* Moves the next CPU to the host with the fewest; when none is left, moves the homes.
 * (TRICKS: wait-for-move) */
void hosts_move_cpus_away(struct node *node)
{
	struct hosts *h = node->hosts_state;
	struct home_order orders[DSM_INTERVALS];
	uint32_t at[MAX_CPUS];
	unsigned cpu = cpu_on(node, h->host), to;

	h->stage = STAGE_CPUS;
	h->waits_for_move = moves_one_goes(node);
	if (h->waits_for_move)
		return;
	if (cpu == MAX_CPUS)
		return hosts_move_homes(node, orders,
					hostplan_homes_of(h->place, h->staying, h->host, orders));
	for (unsigned i = 0; i < node->o.machine.cpus; i++)
		at[i] = moves_place(node, i);
	h->cpus_moved |= bit_of(cpu);
	to = hostplan_place_for_cpu(at, node->o.machine.cpus, h->staying);
	log_info("CPU %u shall move from host %u to host %u; that one goes, and this one has the "
		 "fewest",
		 cpu, h->host, to);
	move_cpu(node, cpu, to);
}

/* Moves the CPUs that have left back to the host, as far as that is possible. */
static void move_cpus_back(struct node *node)
{
	struct hosts *h = node->hosts_state;
	unsigned cpu;

	if (!h->cpus_moved) {
		hosts_tell_news(node, node->hosts);
		hosts_fail(node, EAGAIN, "host %u stays: %s", h->host, h->why);
		return;
	}
	cpu = (unsigned)__builtin_ctz(h->cpus_moved);
	h->cpus_moved &= ~bit_of(cpu);
	move_cpu(node, cpu, h->host);
}

void hosts_stay(struct node *node)
{
	hosts_see_who_stays(node, 1);
	node->hosts_state->stage = STAGE_BACK;
	move_cpus_back(node);
}

void hosts_on_moved(struct node *node, unsigned cpu, int error, const char *why)
{
	struct hosts *h = node->hosts_state;

	if (h->stage == STAGE_BACK) {
		move_cpus_back(node);
	} else if (h->stage == STAGE_CPUS && error && moves_place(node, cpu) == h->host) {
		snprintf(h->why, sizeof h->why, "%s", why);
		h->cpus_moved &= ~bit_of(cpu);
		hosts_stay(node);
	} else if (h->stage == STAGE_CPUS) {
		hosts_move_cpus_away(node);
	}
}

void hosts_after_move(struct node *node)
{
	struct hosts *h = node->hosts_state;

	if (h->stage == STAGE_CPUS && h->waits_for_move)
		hosts_move_cpus_away(node);
}

void hosts_on_empty(struct node *node)
{
	struct hosts *h = node->hosts_state;

	h->stage = STAGE_FORGET;
	hosts_tell_all(node, node->hosts & ~bit_of(h->host), HOST_FORGET, NULL, 0);
}

/* Counts the hosts that have received the leaver's farewell.  When all have, the leaver is no
 * longer a part of the machine. */
void hosts_on_gone(struct node *node, unsigned from)
{
	struct hosts *h = node->hosts_state;

	h->gone |= bit_of(from);
	if (h->gone != (node->hosts & ~bit_of(h->host)))
		return;
	node->hosts = h->gone;
	h->stage = STAGE_RETIRE;
	hosts_tell_owner(node, HOST_RETIRE, 0);
}
