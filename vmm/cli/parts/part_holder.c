/* part_holder.c - see part_holder.h.  It does one thing after the other, and waits for its owner in
 * between: what comes from it meanwhile waits in the connection. */
#include "vmm/cli/parts/part_holder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/faultpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/parts/holder_record.h"
#include "vmm/cli/parts/parts_layout.h"
#include "vmm/cli/parts/part.h"
#include "vmm/shared/hostmem.h"

enum {
	OUT_BYTES = 256 << 10,
	LOOK_AGAIN = 256, /* records between two looks whether the owner wants something else */
};

static struct {
	struct part *part;
	uint32_t comes, sealed, is; /* numbers of checkpoints; 0: none */
	bool failed; /* a record of the one that comes is lacking */
	struct hostmem has; /* what this computer could give at the start */
	uint32_t place;     /* among the owner's holders */
} held;

/* A fault point is for one holder alone. */
static void perhaps_die(uint32_t step)
{
	if (held.place == 1)
		fault_die_at(FAULT_HOLDER_DIES, step);
}

/* ---- the connection ---- */

static uint8_t in[OUT_BYTES], out[OUT_BYTES];
static size_t in_at, in_bytes, out_bytes;

static bool flush(void)
{
	for (size_t at = 0; at < out_bytes;) {
		ssize_t n = write(1, out + at, out_bytes - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	out_bytes = 0;
	return true;
}

static bool say(uint32_t kind, uint32_t index, const void *data, size_t bytes)
{
	struct snapfile_record record = { kind, index, (uint32_t)bytes };

	if (out_bytes + sizeof record + bytes > sizeof out && !flush())
		return false;
	memcpy(out + out_bytes, &record, sizeof record);
	out_bytes += sizeof record;
	if (bytes)
		memcpy(out + out_bytes, data, bytes);
	out_bytes += bytes;
	return true;
}

static bool cannot(uint32_t index, const char *why)
{
	return say(HOLD_CANNOT, index, why, strlen(why));
}

/* Reads so many bytes.  Returns false at the end. */
static bool take(void *to, size_t bytes)
{
	while (bytes) {
		size_t piece = in_bytes - in_at < bytes ? in_bytes - in_at : bytes;
		ssize_t n;

		memcpy(to, in + in_at, piece);
		to = (uint8_t *)to + piece;
		bytes -= piece;
		in_at += piece;
		if (!bytes)
			break;
		n = read(0, in, sizeof in);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		in_at = 0;
		in_bytes = (size_t)n;
	}
	return true;
}

static bool owner_wants_something(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return in_at < in_bytes || poll(&input, 1, 0) > 0;
}

/* ---- what the owner says ---- */

static bool hello(uint32_t mib, uint32_t place)
{
	struct problem p;

	held.place = place;
	if (held.has.mib >= mib)
		return say(HOLD_READY, mib, NULL, 0);
	problem(&p, "its part of the checkpoint needs %u MiB, and %s is %llu MiB", mib,
		hostmem_name(&held.has), (unsigned long long)held.has.mib);
	return cannot(mib, p.line);
}

static bool begin(uint32_t number, uint32_t changes)
{
	if (!number || (changes && !held.is))
		return false;
	held.comes = number;
	held.sealed = 0;
	held.failed = false;
	part_begin(held.part, changes);
	return true;
}

static void add(const struct snapfile_record *record, const void *data)
{
	perhaps_die(1);
	if (held.comes && !held.failed && part_add(held.part, record, data))
		held.failed = true;
}

static bool seal(uint32_t number)
{
	perhaps_die(2);
	if (number != held.comes)
		return false;
	if (held.failed)
		return cannot(number, "a part of the checkpoint needs more memory than there is");
	held.sealed = number;
	return say(HOLD_SEALED, number, NULL, 0);
}

static bool commit(uint32_t number)
{
	perhaps_die(3);
	if (!number || number != held.sealed)
		return false;
	part_commit(held.part);
	held.is = number;
	held.comes = held.sealed = 0;
	return true;
}

static void forget_coming(void)
{
	part_abandon(held.part);
	held.comes = held.sealed = 0;
}

static bool give(uint32_t number, const struct hold_give *give)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct part_cursor cursor = { 0 };
	struct snapfile_record record;

	if (number != held.is || !give->holders || give->holders > MAX_NODES)
		return false;
	for (unsigned n = 1; part_next(held.part, &cursor, &record, data); n++) {
		if (n % LOOK_AGAIN == 0 && owner_wants_something())
			break;
		if (layout_giver(give->holders, give->alive, &record) != give->you)
			continue;
		perhaps_die(4);
		if (!say(record.kind, record.index, data, record.bytes))
			return false;
	}
	return say(HOLD_GIVEN, number, NULL, 0);
}

/* Does what a record says.  Returns false if it is none that may come now, or nobody hears the
 * answer. */
static bool serve(const struct snapfile_record *record, const void *data)
{
	struct hold_give wanted;
	uint32_t word;

	switch (record->kind) {
	case HOLD_HELLO:
	case HOLD_BEGIN:
		if (record->bytes != sizeof word)
			return false;
		memcpy(&word, data, sizeof word);
		return record->kind == HOLD_HELLO ? hello(record->index, word)
						  : begin(record->index, word);
	case HOLD_SEAL:
		return seal(record->index);
	case HOLD_COMMIT:
		return commit(record->index);
	case HOLD_ABANDON:
		forget_coming();
		return true;
	case HOLD_GIVE:
		if (record->bytes != sizeof wanted)
			return false;
		memcpy(&wanted, data, sizeof wanted);
		return give(record->index, &wanted);
	default:
		if (part_takes(record))
			add(record, data);
		return part_takes(record);
	}
}

/* What it holds is a guest's memory: no file of it is left, and what it reads cannot make it open
 * one. */
static void confine(void)
{
	int error;

	prctl(PR_SET_DUMPABLE, 0);
	error = confine_privileges();
	if (!error)
		error = confine_files(NULL, 0, 0);
	if (error && error != -EOPNOTSUPP && error != -ENOSYS) /* without Landlock */
		die("cannot confine a holder: %s", strerror(-error));
}

int hold_command(const struct options *o)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;

	(void)o;
	signal(SIGPIPE, SIG_IGN);
	held.part = part_new();
	if (!held.part)
		die("no memory");
	hostmem_look(&held.has, "");
	confine();
	while (take(&record, sizeof record) && record.bytes <= sizeof data &&
	       take(data, record.bytes) && serve(&record, data))
		if (!owner_wants_something() && !flush())
			break;
	part_free(held.part);
	return 0;
}
