/* vigil.h - whether a thread that waits for an answer polls for it before it sleeps.
 *
 * Going to sleep and being woken takes longer than many an answer.  So a wait polls for up to
 * VIGIL_US first.  After a vigil in vain the next waits sleep at once; their number doubles each
 * time.  So a program whose answers take long loses one VIGIL_US in VIGIL_MOST_ASLEEP waits.
 *
 * A peer that shares this processor can answer only when it runs.  So after some polls in vain the
 * processor is offered to others after each, and from the first poll on once such an offer has
 * brought the answer.  An offer that takes too long was taken by another program: then sleeping is
 * better, since a thread that is woken goes first.
 *
 * These are decisions alone: net_loop.c reads the clock and the sockets.
 */
#ifndef PHOENIX_VIGIL_H
#define PHOENIX_VIGIL_H

#include <stdbool.h>

enum {
	VIGIL_US = 50,			/* how long one lasts at most */
	VIGIL_OFFER_US = 2,		/* an offer that takes so long was taken */
	VIGIL_ALONE = 64,		/* polls before the processor is offered */
	VIGIL_MOST_ASLEEP = 1023,
	VIGIL_PROMPT = 16,		/* answers in a row that make a peer a prompt one */
};

/* All zeros at first. */
struct vigil {
	unsigned asleep;		/* so many more waits sleep at once */
	unsigned in_vain;		/* and so many did after the last vigil in vain */
	unsigned prompt;		/* answers in a row that came to a vigil */
	bool shared;			/* a peer shares this processor */
};

/* A wait begins.  False: it is to sleep at once. */
bool vigil_begins(struct vigil *v);
/* Whether the processor is to be offered to others before this poll; the first is 0. */
bool vigil_offers(const struct vigil *v, unsigned poll);
/* The answer has come; taken: behind an offer that was taken. */
void vigil_answered(struct vigil *v, bool taken);
/* It is over; late: its time was up. */
void vigil_ends(struct vigil *v, bool late);
/* Whether the peer answers so promptly that its connection need not be watched meanwhile. */
bool vigil_is_prompt(const struct vigil *v);
/* The thread goes to sleep. */
void vigil_sleeps(struct vigil *v);

#endif
