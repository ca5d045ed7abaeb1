/* doctor.h - `vmp doctor`: what this computer has, what it lacks for which purpose, and how to get
 * it.
 *
 * doctor.def has a row for each check.  The checking functions are in doctor_looks.c: each answers
 * one row, and changes nothing that stays.
 */
#ifndef VMM_CLI_DOCTOR_DOCTOR_H
#define VMM_CLI_DOCTOR_DOCTOR_H

#include <stdio.h>
#include "vmm/cli/options.h"

enum doctor_need {
	DOCTOR_ALL,  /* without it no machine runs here */
	DOCTOR_PART, /* without it a part of what vmp can do is missing */
};

/* What a function has found. */
struct finding {
	bool good;
	char text[400]; /* one line for people: what there is, or what is wrong */
};

struct doctor_row {
	const char *word;
	enum doctor_need need;
	const char *what_for, *how;
	/* `root` is "" except in tests: files are read below it */
	void (*look)(struct finding *f, const char *root);
};

enum {
#define DOCTOR(function, ...) DOCTOR_ROW_##function,
#include "vmm/cli/doctor/doctor.def"
#undef DOCTOR
	DOCTOR_ROWS
};
extern const struct doctor_row doctor_rows[DOCTOR_ROWS];

/* Prints one finding for each row.  Returns whether every row of DOCTOR_ALL is good. */
bool doctor_print(FILE *out, const struct finding found[DOCTOR_ROWS], bool json);

#define DOCTOR(function, ...) void doctor_look_##function(struct finding *f, const char *root);
#include "vmm/cli/doctor/doctor.def"
#undef DOCTOR

#endif
