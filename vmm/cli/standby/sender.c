/* sender.c - see sender.h. */
#include "vmm/cli/standby/sender.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/cli/cluster/cluster_ssh.h"
#include "vmm/cli/standby/record.h"

enum { LOW_BYTES = 256 << 10 /* below this many queued bytes, more records are queued */ };

#define COMMAND \
	"sh -c '" SSH_FOLDER "exec \"$d/ld.so\" --library-path \"$d\" \"$d/vmp\" standby'"

static void put(struct sender *s, uint32_t kind, uint32_t index, const void *data, size_t bytes)
{
	struct snapfile_record record = { kind, index, (uint32_t)bytes };

	if (!s->ssh.to || bufferevent_write(s->ssh.to, &record, sizeof record) ||
	    (bytes && bufferevent_write(s->ssh.to, data, bytes)))
		log_debug("standby: a record could not be sent");
}

/* ---- the end ---- */

void sender_close(struct sender *s)
{
	s->unproved_ns = sender_unproved_ns(s);
	ssh_streams_close(&s->ssh);
	if (s->alive)
		event_free(s->alive);
	s->alive = NULL;
	s->kept = NULL;
	s->prepared = s->ending = false;
	s->state = SENDER_OFF;
}

static const char broken[] = "%s"; /* the connection ended, and the standby has not said why */

static void fail(struct sender *s, const char *format, const char *why)
{
	enum sender_state before = s->state;
	bool ending = s->ending;

	snprintf(s->why, sizeof s->why, format, why);
	s->broke = format == broken;
	sender_close(s);
	if (!ending)
		s->failed(s->context, before);
}

void sender_end(struct sender *s)
{
	if (s->state == SENDER_OFF || s->ending)
		return;
	s->ending = true;
	s->kept = NULL;
	put(s, STANDBY_END, 0, NULL, 0);
}

bool sender_is_silent(const struct sender *s, uint32_t ms)
{
	return clock_now_ns() - s->heard_ns > ms * 1000000ull;
}

uint64_t sender_unproved_ns(const struct sender *s)
{
	return s->state == SENDER_OFF ? s->unproved_ns : clock_now_ns() - s->proved_ns;
}

bool sender_may_have_gone_on(const struct sender *s)
{
	return !s->ending && sender_unproved_ns(s) > silence_gone_on_ms(s->silence) * 1000000ull;
}

/* ---- what it says ---- */

static const struct answer {
	enum sender_state state;
	const char *word;
	enum { DONE, REFUSED, FAILED } is;
} answers[] = {
	{ SENDER_STARTS, "ready", DONE },      { SENDER_STARTS, "refused ", FAILED },
	{ SENDER_COPIES, "kept", DONE },       { SENDER_COPIES, "refused ", FAILED },
	{ SENDER_PREPARES, "prepared", DONE }, { SENDER_PREPARES, "unprepared ", REFUSED },
	{ SENDER_GOES, "up", DONE },	       { SENDER_GOES, "failed ", FAILED },
};

/* A word that ends with a space is followed by a reason. */
static bool begins_with(const char *line, const char *word)
{
	size_t n = strlen(word);

	return word[n - 1] == ' ' ? !strncmp(line, word, n) : !strcmp(line, word);
}

static void take_answer(struct sender *s, const struct answer *answer, const char *rest)
{
	enum sender_state before = s->state;

	if (answer->is == FAILED) {
		fail(s, "%s", rest);
		return;
	}
	s->state = SENDER_IDLE;
	s->prepared |= before == SENDER_PREPARES && answer->is == DONE;
	if (before == SENDER_GOES)
		sender_close(s);
	snprintf(s->why, sizeof s->why, "%s", rest);
	(answer->is == DONE ? s->done : s->failed)(s->context, before);
}

/* The standby has followed this owner at least until then, when a sign of life was sent to it.
 * (TRICKS: proof-by-echo) */
static void take_proof(struct sender *s, uint32_t sent_ms)
{
	uint64_t now = clock_now_ns();
	uint64_t sent = now - (uint32_t)(now / 1000000 - sent_ms) * 1000000ull;

	if (sent > s->proved_ns)
		s->proved_ns = sent;
}

static void take_line(struct sender *s, const char *line)
{
	unsigned sent_ms;

	s->heard_ns = clock_now_ns();
	/* while ending, answers to earlier requests do not count */
	if (s->ending || !strcmp(line, "alive"))
		return;
	if (sscanf(line, "alive %u", &sent_ms) == 1) {
		take_proof(s, sent_ms);
		return;
	}
	if (!strncmp(line, "over ", 5)) {
		s->is_over = true;
		fail(s, "%s", line + 5);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		if (answers[i].state == s->state && begins_with(line, answers[i].word)) {
			take_answer(s, &answers[i], line + strlen(answers[i].word));
			return;
		}
	fail(s, "it says \"%.100s\"", line);
}

static void on_lines(void *context, struct evbuffer *input)
{
	struct sender *s = context;
	const struct bufferevent *from = s->ssh.from;
	char *line;

	/* A line may end this connection and start another one. */
	while (s->ssh.from == from && (line = evbuffer_readln(input, NULL, EVBUFFER_EOL_LF))) {
		take_line(s, line);
		free(line);
	}
	if (s->ssh.from == from && evbuffer_get_length(input) > SENDER_LINE)
		fail(s, "%s", "it says a line without an end");
}

/* It may have taken over the machine: the lines that it sent before have been read. */
static void on_end(void *context)
{
	struct sender *s = context;

	fail(s, broken, s->ssh.said[0] ? s->ssh.said : "its ssh connection ended");
}

/* ---- what is said to it ---- */

/* Sends as much of the copy as there is room for. */
static void on_room(void *context)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct sender *s = context;
	struct snapfile_record record;

	while (s->kept && evbuffer_get_length(bufferevent_get_output(s->ssh.to)) < LOW_BYTES) {
		if (kept_next(s->kept, &s->cursor, &record, data)) {
			put(s, record.kind, record.index, data, record.bytes);
			continue;
		}
		if (s->copies == 3)
			fault_die_at(FAULT_OWNER_DIES, 1);
		put(s, STANDBY_COMMIT, (uint32_t)((clock_now_ns() - s->cut_ns) / 1000000), NULL, 0);
		s->kept = NULL;
	}
}

static void on_alive(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	put(context, STANDBY_ALIVE, (uint32_t)(clock_now_ns() / 1000000), NULL, 0);
}

int sender_start(struct sender *s, const struct cluster_host *host, const char *hash,
		 const char *orders)
{
	const struct timeval often = { s->silence->alive_ms / 1000,
				       s->silence->alive_ms % 1000 * 1000 };
	char command[600];
	struct ssh ssh;

	s->host = *host;
	s->why[0] = 0;
	s->is_over = false;
	snprintf(command, sizeof command, COMMAND, hash);
	if (ssh_start(&ssh, host, NULL, command, true)) {
		snprintf(s->why, sizeof s->why,
			 "cannot start ssh: too many processes or open files?");
		return -1;
	}
	s->ssh = (struct ssh_streams){ .base = s->base, .log_fd = s->log_fd,
				       .low_bytes = LOW_BYTES / 2, .context = s,
				       .on_bytes = on_lines, .on_room = on_room, .on_end = on_end };
	s->alive = event_new(s->base, -1, EV_PERSIST, on_alive, s);
	if (ssh_streams_open(&s->ssh, &ssh) || !s->alive || event_add(s->alive, &often)) {
		sender_close(s);
		snprintf(s->why, sizeof s->why, "no memory");
		return -1;
	}
	s->state = SENDER_IDLE;
	s->heard_ns = s->proved_ns = clock_now_ns();
	sender_order(s, orders);
	return 0;
}

static void begin(struct sender *s, enum sender_state state)
{
	bug_on(s->state != SENDER_IDLE);
	s->state = state;
}

void sender_order(struct sender *s, const char *orders)
{
	size_t left = strlen(orders), piece;

	begin(s, SENDER_STARTS);
	for (; left; orders += piece, left -= piece) {
		piece = left < MAX_MSG_PAYLOAD ? left : MAX_MSG_PAYLOAD;
		put(s, STANDBY_ORDERS, piece == left, orders, piece);
	}
}

void sender_copy(struct sender *s, struct kept *kept, uint64_t cut_ns, const struct parts *parts)
{
	char places[MAX_PARTS_TEXT];
	uint32_t number;

	begin(s, SENDER_COPIES);
	s->copies++;
	s->kept = kept;
	s->cursor = kept_changes(kept);
	s->cut_ns = cut_ns;
	put(s, STANDBY_BEGIN, s->cursor.part.changes, NULL, 0);
	if (parts) {
		number = parts_print(parts, places, sizeof places);
		put(s, STANDBY_PARTS, number, places, strlen(places) + 1);
	}
	on_room(s);
}

void sender_prepare(struct sender *s)
{
	begin(s, SENDER_PREPARES);
	put(s, STANDBY_PREPARE, 0, NULL, 0);
}

void sender_release(struct sender *s)
{
	s->prepared = false;
	put(s, STANDBY_RELEASE, 0, NULL, 0);
}

void sender_go(struct sender *s)
{
	bug_on(!s->prepared);
	begin(s, SENDER_GOES);
	put(s, STANDBY_GO, 0, NULL, 0);
}
