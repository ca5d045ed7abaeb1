/* editor.h - the lines that a person types: editing, history and completion by libedit. */
#ifndef VPG_EDITOR_H
#define VPG_EDITOR_H

#include "vpg/shell/execute.h"

/* Reads lines from the terminal and runs them, until its end or `exit`.  Returns the status. */
int editor_run(struct executor *x);

#endif
