/* bytes.h - how numbers are written in frames and files, little-endian.
 *
 * A reader never runs over its end.  It becomes `bad` instead and returns zeros; the caller checks
 * that once, at the end.  Nobody casts a pointer into a buffer.
 */
#ifndef PHOENIX_BYTES_H
#define PHOENIX_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	const unsigned char *p, *end;
	bool bad;
};

/* Always inlined: for a number of bytes that the compiler knows this is one load or store, and
 * no call of memcpy(). */
#define ONE_LOAD static inline __attribute__((always_inline))

ONE_LOAD uint64_t get_le(struct reader *r, int bytes)
{
	uint64_t v = 0;

	if (r->end - r->p < bytes) {
		r->bad = true;
		r->p = r->end;
		return 0;
	}
	memcpy(&v, r->p, (size_t)bytes);
	r->p += bytes;
	return le64toh(v);
}
ONE_LOAD uint8_t get8(struct reader *r) { return (uint8_t)get_le(r, 1); }
ONE_LOAD uint32_t get32(struct reader *r) { return (uint32_t)get_le(r, 4); }
ONE_LOAD uint64_t get64(struct reader *r) { return get_le(r, 8); }

static inline uint64_t get_var(struct reader *r)
{
	uint64_t v = 0;

	if (r->p < r->end && *r->p < 128)	/* nearly all numbers are small */
		return *r->p++;
	for (int shift = 0; shift < 64; shift += 7) {
		uint8_t b = get8(r);
		v |= (uint64_t)(b & 127) << shift;
		if (!(b & 128))
			return v;
	}
	r->bad = true;
	return 0;
}
static inline void get_past(struct reader *r, size_t n)
{
	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		n = (size_t)(r->end - r->p);
	}
	r->p += n;
}
static inline void get_bytes(struct reader *r, void *to, size_t n)
{
	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		r->p = r->end;
		memset(to, 0, n);
		return;
	}
	memcpy(to, r->p, n);
	r->p += n;
}

/* Grows as needed; becomes `bad` when memory is short. */
struct writer {
	unsigned char *data;
	size_t len, room;
	bool bad;
};

static inline __attribute__((cold)) void writer_grow(struct writer *w, size_t n)
{
	size_t room = 2 * w->room + n + 64;
	unsigned char *data = w->bad || n > UINT32_MAX ? NULL : realloc(w->data, room);

	if (!data) {
		w->bad = true;
		return;
	}
	w->data = data;
	w->room = room;
}
ONE_LOAD void put_bytes(struct writer *w, const void *from, size_t n)
{
	if (n > w->room - w->len)
		writer_grow(w, n);
	if (w->bad)
		return;
	if (n)
		memcpy(w->data + w->len, from, n);
	w->len += n;
}
ONE_LOAD void put_le(struct writer *w, uint64_t v, int bytes)
{
	v = htole64(v);
	put_bytes(w, &v, (size_t)bytes);
}
ONE_LOAD void put8(struct writer *w, uint8_t v) { put_le(w, v, 1); }
ONE_LOAD void put32(struct writer *w, uint32_t v) { put_le(w, v, 4); }
ONE_LOAD void put64(struct writer *w, uint64_t v) { put_le(w, v, 8); }

/* Returns room for n bytes more, which the caller writes and adds to len; NULL: out of memory. */
static inline unsigned char *writer_room(struct writer *w, size_t n)
{
	if (n > w->room - w->len)
		writer_grow(w, n);
	return w->bad ? NULL : w->data + w->len;
}

/* The same numbers where there is room for certain.  Each function returns where the next number
 * goes. */
ONE_LOAD unsigned char *lay_le(unsigned char *p, uint64_t v, int bytes)
{
	v = htole64(v);
	memcpy(p, &v, (size_t)bytes);
	return p + bytes;
}
ONE_LOAD unsigned char *lay8(unsigned char *p, uint8_t v) { return lay_le(p, v, 1); }
ONE_LOAD unsigned char *lay32(unsigned char *p, uint32_t v) { return lay_le(p, v, 4); }
ONE_LOAD unsigned char *lay64(unsigned char *p, uint64_t v) { return lay_le(p, v, 8); }

static inline unsigned char *lay_var(unsigned char *p, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		*p++ = (unsigned char)(v | 128);
	*p++ = (unsigned char)v;
	return p;
}

static inline void put_var(struct writer *w, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		put8(w, (uint8_t)(v | 128));
	put8(w, (uint8_t)v);
}

#endif
