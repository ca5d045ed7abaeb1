/* jobs.h - commands: those that run here for others, and those that run elsewhere for shells here.
 *
 * A job is a pipeline; its stages may run on several computers.  The daemon of the shell's computer
 * starts and ends them.  When the shell or its daemon is gone, all daemons end their stages of the
 * job.
 */
#ifndef VPG_JOBS_H
#define VPG_JOBS_H

#include "vpg/peer/tunnel.h"

struct stage;

/* Serves a message of a shell of this computer. */
void jobs_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m);
void jobs_shell_gone(struct daemon *d, struct shell *s);

/* Serves a message of another daemon. */
void jobs_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m);
void jobs_tunnel_closed(struct tunnel *t, const char *why);

/* Ends a command at once: one of its streams has broken. */
void jobs_kill_stage(struct stage *stage);
void jobs_end_all(void);
/* Waits for keepers that have ended. */
void jobs_tidy(void);

#endif
