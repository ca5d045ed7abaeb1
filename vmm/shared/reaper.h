/* reaper.h - a process that has made itself the reaper of its descendants ends them all. */
#ifndef VMM_SHARED_REAPER_H
#define VMM_SHARED_REAPER_H

#include <sys/types.h>

/* Orphans come to their reaper as their parents die. 0, or -errno. */
int reaper_become(void);
/* Kill and reap until there is no child left but this one (0: none at all), or some seconds have passed. */
void reaper_end_all(pid_t but);
void reaper_sleep_ms(unsigned ms);

#endif
