/* msglog.h - messages that wait while their node is away, in a file. */
#ifndef PHOENIX_MSGLOG_H
#define PHOENIX_MSGLOG_H

#include "phoenix/core.h"

/* Writes every message that nobody has received; none of them is sent from here any more. 0, or PH_ELOG with text. */
int msglog_store(struct phnx *ph, const char *file, char *text, size_t room);
/* Reads those into the queue that this node has not loaded before; all of them or, with PH_ELOG, nothing. */
int msglog_load(struct phnx *ph, const char *file, char *text, size_t room);

#endif
