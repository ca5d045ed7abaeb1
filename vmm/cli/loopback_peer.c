/* loopback_peer.c - see loopback_peer.h. */
#include "vmm/cli/loopback_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { END_CHARACTERS = 32 + 1 + 4 + 1, ESTABLISHED = 1 };

/* Writes an end as /proc/net/tcp has it, and as /proc/net/tcp6 has it: the address as numbers of 32
 * bits in this computer's byte order. */
static void write_end(const union loopback_peer *end, char short_form[END_CHARACTERS],
		      char long_form[END_CHARACTERS])
{
	bool v6 = end->any.sa_family == AF_INET6;
	unsigned port = ntohs(v6 ? end->v6.sin6_port : end->v4.sin_port);
	uint32_t word[4] = { 0, 0, htonl(0xffff), end->v4.sin_addr.s_addr };

	if (v6)
		memcpy(word, &end->v6.sin6_addr, sizeof word);
	snprintf(short_form, END_CHARACTERS, "%08X:%04X", word[3], port);
	snprintf(long_form, END_CHARACTERS, "%08X%08X%08X%08X:%04X", word[0], word[1], word[2],
		 word[3], port);
}

bool loopback_peer_find(FILE *table, const union loopback_peer *peer,
			const union loopback_peer *own, uid_t *user)
{
	char from[2][END_CHARACTERS], to[2][END_CHARACTERS], line[512], local[64], remote[64];
	unsigned state, uid;
	unsigned long inode;

	write_end(peer, from[0], from[1]);
	write_end(own, to[0], to[1]);
	while (fgets(line, sizeof line, table)) {
		if (sscanf(line, " %*u: %63s %63s %x %*s %*s %*s %u %*u %lu", local, remote, &state,
			   &uid, &inode) != 5)
			continue;
		for (int form = peer->any.sa_family == AF_INET6; form < 2; form++)
			if (!strcasecmp(local, from[form]) && !strcasecmp(remote, to[form]) &&
			    state == ESTABLISHED && inode) {
				*user = uid;
				return true;
			}
	}
	return false;
}

static bool find_in_tables(const union loopback_peer *peer, const union loopback_peer *own,
			   uid_t *user)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	bool found = false;

	for (unsigned i = 0; i < 2 && !found; i++) {
		FILE *table = fopen(tables[i], "re");

		found = table && loopback_peer_find(table, peer, own, user);
		if (table)
			fclose(table);
	}
	return found;
}

static void write_address(const union loopback_peer *end, uint32_t address[4], uint16_t *port)
{
	bool v6 = end->any.sa_family == AF_INET6;

	memcpy(address, v6 ? (const void *)&end->v6.sin6_addr : &end->v4.sin_addr, v6 ? 16 : 4);
	*port = v6 ? end->v6.sin6_port : end->v4.sin_port;
}

/* Asks the kernel for the peer's end alone.  Its answer comes at once: the kernel writes it during
 * the call that asks.  Returns 0 with its user; -ENOENT if there is no such end, or if the kernel
 * cannot be asked; -ESRCH if it is not open. */
static int ask_kernel(const union loopback_peer *peer, const union loopback_peer *own, uid_t *user)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} request = {
		.head = { .nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = (uint8_t)peer->any.sa_family,
			  .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
			  .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	union { struct nlmsghdr head; char bytes[8192]; } reply;
	const struct inet_diag_msg *found = NLMSG_DATA(&reply.head);
	ssize_t n = -1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -ENOENT;
	write_address(peer, request.body.id.idiag_src, &request.body.id.idiag_sport);
	write_address(own, request.body.id.idiag_dst, &request.body.id.idiag_dport);
	if (send(fd, &request, sizeof request, 0) == sizeof request)
		n = recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
	close(fd);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof *found) || !NLMSG_OK(&reply.head, n) ||
	    reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	/* without an open end there, the kernel says who listens at the address */
	if (found->idiag_state != ESTABLISHED || !found->idiag_inode ||
	    found->id.idiag_dport != request.body.id.idiag_dport)
		return -ESRCH;
	*user = found->idiag_uid;
	return 0;
}

int loopback_peer_check(int fd, uid_t *user)
{
	static bool kernel_answers;
	union loopback_peer peer, own;
	socklen_t peer_bytes = sizeof peer, own_bytes = sizeof own;
	int error;

	if (getpeername(fd, &peer.any, &peer_bytes) || getsockname(fd, &own.any, &own_bytes))
		return -ESRCH;
	error = ask_kernel(&peer, &own, user);
	kernel_answers |= !error;
	if (error == -ENOENT && !kernel_answers && find_in_tables(&peer, &own, user))
		error = 0;
	if (error)
		return -ESRCH;
	return *user == geteuid() || *user == 0 ? 0 : -EPERM;
}
