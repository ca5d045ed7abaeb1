/* joining.c - see joining.h.  Blocking: nothing else happens meanwhile. */
#include "vpg/peer/joining.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/confine.h"
#include "vpg/wire/message.h"

enum { PATIENCE_S = 15, SSH_PATIENCE_S = 60 };

/* The connection: its socket, and the address that answered; for a tunnel also ssh's process. */
struct line_in { int fd; pid_t ssh; const char *host; SSL *ssl; };

static void be_patient(int fd, int seconds)
{
	const struct timeval t = { seconds, 0 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static int dial(const char *host, unsigned port)
{
	const struct addrinfo want = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char service[8];
	int fd = -1;

	snprintf(service, sizeof service, "%u", port);
	if (getaddrinfo(host, service, &want, &found))
		return -1;
	for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		be_patient(fd, PATIENCE_S);
		if (connect(fd, a->ai_addr, a->ai_addrlen)) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd;
}

/* Starts ssh, which joins its standard input and output to the port on the other computer's
 * loopback. */
static int dial_ssh(const char *host, unsigned port, pid_t *ssh)
{
	char to[32];
	int pair[2];

	snprintf(to, sizeof to, "127.0.0.1:%u", port);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	*ssh = fork();
	if (*ssh < 0) {
		int error = errno;

		close(pair[0]);
		close(pair[1]);
		errno = error;
		return -1;
	}
	if (*ssh == 0) {
		dup2(pair[1], 0);
		dup2(pair[1], 1);
		execlp("ssh", "ssh", "-W", to, "--", host, (char *)NULL);
		fprintf(stderr, "vmp peer: there is no ssh\n");
		_exit(127);
	}
	close(pair[1]);
	be_patient(pair[0], SSH_PATIENCE_S);
	return pair[0];
}

static int connect_to(struct line_in *l, const struct join_order *o, const struct invitation *i,
		      struct why *why)
{
	if (o->ssh) {
		l->fd = dial_ssh(o->ssh, i->port, &l->ssh);
		return l->fd < 0 ? why_set(why, "cannot start ssh: %s", strerror(errno)) : 0;
	}
	if (!i->n_hosts)
		return why_set(why, "the inviter listens on its loopback alone: --ssh HOST joins "
				    "through its ssh server");
	for (unsigned h = 0; h < i->n_hosts && l->fd < 0; h++) {
		l->fd = dial(i->hosts[h], i->port);
		l->host = i->hosts[h];
	}
	return l->fd < 0 ? why_set(why, "nobody answers at %s, port %u: does its daemon run, and "
					"may this computer connect?", i->hosts[0], i->port) : 0;
}

static int is_inviter(void *arg, const unsigned char key[KEY_BYTES])
{
	const struct invitation *i = arg;

	return memcmp(key, i->key, KEY_BYTES) ? X509_V_ERR_CERT_UNTRUSTED : 0;
}

/* Reads one whole frame.  Returns its type, or -1. */
static int read_frame(SSL *ssl, unsigned char *frame, union vpg_any *m)
{
	size_t n = 0, want = VPG_LENGTH_BYTES;

	while (n < want) {
		int got = SSL_read(ssl, frame + n, (int)(want - n));

		if (got <= 0)
			return -1;
		n += (size_t)got;
		if (n == VPG_LENGTH_BYTES) {
			long size = message_size(frame, n);

			if (size < 0)
				return -1;
			want = (size_t)size;
		}
	}
	return message_get(frame, n, m);
}

static int learn(struct network *n, const struct vpg_MEMBER *say)
{
	struct member m;

	return member_make(&m, say->key, say->nick, say->since, say->revoked) ||
	       members_learn(&n->members, &m) < 0 ? -1 : 0;
}

/* Takes the session's name and secret.  Each becomes a word of a file, so it must be one word:
 * otherwise the inviter could add lines. */
static int learn_names(const struct vpg_WELCOME *say, char session[SESSION_BYTES],
		       char secret[SECRET_TEXT])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(say->session), m = strlen(say->secret);

	if (!n || n >= SESSION_BYTES || strspn(say->session, letters) != n || !m ||
	    m >= SECRET_TEXT || strspn(say->secret, "0123456789abcdef") != m)
		return -1;
	memcpy(session, say->session, n + 1);
	memcpy(secret, say->secret, m + 1);
	return 0;
}

/* Sends the token, and takes the answers. */
static int converse(SSL *ssl, const struct join_order *o, const struct invitation *i,
		    struct network *n, struct why *why)
{
	static unsigned char frame[VPG_FRAME_MAX];
	struct vpg_JOIN join = { { i->token, TOKEN_BYTES }, o->nick };
	size_t bytes = message_put(VPG_JOIN, &join, frame, sizeof frame);
	char session[SESSION_BYTES] = "", secret[SECRET_TEXT] = "";
	union vpg_any m;
	int type;

	if (SSL_write(ssl, frame, (int)bytes) != (int)bytes)
		return why_set(why, "the connection to the inviter broke");
	while ((type = read_frame(ssl, frame, &m)) == VPG_WELCOME || type == VPG_MEMBER) {
		if (type == VPG_MEMBER ? learn(n, &m.MEMBER)
				       : learn_names(&m.WELCOME, session, secret))
			return why_set(why, "the inviter sends what no version sends");
	}
	if (type != VPG_DONE)
		return why_set(why, "the connection to the inviter broke");
	if (m.DONE.status || !*secret)
		return why_set(why, "%s", *m.DONE.line ? m.DONE.line : "the inviter refuses");
	return network_adopt(n, o->nick, session, secret, why);
}

static int secure(struct line_in *l, SSL_CTX *ctx, struct why *why)
{
	const char *what;

	l->ssl = SSL_new(ctx);
	if (!l->ssl || !SSL_set_fd(l->ssl, l->fd))
		return why_set(why, "out of memory");
	if (SSL_connect(l->ssl) == 1)
		return 0;
	what = identity_failure(false);
	if (strstr(what, "network"))
		return why_set(why, "who answers there is not the inviter: its key is another one");
	return why_set(why, "the inviter hangs up: the invitation may have expired; ask for a new "
			    "one");
}

/* Adds the address at which the daemon will find the inviter. */
static int add_contact(const struct network *n, const struct join_order *o,
		       const struct line_in *l, const struct invitation *i, struct why *why)
{
	const char *at = o->ssh ? strrchr(o->ssh, '@') : NULL;
	char user[64] = "";

	if (at)
		snprintf(user, sizeof user, "%.*s", (int)(at - o->ssh), o->ssh);
	return network_add_contact(n->folder, at ? at + 1 : o->ssh ? o->ssh : l->host, i->port - 1,
				   at ? user : NULL, o->ssh != NULL, why);
}

/* Confines this process, before it reads what the other side sends.  It may only write to the
 * network's folder, and end ssh. */
static int confine(const struct network *n, struct why *why)
{
	const struct confine_file folder = { n->folder, CONFINE_OWN_FOLDER };
	int error = confine_privileges();

	if (!error)
		error = confine_files(&folder, 1, CONFINE_KEEP_SIGNALS);
	if (!error || error == -EOPNOTSUPP || error == -ENOSYS) /* without Landlock */
		return 0;
	return why_set(why, "cannot confine itself: %s", strerror(-error));
}

static int join_with(struct network *n, const struct join_order *o, const struct invitation *i,
		     struct why *why)
{
	struct line_in l = { .fd = -1 };
	SSL_CTX *ctx = identity_context(&n->id, is_inviter, (void *)i);
	int error = ctx ? connect_to(&l, o, i, why) : why_set(why, "out of memory");

	if (!error)
		error = confine(n, why) || secure(&l, ctx, why) || converse(l.ssl, o, i, n, why) ||
			add_contact(n, o, &l, i, why) ? -1 : 0;
	SSL_free(l.ssl);
	SSL_CTX_free(ctx);
	if (l.fd >= 0)
		close(l.fd);
	if (l.ssh > 0) {
		kill(l.ssh, SIGTERM);
		waitpid(l.ssh, NULL, 0);
	}
	return error;
}

int join_network(const struct join_order *o, struct why *why)
{
	struct invitation i;
	struct network n;
	int there;

	if (invitation_read(&i, o->invitation))
		return why_set(why, "that is no invitation, or a part of it is missing: vmp peer "
				    "invite prints one");
	if (i.expires <= (uint64_t)time(NULL))
		return why_set(why, "the invitation has expired: ask for a new one");
	there = network_read(&n, why);
	if (there == 0) {
		network_close(&n);
		return why_set(why, "%s belongs to a network already; to join anew, remove "
				    "that folder", n.folder);
	}
	if (there != -ENOENT || identity_open(&n.id, n.folder, why))
		return -1;
	n.settings.port = o->port;
	n.settings.anywhere = o->anywhere;
	signal(SIGPIPE, SIG_IGN);
	there = join_with(&n, o, &i, why);
	network_close(&n);
	return there;
}
