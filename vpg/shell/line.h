/* line.h - a command line of the shell, parsed.  Pure: no file is opened, nothing is expanded.
 *
 * The grammar is that of the thesis's figure 4.2, and what people type around it:
 *
 *	line     := list [ ; | & ]
 *	list     := and_or { ( ; | & | newline ) and_or }
 *	and_or   := pipeline { ( && | || ) pipeline }
 *	pipeline := stage { "|" stage }
 *	stage    := path[@nickname] { word | redirection }
 *	redirection := ( < | > | >> | 2> | 2>> ) file[@nickname] | 2>&1
 *
 * A line is an array of stages; each says what follows it.  && and || bind alike, from the left.
 */
#ifndef VPG_LINE_H
#define VPG_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_MAX_BYTES = 128 << 10, LINE_MAX_WORDS = 16384, LINE_MAX_STAGES = 256 };

enum line_after { AFTER_END, AFTER_PIPE, AFTER_AND, AFTER_OR, AFTER_SEQUENCE, AFTER_BACKGROUND };

struct line_file {
	const char *path;	/* NULL: not redirected */
	const char *nick;	/* NULL: a file of the shell's own computer */
	bool append;
};

struct line_stage {
	char **words;		/* ends with NULL; words[0] is the program, without @nickname */
	size_t n_words;
	const char *nick;	/* NULL: the shell's own computer */
	struct line_file in, out, err;
	bool err_to_out;	/* 2>&1 */
	enum line_after after;
};

struct line {
	struct line_stage *stages;
	size_t n_stages;	/* 0: an empty line */
	char **words;		/* all words of all stages, and a NULL behind each stage's */
	char *text;		/* the bytes of all words */
	char error[160];
};

/* Parses `n` bytes.  Returns 0; or -EINVAL with one line in l->error; or -ENOMEM.  The caller calls
 * line_free() in any case. */
int line_parse(struct line *l, const char *bytes, size_t n);
void line_free(struct line *l);

/* Returns the index behind the pipeline, or behind the and-or list, that begins at stage
 * `first`. */
size_t line_pipeline_end(const struct line *l, size_t first);
size_t line_list_end(const struct line *l, size_t first);

#endif
