/* unframe.c - reads what the guest's init framed onto a serial line (guest/init.c), from a file or
 * a pipe.
 *
 *   unframe FILE LOG
 *
 * The guest's standard output and error become this program's; LOG gets the kernel's messages.  The
 * exit status is the command's, or 125 with a line if the machine ended without one.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHANNEL_OUT = 1, CHANNEL_ERR = 2, CHANNEL_EXIT = 3, CHANNEL_LOG = 4, NO_STATUS = 125 };

int main(int argc, char **argv)
{
	static uint8_t bytes[65536];
	uint8_t head[3];
	FILE *in, *log;

	if (argc != 3 || !(in = fopen(argv[1], "rb")) || !(log = fopen(argv[2], "wb"))) {
		fprintf(stderr, "unframe: %s\n",
			argc != 3 ? "usage: unframe FILE LOG" : strerror(errno));
		return NO_STATUS;
	}
	while (fread(head, sizeof head, 1, in) == 1) {
		size_t n = head[1] | (size_t)head[2] << 8;

		if (fread(bytes, 1, n, in) != n)
			break;
		if (head[0] == CHANNEL_EXIT && n == 4)
			return fclose(log) ? NO_STATUS : bytes[0];
		if (head[0] == CHANNEL_LOG) {
			fwrite(bytes, 1, n, log);
			continue;
		}
		if (head[0] != CHANNEL_OUT && head[0] != CHANNEL_ERR) {
			fprintf(stderr, "unframe: %s: no frame starts with %d\n", argv[1], head[0]);
			return NO_STATUS;
		}
		if (write(head[0] == CHANNEL_OUT ? 1 : 2, bytes, n) != (ssize_t)n)
			return NO_STATUS;
	}
	fprintf(stderr, "unframe: %s: the machine ended without an exit status\n", argv[1]);
	return NO_STATUS;
}
