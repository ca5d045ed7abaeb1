/* pageheat.h - how often pages were fetched, added up over the hosts, and which symbol of the guest kernel lies there. */
#ifndef VMM_CLI_QUERY_PAGEHEAT_H
#define VMM_CLI_QUERY_PAGEHEAT_H

#include "base/types.h"
#include "base/wire.h"

struct pageheat {
	struct page_heat *page; /* owned */
	size_t n;
};

/* `bytes` points to `n` struct page_heat, unaligned. */
void pageheat_add(struct pageheat *heat, const void *bytes, size_t n);
/* Adds up the counts of each page and puts the hottest first (by address where equal). */
void pageheat_sort(struct pageheat *heat);
void pageheat_free(struct pageheat *heat);

/* The guest kernel's symbols, from the symbol table of vmlinux. */
struct symbol { gva_t address; uint32_t bytes; char *name; bool data; };
struct symbols { struct symbol *symbol; size_t n; };
/* 0, or -errno; without symbols everything still works, namelessly. */
int symbols_load(struct symbols *symbols, const char *vmlinux);
void symbols_free(struct symbols *symbols);
/* The function or object that holds `address`, as "name+0x12"; "" if none does. */
void symbols_name(const struct symbols *symbols, gva_t address, char *text, size_t text_bytes);
/* The same, if it is a function that holds it. */
void symbols_function(const struct symbols *symbols, gva_t address, char *text, size_t text_bytes);
/* The data objects and functions that overlap [address, address + bytes), as "a, b, ...". */
void symbols_describe(const struct symbols *symbols, gva_t address, uint32_t bytes, char *text, size_t text_bytes);

#endif
