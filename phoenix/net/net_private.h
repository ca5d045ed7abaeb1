/* net_private.h - the state of net/: the loop and its connections.
 *
 * Everything but the notes of libevent's callbacks is under the lock of runtime.c.
 */
#ifndef PHOENIX_NET_PRIVATE_H
#define PHOENIX_NET_PRIVATE_H

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include "phoenix/link/link.h"
#include "phoenix/net/net_loop.h"
#include "phoenix/net/patience.h"
#include "phoenix/net/vigil.h"
#include "phoenix/routing/contact.h"

enum conn_state { RESOLVING, CONNECTING, PEEKING, SECURING, OPEN, DRAINING };
enum ready { READY_READ = 1, READY_WRITE = 2, READY_RESOLVED = 4, READY_SAID = 8 };
/* A lookup of a name.  It outlives the connection that asked (TRICKS: lookup-outlives). */
struct lookup {
	struct lookup *next;		/* all of this is under the lock of the notes */
	struct net *net;
	struct conn *conn;		/* NULL: no connection waits for it any more */
	struct evdns_getaddrinfo_request *request;
};
struct conn {
	struct conn *next, *ready_next, *dirty_next;
	unsigned ready;			/* READY_*, under the lock of the notes */
	int lookup_error;
	/* owned; from libevent's resolver, from the C library's */
	struct evutil_addrinfo *found, *numeric;
	const struct addrinfo *address;		/* the next of these to be tried */
	struct net *net;
	enum conn_state state;
	int fd;
	struct event *readable, *writable;
	struct lookup *lookup;
	struct contact *contact;
	struct plink *l;
	SSL *ssl;
	BIO *from_net, *to_net;
	struct writer cipher;		/* encrypted bytes that did not fit into the socket */
	size_t cipher_sent;
	struct writer record;		/* a TLS record that has not arrived whole */
	bool dirty, blocked;
	uint64_t since_us;
	uint64_t cost_us;	/* the time that it took before it proved itself: patience.h */
	pid_t ssh;			/* the process that this library has started, or 0 */
	int ssh_door;			/* what the application's starter returned, or -1 */
	struct said *said;		/* what ssh has written */
};
struct notes {				/* notes.c's */
	pthread_mutex_t lock;
	struct conn *ready;
	struct lookup *lookups;
	atomic_bool any;		/* something is in `ready` */
};
struct net {
	struct event_base *base;
	struct evdns_base *dns;
	bool lodger;			/* the loop is the caller's */
	struct event *timer, *listeners[2];	/* listeners: IPv4 or a local socket; IPv6 */
	int timer_fd, listen_fds[2];
	uint64_t deaf_until;		/* no listener is watched before; 0: they are */
	char unix_path[MAX_UNIX_PATH];	/* "": there is no local socket */
	struct phnx *ph;
	const struct net_owner *owner;
	struct conn *conns;
	struct event *wake;
	struct notes notes;
	/* knock: somebody connects; stirred: something has ended the wait of the loop */
	atomic_bool knock, stirred;
	struct conn *hot;		/* the connection that brought something last */
	struct conn *left_out;		/* NULL, or `hot` while libevent does not watch it */
	uint64_t now;	/* the time when it was last read; 0: it has to be read again */
	uint64_t looked_us;		/* when net_look() last polled all connections */
	struct vigil vigil;
	struct patience patience;
	bool wary;	/* from other computers TLS alone is taken: net_be_wary() */
	uint64_t pushed_us;		/* when net_push_burst() wrote last */
	struct conn *dirty, **dirty_end;	/* connections that have frames to send, in order */
	atomic_uint_least64_t due;	/* when the timer expires, while it is armed */
	atomic_bool armed;
	SSL_CTX *server, *client;
	int (*ssh_starter)(void *arg, const char *login, int port, int carry, int say);
	void *ssh_starter_arg;
};

enum { READ_BUDGET = 1 << 20 };	/* bytes of one connection before others have their turn */

/* ---- notes.c ---- */
/* Callbacks of libevent. */
void net_note_resolved(int error, struct evutil_addrinfo *found, void *lookup);
void net_event(evutil_socket_t fd, short what, void *conn);
void net_ssh_event(evutil_socket_t fd, short what, void *conn);
void net_woken(struct net *net);	/* the last call of each callback of libevent */
/* Returns a connection that is ready, and for what; NULL: there is none. */
struct conn *notes_pop(struct net *net, unsigned *what);
void notes_forget(struct conn *k);	/* forgets everything that was noted of k */
/* k waits for a lookup, whose answer goes to net_note_resolved(); NULL: out of memory. */
struct lookup *notes_expect(struct conn *k);
/* That lookup was begun; it may have been answered. */
void notes_expected(struct conn *k, struct evdns_getaddrinfo_request *request);
void notes_init(struct net *net);
void notes_cancel(struct net *net);	/* cancels all lookups; no thread is in the loop any more */
void notes_free(struct net *net);

/* ---- net_loop.c ---- */
uint64_t net_now(void);
/* a timer of some connection expires then */
void net_look_by(struct net *net, uint64_t when);

/* ---- net_listen.c ---- */
void net_accept_all(struct net *net);	/* accepts those who connect, if it is time for that */
void net_hear_again(struct net *net);	/* watches the listeners again: deaf_until is over */

/* ---- connection.c ----
 * Where a function says that k is gone, k was freed and the node was told. */
struct conn *conn_new(struct net *net, int fd, struct contact *c, enum conn_state state);
void conn_free(struct conn *k);
void conn_drop_socket(struct conn *k);	/* and everything that was noted of it */
void conn_lost(struct conn *k);		/* it has failed or ended: tells the node, frees k */
void conn_close(struct conn *k);	/* the node closes its link */
bool conn_open(struct conn *k);		/* it is ready for frames; false: k is gone */
/* Writes the peer's address; "" if it has none. */
void conn_origin(const struct conn *k, char *host, size_t room);
int conn_watch(struct conn *k);		/* watches k->fd; returns 0 or -1 */
void conn_has_more(struct conn *k);	/* k sends when net_settle() ends */
void conn_flush(struct conn *k);
bool conn_push(struct conn *k);	/* writes what it can, and never ends k; true: something is left */
void conn_read(struct conn *k);		/* k may be gone */
void conn_stirs(struct conn *k);	/* it has brought something */
void conn_peek(struct conn *k);		/* finds out what a new peer speaks */
/* The address is a local socket's, or this computer's loopback: an ssh tunnel's end, say. */
bool conn_is_near(const struct sockaddr *peer);
void conn_drain(struct conn *k);
/* Writes; *sent: what fitted.  -1: the connection is broken. */
int conn_write(struct conn *k, struct iovec *iov, size_t n, size_t *sent);
/* Lists the unsent bytes of the link's queue in iov, as far as they fit. */
size_t conn_gather(struct plink *l, struct iovec *iov, size_t room);

/* ---- tls.c ---- */
int tls_start(struct conn *k, bool server);	/* 0 or -1 */
bool tls_advance(struct conn *k);		/* continues the handshake; false: k is gone */
int tls_flush(struct conn *k);			/* 0, or -1: the connection is broken */
void tls_read(struct conn *k);

/* ---- dial.c ---- */
void dial_start(struct net *net, struct contact *c);
void dial_stop(struct net *net, struct contact *c);
void dial_next(struct conn *k);		/* dials the next address; k may be gone */
void dial_resolved(struct conn *k);
void dial_connected(struct conn *k);

/* ---- ssh.c ---- */
void ssh_start(struct conn *k, const struct phnx_contact *at);	/* k may be gone */
void ssh_hear(struct conn *k);		/* reads what ssh has written */
void ssh_lost(struct conn *k);		/* the connection has ended: ends ssh, and reports why */
/* Ends ssh, if there is one.  Returns its status as of waitpid(), or -1: there was none. */
int ssh_end(struct conn *k);
void ssh_deafen(struct conn *k);	/* k is about to be freed */

#endif
