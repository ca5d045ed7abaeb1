/* msglog.c - the message log: a head, the messages, and an HMAC under the session's secret over
 * both.
 *
 * The HMAC tells a damaged file, or one of another session, from a good one before any message is
 * believed.  The file appears under its name only when it is complete.
 *
 * A log records for each message its place among all that the writer sent.  A node that has loaded
 * a message of a writer does not load the one with that place again, neither from the same log nor
 * from a later one that has it too.  A lock keeps other processes from loading the file as long as
 * the node that has loaded it lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "phoenix/core/entropy.h"
#include "phoenix/core/secret.h"
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/msglog.h"

static const char magic[8] = "PHNXLOG3";

/* peer: the node that the message is under way to, or 0. */
static void put_message(struct phnx *ph, struct writer *w, const struct smsg *m, ph_vp_t peer)
{
	uint64_t now = core_now(ph);

	put64(w, (uint64_t)m->dest);
	put64(w, (uint64_t)m->origin);
	put32(w, (uint32_t)m->tag);
	put8(w, (uint8_t)(m->flags & DATA_UNORDERED));
	put64(w, m->deadline_us ? m->deadline_us > now ? m->deadline_us - now : 1 : 0);
	put64(w, (uint64_t)(peer ? peer : m->doubt.peer));
	put64(w, (uint64_t)(peer ? ph->name : m->doubt.name));
	put64(w, peer ? m->seq : m->doubt.seq);
	put64(w, m->order);
	put32(w, (uint32_t)m->body->len);
	put_bytes(w, m->body->data, m->body->len);
}

/* Writes the messages that wait for a holder and those under way; a receiver knows which of
 * these have arrived (doubt.c).  Returns how many. */
static uint64_t put_all(struct phnx *ph, struct writer *w)
{
	uint64_t n = 0;

	flow_catch_up(ph);
	for (int i = 0; i < FLOW_TABLE; i++)
		for (struct flow *f = ph->flows->table[i]; f; f = f->next)
			for (uint64_t s = f->una; s < f->next_seq; s++) {
				const struct smsg *m = f->ring[s % f->ring_size];
				if (!m || m->flags & (DATA_INTERNAL | DATA_VOID))
					continue;
				put_message(ph, w, m, f->peer);
				n++;
			}
	for (const struct dest *d = ph->flows->active; d; d = d->next)
		for (const struct smsg *m = d->queue; m; m = m->next) {
			if (m->flags & DATA_INTERNAL)
				continue;
			put_message(ph, w, m, 0);
			n++;
		}
	return n;
}

/* Returns whether a log may be renamed to this name: it must not replace a device or anything
 * else that is no ordinary file. */
static bool may_be_replaced(const char *file)
{
	struct stat st;

	return stat(file, &st) || S_ISREG(st.st_mode);
}

/* Writes the file under another name until it is complete.  No file has that name, whatever a
 * process with the same number has left behind.  Returns 0 or an errno. */
static int write_whole(const char *file, const struct writer *w)
{
	char temp[4096];

	if (snprintf(temp, sizeof temp, "%s.%d.%llx", file, (int)getpid(),
		     (unsigned long long)entropy_u64()) >= (int)sizeof temp)
		return ENAMETOOLONG;
	FILE *f = fopen(temp, "wx");
	if (!f)
		return errno;
	int error = fwrite(w->data, 1, w->len, f) != w->len || fflush(f) || fsync(fileno(f)) ? errno
											     : 0;
	if (fclose(f) && !error)
		error = errno;
	if (!error && rename(temp, file))
		error = errno;
	if (error)
		unlink(temp);
	return error;
}

int msglog_store(struct phnx *ph, const char *file, char *text, size_t room)
{
	struct writer body = { 0 }, w = { 0 };
	unsigned char mac[32];

	if (!may_be_replaced(file)) {
		snprintf(text, room,
			 "the message log %s would take the place of something else than a file",
			 file);
		return PH_ELOG;
	}
	uint64_t n = put_all(ph, &body);

	put_bytes(&w, magic, sizeof magic);
	put64(&w, (uint64_t)ph->lower);
	put64(&w, (uint64_t)ph->upper);
	put64(&w, (uint64_t)ph->name);
	put64(&w, n);
	put_bytes(&w, body.data, body.len);
	free(body.data);
	secret_mac(ph->secret, w.data, w.len, mac);
	put_bytes(&w, mac, sizeof mac);
	if (w.bad || body.bad) {
		free(w.data);
		snprintf(text, room, "out of memory: the message log is not written");
		return PH_ENOMEM;
	}
	int error = write_whole(file, &w);
	free(w.data);
	if (!error) {
		send_logged(ph);
		return 0;
	}
	snprintf(text, room, "cannot write the message log %s: %s", file, strerror(error));
	return PH_ELOG;
}

/* ---- loading ---- */

struct record {
	ph_vp_t dest, origin;
	int tag;
	unsigned flags;
	uint64_t life, order;
	struct doubt doubt;
	const unsigned char *body;
	size_t len;
};
enum { LEAST_RECORD = 8 + 8 + 4 + 1 + 8 + 8 + 8 + 8 + 8 + 4 };

static bool get_record(struct reader *r, struct record *m)
{
	m->dest = (ph_vp_t)get64(r);
	m->origin = (ph_vp_t)get64(r);
	m->tag = (int)get32(r);
	m->flags = get8(r) & DATA_UNORDERED;
	m->life = get64(r);
	m->doubt = (struct doubt){ 0 };
	m->doubt.peer = (ph_vp_t)get64(r);
	m->doubt.name = (ph_vp_t)get64(r);
	m->doubt.seq = get64(r);
	m->order = get64(r);
	m->len = get32(r);
	m->body = r->p;
	if (r->bad || m->len > PH_MSG_MAX || m->len > (size_t)(r->end - r->p) || m->dest < 0)
		return false;
	r->p += m->len;
	return true;
}

static int send_record(struct phnx *ph, struct record *m)
{
	struct pbuf *b = pbuf_new(m->body, m->len);
	uint64_t now = core_now(ph), deadline = m->life ? now + m->life : 0;
	int error;

	m->doubt.until_us = now + DOUBT_WAIT;
	if (!b)
		error = PH_ENOMEM;
	else if (m->doubt.peer)
		error = send_again(ph, m->dest, m->origin, b, m->tag, m->flags, deadline,
				   &m->doubt);
	else
		error = flow_send(ph, m->dest, m->origin, b, m->tag, m->flags, deadline);
	pbuf_put(b);
	return error;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The messages of a log. */
struct contents {
	ph_vp_t writer;
	uint64_t n;
	struct reader records;
};

/* Returns whether the log is complete and of this session and space. */
static bool examine(struct phnx *ph, const struct writer *w, struct contents *c)
{
	unsigned char mac[32], head[8];
	struct record m;

	if (w->len < sizeof magic + 4 * 8 + sizeof mac)
		return false;
	const unsigned char *end = w->data + w->len - sizeof mac;
	secret_mac(ph->secret, w->data, w->len - sizeof mac, mac);
	if (CRYPTO_memcmp(mac, end, sizeof mac))
		return false;
	struct reader r = { w->data, end, false };
	get_bytes(&r, head, sizeof head);
	ph_vp_t lower = (ph_vp_t)get64(&r), upper = (ph_vp_t)get64(&r);
	c->writer = (ph_vp_t)get64(&r);
	c->n = get64(&r);
	c->records = r;
	if (memcmp(head, magic, sizeof head) || lower != ph->lower || upper != ph->upper ||
	    c->n > w->len / LEAST_RECORD)
		return false;
	for (uint64_t i = 0; i < c->n; i++)
		if (!get_record(&r, &m))
			return false;
	return true;
}

/* Sends the messages that were not loaded before, and notes them.  After an error the rest are
 * not noted, so that another call loads them. */
static int send_new(struct phnx *ph, struct contents *c, struct loaded *log)
{
	struct record m;
	int error = 0;

	for (uint64_t i = 0; i < c->n && !error && get_record(&c->records, &m); i++)
		if (!doubt_is_loaded(ph, c->writer, m.order) && !(error = send_record(ph, &m)))
			log->orders[log->n++] = m.order;
	qsort(log->orders, log->n, sizeof *log->orders, by_size);
	doubt_ask(ph);
	return error;
}

/* Sends what is new.  Unless an error leaves a rest for another call, the node keeps fd, whose
 * lock tells other processes that the file was loaded. */
static int load(struct phnx *ph, struct contents *c, int fd, const char *file, char *text,
		size_t room)
{
	if (c->writer == ph->name) {
		snprintf(text, room,
			 "the message log %s is this node's own, which sends none of it any more",
			 file);
		return PH_ELOG;
	}
	struct loaded *log = malloc(sizeof *log + c->n * sizeof *log->orders);
	if (log)
		*log = (struct loaded){ .fd = -1, .writer = c->writer };
	int error = log ? send_new(ph, c, log) : PH_ENOMEM;
	if (error) {
		snprintf(text, room,
			 "out of memory: load the message log %s again for what is left of it",
			 file);
	} else if (c->n && !log->n) {
		snprintf(text, room, "everything in the message log %s was loaded before", file);
		error = PH_ELOG;
	}
	if (log && (log->n || !error)) {
		log->fd = error ? -1 : fd;
		doubt_note_loaded(ph, log);
	} else {
		free(log);
	}
	return error;
}

/* Reads the whole file.  A log is bounded by its writer's queue, which may also hold what others
 * gave it to keep; a longer file is not a log.  Returns 0 or an errno. */
static int read_all(int fd, struct writer *w)
{
	unsigned char buf[65536];
	ssize_t n = 0;

	while (w->len < 2u * KEPT_BYTES &&
	       ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			put_bytes(w, buf, (size_t)n);
	return n < 0 ? errno : w->bad ? ENOMEM : 0;
}

static int load_from(struct phnx *ph, int fd, const char *file, char *text, size_t room)
{
	struct writer w = { 0 };
	struct contents c;
	struct stat st;
	int error;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(text, room, "the message log %s is not a file", file);
		return PH_ELOG;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(text, room,
			 "the message log %s was loaded before, by this process or another one",
			 file);
		return PH_ELOG;
	}
	error = read_all(fd, &w);
	if (error) {
		snprintf(text, room, "cannot read the message log %s: %s", file, strerror(error));
		error = error == ENOMEM ? PH_ENOMEM : PH_ELOG;
	} else if (!examine(ph, &w, &c)) {
		snprintf(text, room,
			 "the message log %s is damaged, or of another session or space", file);
		error = PH_ELOG;
	} else {
		error = load(ph, &c, fd, file, text, room);
	}
	free(w.data);
	return error;
}

int msglog_load(struct phnx *ph, const char *file, char *text, size_t room)
{
	/* without O_NONBLOCK the open of a pipe that nobody writes would block everybody */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		snprintf(text, room, "cannot read the message log %s: %s", file, strerror(errno));
		return PH_ELOG;
	}
	int error = load_from(ph, fd, file, text, room);
	if (error)
		close(fd);
	return error;
}
