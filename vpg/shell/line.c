/* line.c - see line.h.  One pass over the bytes; each function takes one construct. */
#include "vpg/shell/line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vpg/shell/group.h"

struct scan {
	struct line *line;
	const char *at, *end;
	char *to;		/* the next free byte of line->text */
	size_t n_words;		/* entries of line->words in use */
};

/* One word, unquoted; `mark` is its last @ that was not quoted, or NULL. */
struct scan_word { char *text, *mark; };

static int wrong(struct scan *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct scan *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->line->error, sizeof s->line->error, format, args);
	va_end(args);
	return -EINVAL;
}

static bool is_next(const struct scan *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->at) >= n && !memcmp(s->at, text, n);
}

static bool take(struct scan *s, const char *text)
{
	bool there = is_next(s, text);

	s->at += there ? strlen(text) : 0;
	return there;
}

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || is_next(s, "\\\n")))
		s->at += *s->at == '\\' ? 2 : 1;
	if (s->at < s->end && *s->at == '#')
		while (s->at < s->end && *s->at != '\n')
			s->at++;
}

/* ---- words ---- */

static bool ends_word(char c)
{
	return strchr(" \t\n|&;<>", c) != NULL;
}

/* Refuses what another shell would replace.  If such a word stayed as it is, that would
 * surprise. */
static int refuse_expansion(struct scan *s, bool begins_word)
{
	char c = *s->at;

	if (strchr("$`*?()", c) || (c == '~' && begins_word))
		return wrong(s, "%c has no meaning here; quote it, or let a shell expand it: "
			     "sh@NICKNAME -c '...'", c);
	return 0;
}

/* Takes the bytes within quotes.  Within double quotes, a backslash quotes only a following " \ $
 * or `. */
static int take_quoted(struct scan *s)
{
	char quote = *s->at++;

	for (; s->at < s->end && *s->at != quote; s->at++) {
		if (quote == '"' && *s->at == '\\' && s->at + 1 < s->end &&
		    strchr("\"\\$`", s->at[1]))
			s->at++;
		else if (quote == '"' && (*s->at == '$' || *s->at == '`'))
			return refuse_expansion(s, false);
		*s->to++ = *s->at;
	}
	if (s->at == s->end)
		return wrong(s, "a quote %c has no end", quote);
	s->at++;
	return 0;
}

static int take_plain(struct scan *s, struct scan_word *w)
{
	if (*s->at == '\\') {
		if (++s->at == s->end)
			return wrong(s, "nothing follows the last \\");
		*s->to++ = *s->at++;
		return 0;
	}
	if (refuse_expansion(s, s->to == w->text))
		return -EINVAL;
	if (*s->at == '@')
		w->mark = s->to;
	*s->to++ = *s->at++;
	return 0;
}

/* Takes the word that begins here; there is one. */
static int take_word(struct scan *s, struct scan_word *w)
{
	*w = (struct scan_word){ s->to, NULL };
	while (s->at < s->end && !ends_word(*s->at))
		if (*s->at == '\'' || *s->at == '"' ? take_quoted(s) : take_plain(s, w))
			return -EINVAL;
	*s->to++ = 0;
	return 0;
}

/* Cuts @nickname off the word.  If it has none, *nick is NULL. */
static int cut_nick(struct scan *s, struct scan_word *w, const char *what, const char **nick)
{
	*nick = NULL;
	if (!w->mark)
		return *w->text ? 0 : wrong(s, "the name of a %s is empty", what);
	*w->mark = 0;
	if (!*w->text)
		return wrong(s, "no %s before @%.64s", what, w->mark + 1);
	if (!nick_is_valid(w->mark + 1) && !group_is_valid(w->mark + 1))
		return wrong(s, "%.64s@%.64s: no nickname after @; quote an @ that is the %s's own",
			     w->text, w->mark + 1, what);
	*nick = w->mark + 1;
	return 0;
}

/* ---- stages ---- */

static int add_word(struct scan *s, struct line_stage *stage, char *text)
{
	if (s->n_words >= LINE_MAX_WORDS - 1)
		return wrong(s, "more than %d words", LINE_MAX_WORDS);
	s->line->words[s->n_words++] = text;
	stage->n_words++;
	return 0;
}

static int take_file(struct scan *s, struct line_file *file, const char *sign)
{
	struct scan_word w;

	if (file->path)
		return wrong(s, "%s stands twice for one command", sign);
	skip_blanks(s);
	if (s->at == s->end || ends_word(*s->at))
		return wrong(s, "no file after %s", sign);
	if (take_word(s, &w) || cut_nick(s, &w, "file", &file->nick))
		return -EINVAL;
	file->path = w.text;
	file->append = !strcmp(sign, ">>") || !strcmp(sign, "2>>");
	return 0;
}

/* Takes a redirection.  Returns 1 if there is none here. */
static int take_redirection(struct scan *s, struct line_stage *stage)
{
	if (is_next(s, "2>") && stage->err_to_out)
		return wrong(s, "2> stands twice for one command");
	if (take(s, "2>&1")) {
		stage->err_to_out = true;
		return stage->err.path ? wrong(s, "2> stands twice for one command") : 0;
	}
	if (take(s, "2>>"))
		return take_file(s, &stage->err, "2>>");
	if (take(s, "2>"))
		return take_file(s, &stage->err, "2>");
	if (is_next(s, "<<") || is_next(s, ">&") || is_next(s, "<&"))
		return wrong(s, "%.2s is not known here", s->at);
	if (take(s, ">>"))
		return take_file(s, &stage->out, ">>");
	if (take(s, ">"))
		return take_file(s, &stage->out, ">");
	if (take(s, "<"))
		return take_file(s, &stage->in, "<");
	return 1;
}

static int take_stage_word(struct scan *s, struct line_stage *stage)
{
	struct scan_word w;

	if (take_word(s, &w))
		return -EINVAL;
	if (!stage->n_words && cut_nick(s, &w, "command", &stage->nick))
		return -EINVAL;
	return add_word(s, stage, w.text);
}

/* Takes words and redirections up to what ends a stage. */
static int take_stage(struct scan *s)
{
	struct line_stage *stage = s->line->stages + s->line->n_stages;
	int done;

	if (s->line->n_stages == LINE_MAX_STAGES)
		return wrong(s, "more than %d commands in a line", LINE_MAX_STAGES);
	*stage = (struct line_stage){ .words = s->line->words + s->n_words };
	for (skip_blanks(s); s->at < s->end && !strchr("\n|&;", *s->at); skip_blanks(s)) {
		done = take_redirection(s, stage);
		if (done < 0 || (done && take_stage_word(s, stage)))
			return -EINVAL;
	}
	if (!stage->n_words)
		return stage->in.path || stage->out.path || stage->err.path || stage->err_to_out ?
			wrong(s, "a redirection without a command") : 1;
	s->line->words[s->n_words++] = NULL;
	s->line->n_stages++;
	return 0;
}

/* ---- lines ---- */

static enum line_after take_after(struct scan *s)
{
	static const struct { const char *text; enum line_after after; } signs[] = {
		{ "&&", AFTER_AND }, { "||", AFTER_OR }, { "|", AFTER_PIPE },
		{ "&", AFTER_BACKGROUND }, { ";", AFTER_SEQUENCE }, { "\n", AFTER_SEQUENCE },
	};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (take(s, signs[i].text))
			return signs[i].after;
	return AFTER_END;
}

static const char *sign_of(enum line_after after)
{
	static const char *const text[] = { "the end", "|", "&&", "||", ";", "&" };

	return text[after];
}

/* Called where a command is missing.  That is an error, except between lines and at the end of a
 * line. */
static int take_nothing(struct scan *s, enum line_after before)
{
	if (before == AFTER_PIPE || before == AFTER_AND || before == AFTER_OR) {
		if (take(s, "\n"))
			return 0;	/* the list continues in the next line */
		return wrong(s, "no command after %s", sign_of(before));
	}
	if (s->at < s->end && !take(s, "\n"))
		return wrong(s, "no command before %s", sign_of(take_after(s)));
	return 0;
}

static int parse(struct scan *s)
{
	enum line_after before = AFTER_SEQUENCE;

	while (s->at < s->end || before == AFTER_PIPE || before == AFTER_AND ||
	       before == AFTER_OR) {
		int nothing = take_stage(s);

		if (nothing < 0 || (nothing && take_nothing(s, before)))
			return -EINVAL;
		if (nothing)
			continue;
		before = take_after(s);
		s->line->stages[s->line->n_stages - 1].after = before;
	}
	if (s->line->n_stages && before == AFTER_SEQUENCE)
		s->line->stages[s->line->n_stages - 1].after = AFTER_END;
	return 0;
}

int line_parse(struct line *l, const char *bytes, size_t n)
{
	struct scan s = { .line = l, .at = bytes, .end = bytes + n };

	*l = (struct line){ 0 };
	if (n > LINE_MAX_BYTES)
		return wrong(&s, "a line has more than %d bytes", LINE_MAX_BYTES);
	if (memchr(bytes, 0, n))
		return wrong(&s, "a line has a byte that is 0");
	l->stages = calloc(LINE_MAX_STAGES, sizeof *l->stages);
	l->words = calloc(LINE_MAX_WORDS + LINE_MAX_STAGES, sizeof *l->words);
	l->text = s.to = malloc(2 * n + 2);	/* all words, each with its terminator */
	if (!l->stages || !l->words || !l->text)
		return -ENOMEM;
	return parse(&s);
}

void line_free(struct line *l)
{
	free(l->stages);
	free(l->words);
	free(l->text);
	*l = (struct line){ 0 };
}

size_t line_pipeline_end(const struct line *l, size_t first)
{
	while (first < l->n_stages && l->stages[first].after == AFTER_PIPE)
		first++;
	return first < l->n_stages ? first + 1 : l->n_stages;
}

size_t line_list_end(const struct line *l, size_t first)
{
	while (first < l->n_stages && l->stages[first].after <= AFTER_OR && l->stages[first].after)
		first++;
	return first < l->n_stages ? first + 1 : l->n_stages;
}
