/* movequeue.h - the queue of moves of CPUs: one is being made, the others wait.  Pure. */
#ifndef VMM_NODE_MOVES_MOVEQUEUE_H
#define VMM_NODE_MOVES_MOVEQUEUE_H

#include "base/limits.h"
#include "base/wire.h"

enum { MAX_MOVES = 64 };

/* The stage of the move at the front. */
enum move_stage { MOVE_WAITS, MOVE_PREPARES, MOVE_GIVES };

struct move_request { struct msg_cpu_move move; unsigned client; char why[MOVE_WHY]; };
struct movequeue {
	struct move_request wait[MAX_MOVES]; /* [0]: the front */
	unsigned n;
	enum move_stage stage;
	uint32_t number; /* of the current move, or of the last one */
};

/* What to do next about the move at the front. */
enum move_action {
	MOVE_NOTHING, /* wait */
	MOVE_PREPARE, /* ask the target to get ready */
	MOVE_GIVE,    /* ask the source to give the CPU */
	MOVE_DONE,    /* the CPU runs on the target: tell all hosts, answer, movequeue_pop() */
	MOVE_FAILED,  /* the CPU runs where it was: answer, movequeue_pop() */
};

/* Queues a request.  Returns false if there is no room. */
bool movequeue_push(struct movequeue *q, const struct move_request *request);
void movequeue_pop(struct movequeue *q);

/* Begins the move at the front, if it waits.  `at`: where each CPU is; `hosts`: bit set of hosts
 * where it may go.  Returns MOVE_PREPARE; MOVE_FAILED with the reason in `why` if the move is
 * impossible; or MOVE_NOTHING. */
enum move_action movequeue_begin(struct movequeue *q, const uint32_t *at, unsigned n_cpus,
				 uint32_t hosts, char *why, size_t why_bytes);
/* Takes a step that was reported.  A step that does not belong to the current move is ignored. */
enum move_action movequeue_step(struct movequeue *q, const struct msg_cpu_step *step);

#endif
