/* message.c - see message.h.
 *
 * The members of every struct are 8 bytes, or a multiple of that.  So reading and writing need only
 * a string with one letter for each field.
 */
#include "vpg/wire/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NUMBER(f) "n"
#define TEXT(f) "t"
#define BYTES(f) "b"
#define LIST(f) "l"
static const struct { const char *name, *fields; size_t bytes; } types[VPG_TYPES] = {
#define MESSAGE(name, number, fields) [number] = { #name, fields, sizeof(struct vpg_##name) },
#include "vpg/wire/message.def"
#undef MESSAGE
};
#undef NUMBER
#undef TEXT
#undef BYTES
#undef LIST

_Static_assert(sizeof(char *) == 8 && sizeof(size_t) == 8, "fields are multiples of 8 bytes");

static const char *fields_of(int type)
{
	return type > 0 && type < VPG_TYPES ? types[type].fields : NULL;
}

const char *message_name(int type)
{
	return fields_of(type) ? types[type].name : "?";
}

/* ---- writing ---- */

struct out { unsigned char *at, *end; bool full; };

static void put_bytes(struct out *o, const void *bytes, size_t n)
{
	if (o->full || (size_t)(o->end - o->at) < n) {
		o->full = true;
		return;
	}
	if (n)
		memcpy(o->at, bytes, n);
	o->at += n;
}

static void put_number(struct out *o, uint64_t x, size_t bytes)
{
	unsigned char le[8];

	for (size_t i = 0; i < bytes; i++)
		le[i] = (unsigned char)(x >> 8 * i);
	put_bytes(o, le, bytes);
}

static void put_sized(struct out *o, const void *bytes, size_t n)
{
	o->full |= n > UINT32_MAX;
	put_number(o, n, 4);
	put_bytes(o, bytes, n);
}

/* Writes the field at `f`; returns its size in the struct. */
static size_t put_field(struct out *o, char kind, const unsigned char *f)
{
	const struct vpg_bytes *b = (const void *)f;
	const struct vpg_list *l = (const void *)f;
	const char *text;

	switch (kind) {
	case 'n':
		put_number(o, *(const uint64_t *)(const void *)f, 8);
		return sizeof(uint64_t);
	case 't':
		memcpy(&text, f, sizeof text);
		text = text ? text : "";
		put_sized(o, text, strlen(text) + 1);
		return sizeof text;
	case 'b':
		put_sized(o, b->at, b->n);
		return sizeof *b;
	default:
		put_number(o, l->n, 4);
		put_sized(o, l->at, l->bytes);
		return sizeof *l;
	}
}

size_t message_put(enum vpg_type type, const void *fields, unsigned char *to, size_t room)
{
	struct out o = { to, to + (room < VPG_FRAME_MAX ? room : VPG_FRAME_MAX), false };
	const char *kinds = fields_of((int)type);
	const unsigned char *f = fields;

	if (!kinds)
		return 0;
	put_number(&o, 0, VPG_LENGTH_BYTES);
	put_number(&o, type, 1);
	for (; *kinds; kinds++)
		f += put_field(&o, *kinds, f);
	size_t n = (size_t)(o.at - to);
	struct out length = { to, to + VPG_LENGTH_BYTES, o.full };
	put_number(&length, n - VPG_LENGTH_BYTES, VPG_LENGTH_BYTES);
	return o.full ? 0 : n;
}

void message_data_head(unsigned char head[VPG_DATA_HEAD], uint64_t stream, size_t n)
{
	struct out o = { head, head + VPG_DATA_HEAD, false };

	put_number(&o, VPG_DATA_HEAD - VPG_LENGTH_BYTES + n, VPG_LENGTH_BYTES);
	put_number(&o, VPG_DATA, 1);
	put_number(&o, stream, 8);
	put_number(&o, n, 4);
}

struct vpg_bytes message_data_frame(const struct vpg_DATA *m)
{
	return (struct vpg_bytes){ m->bytes.at - VPG_DATA_HEAD, m->bytes.n + VPG_DATA_HEAD };
}

/* ---- reading ---- */

struct in { const unsigned char *at, *end; bool bad; };

static uint64_t get_number(struct in *i, size_t bytes)
{
	uint64_t x = 0;

	if (i->bad || (size_t)(i->end - i->at) < bytes) {
		i->bad = true;
		return 0;
	}
	for (size_t n = 0; n < bytes; n++)
		x |= (uint64_t)i->at[n] << 8 * n;
	i->at += bytes;
	return x;
}

static struct vpg_bytes get_sized(struct in *i)
{
	size_t n = get_number(i, 4);
	struct vpg_bytes b = { i->at, n };

	if (i->bad || (size_t)(i->end - i->at) < n) {
		i->bad = true;
		return (struct vpg_bytes){ i->end, 0 };
	}
	i->at += n;
	return b;
}

/* Reads a text, which ends with its only 0. */
static const char *get_text(struct in *i)
{
	struct vpg_bytes b = get_sized(i);

	if (i->bad || !b.n || memchr(b.at, 0, b.n) != b.at + b.n - 1) {
		i->bad = true;
		return "";
	}
	return (const char *)b.at;
}

/* Reads a list: a number, and as many texts, each with its 0. */
static struct vpg_list get_list(struct in *i)
{
	size_t n = get_number(i, 4), ends = 0;
	struct vpg_bytes b = get_sized(i);

	for (size_t k = 0; k < b.n; k++)
		ends += !b.at[k];
	i->bad |= ends != n || (b.n && b.at[b.n - 1]);
	return i->bad ? (struct vpg_list){ "", 0, 0 }
		      : (struct vpg_list){ (const char *)b.at, n, b.n };
}

static size_t get_field(struct in *i, char kind, unsigned char *f)
{
	uint64_t number;
	const char *text;
	struct vpg_bytes bytes;
	struct vpg_list list;

	switch (kind) {
	case 'n':
		number = get_number(i, 8);
		memcpy(f, &number, sizeof number);
		return sizeof number;
	case 't':
		text = get_text(i);
		memcpy(f, &text, sizeof text);
		return sizeof text;
	case 'b':
		bytes = get_sized(i);
		memcpy(f, &bytes, sizeof bytes);
		return sizeof bytes;
	default:
		list = get_list(i);
		memcpy(f, &list, sizeof list);
		return sizeof list;
	}
}

long message_size(const unsigned char *at, size_t n)
{
	struct in i = { at, at + n, false };
	uint64_t length = get_number(&i, VPG_LENGTH_BYTES);

	if (i.bad)
		return 0;
	if (!length || length > VPG_FRAME_MAX - VPG_LENGTH_BYTES)
		return -EPROTO;
	return (long)length + VPG_LENGTH_BYTES;
}

int message_get(const unsigned char *frame, size_t n, union vpg_any *m)
{
	struct in i = { frame, frame + n, false };
	long size = message_size(frame, n);
	unsigned char *f = (unsigned char *)m;
	const char *kinds;
	int type;

	if (size <= 0 || (size_t)size != n)
		return -EPROTO;
	get_number(&i, VPG_LENGTH_BYTES);
	type = (int)get_number(&i, 1);
	kinds = fields_of(type);
	if (!kinds)
		return -EPROTO;
	for (; *kinds; kinds++)
		f += get_field(&i, *kinds, f);
	return i.bad || i.at != i.end ? -EPROTO : type;
}

/* ---- lists ---- */

struct vpg_list message_list(char *const *words, size_t n, char *to, size_t room)
{
	struct vpg_list list = { to, n, 0 };

	for (size_t i = 0; i < n; i++) {
		size_t bytes = strlen(words[i]) + 1;

		if (room - list.bytes < bytes)
			return (struct vpg_list){ to, 0, 0 };
		memcpy(to + list.bytes, words[i], bytes);
		list.bytes += bytes;
	}
	return list;
}

void message_words(const struct vpg_list *list, char **words)
{
	const char *at = list->at;

	for (size_t i = 0; i < list->n; i++, at += strlen(at) + 1)
		words[i] = (char *)at;
	words[list->n] = NULL;
}
