/* away.c - see away.h. */
#include "iosrv/away.h"

static uint32_t away; /* CPUs to which nothing may be sent */

void away_none(void) { away = 0; }
void away_all(void) { away = ~0u; }
void away_add(unsigned cpu) { away |= 1u << cpu; }
void away_remove(unsigned cpu) { away &= ~(1u << cpu); }
bool away_has(unsigned cpu) { return away >> cpu & 1; }
