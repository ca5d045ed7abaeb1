/* movequeue.h - the moves of CPUs that were asked for: one is under way, the others wait. Pure. */
#ifndef VMM_NODE_MOVES_MOVEQUEUE_H
#define VMM_NODE_MOVES_MOVEQUEUE_H

#include "base/limits.h"
#include "base/wire.h"

enum { MAX_MOVES = 64 };

/* How far the move at the front is. */
enum move_stage { MOVE_WAITS, MOVE_PREPARES, MOVE_GIVES };

struct move_request { struct msg_cpu_move move; unsigned client; };
struct movequeue {
	struct move_request wait[MAX_MOVES]; /* [0]: the front */
	unsigned n;
	enum move_stage stage;
	uint32_t number; /* of the move under way, or of the last one */
};

/* What to do next about the front. */
enum move_action {
	MOVE_NOTHING, /* wait */
	MOVE_PREPARE, /* ask the target to get ready */
	MOVE_GIVE,    /* ask the source to give the CPU */
	MOVE_DONE,    /* it runs there: tell all, answer, movequeue_pop() */
	MOVE_FAILED,  /* it runs where it was: answer, movequeue_pop() */
};

/* Queue a request; false: there is no room. */
bool movequeue_push(struct movequeue *q, const struct move_request *request);
void movequeue_pop(struct movequeue *q);

/* Begin the front, if it waits: MOVE_PREPARE, MOVE_FAILED with the reason in `why` if it cannot be, or MOVE_NOTHING.
 * `at`: where each CPU is; `hosts`: bit set of those where it may go. */
enum move_action movequeue_begin(struct movequeue *q, const uint32_t *at, unsigned n_cpus, uint32_t hosts, char *why,
				 size_t why_bytes);
/* A step was reported. One that does not belong to the move under way is ignored. */
enum move_action movequeue_step(struct movequeue *q, const struct msg_cpu_step *step);

#endif
