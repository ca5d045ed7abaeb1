/* rewrite.h - rewrites assembly text of the guest kernel into text with markers.
 *
 * Pure; the program `as` (as.c) and the golden tests call it.
 */
#ifndef ASM_REWRITER_REWRITE_H
#define ASM_REWRITER_REWRITE_H

#include <stddef.h>

enum rewrite_action { ACTION_NONE, ACTION_MARKER, ACTION_REPLACE, ACTION_TRAPS, ACTION_NATIVE };

/* A growing buffer; the caller frees data. */
struct text {
	char *data;
	size_t length, room;
};
void text_add(struct text *t, const char *from, size_t length);

/* Append the rewritten form of the assembly in[0..length) to *out. */
void rewrite(const char *in, size_t length, struct text *out);

#endif
