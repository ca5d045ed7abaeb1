/* lending.h - what a computer lends to others: limits, and who has borrowed what.  Pure.
 *
 * A loan is asked for, and granted or refused at once: no borrower waits for another one, so there
 * is no deadlock.  A loan is OFFERED at first, and is returned by itself if the borrower does not
 * KEEP it in time.  A kept loan lasts until it is returned or its borrower is gone.
 */
#ifndef VPG_LENDING_H
#define VPG_LENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LOANS_MAX = 256,
	LOAN_PROCESSORS_MAX = 4096,
	OFFER_US = 10000000,	/* an offer that is not kept ends after this time */
	LIMITS_TEXT = 96,
	LIMIT_MOST = 999999999,	/* lend_read_limits() takes nine digits */
};

/* The most that the owner lends to all borrowers together. */
struct limits { uint32_t processors, memory_mib, machines; };

enum loan_state { LOAN_FREE, LOAN_OFFERED, LOAN_KEPT };
struct loan {
	enum loan_state state;
	const void *borrower;
	uint64_t id;		/* the borrower's */
	uint32_t processors, memory_mib;
	int64_t until_us;	/* when an OFFERED loan ends */
};
struct loans { struct loan at[LOANS_MAX]; };

enum lend_answer {
	LEND_YES,
	LEND_BUSY,		/* another borrower has an offer, which may end soon */
	LEND_NO_PROCESSORS, LEND_NO_MEMORY, LEND_NO_MACHINES,
	LEND_BAD,		/* no version of vmp asks so */
	LEND_LATE,		/* to KEEP: the offer has ended */
	LEND_ANSWERS
};

/* Grants or refuses a loan. own: the borrower is the computer itself, whose machines are not
 * limited in number or memory.  A loan of the same borrower and number is replaced. */
enum lend_answer lend_ask(struct loans *all, const struct limits *l, const struct loan *wanted,
			  bool own, int64_t now_us);
enum lend_answer lend_keep(struct loans *all, const void *borrower, uint64_t id, int64_t now_us);
void lend_return(struct loans *all, const void *borrower, uint64_t id);
/* Ends all loans of a borrower. */
void lend_forget(struct loans *all, const void *borrower);
/* Returns what is lent now, with the offers. */
struct limits lend_lent(const struct loans *all, int64_t now_us);
/* Returns how many offers wait for their borrowers' answers. */
uint32_t lend_offers(const struct loans *all, int64_t now_us);
/* Returns how many processors are left: 0 if no further machine or no memory is allowed. */
uint32_t lend_free(const struct loans *all, const struct limits *l, int64_t now_us);
/* Returns the end of a sentence for a person: "has no processor left". */
const char *lend_why(enum lend_answer a);

/* Write and read the file `limits`. lend_read_limits() leaves a limit that the text does not have
 * as it is; it returns 0 or -EPROTO. */
void lend_print_limits(const struct limits *l, char text[LIMITS_TEXT]);
int lend_read_limits(struct limits *l, const char *text);

#endif
