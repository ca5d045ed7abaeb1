/* net_loop.h - the transport of a real process: TCP, TLS 1.3, SSH tunnels and local sockets, on
 * libevent.
 *
 * Everything but net_loop() is called with the lock of runtime.c held.
 */
#ifndef PHOENIX_NET_LOOP_H
#define PHOENIX_NET_LOOP_H

#include <stdatomic.h>
#include "phoenix/core/core.h"

struct event_base;
struct net;
struct net_owner {		/* the functions that net/ calls back */
	void (*report)(int error, const char *text);
	void (*arrived)(void);
	void (*stirred)(void);	/* in a caller's loop: something is ready, call net_settle() */
};
/* base: the caller's loop, which outlives the net and runs it; NULL: the net has a loop of its
 * own, for net_loop(). */
struct net *net_new(const struct net_owner *owner, ph_vp_t lower, ph_vp_t upper,
		    struct event_base *base);
struct phnx *net_phnx(struct net *net);
void net_free(struct net *net);
/* Listens on the first free port; without `anywhere` on loopback only.  Returns 0 or an error. */
int net_listen(struct net *net, const int *ports, size_t n, bool anywhere);
/* From now on connections without TLS are taken from this computer alone. */
void net_be_wary(struct net *net);
/* See ph_set_ssh_starter(). */
void net_set_ssh_starter(struct net *net,
			 int (*fn)(void *arg, const char *login, int port, int carry, int say),
			 void *arg);
/* The same on a local socket, for processes of this user. */
int net_listen_unix(struct net *net, const char *path);
void net_push(struct net *net);		/* writes what the sockets take; handlers may call it */
/* As net_push(), but small messages wait for each other: while `corked`, or, for a short time,
 * while `more` follows at once. */
void net_push_burst(struct net *net, bool corked, bool more);
/* Writes and waits for the sockets.  Like net_push() it ends no connection, even a broken one. */
void net_flush(struct net *net, uint64_t timeout_us);
/* Breaks all links that are up, as a network may: for tests. */
void net_break(struct net *net);
void net_watch_all(struct net *net);		/* must be called before net_loop() */
/* Waits for events, for at most timeout_us, without the lock; net_settle() then handles them. */
void net_loop(struct net *net, uint64_t timeout_us);
/* Polls for an answer for a short while, as long as no thread waits for the lock (*wanted is
 * 0).  False: nothing has arrived. */
bool net_stay_awake(struct net *net, const atomic_uint *wanted);
/* Returns whether anything has arrived; no other thread may be in net_loop(). */
bool net_look(struct net *net);
/* The time.  It is read once for everything that is done at one go: net_time_goes_on() when the
 * lock was taken or after a wait. */
uint64_t net_time(struct net *net);
void net_time_goes_on(struct net *net);
void net_wake(struct net *net);			/* makes net_loop() in another thread return */
bool net_has_notes(const struct net *net);	/* whether something is ready for net_settle() */
/* Handles what is ready, and timers, and sends; must follow each call into the node. */
void net_settle(struct net *net);
void net_send(struct net *net);			/* sends; net_settle() is still due */
/* Returns whether net_settle() may wait until the application has answered a message. */
bool net_can_wait(const struct net *net);
/* Ends all connections so that what was sent arrives: net_loop() until net_closed(), but not for
 * ever. */
void net_shutdown(struct net *net);
bool net_closed(struct net *net);

#endif
