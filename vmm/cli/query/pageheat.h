/* pageheat.h - how often pages were fetched, summed over all hosts, and which symbols of the guest
 * kernel they hold. */
#ifndef VMM_CLI_QUERY_PAGEHEAT_H
#define VMM_CLI_QUERY_PAGEHEAT_H

#include "base/types.h"
#include "base/wire.h"

struct pageheat {
	struct page_heat *page; /* owned */
	size_t n;
};

/* Adds the counts of one host.  `bytes` points to `n` struct page_heat, unaligned. */
void pageheat_add(struct pageheat *heat, const void *bytes, size_t n);
/* Sums the counts of each page, and sorts them, the hottest first; equal ones by address. */
void pageheat_sort(struct pageheat *heat);
void pageheat_free(struct pageheat *heat);

/* The guest kernel's symbols, from the symbol table of vmlinux. */
struct symbol { gva_t address; uint32_t bytes; char *name; bool data; };
struct symbols {
	struct symbol *symbol;
	size_t n;
	gva_t init_begin, init_end; /* code and data that the kernel frees at the end of its boot */
	gva_t base; /* where the kernel maps RAM; 0: not known */
};
/* Loads the symbols.  Returns 0 or -errno; without symbols, all functions below give no names. */
int pageheat_load_symbols(struct symbols *symbols, const char *vmlinux);
void pageheat_free_symbols(struct symbols *symbols);
/* Writes the function or object that covers `address` as "name+0x12", or "" if there is none. */
void pageheat_symbol_name(const struct symbols *symbols, gva_t address, char *text,
			  size_t text_bytes);
/* The same, for functions alone. */
void pageheat_function(const struct symbols *symbols, gva_t address, char *text, size_t text_bytes);
/* Writes the objects and functions that overlap [address, address + bytes) as "a, b, ...".  What
 * lies in the init section has no names, since other data is there after the boot. */
void pageheat_describe_symbol(const struct symbols *symbols, gva_t address, uint32_t bytes,
			      char *text, size_t text_bytes);
/* The same for a frame; "" for one that the kernel does not map, or that holds other data. */
void pageheat_describe_frame(const struct symbols *symbols, gfn_t gfn, char *text,
			     size_t text_bytes);
/* The same for an address that is not the page's own, such as a per-CPU variable's in the kernel's
 * image. */
void pageheat_symbols_at(const struct symbols *symbols, gva_t address, uint32_t bytes, char *text,
			 size_t text_bytes);

#endif
