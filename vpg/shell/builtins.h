/* builtins.h - commands that the shell carries out itself. */
#ifndef VPG_BUILTINS_H
#define VPG_BUILTINS_H

#include "vpg/shell/execute.h"

/* Runs a builtin.  Returns its status; -1 if the stage is no builtin. */
int builtin_run(struct executor *x, const struct line_stage *s);

#endif
