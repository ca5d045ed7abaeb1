/* builtins.h - commands that the shell carries out itself. */
#ifndef VPG_BUILTINS_H
#define VPG_BUILTINS_H

#include "vpg/shell/execute.h"

/* Returns the status; -1: the stage is no such command. */
int builtin_run(struct executor *x, const struct line_stage *s);

#endif
