/* conn.h - what net.c, conn.c, tls.c and dial.c have in common; nobody else includes it.
 *
 *   net.c   the loop, what libevent calls, listening        conn.c  one connection: its life, plain bytes
 *   tls.c   TLS 1.3 over memory BIOs                         dial.c  names, addresses
 *   ssh.c   SSH tunnels
 *
 * Everything but the notes that net.c's callbacks leave (`ready`) is under the lock of runtime.c.
 */
#ifndef PHOENIX_CONN_H
#define PHOENIX_CONN_H

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include "phoenix/net.h"

enum conn_state { RESOLVING, CONNECTING, PEEKING, SECURING, OPEN, DRAINING };
enum ready { READY_READ = 1, READY_WRITE = 2, READY_RESOLVED = 4, READY_SAID = 8 };
/* A name that is being looked up.  It outlives the connection that asked: to cancel it while another thread is in the loop may
 * wait, within libevent, for a callback that waits for the canceller. */
struct lookup {
	struct lookup *next;		/* all this under ready_lock */
	struct net *net;
	struct conn *conn;		/* NULL: nobody wants to know any more */
	struct evdns_getaddrinfo_request *request;
};
struct conn {
	struct conn *next, *ready_next, *dirty_next;
	unsigned ready;			/* under ready_lock */
	int lookup_error;
	struct evutil_addrinfo *found, *numeric;	/* owned: by libevent's resolver, by the C library's */
	const struct addrinfo *address;		/* of these, the next to be tried */
	struct net *net;
	enum conn_state state;
	int fd;
	struct event *readable, *writable;
	struct lookup *lookup;
	struct contact *contact;
	struct plink *l;
	SSL *ssl;
	BIO *from_net, *to_net;
	struct writer cipher;		/* bytes for the socket that did not fit into it */
	size_t cipher_sent;
	bool dirty, blocked;
	uint64_t since_us;
	pid_t ssh;
	struct said *said;		/* by ssh */
};
struct net {
	struct event_base *base;
	struct evdns_base *dns;
	bool lodger;			/* the loop is the caller's */
	struct event *timer, *listeners[2];	/* of IPv4, or a socket in the file system; of IPv6 */
	int timer_fd, listen_fds[2];
	uint64_t deaf_until;		/* 0: listens */
	char unix_path[MAX_UNIX_PATH];	/* "": there is none in the file system */
	struct phnx *ph;
	const struct net_owner *owner;
	struct conn *conns;
	struct event *wake;
	pthread_mutex_t ready_lock;
	struct conn *ready;
	struct lookup *lookups;
	atomic_bool noted, knock, stirred;	/* noted: something is in `ready`. stirred: something has ended the loop's wait */
	struct conn *hot;		/* the last that brought something */
	struct conn *left_out;		/* NULL, or `hot`: libevent does not watch it meanwhile */
	unsigned prompt;		/* how often in a row it brought something while somebody stayed awake for that */
	uint64_t now;			/* the time, as it was read last; 0: to be read again */
	uint64_t looked_us;		/* when net_look() looked at all connections */
	unsigned asleep, in_vain;	/* the driver's: see net_stay_awake() */
	bool shared;			/* so is this */
	struct conn *dirty, **dirty_end;	/* those that have more to send, in their order */
	atomic_uint_least64_t due;	/* when the timer fires, while it is armed */
	atomic_bool armed;
	SSL_CTX *server, *client;
};

enum { READ_BUDGET = 1 << 20 };	/* bytes of one connection before others have their turn */

/* net.c */
void net_note_resolved(int error, struct evutil_addrinfo *found, void *lookup);
void net_event(evutil_socket_t fd, short what, void *conn);
void net_ssh_event(evutil_socket_t fd, short what, void *conn);
uint64_t net_now(void);
void net_look_by(struct net *net, uint64_t when);	/* some connection's time is up by then */

void net_stirred(struct net *net);	/* at the end of every callback of libevent's */

/* conn.c: where a function says that k is gone, it has been freed, and the node was told. */
struct conn *conn_new(struct net *net, int fd, struct contact *c, enum conn_state state);
void conn_free(struct conn *k);
void conn_drop_socket(struct conn *k);	/* and whatever has been noted of it */
void conn_lost(struct conn *k);		/* of no use any more: tells the node, frees k */
void conn_close(struct conn *k);	/* the node closes its link */
bool conn_open(struct conn *k);		/* ready for frames. false: k is gone */
void conn_origin(const struct conn *k, char *host, size_t room);	/* the other side's address; "" if it has none */
int conn_watch(struct conn *k);		/* for readiness of k->fd; 0 or -1 */
void conn_has_more(struct conn *k);	/* to send: it has its turn when net_settle() ends */
void conn_flush(struct conn *k);
bool conn_push(struct conn *k);		/* writes what it can, and never ends k. true: something waits */
void conn_read(struct conn *k);		/* k may be gone */
void conn_stirs(struct conn *k);	/* it has brought something */
void conn_peek(struct conn *k);		/* what does the stranger speak? */
void conn_drain(struct conn *k);
/* Writes; what does not fit stays. -1: the connection is broken. */
int conn_write(struct conn *k, struct iovec *iov, size_t n, size_t *sent);
/* The unsent bytes of the link's queue, as far as they go into iov. */
size_t conn_gather(struct plink *l, struct iovec *iov, size_t room);

/* tls.c */
int tls_start(struct conn *k, bool server);	/* 0 or -1 */
bool tls_advance(struct conn *k);		/* goes on with the handshake. false: k is gone */
int tls_flush(struct conn *k);			/* 0, or -1: broken */
void tls_read(struct conn *k);

/* dial.c */
void dial_start(struct net *net, struct contact *c);
void dial_stop(struct net *net, struct contact *c);
void dial_next(struct conn *k);		/* the next address; k may be gone */
void dial_resolved(struct conn *k);
void dial_connected(struct conn *k);

/* ssh.c */
void ssh_start(struct conn *k, const struct phnx_contact *at);	/* k may be gone */
void ssh_hear(struct conn *k);		/* what it says */
void ssh_lost(struct conn *k);		/* the connection is: ends it, and reports why */
void ssh_deafen(struct conn *k);	/* k goes */

#endif
