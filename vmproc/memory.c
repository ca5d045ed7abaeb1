/* memory.c - the four functions that a compiler calls by itself. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return start;
}

void *memset(void *to, int value, size_t bytes)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
	return start;
}

void *memmove(void *to, const void *from, size_t bytes)
{
	char *t = to;
	const char *f = from;

	if (t <= f || t >= f + bytes)
		return memcpy(to, from, bytes);
	while (bytes--)
		t[bytes] = f[bytes];
	return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *x = a, *y = b;

	for (; bytes; bytes--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}
