/* phoenix_latency.c - Phoenix against raw TCP on this machine: half round trips by message size, and one-way bandwidth.
 * Both in one run, two processes each, TCP_NODELAY, blocking.  Prints a table with machine-independent ratios. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "phnx/phnx.h"

enum { PORT = 29870, ROUNDS = 3000, WARM = 300, BULK = 65536, BULK_COUNT = 4000 };
static const size_t sizes[] = { 1, 64, 1024, 4096, 16384, 65536 };
enum { N = sizeof sizes / sizeof *sizes };
static char buf[BULK];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void read_all(int s, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(s, buf, n - at);
		if (got <= 0)
			_exit(1);
		at += (size_t)got;
	}
}

static void write_all(int s, size_t n)
{
	if (write(s, buf, n) != (ssize_t)n)
		_exit(1);
}

static void raw(int child, double result[N + 1])
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (child) {
		while (connect(s, (struct sockaddr *)&in, sizeof in)) {
			close(s);
			usleep(10000);
			s = socket(AF_INET, SOCK_STREAM, 0);
		}
	} else {
		if (bind(s, (struct sockaddr *)&in, sizeof in) || listen(s, 1))
			_exit(1);
		s = accept(s, NULL, NULL);
	}
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	for (int k = 0; k < N; k++) {
		double start = 0;
		for (int i = 0; i < ROUNDS + WARM; i++) {
			if (i == WARM)
				start = now_us();
			if (!child)
				write_all(s, sizes[k]);
			read_all(s, sizes[k]);
			if (child)
				write_all(s, sizes[k]);
		}
		result[k] = (now_us() - start) / ROUNDS / 2;
	}
	double start = now_us();
	for (int i = 0; i < BULK_COUNT; i++)
		if (child)
			read_all(s, BULK);
		else
			write_all(s, BULK);
	if (child)
		write_all(s, 1);
	else
		read_all(s, 1);
	result[N] = (double)BULK * BULK_COUNT / (now_us() - start);
	close(s);
}

static void overlay(int child, int tls, double result[N + 1])
{
	setenv("PHNX_SECRET", "for the bench", 1);
	ph_init_runtime(0, 2);
	ph_set_session_id("bench");
	ph_set_listen_port(PORT + 1 + child, PORT + 2 + child);
	if (child && tls)
		ph_add_port_ssl("127.0.0.1", PORT + 1);
	else if (child)
		ph_add_port_tcp("127.0.0.1", PORT + 1);
	ph_assume_vp(child);
	for (int k = 0; k < N; k++) {
		double start = 0;
		for (int i = 0; i < ROUNDS + WARM; i++) {
			if (i == WARM)
				start = now_us();
			if (!child)
				ph_send(1, buf, sizes[k], 1);
			ph_msg_destroy(ph_recv(1));
			if (child)
				ph_send(0, buf, sizes[k], 1);
		}
		result[k] = (now_us() - start) / ROUNDS / 2;
	}
	double start = now_us();
	for (int i = 0; i < BULK_COUNT; i++)
		if (child)
			ph_msg_destroy(ph_recv(2));
		else
			ph_send(1, buf, BULK, 2);
	if (child)
		ph_send(0, buf, 1, 3);
	else
		ph_msg_destroy(ph_recv(3));
	result[N] = (double)BULK * BULK_COUNT / (now_us() - start);
	ph_finalize(NULL, 5);
}

int main(void)
{
	double result[3][N + 1];

	for (int way = 0; way < 3; way++) {
		pid_t pid = fork();
		if (way == 0)
			raw(pid == 0, result[way]);
		else
			overlay(pid == 0, way == 2, result[way]);
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	printf("%10s %12s %12s %12s %8s\n", "bytes", "TCP us", "phnx us", "phnx TLS us", "ratio");
	for (int k = 0; k < N; k++)
		printf("%10zu %12.1f %12.1f %12.1f %8.2f\n", sizes[k], result[0][k], result[1][k], result[2][k],
		       result[1][k] / result[0][k]);
	printf("%10s %12.0f %12.0f %12.0f %8.2f\n", "MB/s", result[0][N], result[1][N], result[2][N],
	       result[1][N] / result[0][N]);
	return 0;
}
