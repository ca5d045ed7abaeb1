/* msglog.c - the message log: a head, the messages, and an HMAC under the session's secret over all of it, so that a
 * damaged file and one of another session are told from a good one before a single message is believed.  The file appears
 * under its name only when it is complete. */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "phoenix/msglog.h"
#include "phoenix/secret.h"

static const char magic[8] = "PHNXLOG2";

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
	put32(w, (uint32_t)m->body->len);
	put_bytes(w, m->body->data, m->body->len);
}

/* What waits for a holder, and what is under way: what of it had arrived its receiver knows (doubt.c). */
static uint64_t put_all(struct phnx *ph, struct writer *w)
{
	uint64_t n = 0;

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

static bool get_message(struct phnx *ph, struct reader *r, bool really)
{
	ph_vp_t dest = (ph_vp_t)get64(r), origin = (ph_vp_t)get64(r);
	int tag = (int)get32(r);
	unsigned flags = get8(r);
	uint64_t life = get64(r), now = phnx_now(ph);
	struct doubt doubt = { .peer = (ph_vp_t)get64(r), .name = (ph_vp_t)get64(r), .seq = get64(r), .until_us = now + DOUBT_WAIT };
	size_t len = get32(r);

	if (r->bad || len > PH_MSG_MAX || len > (size_t)(r->end - r->p) || dest < 0)
		return false;
	if (really) {
		struct pbuf *b = pbuf_new(r->p, len);
		if (!b)
			return false;
		uint64_t deadline = life ? now + life : 0;
		if (doubt.peer)
			flow_send_again(ph, dest, origin, b, tag, flags & DATA_UNORDERED, deadline, &doubt);
		else
			flow_send(ph, dest, origin, b, tag, flags & DATA_UNORDERED, deadline);
		pbuf_put(b);
	}
	r->p += len;
	return true;
}

static int check_and_load(struct phnx *ph, const unsigned char *data, size_t len)
{
	unsigned char mac[32], head[8];

	if (len < sizeof magic + 24 + 32)
		return -1;
	phnx_mac(ph->secret, data, len - 32, mac);
	if (CRYPTO_memcmp(mac, data + len - 32, 32))
		return -1;
	for (int really = 0; really < 2; really++) {
		struct reader r = { data, data + len - 32, false };
		get_bytes(&r, head, sizeof head);
		ph_vp_t lower = (ph_vp_t)get64(&r), upper = (ph_vp_t)get64(&r);
		if (memcmp(head, magic, sizeof head) || lower != ph->lower || upper != ph->upper)
			return -1;
		for (uint64_t n = get64(&r); n; n--)
			if (!get_message(ph, &r, really))
				return -1;
	}
	return 0;
}

int msglog_load(struct phnx *ph, const char *file, char *text, size_t room)
{
	FILE *f = fopen(file, "r");
	struct writer w = { 0 };
	unsigned char buf[65536];
	size_t n;

	if (!f) {
		snprintf(text, room, "cannot read the message log %s: %s", file, strerror(errno));
		return PH_ELOG;
	}
	/* A log is as long as its writer's queue, which may hold what others gave it to keep; what has no end is none. */
	while ((n = fread(buf, 1, sizeof buf, f)) > 0 && w.len < 2u * KEPT_BYTES)
		put_bytes(&w, buf, n);
	fclose(f);
	int error = w.bad || check_and_load(ph, w.data, w.len);
	doubt_ask(ph);
	free(w.data);
	if (!error)
		return 0;
	snprintf(text, room, "the message log %s is damaged, or of another session or space", file);
	return PH_ELOG;
}
