/* part_holder.c - see part_holder.h.  It does one thing after the other, and waits for its owner in
 * between: what comes from it meanwhile waits in the connection. */
#include "vmm/cli/parts/part_holder.h"

#include <errno.h>
#include <fcntl.h>
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
#include "vmm/shared/private_folder.h"

enum {
	OUT_BYTES = 256 << 10,
	LOOK_AGAIN = 256, /* records between two looks whether the owner wants something else */
	LINGER_MS = 60000,
};

static struct {
	struct part *part;
	uint32_t comes, sealed, is; /* numbers of checkpoints; 0: none */
	bool failed; /* a record of the one that comes is lacking */
	bool lingers, is_over;
	struct hostmem has; /* what this computer could give at the start */
	uint32_t place;     /* among the owner's holders */
	int listener; /* where other owners' connections come from; -1: there is no name */
	/* of the owner: from it, to it, and what tells the process that has passed it on that it is
	 * not needed any more (-1: there is none) */
	int owner[PRESENCE_PASSED];
	int next[PRESENCE_PASSED]; /* the next owner's connection; -1 */
} held = { .listener = -1, .owner = { 0, 1, -1 }, .next = { -1, -1, -1 } };

/* A fault point is for one holder alone. */
static void perhaps_die(uint32_t step)
{
	if (held.place == 1)
		fault_die_at(FAULT_HOLDER_DIES, step);
}

/* ---- the connection ---- */

static uint8_t in[OUT_BYTES], out[OUT_BYTES];
static size_t in_at, in_bytes, out_bytes;

/* Waits until the owner's descriptor `fd` is ready, for at most so long.  Returns false if it is
 * not, or if another owner has come. */
static bool wait_for(int fd, short events, int ms)
{
	struct pollfd polled[2] = { { .fd = fd, .events = events },
				    { .fd = held.listener, .events = POLLIN } };

	while (poll(polled, 2, ms) < 0 && errno == EINTR)
		;
	if (polled[1].revents & POLLIN)
		presence_passed(held.listener, held.next);
	return held.next[0] < 0 && polled[0].revents;
}

static bool flush(void)
{
	for (size_t at = 0; at < out_bytes;) {
		ssize_t n = write(held.owner[1], out + at, out_bytes - at);

		if (n < 0 && errno == EAGAIN && wait_for(held.owner[1], POLLOUT, -1))
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

/* Reads more.  Returns false at the end. */
static bool fill(void)
{
	for (;;) {
		ssize_t n = read(held.owner[0], in, sizeof in);

		if (n < 0 && errno == EAGAIN && flush() && wait_for(held.owner[0], POLLIN, -1))
			continue;
		if (n <= 0)
			return false;
		in_at = 0;
		in_bytes = (size_t)n;
		return true;
	}
}

/* Reads so many bytes.  Returns false at the end. */
static bool take(void *to, size_t bytes)
{
	while (bytes) {
		size_t piece = in_bytes - in_at < bytes ? in_bytes - in_at : bytes;

		memcpy(to, in + in_at, piece);
		to = (uint8_t *)to + piece;
		bytes -= piece;
		in_at += piece;
		if (bytes && !fill())
			return false;
	}
	return true;
}

static bool owner_wants_something(void)
{
	struct pollfd input = { .fd = held.owner[0], .events = POLLIN };

	return in_at < in_bytes || poll(&input, 1, 0) > 0;
}

/* ---- what the owner says ---- */

static bool say_ready(void)
{
	const struct hold_ready ready = { held.is, held.sealed };

	return say(HOLD_READY, 0, &ready, sizeof ready);
}

static void hello(const struct hold_hello *hello)
{
	struct problem p;

	held.place = hello->place;
	held.lingers = hello->lingers;
	held.is_over = held.has.mib < hello->mib;
	if (!held.is_over) {
		say_ready();
		return;
	}
	problem(&p, "its part of the checkpoint needs %u MiB, and %s is %llu MiB", hello->mib,
		hostmem_name(&held.has), (unsigned long long)held.has.mib);
	cannot(0, p.line);
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

/* Makes this checkpoint the one that is there, if it can be.  Returns whether it is. */
static bool commit(uint32_t number)
{
	if (number && number == held.sealed) {
		part_commit(held.part);
		held.is = number;
		held.comes = held.sealed = 0;
	}
	return number && number == held.is;
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

	if (!commit(number) || !give->holders || give->holders > MAX_NODES)
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
	case HOLD_BEGIN:
		if (record->bytes != sizeof word)
			return false;
		memcpy(&word, data, sizeof word);
		return begin(record->index, word);
	case HOLD_SEAL:
		return seal(record->index);
	case HOLD_COMMIT:
		perhaps_die(3);
		return commit(record->index);
	case HOLD_END:
		held.is_over = true;
		return false;
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
 * one.  It can remove its name. */
static void confine(void)
{
	char names[32];
	const struct confine_file files[] = { { names, CONFINE_OWN_FOLDER },
					      { "/tmp", CONFINE_REMOVE } };
	int error;

	snprintf(names, sizeof names, PRIVATE_TMP_FORMAT, geteuid());
	prctl(PR_SET_DUMPABLE, 0);
	error = confine_privileges();
	if (!error)
		error = confine_files(files, sizeof files / sizeof *files, 0);
	if (!error || error == -EOPNOTSUPP || error == -ENOSYS) /* without Landlock */
		error = confine_calls_of(CONFINE_HOLDER, false);
	if (error)
		die("cannot confine a holder: %s", strerror(-error));
}

/* ---- owners ---- */

static void do_not_block(void)
{
	for (int i = 0; i < 2; i++)
		fcntl(held.owner[i], F_SETFL, fcntl(held.owner[i], F_GETFL) | O_NONBLOCK);
}

/* Serves this owner until its connection ends, or another owner has come. */
static void serve_owner(void)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;

	while (take(&record, sizeof record) && record.bytes <= sizeof data &&
	       take(data, record.bytes) && serve(&record, data))
		if (!owner_wants_something() && !flush())
			break;
	if (!held.sealed)
		forget_coming();
}

/* Leaves the owner, who notices it by the end of the connection, and waits for another one.
 * Returns false if there will be none. */
static bool has_another(void)
{
	flush();
	in_at = in_bytes = out_bytes = 0;
	for (int i = 0; i < PRESENCE_PASSED; i++)
		if (held.owner[i] >= 0)
			close(held.owner[i]);
	if (held.next[0] < 0 && !held.is_over && held.lingers && held.listener >= 0)
		wait_for(-1, 0, LINGER_MS);
	if (held.is_over || held.next[0] < 0)
		return false;
	for (int i = 0; i < PRESENCE_PASSED; i++) {
		held.owner[i] = held.next[i];
		held.next[i] = -1;
	}
	do_not_block();
	return say_ready();
}

/* Reads the owner's first record, and not a byte more: another process may read on. */
static bool take_hello(struct hold_hello *hello)
{
	struct { struct snapfile_record record; struct hold_hello hello; } first;
	size_t n = 0;

	_Static_assert(sizeof first == sizeof first.record + sizeof *hello, "no gap");
	while (n < sizeof first) {
		ssize_t got = read(0, (uint8_t *)&first + n, sizeof first - n);

		if (got < 0 && errno == EAGAIN && wait_for(0, POLLIN, -1))
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	*hello = first.hello;
	return first.record.kind == HOLD_HELLO && first.record.bytes == sizeof *hello &&
	       memchr(hello->name, 0, sizeof hello->name);
}

/* Another holder of this name is here already: passes the owner's connection on to it, and stays as
 * long as that uses it. */
static bool pass_on(const struct hold_hello *hello)
{
	int life[2];
	char byte;

	if (!hello->name[0] || pipe2(life, O_CLOEXEC))
		return false;
	if (!presence_pass(hello->name, (int[]){ 0, 1, life[1] })) {
		close(life[0]), close(life[1]);
		return false;
	}
	close(life[1]);
	while (read(life[0], &byte, 1) < 0 && errno == EINTR)
		;
	return true;
}

int hold_command(const struct options *o)
{
	struct hold_hello first;

	(void)o;
	signal(SIGPIPE, SIG_IGN);
	do_not_block();
	if (!take_hello(&first)) {
		log_error("vmp starts its holders by itself");
		return EXIT_VMP_FAILURE;
	}
	if (pass_on(&first))
		return 0;
	if (first.lingers) { /* what has started it ends its group when the owner is lost */
		setsid();
		signal(SIGHUP, SIG_IGN);
	}
	held.part = part_new();
	if (!held.part)
		die("no memory");
	hostmem_look(&held.has, "");
	if (first.name[0])
		held.listener = presence_listen(first.name);
	confine();
	hello(&first);
	do
		serve_owner();
	while (has_another());
	presence_unlisten(held.listener, first.name);
	part_free(held.part);
	return 0;
}
