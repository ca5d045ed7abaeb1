/* phnx.h - the Phoenix message library: messages to names that outlive the machines behind them.
 *
 * A program sees one large, fixed space of virtual nodes [lower, upper).  A process assumes some of
 * them.  A message to a virtual node reaches whichever process assumes it when the message is
 * received; processes come and go.
 *
 * Rules of use:
 *   - Call ph_init() (or ph_init_runtime() and the calls of "Low level") first, ph_finalize() last.
 *      All other calls may come from any thread in between.  The child of a fork() must not use its
 *     parent's runtime: such calls are refused.
 *   - Calls that return nothing report failures through the error callback
 *     (ph_set_error_callback(); by default to standard error).  No call ends the process.
 *   - Sets and messages that a call returns belong to the caller: ph_vps_destroy(),
 *     ph_msg_destroy().
 *   - Times are microseconds, but for ph_finalize(), which counts seconds.
 *
 * The first part of this header is the interface of K. Kaneda's thesis (University of Tokyo, 2006),
 * appendix A, name by name.  The second part, from "Beyond the appendix" on, is what the thesis and
 * the PPoPP 2003 paper name as future work.  A comment that begins with the name of a function
 * becomes that function's manual page.
 */
#ifndef PHNX_PHNX_H
#define PHNX_PHNX_H

#include <stddef.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A.1 types, constants, global variables ---- */

typedef long long ph_vp_t;		/* one virtual node, or a resource name */
typedef struct ph_vps *ph_vps_t;	/* a set of virtual nodes, on the heap */
typedef struct ph_vps_iter *ph_vps_iter_t;

struct ph_msg {
	void *body;
	size_t len;	/* bytes of body */
	ph_vp_t dest;	/* the virtual node or resource name that it was sent to */
	int tag;
};
typedef struct ph_msg *ph_msg_t;

#define PH_INVALID_VP (-1LL)
#define PH_MSG_ANY_TAG 0
#define PH_MSG_INVALID ((ph_msg_t)NULL)

/* The bounds given to ph_init(); both 0 before it. */
extern ph_vp_t PH_VP_LOWER_BOUND, PH_VP_UPPER_BOUND;

/* ---- A.2 initialisation and finalisation ---- */

/* ph_init - start the library, set up contact points, load stored messages
 *
 * [lower, upper) is the space of virtual nodes, 0 <= lower <= upper < 2^63 - 2 (what is above it
 * is for resource names).  config_file names a configuration file; NULL: no contact points.
 * config_tag selects in its match blocks, or is NULL.  session is the session's name, whose
 * secret is in $PHNX_SECRET or in ~/.config/phnx/SESSION (mode 0600); with NULL only processes
 * of the same user on the same host are accepted.  msg_log_file was written by ph_finalize(), or
 * is NULL. */
void ph_init(ph_vp_t lower, ph_vp_t upper, const char *config_file, const char *config_tag,
	     const char *session, const char *msg_log_file);

/* ph_finalize - leave, after the local message queue is empty or timeout seconds have passed
 *
 * A timeout of -1 waits for ever.  What is left then is written to msg_log_file.  It is lost if
 * that is NULL or cannot be written (PH_ELOG).  A program that cannot afford that calls
 * ph_store_msgs() before, after which everything is still there if it failed.  "Empty" means
 * that every message was taken by a receiver, or handed to a neighbour that keeps it for a node
 * that is away. */
void ph_finalize(const char *msg_log_file, int timeout);

/* ---- A.3 mapping ---- */

/* ph_assume_vps - let this process assume the virtual nodes vps, besides those that it has */
void ph_assume_vps(const ph_vps_t vps);
/* ph_assume_vp - let this process assume one virtual node */
void ph_assume_vp(ph_vp_t vp);
/* ph_release_vps - let this process release the virtual nodes vps
 *
 * Messages that wait for them here travel on.  Copies of multicasts stay as long as the process
 * assumes anything: the next holder may have its own. */
void ph_release_vps(const ph_vps_t vps);
/* ph_release_vp - let this process release one virtual node */
void ph_release_vp(ph_vp_t vp);
/* ph_get_assumed_vps - a new set of what this process assumes, without its resource name */
ph_vps_t ph_get_assumed_vps(void);
/* ph_get_resource_name - the name of this process itself, random in [max(upper, 2^62), 2^63) */
ph_vp_t ph_get_resource_name(void);
/* ph_get_vp_lower_bound - PH_VP_LOWER_BOUND */
ph_vp_t ph_get_vp_lower_bound(void);
/* ph_get_vp_upper_bound - PH_VP_UPPER_BOUND */
ph_vp_t ph_get_vp_upper_bound(void);
/* ph_get_random_vp - a random virtual node of [lower, upper) */
ph_vp_t ph_get_random_vp(void);

/* ---- A.4 messages ---- */

/* ph_send - send len bytes to a virtual node or resource name
 *
 * Returns at once; the message waits in the local queue while nobody assumes dest.  Only when
 * that queue has reached its bound does the call wait for room.  For messages to this process
 * itself only another of its threads can make room.  Messages of one process to one dest arrive
 * in the order in which they were sent. */
void ph_send(ph_vp_t dest, const void *body, size_t len, int tag);
/* ph_timed_send - ph_send() of a message that disappears if nobody receives it in timeout us */
void ph_timed_send(ph_vp_t dest, const void *body, size_t len, int tag, long long timeout);
/* ph_recv - wait for a message whose tag matches; PH_MSG_INVALID on error
 *
 * A message sent with PH_MSG_ANY_TAG matches every tag, and a receive with PH_MSG_ANY_TAG
 * matches every message. */
ph_msg_t ph_recv(int tag);
/* ph_rcv - another name of ph_recv() */
ph_msg_t ph_rcv(int tag);
/* ph_try_recv - ph_recv(), but NULL at once when there is no message */
ph_msg_t ph_try_recv(int tag);
/* ph_try_rcv - another name of ph_try_recv() */
ph_msg_t ph_try_rcv(int tag);
/* ph_timed_recv - ph_recv(), but NULL when there is no message for timeout microseconds */
ph_msg_t ph_timed_recv(int tag, long long timeout);
/* ph_timed_rcv - another name of ph_timed_recv() */
ph_msg_t ph_timed_rcv(int tag, long long timeout);
/* ph_msg_destroy - free a received message */
void ph_msg_destroy(ph_msg_t msg);

/* ---- A.5 sets of virtual nodes ---- */

/* ph_vps_create_empty - a new empty set */
ph_vps_t ph_vps_create_empty(void);
/* ph_vps_create_singleton - a new set of one virtual node */
ph_vps_t ph_vps_create_singleton(ph_vp_t vp);
/* ph_vps_create_range - a new set [l, u); empty if u <= l */
ph_vps_t ph_vps_create_range(ph_vp_t l, ph_vp_t u);
/* ph_vps_create_inter - a new set: the intersection of x and y */
ph_vps_t ph_vps_create_inter(const ph_vps_t x, const ph_vps_t y);
/* ph_vps_create_union - a new set: the union of x and y */
ph_vps_t ph_vps_create_union(const ph_vps_t x, const ph_vps_t y);
/* ph_vps_create_diff - a new set: what is in x and not in y */
ph_vps_t ph_vps_create_diff(const ph_vps_t x, const ph_vps_t y);
/* ph_vps_dup - a copy of vps */
ph_vps_t ph_vps_dup(const ph_vps_t vps);
/* ph_vps_destroy - free a set */
void ph_vps_destroy(ph_vps_t vps);
/* ph_vps_is_empty - 1 if vps is empty, else 0 */
int ph_vps_is_empty(const ph_vps_t vps);
/* ph_vps_is_sub - 1 if x is a subset of y, else 0 */
int ph_vps_is_sub(const ph_vps_t x, const ph_vps_t y);
/* ph_vps_is_equal - 1 if x and y have the same members, else 0 */
int ph_vps_is_equal(const ph_vps_t x, const ph_vps_t y);
/* ph_vps_is_exclusive - 1 if x and y have no common member, else 0 */
int ph_vps_is_exclusive(const ph_vps_t x, const ph_vps_t y);
/* ph_vps_is_member - 1 if vp is in vps, else 0 */
int ph_vps_is_member(const ph_vps_t vps, ph_vp_t vp);
/* ph_vps_iter_create - a new iterator over what vps holds now */
ph_vps_iter_t ph_vps_iter_create(ph_vps_t vps);
/* ph_vps_iter_destroy - free an iterator */
void ph_vps_iter_destroy(ph_vps_iter_t x);
/* ph_vps_iter_has_next - 1 if members are left, else 0 */
int ph_vps_iter_has_next(ph_vps_iter_t x);
/* ph_vps_iter_next - the next slice: lower, lower + stride, ... below upper
 *
 * The slice begins at the smallest member left.  Its stride is the distance to the next member,
 * and it goes on as long as members follow (65,536 of them at most).  A single member is [lower,
 * lower + 1) with a stride of 1, as in the thesis's example; the thesis's formula has upper in
 * the slice, and 0 as that stride.  All three are PH_INVALID_VP when no member is left. */
void ph_vps_iter_next(ph_vps_iter_t x, ph_vp_t *lower, ph_vp_t *upper, ph_vp_t *stride);
/* ph_vps_iter_range_next - the next run of members without a gap, [lower, upper) */
void ph_vps_iter_range_next(ph_vps_iter_t x, ph_vp_t *lower, ph_vp_t *upper);
/* ph_vps_get_min_elem - the smallest member, or PH_INVALID_VP */
ph_vp_t ph_vps_get_min_elem(const ph_vps_t vps);
/* ph_vps_get_max_elem - the largest member, or PH_INVALID_VP */
ph_vp_t ph_vps_get_max_elem(const ph_vps_t vps);
/* ph_vps_get_any_elem - a random member, or PH_INVALID_VP */
ph_vp_t ph_vps_get_any_elem(const ph_vps_t vps);
/* ph_vps_get_lower_bound - the smallest member, or PH_INVALID_VP */
ph_vp_t ph_vps_get_lower_bound(const ph_vps_t vps);
/* ph_vps_get_upper_bound - one more than the largest member, or PH_INVALID_VP */
ph_vp_t ph_vps_get_upper_bound(const ph_vps_t vps);

/* ---- A.6 low level ---- */

/* ph_init_runtime - start the library with the space [lower, upper), and nothing else */
void ph_init_runtime(ph_vp_t lower, ph_vp_t upper);
/* ph_add_port_tcp - a contact point: keep trying to connect to hostname:port */
void ph_add_port_tcp(const char *hostname, int port);
/* ph_add_port_ssh - a contact point behind an SSH login on hostname (user may be NULL)
 *
 * ssh must be able to log in without asking anything.  When it fails (an unknown host, a login
 * that is refused, nobody who listens on the port there), the last line that it writes is
 * reported (PH_EHOST), and again only after that line has changed or the connection was made.
 * Nothing else that it writes to its standard error is shown. */
void ph_add_port_ssh(const char *hostname, int port, const char *user);
typedef int (*ph_ssh_fn)(void *arg, const char *login, int port, int carry, int say);
/* ph_set_ssh_starter - let the application start ssh, instead of this library; NULL: the library
 *
 * fn starts "ssh -W 127.0.0.1:port login", with the descriptor carry as its standard input and
 * output, and say as its standard error.  Both stay the library's.  fn returns a stream socket, or
 * a negative error number.  When the library shuts that socket down for writing, ssh is to end.
 * Then, or when ssh ends by itself, the library reads its status from there, an int as of
 * waitpid(), and closes the socket.  For a process that has given up the right to run ssh. */
void ph_set_ssh_starter(ph_ssh_fn fn, void *arg);
/* ph_add_port_ssl - a contact point spoken to with TLS 1.3 under the session's secret */
void ph_add_port_ssl(const char *hostname, int port);
/* ph_load_msgs - take the messages of a file of ph_store_msgs() into the local queue
 *
 * A log is loaded once (PH_ELOG).  If memory runs out (PH_ENOMEM), another call loads what had
 * no room.  A log that its writer wrote later than another one also has the messages of that
 * one; only the rest is loaded.  A lock keeps another process from loading the same file until
 * this one has called ph_finalize(); for that a descriptor stays open.  The library cannot know
 * that the file is a copy of one that another process has loaded, that it is loaded on another
 * host meanwhile, or that its loader has ended.  Then every message that had reached its
 * receiver since arrives once more.  So a log is best removed, or written anew, when its loader
 * ends, and loaded again only if that one died at once. */
void ph_load_msgs(const char *filename);
/* ph_set_listen_port - listen on an unused port of [lower, upper)
 *
 * Listens on loopback only while the session has no secret. */
void ph_set_listen_port(int lower, int upper);
/* ph_set_session_id - name the session, before any listen port or contact point */
void ph_set_session_id(const char *session);
/* ph_read_config - interpret a configuration of len bytes */
void ph_read_config(char *buf, size_t len, const char *config_tag);
/* ph_finalize_runtime - close all connections and stop the library */
void ph_finalize_runtime(void);
/* ph_invalidate_routing - tell the neighbours that this process forwards nothing any more
 *
 * From then on ph_mqueue_is_empty() and ph_store_msgs() release its virtual nodes, so that
 * messages that it has sent to itself and not received are in the queue too. */
void ph_invalidate_routing(void);
/* ph_mqueue_is_empty - 1 if no message waits in the local queue, else 0 */
int ph_mqueue_is_empty(void);
/* ph_store_msgs - write the messages of the local queue to a file
 *
 * The file must be new, or replaces an ordinary one.  After an error (PH_ELOG, PH_ENOMEM) the
 * queue is as it was.  The process that loads the file sends the messages: this process sends
 * none of them any more, nor what it is given later for the same virtual nodes.  The queue
 * counts as empty then. */
void ph_store_msgs(const char *filename);

/* ---- Beyond the appendix ---- */

/* Errors that the callback and the calls that return int give (negative). */
enum ph_error {
	PH_OK = 0,
	PH_ENOTINIT = -1,	/* before initialisation or after finalisation */
	PH_EFORK = -2,		/* in the child of a fork */
	PH_EBOUND = -3,		/* a virtual node outside [lower, upper) */
	PH_ETOOBIG = -4,	/* a message over PH_MSG_MAX, or a set of too many ranges */
	PH_EAGAIN = -5,		/* the queue is full and the call may not wait */
	PH_ENOMEM = -6,
	PH_ECONFIG = -7,	/* the configuration, with line and column */
	/* a log file that cannot be read or written, or is not valid for this session */
	PH_ELOG = -8,
	PH_EPORT = -9,		/* no port of the range is free */
	PH_EHOST = -10,		/* an unknown host, or one that ssh does not reach */
	PH_EOVERLAP = -11,	/* another node assumes the same virtual node */
	/* a peer refused this node or the reverse: wrong session, secret, version, bounds */
	PH_EREFUSED = -12,
	PH_EPEER = -13,		/* a peer broke the protocol */
	PH_EGONE = -14,		/* a node is gone, or a message could not be delivered to it */
	PH_ETIMEDOUT = -15,
	PH_EINVAL = -16,
	PH_EBUSY = -17,		/* another migration of this node is under way */
	PH_ESYSTEM = -18,	/* an error of the host, which the text names */
};

enum { PH_MSG_MAX = 16 << 20 };	/* of a message's body, in bytes */

/* ph_strerror - a short text for an error */
const char *ph_strerror(int error);
typedef void (*ph_error_fn)(void *arg, int error, const char *text);
/* ph_set_error_callback - where failures are reported; NULL: standard error
 *
 * May be called before ph_init().  The callback runs with the library's lock held: it may call
 * the library, but must not wait. */
void ph_set_error_callback(ph_error_fn fn, void *arg);

enum { PH_UNORDERED = 1 };	/* flags of ph_sendx() */
/* ph_sendx - ph_send() with flags, which returns PH_EAGAIN instead of waiting for room */
int ph_sendx(ph_vp_t dest, const void *body, size_t len, int tag, int flags);
/* ph_send_page - send without a copy: body stays the library's until release(arg) is called
 *
 * release() is called when the message is out of the sender's hands: in whatever thread runs the
 * library's loop, or before this call returns.  After an error (PH_EAGAIN: the queue is full)
 * body is the caller's as before, and release() is not called. */
int ph_send_page(ph_vp_t dest, const void *body, size_t len, int tag, void (*release)(void *arg),
		 void *arg);

/* ph_send_sealed - ph_send_page() of bytes that the application has encrypted and signed
 *
 * Links under TLS do not encrypt them again.  So others can change them on their way; the
 * application must notice that. */
int ph_send_sealed(ph_vp_t dest, const void *body, size_t len, int tag, void (*release)(void *arg),
		   void *arg);

typedef void (*ph_handler_fn)(void *arg, const struct ph_msg *msg, ph_vp_t source);
/* ph_set_handler - handle messages of exactly this tag as they arrive; NULL removes it
 *
 * The handler runs in the library's loop and must not wait.  msg is the library's, and valid
 * during the call. */
int ph_set_handler(int tag, ph_handler_fn fn, void *arg);
/* ph_get_fd - a descriptor that is readable while a message waits for ph_try_recv() */
int ph_get_fd(void);
/* ph_get_source - the resource name of the sender of a received message */
ph_vp_t ph_get_source(ph_msg_t msg);
/* ph_get_rtt - the smoothed round-trip time to a neighbour in us; PH_EINVAL: it is none */
long long ph_get_rtt(ph_vp_t resource_name);
/* ph_is_held - whether some node that can be reached assumes vp, as far as this node knows
 *
 * Returns 1 or 0.  A message to a virtual node that is not held waits until somebody assumes it. */
int ph_is_held(ph_vp_t vp);

/* ---- in a caller's event loop ---- */

struct event_base;
struct iovec;
/* ph_init_in_loop - ph_init_runtime() for a libevent loop of the caller's, without a thread
 *
 * Handlers run in that loop.  All calls come from the thread that runs it.  Those that wait run
 * the loop themselves, and so must not be called from one of its callbacks.  session names the
 * session, secret_file holds its secret (mode 0600). */
int ph_init_in_loop(ph_vp_t lower, ph_vp_t upper, const char *session, const char *secret_file,
		    struct event_base *base);
/* ph_listen_unix - listen on a local socket, for processes of this user
 *
 * path must not exist. */
int ph_listen_unix(const char *path);
/* ph_add_port_unix - a contact point that is a local socket
 *
 * Between processes of one host it takes two thirds of TCP's time (a round trip of 64 bytes and
 * a page on one processor: 10 us instead of 16). */
int ph_add_port_unix(const char *path);
/* ph_set_near_port - ph_set_listen_port(), but on loopback alone, also if the session has a secret
 *
 * Nodes of other computers reach this one through ssh tunnels, or are dialed by it. */
void ph_set_near_port(int lower, int upper);
/* ph_get_listen_port - the port that this process listens on; 0: none
 *
 * It is the free one of ph_set_listen_port() or of the configuration.  Returns a negative error
 * if there is no runtime. */
int ph_get_listen_port(void);
/* ph_prefer_ssl - speak TLS 1.3 to nodes whose addresses are learned from others
 *
 * A node that has a contact point with TLS does so anyway.  From this call on, connections without
 * TLS are taken from this computer alone, where ssh tunnels end; from elsewhere they are closed. */
void ph_prefer_ssl(void);
/* ph_sendv - ph_sendx() of a message in several pieces, which are copied once */
int ph_sendv(ph_vp_t dest, const struct iovec *pieces, int n, int tag);
/* ph_flush - write what is queued for the sockets, for at most timeout microseconds
 *
 * For an end without ph_finalize().  May be called from a handler. */
void ph_flush(long long timeout);
/* ph_cork - let messages that are sent until ph_uncork() leave together
 *
 * They cost fewer packets and system calls, and leave at ph_uncork() at the latest.  The calls
 * nest.  In between, calls that wait are refused, as in a handler; other threads wait. */
void ph_cork(void);
/* ph_uncork - end what ph_cork() began */
void ph_uncork(void);
/* ph_has_more - in a handler: 1 if more has arrived behind the message, at once */
int ph_has_more(void);
/* ph_break_connections - break all connections, as a network may: for tests */
void ph_break_connections(void);

/* ---- node failure ---- */

enum ph_gone_policy { PH_GONE_RESEND, PH_GONE_RETURN, PH_GONE_DISCARD };
#define PH_TIMEOUT_BY_SIZE (-1LL)
typedef void (*ph_gone_fn)(void *arg, ph_vp_t resource_name, const struct ph_msg *returned);
/* ph_set_failure_timeout - declare a node gone that was silent for timeout microseconds
 *
 * Silent means that nothing was heard of it, from any node.  0 (the default) never declares a
 * node gone.  PH_TIMEOUT_BY_SIZE takes as long as the session's size needs: 1.5 seconds for each
 * doubling of the number of nodes, at least 5 seconds.  All nodes of a session should have the
 * same.  fn is called once with returned == NULL.  With PH_GONE_RETURN it is called once
 * more for each message that was under way to the node.  With PH_GONE_RESEND these messages wait
 * for the next node that assumes their destination; one that the dead node had already received
 * may then be received twice. */
void ph_set_failure_timeout(long long timeout, enum ph_gone_policy policy, ph_gone_fn fn,
			    void *arg);
/* ph_get_silence - for how many microseconds a node has been silent; PH_EINVAL: it is not known
 *
 * Of a neighbour only its connection counts: other nodes may still hear a node that this one does
 * not hear. */
long long ph_get_silence(ph_vp_t resource_name);

/* ---- migration of virtual nodes with application state (PPoPP 2003, section 3.5) ---- */

/* ph_set_migration - set the application's part of migrations; without it no state moves
 *
 * give() is called on the node that loses [lower, upper), after the release.  It returns the
 * state in *state (from malloc, freed by the library) and *len.  take() is called on the node
 * that gains it, before the assumption; its state is aligned for any object.  Both run in the
 * library's loop and must not wait.
 *
 * If give() refuses, by returning an error instead of 0, the virtual nodes stay where they are,
 * and ph_leave_vps() and ph_hand_over() return that error.  The same happens with state of more
 * than PH_MSG_MAX - 64 bytes, which take() gets back: PH_ETOOBIG.  A node that wants virtual
 * nodes which are refused requests them until its time is up. */
struct ph_migration {
	int (*give)(void *arg, ph_vp_t lower, ph_vp_t upper, void **state, size_t *len);
	void (*take)(void *arg, ph_vp_t lower, ph_vp_t upper, const void *state, size_t len);
	void *arg;
};
void ph_set_migration(const struct ph_migration *m);
/* ph_join_vps - obtain half of the interval of a random node, as a new node does
 *
 * PH_ETIMEDOUT, of this call and of ph_take_over(): nothing has come, and nothing will. */
int ph_join_vps(long long timeout);
/* ph_leave_vps - hand the whole interval over to an adjacent node, before leaving for good
 *
 * PH_ETIMEDOUT, of this call and of ph_hand_over(): what was on its way then will arrive or come
 * back.  Until it has, the calls of this section return PH_EBUSY. */
int ph_leave_vps(long long timeout);
/* ph_take_over - take count virtual nodes next to this node's interval, from one side
 *
 * side > 0: from above, else from below. */
int ph_take_over(ph_vp_t count, int side, long long timeout);
/* ph_hand_over - hand count virtual nodes to the adjacent node on one side
 *
 * side > 0: the highest, else the lowest. */
int ph_hand_over(ph_vp_t count, int side, long long timeout);

/* ---- collective operations ----
 * They work on virtual nodes, not on processes, along trees that follow the network.  Everything
 * behind one neighbour is reached through it, once.  Of neighbours that are about as far away, by
 * measured round-trip time, one passes messages on to the others.  The nearest are halved again and
 * again, so that in one place n nodes are reached in about log2 n steps.
 */

/* ph_multicast - send one message to every node that assumes a part of [lower, upper)
 *
 * The message's dest is the smallest virtual node of the receiver's part.  A part that moves
 * while the message is under way gets it at its old or its new node; no node gets it twice.
 * Where memory runs out on its way, which is reported there (PH_ENOMEM), the nodes behind may
 * not get it.  The same is true of ph_reduce(), whose callers then wait until their time is up.
 * Like ph_send() it waits while the queue is full; in a handler it returns PH_EAGAIN instead. */
int ph_multicast(ph_vp_t lower, ph_vp_t upper, const void *body, size_t len, int tag);

/* Combines `from` into `into`, both of len bytes.  Must be associative and commutative. */
typedef void (*ph_combine_fn)(void *into, const void *from, size_t len);
/* ph_reduce - combine the values of all nodes that assume a part of [lower, upper)
 *
 * All of them get the result.  Every such node calls it with the same bounds, id and len; an id
 * must not be used again before all have returned.  Values are combined on their way.  If
 * virtual nodes of the range moved between the calls so that not all values are in the result,
 * all nodes get PH_EBUSY and call again.  After an error value is undefined. */
int ph_reduce(ph_vp_t lower, ph_vp_t upper, int id, void *value, size_t len, ph_combine_fn combine,
	      long long timeout);
/* ph_barrier - wait until every node that assumes a part of [lower, upper) has called it
 *
 * All of them call it with the same id. */
int ph_barrier(ph_vp_t lower, ph_vp_t upper, int id, long long timeout);

#ifdef __cplusplus
}
#endif
#endif
