/* reaper.h - a process that is the reaper of its descendants, and can end them all. */
#ifndef VMM_SHARED_REAPER_H
#define VMM_SHARED_REAPER_H

#include <sys/types.h>

/* Makes this process the parent of its orphaned descendants.  Returns 0 or -errno. */
int reaper_become(void);
/* Kills and reaps until no child is left except these (0 ends them; NULL: none at all), or some
 * seconds have passed. */
void reaper_end_all(const pid_t *but);
void reaper_sleep_ms(unsigned ms);

#endif
