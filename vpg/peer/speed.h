/* speed.h - how fast a processor of this computer is, by a short calibration. */
#ifndef VPG_SPEED_H
#define VPG_SPEED_H

#include <stdint.h>

/* Returns how many steps of a loop of integer arithmetic with a table of 16 KiB a processor does in
 * a microsecond.  Takes about 20 ms; time in which other programs have the processor does not
 * count. */
uint32_t speed_measure(void);

#endif
