/* last_words.h - what a guest kernel printed about its own end.
 *
 * A kernel that panics late ends its machine by a hypercall.  One that panics before its initcalls
 * prints the panic and loops for ever; then the end mark of the panic is all that can be known.
 * When programs run in the guest, the mark says nothing: the kernel prints names that any user of
 * the guest has chosen, and a name may contain lines.  The other texts can be forged so, too, but
 * they only explain an end.
 */
#ifndef VMM_CLI_RUN_LAST_WORDS_H
#define VMM_CLI_RUN_LAST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct last_words {
	char panic[200]; /* why the kernel panicked; empty: it has not */
	char bug[200];	 /* the latest line that reports an error in the kernel; or empty */
	bool up;	 /* set by the caller: programs run in the guest, or may */
	bool over;	 /* before that, the kernel has printed all of its panic: it runs no more */
};

/* Takes the text of one message of the guest kernel: lines, without or with their ends. */
void last_words_hear(struct last_words *w, const char *text, size_t bytes);

#endif
