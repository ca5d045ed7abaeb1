/* last_words.c - see last_words.h. */
#include "vmm/cli/run/last_words.h"

#include <string.h>

#define PANIC "Kernel panic - not syncing: "
#define END_MARK "---[ end Kernel panic"

/* If the line begins so, returns what follows; or NULL. */
static const char *after(const char *line, size_t bytes, const char *start)
{
	size_t n = strlen(start);

	return bytes >= n && !memcmp(line, start, n) ? line + n : NULL;
}

static void keep(char *to, size_t room, const char *from, const char *end)
{
	size_t n = (size_t)(end - from) < room - 1 ? (size_t)(end - from) : room - 1;

	memcpy(to, from, n);
	to[n] = 0;
}

/* The first panic counts: another one can only follow from it. */
static void hear_line(struct last_words *w, const char *line, size_t bytes)
{
	static const char *const errors[] = { "kernel BUG at ", "BUG: ", "PANIC: " };
	const char *why = after(line, bytes, PANIC);

	if (why && !*w->panic)
		keep(w->panic, sizeof w->panic, why, line + bytes);
	w->over |= !w->up && after(line, bytes, END_MARK) != NULL;
	for (size_t n = 0; n < sizeof errors / sizeof *errors; n++)
		if (after(line, bytes, errors[n]))
			keep(w->bug, sizeof w->bug, line, line + bytes);
}

void last_words_hear(struct last_words *w, const char *text, size_t bytes)
{
	const char *end = text + bytes;

	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));

		if (!line_end)
			line_end = end;
		hear_line(w, text, (size_t)(line_end - text));
		text = line_end + 1;
	}
}
