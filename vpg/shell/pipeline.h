/* pipeline.h - runs one pipeline, here and elsewhere. */
#ifndef VPG_PIPELINE_H
#define VPG_PIPELINE_H

#include "vpg/shell/execute.h"
#include "vpg/shell/group.h"

/* Runs the stages from `first` on, up to but not including `end`.  Returns the status. */
int pipeline_run(struct executor *x, const struct line *l, size_t first, size_t end);
/* Adds the peers that are connected, this one included.  Returns 0, or -1 with one line. */
int pipeline_peers(struct executor *x, struct group *g);

#endif
