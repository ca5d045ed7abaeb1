/* msglog.h - messages in a file, while their node is away. */
#ifndef PHOENIX_MSGLOG_H
#define PHOENIX_MSGLOG_H

#include "phoenix/core/core.h"

/* Writes every message that nobody has received.  This node sends none of them any more.
 * Returns 0, or an error with text. */
int msglog_store(struct phnx *ph, const char *file, char *text, size_t room);
/* Queues the messages of a log that this node has not loaded before: all, or none with PH_ELOG,
 * or some with PH_ENOMEM. */
int msglog_load(struct phnx *ph, const char *file, char *text, size_t room);

#endif
