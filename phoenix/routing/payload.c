/* payload.c - what a node announces of itself, as bytes. */
#include "phoenix/routing/routing_private.h"

void payload_free(struct payload *p)
{
	free(p->vps.r);
	p->vps = (struct ph_vps){ 0 };
}

void payload_put(struct writer *w, const struct payload *p)
{
	ph_vp_t at = 0;

	put8(w, (uint8_t)(p->leaving | p->gone << 1));
	put_var(w, p->stamp);
	put8(w, (uint8_t)p->n_addrs);
	for (unsigned i = 0; i < p->n_addrs; i++) {
		const struct address *a = p->addrs + i;
		put8(w, (uint8_t)strlen(a->host));
		put_bytes(w, a->host, strlen(a->host));
		put_le(w, (uint64_t)a->port, 2);
		put8(w, (uint8_t)a->protocol);
	}
	put_var(w, p->vps.n);
	for (size_t i = 0; i < p->vps.n; at = p->vps.r[i++].hi) {
		put_var(w, (uint64_t)(p->vps.r[i].lo - at));
		put_var(w, (uint64_t)(p->vps.r[i].hi - p->vps.r[i].lo));
	}
}

static void get_address(struct reader *r, struct address *a)
{
	size_t n = get8(r);

	if (n == 0 || n >= sizeof a->host)
		r->bad = true;
	else
		get_bytes(r, a->host, n);
	a->port = (int)get_le(r, 2);
	a->protocol = get8(r) == PHNX_TLS ? PHNX_TLS : PHNX_TCP;
	for (size_t i = 0; i < n && !r->bad; i++)	/* the address is given to the resolver */
		if (!strchr("0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ.:%-_",
			    a->host[i]))
			r->bad = true;
}

void payload_get(struct phnx *ph, struct reader *r, struct payload *p)
{
	unsigned flags = get8(r);
	ph_vp_t at = 0;

	*p = (struct payload){ .leaving = flags & 1,
			       .gone = flags & 2,
			       .stamp = get_var(r),
			       .n_addrs = get8(r) };
	if (p->n_addrs > MAX_ADDRS) {
		p->n_addrs = 0;
		r->bad = true;
	}
	for (unsigned i = 0; i < p->n_addrs; i++)
		get_address(r, p->addrs + i);
	uint64_t n = get_var(r);
	r->bad |= n > MAX_RANGES;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		uint64_t gap = get_var(r), len = get_var(r);
		bool fits = gap <= (uint64_t)(ph->upper - at) && len &&
			    len <= (uint64_t)(ph->upper - at) - gap &&
			    at + (ph_vp_t)gap >= ph->lower;
		if (r->bad || !fits ||
		    !vps_append(&p->vps, at + (ph_vp_t)gap, at + (ph_vp_t)(gap + len)))
			r->bad = true;
		else
			at += (ph_vp_t)(gap + len);
	}
}
