/* bench_ports.c - the ports that benches give to their nodes: in a row, and used by nobody. */
#include <arpa/inet.h>
#include "bench/free_ports.h"
#include "tests/unit/unit.h"

enum { ROW = 5 };

/* Binds a port; returns the socket. */
static int take(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_FATAL(!bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, 1));
	return fd;
}

static void goes_round_what_is_taken(void)
{
	int first = free_ports(ROW), other, fd[ROW];

	fd[0] = take(first + ROW / 2);
	other = free_ports(ROW);
	CU_ASSERT(first + ROW / 2 < other || other + ROW <= first + ROW / 2);
	close(fd[0]);
	for (int i = 0; i < ROW; i++)
		fd[i] = take(other + i);
	for (int i = 0; i < ROW; i++)
		close(fd[i]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "goes round what is taken", goes_round_what_is_taken },
		UNIT_END
	};

	return UNIT_RUN("bench_ports", tests);
}
