/* net.h - the transport of a real process: TCP, TLS 1.3 and SSH tunnels, on libevent.
 *
 * Everything but net_loop() is called with the lock of runtime.c held. */
#ifndef PHOENIX_NET_H
#define PHOENIX_NET_H

#include <stdatomic.h>
#include "phoenix/core.h"

struct event_base;
struct net;
struct net_owner {		/* the functions that net.c calls back */
	void (*report)(int error, const char *text);
	void (*arrived)(void);
	void (*stirred)(void);		/* in a caller's loop: something is ready, net_settle() is due */
};
/* base: the caller's loop, which outlives the net and runs it; NULL: one of its own, for net_loop(). */
struct net *net_new(const struct net_owner *owner, ph_vp_t lower, ph_vp_t upper, struct event_base *base);
struct phnx *net_phnx(struct net *net);
void net_free(struct net *net);
/* Listens on the first free port; on loopback only, unless `anywhere`. 0 or an error. */
int net_listen(struct net *net, const int *ports, size_t n, bool anywhere);
/* The same on a socket in the file system, for processes of this user. */
int net_listen_unix(struct net *net, const char *path);
void net_push(struct net *net);		/* writes what the sockets take: from a handler, too */
void net_flush(struct net *net, uint64_t timeout_us);	/* the same, and waits. Neither ends a connection, whatever is wrong with it */
void net_break(struct net *net);		/* every link that is up, as a network may: for tests */
void net_watch_all(struct net *net);		/* before net_loop() */
/* Without the lock: waits for events, at most for timeout_us; net_settle() then handles them. */
void net_loop(struct net *net, uint64_t timeout_us);
/* Spends a short while awake for an answer, while `wanted` (who waits for the lock) is 0. false: nothing has come. */
bool net_stay_awake(struct net *net, const atomic_uint *wanted);
bool net_look(struct net *net);			/* whether anything has come; nobody else may be in net_loop() */
/* The time, which is read once for what is done at one go: net_time_goes_on() where the lock was taken, or time has passed. */
uint64_t net_time(struct net *net);
void net_time_goes_on(struct net *net);
void net_wake(struct net *net);			/* makes net_loop() in another thread return */
bool net_has_notes(const struct net *net);	/* of what is ready, which net_settle() handles */
void net_settle(struct net *net);		/* after any call into the node: timers, and send what there is to send */
void net_send(struct net *net);			/* only the last of these; net_settle() is still due */
bool net_can_wait(const struct net *net);	/* net_settle() can, until the application has answered a message */
/* Ends all connections so that what was sent arrives. net_loop() until net_closed(), but not for ever. */
void net_shutdown(struct net *net);
bool net_closed(struct net *net);

#endif
