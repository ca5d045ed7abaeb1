/* movequeue.c - see movequeue.h. */
#include "vmm/node/moves/movequeue.h"

#include <stdio.h>
#include <string.h>

bool movequeue_push(struct movequeue *q, const struct move_request *request)
{
	if (q->n == MAX_MOVES)
		return false;
	q->wait[q->n++] = *request;
	return true;
}

void movequeue_pop(struct movequeue *q)
{
	q->n--;
	memmove(q->wait, q->wait + 1, q->n * sizeof q->wait[0]);
	q->stage = MOVE_WAITS;
}

enum move_action movequeue_begin(struct movequeue *q, const uint32_t *at, unsigned n_cpus,
				 uint32_t hosts, char *why, size_t why_bytes)
{
	const struct msg_cpu_move *move = &q->wait[0].move;

	if (!q->n || q->stage != MOVE_WAITS)
		return MOVE_NOTHING;
	if (move->cpu >= n_cpus)
		snprintf(why, why_bytes, "there is no CPU %u: this machine has 0 to %u", move->cpu,
			 n_cpus - 1);
	else if (move->host >= MAX_NODES || !(hosts >> move->host & 1))
		snprintf(why, why_bytes, "there is no host %u, or it leaves; vmp status shows "
			 "which there are",
			 move->host);
	else if (at[move->cpu] == move->host)
		snprintf(why, why_bytes, "CPU %u is on host %u already", move->cpu, move->host);
	else {
		q->stage = MOVE_PREPARES;
		q->number++;
		return MOVE_PREPARE;
	}
	return MOVE_FAILED;
}

enum move_action movequeue_step(struct movequeue *q, const struct msg_cpu_step *step)
{
	/* The meaning of each step in each stage.  If a spare dies while the CPU is being given,
	 * BACK says so later. */
	static const enum move_action well[][3] = {
		[MOVE_WAITS] = { MOVE_NOTHING, MOVE_NOTHING, MOVE_NOTHING },
		[MOVE_PREPARES] = { [STEP_PREPARED] = MOVE_GIVE,
				    [STEP_TAKEN] = MOVE_NOTHING,
				    [STEP_BACK] = MOVE_NOTHING },
		[MOVE_GIVES] = { [STEP_PREPARED] = MOVE_NOTHING,
				 [STEP_TAKEN] = MOVE_DONE,
				 [STEP_BACK] = MOVE_FAILED },
	};
	enum move_action action;

	if (!q->n || step->move != q->number || step->cpu != q->wait[0].move.cpu ||
	    step->step > STEP_BACK)
		return MOVE_NOTHING;
	action = well[q->stage][step->step];
	if (action == MOVE_GIVE && step->error)
		return MOVE_FAILED;
	if (action == MOVE_GIVE)
		q->stage = MOVE_GIVES;
	return action;
}
