/* plan.h - a pipeline as parts that run at the same time, on one computer or several, and how they
 * are connected.  Pure.
 *
 * Each command is a part.  If a file is on another computer than its command, a part of its own
 * carries it: a `cat` on the file's computer.  So data go from computer to computer and not through
 * the shell.
 */
#ifndef VPG_PLAN_H
#define VPG_PLAN_H

#include "vpg/shell/line.h"

enum { PLAN_PARTS_MAX = 4 * LINE_MAX_STAGES };

enum plan_kind {
	PLAN_OWN,	/* the shell's own stream */
	PLAN_PART,	/* another part of the plan */
	PLAN_FILE,	/* a file on the part's computer */
	PLAN_HERE,	/* a file on the shell's computer, and the part runs elsewhere */
	PLAN_LIKE_OUT,	/* 2>&1 */
};

struct plan_end { enum plan_kind kind; size_t part; const char *path; bool append; };

struct plan_part {
	const char *nick;	/* NULL: the shell's own computer */
	char **words;
	size_t n_words;
	struct plan_end in, out, err;
	bool carries;		/* it carries a file, and is no command of the line's */
};

struct plan { struct plan_part *parts; size_t n; size_t last; /* the last command */ };

/* Makes the plan of the stages from `first` on, up to but not including `end`.  Returns 0 or
 * -ENOMEM. */
int plan_make(struct plan *p, const struct line *l, size_t first, size_t end);
void plan_free(struct plan *p);

#endif
