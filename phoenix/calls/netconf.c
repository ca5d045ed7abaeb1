/* netconf.c - reads a network configuration (thesis A.7, figure A.1).
 *
 * Words are separated by white space; the arguments of a declaration end with its line.  A word is
 * a sequence of pieces: a character, a range `[00-64]` (half-open, with at least as many digits as
 * its lower end), or a variable `%x` that the pattern of a match arm has bound (`n[00-16/x]`).
 * parse_pieces() turns a word into pieces, expand() expands them to all texts, match_pieces() tells
 * whether a text is one of these.  Arms that do not match are checked too.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "phoenix/calls/netconf.h"

enum { MAX_PIECES = 256, MAX_DIGITS = 9 };

struct piece {
	enum { CHAR, RANGE, VARIABLE } kind;
	char c;	/* CHAR: itself; VARIABLE: its name; RANGE: the variable that it binds, or 0 */
	long lo, hi;
	int width;		/* digits of lo */
	int column;
};
struct word {
	const char *text;
	size_t len;
	int line, column;
};
struct parser {
	const char *at, *end, *line_start;
	int line;
	const char *tag;
	char bound['z' + 1][MAX_DIGITS + 1];	/* values of variables; "": not bound */
	bool checking;	/* in an arm that does not match: check, but declare nothing */
	size_t checked;	/* contact points of that arm: it may have as many as one that matches */
	struct netconf *out;
};

static int __attribute__((format(printf, 4, 5)))
wrong(struct parser *p, int line, int column, const char *format, ...)
{
	va_list args;

	if (p->out->error[0])
		return -1;
	int n = snprintf(p->out->error, sizeof p->out->error, "%d:%d: ", line, column);
	va_start(args, format);
	vsnprintf(p->out->error + n, sizeof p->out->error - (size_t)n, format, args);
	va_end(args);
	return -1;
}

/* ---- words ---- */

static void skip_comment(struct parser *p)
{
	while (p->at < p->end && *p->at != '\n')
		p->at++;
}

/* Reads the next word, or with same_line only one on the current line.  Consumes nothing if
 * there is none. */
static bool next_word(struct parser *p, bool same_line, struct word *w)
{
	for (; p->at < p->end; p->at++) {
		if (*p->at == '\n') {
			if (same_line)
				return false;
			p->line++;
			p->line_start = p->at + 1;
		} else if (*p->at == '#') {
			skip_comment(p);
			p->at--;
		} else if (!isspace((unsigned char)*p->at)) {
			break;
		}
	}
	if (p->at == p->end)
		return false;
	*w = (struct word){ .text = p->at,
			    .line = p->line,
			    .column = (int)(p->at - p->line_start) + 1 };
	while (p->at < p->end && !isspace((unsigned char)*p->at))
		p->at++;
	w->len = (size_t)(p->at - w->text);
	return true;
}

static bool word_is(const struct word *w, const char *keyword)
{
	return w->len == strlen(keyword) && strncasecmp(w->text, keyword, w->len) == 0;
}

/* ---- pieces ---- */

static int parse_number(struct parser *p, const struct word *w, size_t *i, long *value)
{
	size_t start = *i;

	for (*value = 0; *i < w->len && isdigit((unsigned char)w->text[*i]); ++*i)
		if (*i - start < MAX_DIGITS)
			*value = *value * 10 + (w->text[*i] - '0');
	if (*i == start)
		return wrong(p, w->line, w->column + (int)*i, "a number must stand here");
	if (*i - start > MAX_DIGITS)
		return wrong(p, w->line, w->column + (int)start, "a number of more than %d digits",
			     MAX_DIGITS);
	return (int)(*i - start);
}

/* Parses [lower-upper] or, in a pattern, [lower-upper/x]; *i is after the bracket. */
static int parse_range(struct parser *p, const struct word *w, size_t *i, bool pattern,
		       struct piece *out)
{
	int column = w->column + (int)*i - 1;
	long hi;

	out->kind = RANGE;
	out->c = 0;
	if ((out->width = parse_number(p, w, i, &out->lo)) < 0)
		return -1;
	if (*i == w->len || w->text[(*i)++] != '-')
		return wrong(p, w->line, w->column + (int)*i,
			     "'-' must separate the ends of a range");
	if (parse_number(p, w, i, &hi) < 0)
		return -1;
	out->hi = hi;
	if (!pattern && *i < w->len && w->text[*i] == '/')
		return wrong(p, w->line, w->column + (int)*i,
			     "a range names a variable in the pattern of a 'match' alone");
	if (pattern && *i + 1 < w->len && w->text[*i] == '/') {
		out->c = w->text[*i + 1];
		if (!isalpha((unsigned char)out->c))
			return wrong(p, w->line, w->column + (int)*i + 1,
				     "a variable is one letter");
		*i += 2;
	}
	if (*i == w->len || w->text[(*i)++] != ']')
		return wrong(p, w->line, column, "this '[' is not closed by ']'");
	if (out->hi <= out->lo)
		return wrong(p, w->line, column,
			     "the range [%ld-%ld] is empty: its upper end does not belong to it",
			     out->lo, out->hi);
	return 0;
}

/* Parses w.  Returns the number of pieces, or -1. */
static int parse_pieces(struct parser *p, const struct word *w, bool pattern, struct piece *pieces)
{
	int n = 0;

	for (size_t i = 0; i < w->len; n++) {
		unsigned char c = (unsigned char)w->text[i++];
		struct piece *piece = pieces + n;

		if (n == MAX_PIECES)
			return wrong(p, w->line, w->column, "this word is too long");
		*piece = (struct piece){ .kind = CHAR,
					 .c = (char)c,
					 .column = w->column + (int)i - 1 };
		if (c == '[') {
			if (parse_range(p, w, &i, pattern, piece))
				return -1;
		} else if (c == '%' && !pattern) {
			if (i == w->len || !isalpha((unsigned char)w->text[i]))
				return wrong(p, w->line, w->column + (int)i - 1,
					     "'%%' must be followed by a letter");
			piece->kind = VARIABLE;
			piece->c = w->text[i++];
		} else if (!isalnum(c) && (!c || !strchr(".-_", c))) {
			return wrong(p, w->line, w->column + (int)i - 1, "'%c' cannot stand here",
				     isprint(c) ? c : '?');
		}
	}
	return n;
}

/* Calls each() with every text of the pieces from `piece` on, appended to buf. */
static int expand(struct parser *p, int line, const struct piece *piece, const struct piece *end,
		  char *buf, size_t len, size_t room, int (*each)(struct parser *, int, void *),
		  void *arg)
{
	if (piece == end)
		return each(p, line, arg);
	if (len + MAX_DIGITS + 2 > room)
		return wrong(p, line, piece->column, "this name is too long");
	switch (piece->kind) {
	case CHAR:
		buf[len] = piece->c;
		buf[len + 1] = 0;
		return expand(p, line, piece + 1, end, buf, len + 1, room, each, arg);
	case VARIABLE: {
		const char *value = p->bound[(unsigned char)piece->c];
		if (!*value)
			return wrong(p, line, piece->column, "no pattern binds the variable %%%c",
				     piece->c);
		int n = snprintf(buf + len, room - len, "%s", value);
		return expand(p, line, piece + 1, end, buf, len + (size_t)n, room, each, arg);
	}
	case RANGE:
		for (long v = piece->lo; v < piece->hi; v++) {
			int n = snprintf(buf + len, room - len, "%0*ld", piece->width, v);
			if (expand(p, line, piece + 1, end, buf, len + (size_t)n, room, each, arg))
				return -1;
		}
	}
	return 0;
}

/* Returns whether text is one of the texts of the pieces, and binds variables. */
static bool match_pieces(struct parser *p, const struct piece *piece, const struct piece *end,
			 const char *text)
{
	if (piece == end)
		return *text == 0;
	if (piece->kind == CHAR)
		return *text == piece->c && match_pieces(p, piece + 1, end, text + 1);
	long value = 0;
	for (int digits = 1; digits <= MAX_DIGITS && isdigit((unsigned char)text[digits - 1]);
	     digits++) {
		value = value * 10 + (text[digits - 1] - '0');
		bool fits = digits == piece->width || (digits > piece->width && text[0] != '0');
		if (!fits || value < piece->lo || value >= piece->hi)
			continue;
		if (piece->c)
			snprintf(p->bound[(unsigned char)piece->c], MAX_DIGITS + 1, "%.*s", digits,
				 text);
		if (match_pieces(p, piece + 1, end, text + digits))
			return true;
	}
	return false;
}

/* ---- declarations ---- */

static bool grow(void *array, size_t *room, size_t n, size_t size)
{
	if (n < *room)
		return true;
	size_t more = *room ? 2 * *room : 8;
	void *bigger = realloc(*(void **)array, more * size);
	if (!bigger)
		return false;
	*(void **)array = bigger;
	*room = more;
	return true;
}

struct dest {
	struct phnx_contact contact;	/* host and port are filled in while pieces are expanded */
	char host[MAX_HOST], port[MAX_HOST];
	const struct piece *ports, *ports_end;
	int column;
};

static int port_number(struct parser *p, int line, int column, const char *text)
{
	long port = strlen(text) <= 6 ? strtol(text, NULL, 10) : 65536;

	if (port < 1 || port > 65535)
		return wrong(p, line, column, "%.20s is not a port number", text);
	return (int)port;
}

static int add_port(struct parser *p, int line, void *arg)
{
	struct dest *d = arg;
	int port = port_number(p, line, d->column, d->port);

	if (port < 0)
		return -1;
	if (p->checking)
		return 0;
	if (p->out->n_ports == 65536 ||
	    !grow(&p->out->ports, &p->out->room_ports, p->out->n_ports, sizeof *p->out->ports))
		return wrong(p, line, d->column, "too many ports");
	p->out->ports[p->out->n_ports++] = port;
	return 0;
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static int add_contact(struct parser *p, int line, void *arg)
{
	struct dest *d = arg;
	int port = port_number(p, line, d->column, d->port);

	if (port < 0)
		return -1;
	if ((p->checking ? p->checked++ : p->out->n_contacts) == MAX_CONTACTS)
		return wrong(p, line, d->column, "more than %d contact points", MAX_CONTACTS);
	if (p->checking)
		return 0;
	if (!grow(&p->out->contacts, &p->out->room_contacts, p->out->n_contacts,
		  sizeof *p->out->contacts))
		return wrong(p, line, d->column, "no memory for so many contact points");
	p->out->contacts[p->out->n_contacts++] = (struct phnx_contact){
		.host = copy(d->host),
		.port = port,
		.protocol = d->contact.protocol,
		.user = copy(d->contact.user),
		.cert = copy(d->contact.cert),
		.key = copy(d->contact.key),
	};
	return 0;
}

static int expand_ports(struct parser *p, int line, void *arg)
{
	struct dest *d = arg;

	return expand(p, line, d->ports, d->ports_end, d->port, 0, sizeof d->port, add_contact, d);
}

/* Checks that a number consists of digits, ranges and variables. */
static int check_number(struct parser *p, int line, const struct piece *piece,
			const struct piece *end)
{
	for (; piece < end; piece++)
		if (piece->kind == CHAR && !isdigit((unsigned char)piece->c))
			return wrong(p, line, piece->column, "'%c' in a port number", piece->c);
	return 0;
}

/* Checks that the line ends, or goes on with the '|' or 'end' of an arm, which is not consumed. */
static int end_of_line(struct parser *p)
{
	const char *before = p->at;
	struct word w;

	if (!next_word(p, true, &w))
		return 0;
	if (!word_is(&w, "|") && !word_is(&w, "end"))
		return wrong(p, w.line, w.column, "'%.*s' is one word too many on this line",
			     (int)w.len, w.text);
	p->at = before;
	return 0;
}

static int parse_listen(struct parser *p, const struct word *keyword)
{
	struct piece pieces[MAX_PIECES];
	struct dest d = { .ports = pieces };
	struct word w = { 0 };

	if (!next_word(p, true, &w))
		return wrong(p, keyword->line, keyword->column, "listen_port needs a port");
	int n = parse_pieces(p, &w, false, pieces);
	d.column = w.column;
	if (n < 0 || check_number(p, w.line, pieces, pieces + n) ||
	    expand(p, w.line, pieces, pieces + n, d.port, 0, sizeof d.port, add_port, &d))
		return -1;
	return end_of_line(p);
}

static int take_text(struct parser *p, char *buf, size_t room, bool *got)
{
	struct word w;
	const char *before = p->at;

	*got = next_word(p, true, &w);
	if (*got && (word_is(&w, "|") || word_is(&w, "end"))) {
		*got = false;
		p->at = before;
	}
	if (!*got)
		return 0;
	if (w.len >= room)
		return wrong(p, w.line, w.column, "this word is too long");
	memcpy(buf, w.text, w.len);
	buf[w.len] = 0;
	return 0;
}

/* Parses { ssh [USER] | ssl [CERT KEY] }. */
static int parse_protocol(struct parser *p, struct phnx_contact *c, char buf[2][MAX_PATH_TEXT])
{
	struct word w;
	const char *before = p->at;
	bool first, second;

	if (!next_word(p, true, &w))
		return 0;
	if (word_is(&w, "ssh")) {
		c->protocol = PHNX_SSH;
		if (take_text(p, buf[0], MAX_PATH_TEXT, &first))
			return -1;
		c->user = first ? buf[0] : NULL;
	} else if (word_is(&w, "ssl")) {
		c->protocol = PHNX_TLS;
		if (take_text(p, buf[0], MAX_PATH_TEXT, &first) ||
		    take_text(p, buf[1], MAX_PATH_TEXT, &second))
			return -1;
		if (first && !second)
			return wrong(p, w.line, w.column,
				     "ssl takes a certificate and a key, or neither");
		c->cert = first ? buf[0] : NULL;
		c->key = first ? buf[1] : NULL;
	} else {
		p->at = before;
	}
	return 0;
}

static int parse_dest(struct parser *p, const struct word *keyword)
{
	struct piece host[MAX_PIECES], port[MAX_PIECES];
	char buf[2][MAX_PATH_TEXT];
	struct dest d = { .ports = port };
	struct word w = { 0 };

	if (!next_word(p, true, &w))
		return wrong(p, keyword->line, keyword->column, "dest needs HOST:PORT");
	const char *colon = memchr(w.text, ':', w.len);
	if (!colon || colon == w.text || colon + 1 == w.text + w.len)
		return wrong(p, w.line, w.column, "dest needs HOST:PORT");
	struct word h = w, q = w;
	h.len = (size_t)(colon - w.text);
	q.text = colon + 1;
	q.len = w.len - h.len - 1;
	q.column += (int)h.len + 1;
	d.column = q.column;
	int nh = parse_pieces(p, &h, false, host),
	    nq = nh < 0 ? -1 : parse_pieces(p, &q, false, port);
	if (nq < 0 || check_number(p, w.line, port, port + nq) ||
	    parse_protocol(p, &d.contact, buf))
		return -1;
	d.ports_end = port + nq;
	if (expand(p, w.line, host, host + nh, d.host, 0, sizeof d.host, expand_ports, &d))
		return -1;
	return end_of_line(p);
}

/* Parses a declaration; `w` is its first word. */
static int parse_decl(struct parser *p, const struct word *w)
{
	if (word_is(w, "listen_port"))
		return parse_listen(p, w);
	if (word_is(w, "dest"))
		return parse_dest(p, w);
	return wrong(p, w->line, w->column,
		     "'%.*s' is not a declaration (listen_port, dest or match)", (int)w->len,
		     w->text);
}

/* ---- match begin PATTERN -> DECL... | PATTERN -> ... end ---- */

/* Reads a pattern and its arrow.  *hit: whether it matches the tag.  If not, its variables are
 * bound to their least values, so that the declarations after it can be checked. */
static int parse_pattern(struct parser *p, bool *hit)
{
	struct piece pieces[MAX_PIECES];
	struct word w = { 0 }, arrow;

	if (!next_word(p, false, &w))
		return wrong(p, p->line, 1, "a pattern must follow");
	memset(p->bound, 0, sizeof p->bound);
	if (w.len == 1 && *w.text == '_') {
		*hit = true;
	} else {
		int n = parse_pieces(p, &w, true, pieces);
		if (n < 0)
			return -1;
		*hit = p->tag && match_pieces(p, pieces, pieces + n, p->tag);
		for (int i = 0; !*hit && i < n; i++)
			if (pieces[i].kind == RANGE && pieces[i].c)
				snprintf(p->bound[(unsigned char)pieces[i].c], MAX_DIGITS + 1,
					 "%0*ld", pieces[i].width, pieces[i].lo);
	}
	if (!next_word(p, false, &arrow) || !word_is(&arrow, "->"))
		return wrong(p, w.line, w.column + (int)w.len, "'->' must follow the pattern");
	return 0;
}

static int parse_match(struct parser *p, const struct word *keyword)
{
	bool matched = false, hit = false;
	struct word w;

	if (!next_word(p, false, &w) || !word_is(&w, "begin"))
		return wrong(p, keyword->line, keyword->column, "'begin' must follow 'match'");
	do {
		if (parse_pattern(p, &hit))
			return -1;
		p->checking = matched || !hit;
		p->checked = 0;
		matched |= hit;
		for (;;) {
			if (!next_word(p, false, &w))
				return wrong(p, keyword->line, keyword->column,
					     "this match has no end");
			if (word_is(&w, "end") || word_is(&w, "|"))
				break;
			if (parse_decl(p, &w))
				return -1;
		}
	} while (word_is(&w, "|"));
	p->checking = false;
	memset(p->bound, 0, sizeof p->bound);
	return 0;
}

int netconf_parse(struct netconf *c, const char *text, size_t len, const char *tag)
{
	struct parser p = { .at = text,
			    .end = text + len,
			    .line_start = text,
			    .line = 1,
			    .tag = tag,
			    .out = c };
	struct word w;

	memset(c, 0, sizeof *c);
	if (len > MAX_CONFIG_BYTES)
		return wrong(&p, 1, 1, "more than %d bytes", MAX_CONFIG_BYTES);
	while (next_word(&p, false, &w))
		if (word_is(&w, "match") ? parse_match(&p, &w) : parse_decl(&p, &w))
			return -1;
	return 0;
}

void netconf_free(struct netconf *c)
{
	for (size_t i = 0; i < c->n_contacts; i++) {
		free(c->contacts[i].host);
		free(c->contacts[i].user);
		free(c->contacts[i].cert);
		free(c->contacts[i].key);
	}
	free(c->contacts);
	free(c->ports);
	c->contacts = NULL;
	c->ports = NULL;
	c->n_contacts = c->n_ports = 0;
}
