/* notes.c - what libevent's callbacks note: which connections are ready, and for what.
 *
 * The callbacks do no work; net_settle() does it, under the lock of runtime.c.  A callback that
 * took that lock itself could wait for a thread that, in event_del(), waits for the callback.  In
 * a caller's loop there is one thread alone, and the work is done at once.
 *
 * The notes have a lock of their own, which is held for a few instructions and never while another
 * one is taken.
 */
#include "phoenix/net/net_private.h"

void net_woken(struct net *net)
{
	net->stirred = true;
	if (net->lodger)
		net->owner->stirred();
}

/* Called with the lock of the notes held. */
static void note(struct conn *k, unsigned what)
{
	if (!k->ready) {
		k->ready_next = k->net->notes.ready;
		k->net->notes.ready = k;
	}
	k->ready |= what;
	k->net->notes.any = true;
}

static void note_event(struct conn *k, unsigned what)
{
	struct net *net = k->net;

	pthread_mutex_lock(&net->notes.lock);
	note(k, what);
	pthread_mutex_unlock(&net->notes.lock);
	net_woken(net);
}

void net_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	note_event(arg, (what & EV_READ ? READY_READ : 0) | (what & EV_WRITE ? READY_WRITE : 0));
}

void net_ssh_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	note_event(arg, READY_SAID);
}

struct conn *notes_pop(struct net *net, unsigned *what)
{
	pthread_mutex_lock(&net->notes.lock);
	struct conn *k = net->notes.ready;
	if (k) {
		net->notes.ready = k->ready_next;
		*what = k->ready;
		k->ready = 0;
	}
	pthread_mutex_unlock(&net->notes.lock);
	return k;
}

void notes_forget(struct conn *k)
{
	struct notes *all = &k->net->notes;

	pthread_mutex_lock(&all->lock);
	if (k->lookup)	/* it is not cancelled (TRICKS: lookup-outlives) */
		k->lookup->conn = NULL;
	k->lookup = NULL;
	for (struct conn **at = &all->ready; k->ready && *at; at = &(*at)->ready_next)
		if (*at == k) {
			*at = k->ready_next;
			break;
		}
	k->ready = 0;
	pthread_mutex_unlock(&all->lock);
}

/* ---- lookups of names ---- */

struct lookup *notes_expect(struct conn *k)
{
	struct notes *all = &k->net->notes;
	struct lookup *q = malloc(sizeof *q);

	if (!q)
		return NULL;
	pthread_mutex_lock(&all->lock);
	*q = (struct lookup){ all->lookups, k->net, k, NULL };
	all->lookups = k->lookup = q;
	pthread_mutex_unlock(&all->lock);
	return q;
}

void notes_expected(struct conn *k, struct evdns_getaddrinfo_request *request)
{
	pthread_mutex_lock(&k->net->notes.lock);
	if (k->lookup)			/* else the name was known at once, and it is freed */
		k->lookup->request = request;
	pthread_mutex_unlock(&k->net->notes.lock);
}

void net_note_resolved(int error, struct evutil_addrinfo *found, void *arg)
{
	struct lookup *q = arg, **at;

	if (error == EVUTIL_EAI_CANCEL)
		return;		/* q is about to be freed: notes_free() */
	struct net *net = q->net;
	pthread_mutex_lock(&net->notes.lock);
	struct conn *k = q->conn;
	for (at = &net->notes.lookups; *at != q; at = &(*at)->next)
		;
	*at = q->next;
	if (k) {
		k->lookup = NULL;
		k->lookup_error = error;
		k->found = found;
		note(k, READY_RESOLVED);
	}
	pthread_mutex_unlock(&net->notes.lock);
	free(q);
	if (k)
		net_woken(net);
	else if (found)
		evutil_freeaddrinfo(found);
}

/* ---- start and end ---- */

void notes_init(struct net *net)
{
	pthread_mutex_init(&net->notes.lock, NULL);
}

void notes_cancel(struct net *net)
{
	for (struct lookup *q = net->notes.lookups; q; q = q->next)
		if (q->request)
			evdns_getaddrinfo_cancel(q->request);
}

void notes_free(struct net *net)
{
	for (struct lookup *q; (q = net->notes.lookups); free(q))
		net->notes.lookups = q->next;
}
