/* types.h - the types of addresses, with one converter each way; and the rights of a host to a
 * page.
 *
 * A guest has linear addresses (gva_t), physical addresses (gpa_t) and page frames (gfn_t); the
 * host has pointers. The names say which one a value is: an address never travels as a bare
 * integer.
 */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t gva_t; /* guest linear address */
typedef uint64_t gpa_t; /* guest physical address: 36 bits with PAE, else 32 */
typedef uint32_t gfn_t; /* guest page frame number: gpa >> 12 */

enum { PAGE_BITS = 12, PAGE_BYTES = 1 << PAGE_BITS, PAGE_MASK = PAGE_BYTES - 1 };

/* The right of a host to a page of RAM; ordered: each includes the one before. */
enum page_right { PAGE_NONE, PAGE_READ, PAGE_WRITE };

static inline gfn_t gpa_to_gfn(gpa_t gpa) { return (gfn_t)(gpa >> PAGE_BITS); }
static inline gpa_t gfn_to_gpa(gfn_t gfn) { return (gpa_t)gfn << PAGE_BITS; }

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

#endif
