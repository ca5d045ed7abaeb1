/* away.h - the set of CPUs that may not be sent messages about queues and DMA.
 *
 * A CPU that stops, because the machine is saved or the CPU moves, says so before (VIRTIO_LEAVE),
 * and again when it runs (VIRTIO_BACK).  What waits for it begins again at BACK (virtio.c).  An
 * access of a CPU shows too that it runs.
 *
 * Callers: iosrv/virtio.c and iosrv/busmaster.c.
 */
#ifndef IOSRV_AWAY_H
#define IOSRV_AWAY_H

#include "base/types.h"

void away_none(void); /* all CPUs run */
void away_all(void);  /* no CPU of a loaded machine runs yet */
void away_add(unsigned cpu);
void away_remove(unsigned cpu);
bool away_has(unsigned cpu);

#endif
