/* speed.h - how fast a processor of this computer is, by a short calibration. */
#ifndef VPG_SPEED_H
#define VPG_SPEED_H

#include <stdint.h>

/* Steps of a loop of integer arithmetic and a table of 16 KiB in a microsecond.  Takes about 20 ms;
 * the time that other programs have the processor does not count. */
uint32_t speed_measure(void);

#endif
