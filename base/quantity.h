/* quantity.h - parses and prints numbers, sizes and times as people write them.  Pure.
 *
 * Each parser returns 0, or -EINVAL (not such a quantity), -ERANGE (too large for 32 bits), or
 * -EDOM (no whole number of the unit). Each printer writes what the parser reads as the same value,
 * and counts bytes as snprintf() does.
 */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include "base/types.h"

int quantity_parse_number(const char *text, uint32_t *number);
/* "256M", "1.5G", "512mb", "65536K", "256" (MiB); K, M, G and T are powers of 1024, as KB and KiB
 * are */
int quantity_parse_mib(const char *text, uint32_t *mib);
/* "500ms", "1.5s", "2m", "1m30s", "1h30min", "1d", "5" (seconds) */
int quantity_parse_ms(const char *text, uint32_t *ms);

size_t quantity_print_number(uint32_t number, char *text, size_t bytes);
size_t quantity_print_mib(uint32_t mib, char *text, size_t bytes);
size_t quantity_print_ms(uint32_t ms, char *text, size_t bytes);

#endif
