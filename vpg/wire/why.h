/* why.h - the one line that says why something failed. */
#ifndef VPG_WHY_H
#define VPG_WHY_H

struct why { char line[320]; };

/* Writes the line; returns -1. */
int why_set(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
