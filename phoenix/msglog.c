/* msglog.c - the message log: a head, the messages, and an HMAC under the session's secret over all of it, so that a
 * damaged file and one of another session are told from a good one before a single message is believed.  The file appears
 * under its name only when it is complete.
 *
 * A message stands in a log with its number among all that the log's writer sent, and whoever has loaded it loads none with that
 * number of that writer again: neither from the same log nor from a later one, which has it too.  Another process is kept from
 * loading the same file by a lock, as long as the first one's node lives. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "phoenix/msglog.h"
#include "phoenix/secret.h"

static const char magic[8] = "PHNXLOG3";

/* peer: whom it is under way to, or 0. */
static void put_message(struct phnx *ph, struct writer *w, const struct smsg *m, ph_vp_t peer)
{
	uint64_t now = phnx_now(ph);

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

/* What waits for a holder, and what is under way: what of it had arrived its receiver knows (doubt.c). */
static uint64_t put_all(struct phnx *ph, struct writer *w)
{
	uint64_t n = 0;

	flow_catch_up(ph);
	for (int i = 0; i < FLOW_TABLE; i++)
		for (struct flow *f = ph->flows.table[i]; f; f = f->next)
			for (uint64_t s = f->una; s < f->next_seq; s++) {
				const struct smsg *m = f->ring[s % f->ring_size];
				if (!m || m->flags & (DATA_INTERNAL | DATA_VOID))
					continue;
				put_message(ph, w, m, f->peer);
				n++;
			}
	for (const struct dest *d = ph->flows.active; d; d = d->next)
		for (const struct smsg *m = d->queue; m; m = m->next) {
			if (m->flags & DATA_INTERNAL)
				continue;
			put_message(ph, w, m, 0);
			n++;
		}
	return n;
}

/* The log is renamed to its name: that must not take the place of a device, or of anything else but a file. */
static bool may_be_replaced(const char *file)
{
	struct stat st;

	return stat(file, &st) || S_ISREG(st.st_mode);
}

int msglog_store(struct phnx *ph, const char *file, char *text, size_t room)
{
	struct writer body = { 0 }, w = { 0 };
	unsigned char mac[32];
	char temp[4096];

	if (!may_be_replaced(file)) {
		snprintf(text, room, "the message log %s would take the place of something else than a file", file);
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
	phnx_mac(ph->secret, w.data, w.len, mac);
	put_bytes(&w, mac, sizeof mac);
	if (w.bad || body.bad) {
		free(w.data);
		snprintf(text, room, "no memory for the message log");
		return PH_ENOMEM;
	}
	snprintf(temp, sizeof temp, "%s.%d", file, (int)getpid());
	FILE *f = fopen(temp, "wx");
	bool ok = f && fwrite(w.data, 1, w.len, f) == w.len && fflush(f) == 0 && fsync(fileno(f)) == 0;
	int error = errno;
	if (f)
		ok = fclose(f) == 0 && ok;
	ok = ok && rename(temp, file) == 0;
	free(w.data);
	if (ok) {
		flow_logged(ph);
		return 0;
	}
	snprintf(text, room, "cannot write the message log %s: %s", file, strerror(error ? error : errno));
	if (f)
		unlink(temp);
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

static void send_record(struct phnx *ph, struct record *m)
{
	struct pbuf *b = pbuf_new(m->body, m->len);
	uint64_t now = phnx_now(ph), deadline = m->life ? now + m->life : 0;

	m->doubt.until_us = now + DOUBT_WAIT;
	if (!b)
		phnx_report(ph, PH_ENOMEM, "a message of a log was lost for want of memory");
	else if (m->doubt.peer)
		flow_send_again(ph, m->dest, m->origin, b, m->tag, m->flags, deadline, &m->doubt);
	else
		flow_send(ph, m->dest, m->origin, b, m->tag, m->flags, deadline);
	pbuf_put(b);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* What stands in the log, of which *records becomes the first message; NULL: it is damaged, or of another session or space. */
static struct loaded *examine(struct phnx *ph, const unsigned char *data, size_t len, struct reader *records)
{
	unsigned char mac[32], head[8];
	struct record m;

	if (len < sizeof magic + 4 * 8 + sizeof mac)
		return NULL;
	phnx_mac(ph->secret, data, len - sizeof mac, mac);
	if (CRYPTO_memcmp(mac, data + len - sizeof mac, sizeof mac))
		return NULL;
	struct reader r = { data, data + len - sizeof mac, false };
	get_bytes(&r, head, sizeof head);
	ph_vp_t lower = (ph_vp_t)get64(&r), upper = (ph_vp_t)get64(&r), writer = (ph_vp_t)get64(&r);
	uint64_t n = get64(&r);
	if (memcmp(head, magic, sizeof head) || lower != ph->lower || upper != ph->upper || n > len / LEAST_RECORD)
		return NULL;
	struct loaded *log = malloc(sizeof *log + n * sizeof *log->orders);
	if (!log)
		return NULL;
	*log = (struct loaded){ .fd = -1, .writer = writer, .n = n };
	*records = r;
	for (uint64_t i = 0; i < n; log->orders[i++] = m.order)
		if (!get_record(&r, &m)) {
			free(log);
			return NULL;
		}
	qsort(log->orders, n, sizeof *log->orders, by_size);
	return log;
}

/* How many messages were new. */
static uint64_t send_new(struct phnx *ph, const struct loaded *log, struct reader *records)
{
	struct record m;
	uint64_t n = 0;

	for (uint64_t i = 0; i < log->n && get_record(records, &m); i++)
		if (!doubt_is_loaded(ph, log->writer, m.order)) {
			send_record(ph, &m);
			n++;
		}
	doubt_ask(ph);
	return n;
}

/* The node keeps `log`, and with it the file's lock, unless all this fails. */
static int load(struct phnx *ph, struct loaded *log, struct reader *records, const char *file, char *text, size_t room)
{
	if (log->writer == ph->name)
		snprintf(text, room, "the message log %s is this node's own, which sends none of it any more", file);
	else if (send_new(ph, log, records) == 0 && log->n)
		snprintf(text, room, "what stands in the message log %s was loaded before", file);
	else
		return 0;
	return PH_ELOG;
}

/* A log is as long as its writer's queue, which may hold what others gave it to keep; what has no end is none. */
static void read_all(int fd, struct writer *w)
{
	unsigned char buf[65536];
	ssize_t n;

	while (w->len < 2u * KEPT_BYTES && ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			put_bytes(w, buf, (size_t)n);
}

int msglog_load(struct phnx *ph, const char *file, char *text, size_t room)
{
	struct writer w = { 0 };
	struct reader records;
	int fd = open(file, O_RDONLY | O_CLOEXEC), error = PH_ELOG;

	if (fd < 0) {
		snprintf(text, room, "cannot read the message log %s: %s", file, strerror(errno));
		return PH_ELOG;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(text, room, "the message log %s was loaded before, by this process or by one that has not ended", file);
		close(fd);
		return PH_ELOG;
	}
	read_all(fd, &w);
	struct loaded *log = w.bad ? NULL : examine(ph, w.data, w.len, &records);
	if (log)
		error = load(ph, log, &records, file, text, room);
	else
		snprintf(text, room, "the message log %s is damaged, or of another session or space", file);
	free(w.data);
	if (!error) {
		log->fd = fd;
		doubt_note_loaded(ph, log);
	} else {
		free(log);
		close(fd);
	}
	return error;
}
