/* ninep_client.h - asks a server of a shared folder (iosrv/ninep.h) as the guest's driver does, for
 * the unit tests that include it. */
#ifndef TESTS_UNIT_NINEP_CLIENT_H
#define TESTS_UNIT_NINEP_CLIENT_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "iosrv/ninep.h"
#include "tests/unit/unit.h"

enum { ERROR = 7, TAG = 77 };
static char folder[] = "/tmp/vmp-ninep-XXXXXX";
static struct ninep *server;
static uint8_t request[NINEP_MESSAGE_BYTES], reply[NINEP_MESSAGE_BYTES];
static size_t length, answered;

static inline void number(uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		request[length++] = (uint8_t)(value >> 8 * i);
}

static inline void string(const char *text)
{
	number(strlen(text), 2);
	memcpy(request + length, text, strlen(text));
	length += strlen(text);
}

static inline uint64_t answer(size_t at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)reply[7 + at + i] << 8 * i;
	return value;
}

static inline void begin(unsigned type)
{
	length = 0;
	number(0, 4);
	number(type, 1);
	number(TAG, 2);
}

/* 0, or the errno of the reply. */
static inline int ask(void)
{
	uint32_t n = (uint32_t)length;

	memcpy(request, &n, 4);
	answered = ninep_serve(server, request, length, reply);
	CU_ASSERT(answered >= 7 && answered <= sizeof reply);
	CU_ASSERT(!memcmp(reply, &(uint32_t){ (uint32_t)answered }, 4));
	CU_ASSERT(reply[5] == TAG && reply[6] == 0);
	if (reply[4] == ERROR)
		return (int)answer(0, 4);
	CU_ASSERT_EQUAL(reply[4], request[4] + 1);
	return 0;
}

static inline int walk(uint32_t from, uint32_t to, const char *name)
{
	begin(110);
	number(from, 4);
	number(to, 4);
	number(name ? 1 : 0, 2);
	if (name)
		string(name);
	return ask();
}

static inline int with_fid(unsigned type, uint32_t fid)
{
	begin(type);
	number(fid, 4);
	return ask();
}

static inline int lopen(uint32_t fid, unsigned flags)
{
	begin(12);
	number(fid, 4);
	number(flags, 4);
	return ask();
}

static inline int lcreate(uint32_t fid, const char *name, unsigned flags, unsigned mode)
{
	begin(14);
	number(fid, 4);
	string(name);
	number(flags, 4);
	number(mode, 4);
	number(0, 4);
	return ask();
}

static inline int put_bytes(uint32_t fid, uint64_t offset, const char *text)
{
	begin(118);
	number(fid, 4);
	number(offset, 8);
	number(strlen(text), 4);
	memcpy(request + length, text, strlen(text));
	length += strlen(text);
	return ask();
}

static inline int get_bytes(uint32_t fid, uint64_t offset, uint32_t count)
{
	begin(116);
	number(fid, 4);
	number(offset, 8);
	number(count, 4);
	return ask();
}

static inline int make(unsigned type, uint32_t fid, const char *name, uint64_t last)
{
	begin(type);
	number(fid, 4);
	string(name);
	number(last, 4);
	number(0, 4);
	if (type == 18) {
		number(0, 4);
		number(0, 4);
	}
	return ask();
}

static inline int unlink_at(uint32_t fid, const char *name, unsigned flags)
{
	begin(76);
	number(fid, 4);
	string(name);
	number(flags, 4);
	return ask();
}

static inline int rename_at(uint32_t from, const char *old, uint32_t to, const char *new)
{
	begin(74);
	number(from, 4);
	string(old);
	number(to, 4);
	string(new);
	return ask();
}

static inline int setattr(uint32_t fid, unsigned set, unsigned mode, uint32_t uid, uint64_t bytes,
		   uint64_t seconds)
{
	begin(26);
	number(fid, 4);
	number(set, 4);
	number(mode, 4);
	number(uid, 4);
	number(0, 4);
	number(bytes, 8);
	for (unsigned i = 0; i < 2; i++) {
		number(seconds, 8);
		number(0, 8);
	}
	return ask();
}

static inline int lock_range(uint32_t fid, unsigned type, uint64_t start, uint64_t bytes)
{
	begin(52);
	number(fid, 4);
	number(type, 1);
	number(0, 4);
	number(start, 8);
	number(bytes, 8);
	number(1, 4);
	string("guest");
	return ask();
}

static inline int lock(uint32_t fid, unsigned type)
{
	return lock_range(fid, type, 0, 0);
}

/* A server that the guest has not spoken to. */
static inline void start_new(const char *path, bool read_only)
{
	int place = open(path, O_PATH), own = open("/proc/self/fd", O_PATH);

	server = ninep_new(place, own, read_only);
	CU_ASSERT_FATAL(server != NULL);
}

static inline void start(bool read_only)
{
	start_new(folder, read_only);
	begin(100);
	number(NINEP_MESSAGE_BYTES, 4);
	string("9P2000.L");
	CU_ASSERT_FATAL(!ask() && answer(0, 4) == NINEP_MESSAGE_BYTES);
	begin(104);
	number(1, 4);
	number(~0u, 4);
	string("root");
	string("");
	number(0, 4);
	CU_ASSERT_FATAL(!ask() && answer(0, 1) == 0x80);
}

static inline void end(void)
{
	ninep_free(server);
	server = NULL;
}

#endif
