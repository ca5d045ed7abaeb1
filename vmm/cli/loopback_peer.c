/* loopback_peer.c - see loopback_peer.h. */
#include "vmm/cli/loopback_peer.h"

#include <arpa/inet.h>
#include <errno.h>
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

int loopback_peer_check(int fd, uid_t *user)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	union loopback_peer peer, own;
	socklen_t peer_bytes = sizeof peer, own_bytes = sizeof own;
	bool found = false;

	if (getpeername(fd, &peer.any, &peer_bytes) || getsockname(fd, &own.any, &own_bytes))
		return -ESRCH;
	for (unsigned i = 0; i < 2 && !found; i++) {
		FILE *table = fopen(tables[i], "re");

		found = table && loopback_peer_find(table, &peer, &own, user);
		if (table)
			fclose(table);
	}
	if (!found)
		return -ESRCH;
	return *user == geteuid() || *user == 0 ? 0 : -EPERM;
}
