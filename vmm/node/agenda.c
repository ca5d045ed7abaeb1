/* agenda.c - see agenda.h. */
#include "vmm/node/agenda.h"

#include <stddef.h>

#include "base/types.h"

enum { NO = AGENDA_NO, W = AGENDA_W, R = AGENDA_R, MAX_NEXT = 2 };

static const unsigned char verdicts[][AGENDA_OPERATION_COUNT] = {
#define AGENDA(condition, ...) [AGENDA_##condition] = { __VA_ARGS__ },
#define REFUSAL(condition, operation, why)
#define DONE(condition, ...)
#include "vmm/node/agenda.def"
#undef AGENDA
#undef REFUSAL
};
_Static_assert(ARRAY_LEN(verdicts) == AGENDA_CONDITION_COUNT, "a row for each condition");

static const char *const refusals[AGENDA_CONDITION_COUNT][AGENDA_OPERATION_COUNT] = {
#define AGENDA(condition, ...)
#define REFUSAL(condition, operation, why) [AGENDA_##condition][AGENDA_##operation] = why,
#include "vmm/node/agenda.def"
#undef REFUSAL
#undef DONE
};

/* next[condition]: the operations that may begin when the condition ends, each as its number plus
 * one; 0: none. */
static const unsigned char next[AGENDA_CONDITION_COUNT][MAX_NEXT] = {
#define REFUSAL(condition, operation, why)
#define NEXT(operation) AGENDA_##operation + 1
#define DONE_2(condition, a, b, ...) [AGENDA_##condition] = { NEXT(a), NEXT(b) },
#define AGENDA_NONE -1
#define DONE(condition, ...) DONE_2(condition, __VA_ARGS__, NONE, )
#include "vmm/node/agenda.def"
};

enum agenda_verdict agenda_judge(enum agenda_operation operation, unsigned conditions,
				 enum agenda_condition *because)
{
	enum agenda_verdict worst = AGENDA_NO;

	for (unsigned i = 0; i < AGENDA_CONDITION_COUNT; i++) {
		enum agenda_verdict one = (enum agenda_verdict)verdicts[i][operation];

		if (!(conditions >> i & 1) || one <= worst)
			continue;
		worst = one;
		if (because)
			*because = (enum agenda_condition)i;
	}
	return worst;
}

const char *agenda_refusal(enum agenda_operation operation, enum agenda_condition because)
{
	const char *why = refusals[because][operation];

	return why ? why : "";
}

enum agenda_operation agenda_next(enum agenda_condition ended, unsigned n)
{
	unsigned operation = n < MAX_NEXT ? next[ended][n] : 0;

	return operation ? (enum agenda_operation)(operation - 1) : AGENDA_OPERATION_COUNT;
}
