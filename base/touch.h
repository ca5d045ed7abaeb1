/* touch.h - makes a page of a mapped file exist, which reads as zeros until then. */
#ifndef BASE_TOUCH_H
#define BASE_TOUCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* `page` is mapped, to write to if `write` is set.  Its content stays as it is: others may be
 * writing to it, so the write that changes nothing is one instruction.  (A compiler makes a read
 * and a fence of an atomic OR with 0.  A read would do for the file, but then the host maps pages
 * around it, too, which makes taking them away dearer.) */
static inline void touch_page(volatile uint8_t *page, bool write)
{
	uint8_t zero = 0;

	if (write)
		atomic_compare_exchange_strong((volatile _Atomic uint8_t *)page, &zero, 0);
	else
		(void)*page;
}

#endif
