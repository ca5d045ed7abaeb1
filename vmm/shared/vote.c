/* vote.c - see vote.h. */
#include "vmm/shared/vote.h"

#include <string.h>

static const unsigned char table[VOTE_LOCK_COUNT][VOTE_HOLDER_COUNT] = {
#define VOTE(lock, holder, answer) [VOTE_LOCK_##lock][VOTE_HOLDER_##holder] = VOTE_##answer,
#include "vmm/shared/vote.def"
#undef VOTE
};

enum vote vote_answer(enum vote_lock lock, enum vote_holder holder)
{
	return (enum vote)table[lock][holder];
}

static const char *const words[] = {
#define WORD(name) #name,
	VOTE_ANSWERS(WORD)
#undef WORD
};

const char *vote_word(enum vote vote) { return words[vote]; }

enum vote vote_of_word(const char *word)
{
	unsigned vote = 0;

	while (vote < VOTE_COUNT && strcmp(words[vote], word))
		vote++;
	return (enum vote)vote;
}
