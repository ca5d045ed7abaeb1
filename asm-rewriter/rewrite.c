/* rewrite.c - the rewriter proper: finds the statements of GNU assembly and treats the sensitive
 * ones.
 *
 * It parses no more than necessary.  A statement ends at a newline or `;` outside quotes; it has
 * labels, then instruction prefixes, then a mnemonic with operands.  The mnemonic is looked up in
 * instructions.def.  A marker is put after the instruction's labels and before its prefixes.  So a
 * label (and an exception table entry with it) points to the marker: the pair counts as one
 * instruction.
 *
 *  - A prefix may be a statement of its own (`rep; nop` is the kernel's pause): the position before
 *    the first prefix is remembered until the instruction follows.
 *  - Macro bodies are ordinary lines and are rewritten in place; the expansions then need no
 *    rewriting.
 *  - Text in quotes after a macro's name (ALTERNATIVE "...", "...") is code and is rewritten; in
 *    quotes after a directive (.ascii) it is data.
 *  - .code16 and .code64 text is left unchanged; the guest kernel runs none of it.
 *  - A C comment counts as a blank everywhere; # starts a comment that ends with the line.
 *  - .byte lists are compared with the known encodings, in executable sections only: the kernel
 *    writes instructions that way for the sake of old assemblers, but compilers write tables that
 *    way.
 *  - Not recognised: mnemonics as unquoted arguments or default values of macros, in capitals, or
 *    in Intel's syntax.  The kernel has none; the verifier would find them.
 */
#include "asm-rewriter/rewrite.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/guest_abi.h"
#include "base/log.h"
#include "base/types.h"

#define STRINGIFY(x) #x
#define STRING(x) STRINGIFY(x)
static const char marker[] = "int $" STRING(VMP_INT_MARKER) "; ";

enum operands { ANY, FROM_CS, FAR, FAR_DIRECT, CONTROL };
enum { MAX_SECTION_DEPTH = 16, MAX_BYTES = 16, MAX_STATEMENT_PREFIXES = 8 };

struct instruction {
	const char *mnemonics;
	enum operands operands;
	enum rewrite_action action;
	const char *replacement;
};
struct encoding {
	const char *bytes;
	enum rewrite_action action;
};

static const struct instruction instructions[] = {
#define INSTRUCTION(class, gas, zydis, operands, action, replacement, why) \
	{ gas, operands, ACTION_##action, replacement },
#define BYTES(class, bytes, action)
#include "asm-rewriter/instructions.def"
#undef INSTRUCTION
#undef BYTES
};
static const struct encoding encodings[] = {
#define INSTRUCTION(class, gas, zydis, operands, action, replacement, why)
#define BYTES(class, bytes, action) {bytes, ACTION_##action},
#include "asm-rewriter/instructions.def"
#undef INSTRUCTION
#undef BYTES
};

/* A piece of the input. */
struct span {
	const char *at, *end;
};

struct section_stack {
	bool executable[MAX_SECTION_DEPTH], previous[MAX_SECTION_DEPTH];
	unsigned depth;
};

struct rewriter {
	struct text *out;
	struct section_stack sections;
	bool foreign;		/* .code16 or .code64 */
	bool prefixed;		/* statements before this one have only prefixes */
	bool rep;		/* one of these prefixes is rep */
	size_t prefix_at;	/* position of the first of them in *out */
};

void text_add(struct text *t, const char *from, size_t length)
{
	if (t->length + length > t->room) {
		t->room = (t->length + length) * 2 + 4096;
		t->data = realloc(t->data, t->room);
		if (!t->data)
			die("no memory for %zu bytes of assembly", t->room);
	}
	memcpy(t->data + t->length, from, length);
	t->length += length;
}

static void text_insert(struct text *t, size_t at, const char *what)
{
	size_t length = strlen(what);

	text_add(t, what, length);
	memmove(t->data + at + length, t->data + at, t->length - length - at);
	memcpy(t->data + at, what, length);
}

static size_t span_length(struct span s) { return s.end - s.at; }

static bool span_is(struct span s, const char *word)
{
	return strlen(word) == span_length(s) && !memcmp(s.at, word, span_length(s));
}

static bool span_starts(struct span s, const char *word)
{
	return strlen(word) <= span_length(s) && !memcmp(s.at, word, strlen(word));
}

static bool span_has(struct span s, const char *what)
{
	return memmem(s.at, span_length(s), what, strlen(what)) != NULL;
}

/* True if s is one of the space-separated words. */
static bool span_in(struct span s, const char *words)
{
	while (*words) {
		size_t length = strcspn(words, " ");

		if (length == span_length(s) && !memcmp(s.at, words, length))
			return true;
		words += length;
		words += strspn(words, " ");
	}
	return false;
}

/* Return the position behind the C comment that starts at `at`; `at`: there is none. */
static const char *skip_comment(const char *at, const char *end)
{
	const char *close;

	if (end - at < 2 || memcmp(at, "/*", 2))
		return at;
	close = memmem(at + 2, end - at - 2, "*/", 2);
	return close ? close + 2 : end;
}

static struct span skip_blanks(struct span s)
{
	while (s.at < s.end) {
		const char *next = skip_comment(s.at, s.end);

		if (next == s.at && (*s.at == ' ' || *s.at == '\t' || *s.at == '\r'))
			next++;
		if (next == s.at)
			break;
		s.at = next;
	}
	return s;
}

/* Return how many characters at `at` belong to a symbol: 0, 1, or the 3 of a macro's `\()`, which
 * ends a parameter's name. */
static unsigned symbol_chars(const char *at, const char *end)
{
	if (end - at >= 3 && !memcmp(at, "\\()", 3))
		return 3;
	return isalnum((unsigned char)*at) || (*at && strchr("_.$\\@", *at));
}

/* Remove and return the word at the start of *s: a symbol's characters, or a pseudo prefix in
 * braces. */
static struct span take_word(struct span *s)
{
	struct span word = {s->at, s->at};

	if (s->at < s->end && *s->at == '{') {
		while (word.end < s->end && *word.end++ != '}')
			;
	} else {
		unsigned chars;

		while (word.end < s->end && (chars = symbol_chars(word.end, s->end)))
			word.end += chars;
	}
	s->at = word.end;
	return word;
}

/* Return the position behind a character constant, whose second quote is optional. */
static const char *skip_character(const char *at, const char *end)
{
	at++;
	if (at < end && *at == '\\')
		at++;
	if (at < end && *at != '\n')
		at++;
	return at < end && *at == '\'' ? at + 1 : at;
}

/* Return the position behind the quoted string, character constant or C comment that starts at
 * `at`; `at` + 1 for other characters. */
static const char *skip_quoted(const char *at, const char *end)
{
	const char *behind_comment = skip_comment(at, end);

	if (behind_comment != at)
		return behind_comment;
	if (*at == '\'')
		return skip_character(at, end);
	if (*at++ != '"')
		return at;
	while (at < end && *at != '"')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	return at < end ? at + 1 : end;
}

static bool operands_match(enum operands kind, struct span operands)
{
	operands = skip_blanks(operands);
	switch (kind) {
	case ANY:
	case FAR:
		return true;
	case FROM_CS:
		/* `%cs:4(%ecx)` is a segment override */
		return span_starts(operands, "%cs") && !span_starts(operands, "%cs:");
	case FAR_DIRECT:
		return span_starts(operands, "$");
	case CONTROL:
		return span_has(operands, "%cr") || span_has(operands, "%db") ||
		       span_has(operands, "%dr");
	}
	return false;
}

static const struct instruction *instruction_find(struct span mnemonic, struct span operands)
{
	for (size_t i = 0; i < ARRAY_LEN(instructions); i++) {
		const struct instruction *insn = &instructions[i];

		if (span_in(mnemonic, insn->mnemonics) && operands_match(insn->operands, operands))
			return insn;
	}
	return NULL;
}

/* Write the values of a .byte list in the table's notation ("0f 01 ca").  False: not all of them
 * are constants. */
static bool bytes_format(struct span list, char text[MAX_BYTES * 3])
{
	static const char hex[] = "0123456789abcdef";
	unsigned count = 0;
	char *p = text;

	for (list = skip_blanks(list); list.at < list.end; list = skip_blanks(list)) {
		char *end;
		unsigned long value;

		if (!isdigit((unsigned char)*list.at) || count++ == MAX_BYTES)
			return false;
		value = strtoul(list.at, &end, 0);
		if (value > 255)
			return false;
		if (p != text)
			*p++ = ' ';
		*p++ = hex[value >> 4];
		*p++ = hex[value & 15];
		list.at = end;
		list = skip_blanks(list);
		if (list.at < list.end && *list.at++ != ',')
			return false;
	}
	*p = 0;
	return count > 0;
}

static enum rewrite_action bytes_action(struct span list)
{
	char text[MAX_BYTES * 3];

	if (!bytes_format(list, text))
		return ACTION_NONE;
	for (size_t i = 0; i < ARRAY_LEN(encodings); i++)
		if (!strcmp(text, encodings[i].bytes))
			return encodings[i].action;
	return ACTION_NONE;
}

/* True if `.section NAME, "flags"` is executable: by its flags, or, without flags, by the beginning
 * of its name, as for the assembler. */
static bool section_executable(struct span arguments)
{
	const char *quote = memchr(arguments.at, '"', span_length(arguments));
	struct span name = skip_blanks(arguments);

	if (quote && quote != name.at) {
		const char *close = memchr(quote + 1, '"', arguments.end - quote - 1);

		return close && memchr(quote, 'x', close - quote);
	}
	return span_starts(name, ".text") || span_starts(name, ".init.text") ||
	       span_starts(name, ".exit.text");
}

static void section_enter(struct section_stack *s, bool executable)
{
	s->previous[s->depth] = s->executable[s->depth];
	s->executable[s->depth] = executable;
}

static void on_directive(struct rewriter *r, struct span name, struct span arguments)
{
	struct section_stack *s = &r->sections;

	if (span_in(name, ".code16 .code16gcc .code64")) {
		r->foreign = true;
	} else if (span_is(name, ".code32")) {
		r->foreign = false;
	} else if (span_is(name, ".text")) {
		section_enter(s, true);
	} else if (span_in(name, ".data .bss")) {
		section_enter(s, false);
	} else if (span_is(name, ".section")) {
		section_enter(s, section_executable(arguments));
	} else if (span_is(name, ".pushsection")) {
		if (s->depth + 1 == MAX_SECTION_DEPTH)
			die(".pushsection nested deeper than %d", MAX_SECTION_DEPTH);
		s->depth++;
		s->executable[s->depth] = s->executable[s->depth - 1];
		section_enter(s, section_executable(arguments));
	} else if (span_is(name, ".popsection")) {
		s->depth -= s->depth > 0;
	} else if (span_is(name, ".previous")) {
		section_enter(s, s->previous[s->depth]);
	}
}

/* Rewrite a macro's call, whose quoted arguments are code. */
static void rewrite_quoted(struct rewriter *r, struct span arguments)
{
	while (arguments.at < arguments.end) {
		const char *end = skip_quoted(arguments.at, arguments.end);

		if (*arguments.at == '"' && end - arguments.at >= 2 && end[-1] == '"') {
			text_add(r->out, "\"", 1);
			rewrite(arguments.at + 1, end - arguments.at - 2, r->out);
			text_add(r->out, "\"", 1);
		} else {
			text_add(r->out, arguments.at, end - arguments.at);
		}
		arguments.at = end;
	}
}

/* Write the instruction with its operands, treated as its class says.  `start`: the position of its
 * first prefix in *out. */
static void emit_instruction(struct rewriter *r, size_t start, struct span mnemonic,
			     struct span operands)
{
	const struct instruction *insn = instruction_find(mnemonic, operands);
	enum rewrite_action action = insn ? insn->action : ACTION_NONE;

	if (r->rep && span_is(mnemonic, "nop"))
		action = ACTION_MARKER; /* rep; nop = pause */
	if (action == ACTION_REPLACE) {
		text_add(r->out, insn->replacement, strlen(insn->replacement));
		return;
	}
	if (action == ACTION_MARKER)
		text_insert(r->out, start, marker);
	text_add(r->out, mnemonic.at, span_length(mnemonic));
	rewrite_quoted(r, operands);
}

static bool is_prefix(struct span word)
{
	static const char prefixes[] =
		"lock rep repe repz repne repnz cs ds es fs gs ss data16 addr16 "
		"data32 addr32 notrack bnd xacquire xrelease";

	return word.at < word.end && (*word.at == '{' || span_in(word, prefixes));
}

/* Copy blanks and labels from the head of *s to the output. */
static void pass_labels(struct rewriter *r, struct span *s)
{
	for (;;) {
		struct span rest = skip_blanks(*s), colon;

		text_add(r->out, s->at, rest.at - s->at);
		*s = rest;
		take_word(&rest);
		colon = skip_blanks(rest);
		if (rest.at == s->at || colon.at == colon.end || *colon.at != ':')
			return;
		text_add(r->out, s->at, colon.at + 1 - s->at);
		s->at = colon.at + 1;
	}
}

/* Rewrite one statement, without its separator and comment. */
static void rewrite_statement(struct rewriter *r, struct span s)
{
	size_t start;
	struct span word;

	pass_labels(r, &s);
	if (s.at == s.end)
		return;
	start = r->prefixed ? r->prefix_at : r->out->length;
	for (;;) {
		struct span rest = s;

		word = take_word(&rest);
		if (!is_prefix(word))
			break;
		r->rep |= span_in(word, "rep repe repz");
		rest = skip_blanks(rest);
		text_add(r->out, s.at, rest.at - s.at);
		s = rest;
		if (s.at == s.end) { /* the instruction is the next statement */
			r->prefixed = true;
			r->prefix_at = start;
			return;
		}
	}
	s.at = word.end;
	if (span_starts(word, ".")) {
		on_directive(r, word, s);
		if (span_is(word, ".byte") && !r->foreign &&
		    r->sections.executable[r->sections.depth] && bytes_action(s) == ACTION_MARKER)
			text_insert(r->out, start, marker);
		text_add(r->out, word.at, s.end - word.at);
	} else if (r->foreign || word.at == word.end) {
		text_add(r->out, word.at, s.end - word.at);
	} else {
		emit_instruction(r, start, word, s);
	}
	r->prefixed = r->rep = false;
}

/* Return the end of the statement that starts at `at`: its separator, its comment, or the end of
 * the text. */
static const char *statement_end(const char *at, const char *end)
{
	while (at < end && *at != '\n' && *at != ';' && *at != '#')
		at = skip_quoted(at, end);
	return at;
}

void rewrite(const char *in, size_t length, struct text *out)
{
	const char *end = in + length;
	struct rewriter r = {.out = out, .sections.executable[0] = true};

	while (in < end) {
		const char *stop = statement_end(in, end), *next = stop;

		rewrite_statement(&r, (struct span){in, stop});
		if (stop < end && *stop == '#') {
			const char *newline = memchr(stop, '\n', end - stop);

			next = newline ? newline : end;
		}
		if (next < end)
			next++; /* the separator itself */
		text_add(out, stop, next - stop);
		in = next;
	}
}
