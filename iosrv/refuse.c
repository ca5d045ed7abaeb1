/* refuse.c - see refuse.h. */
#include "iosrv/refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

void refuse_to_start(int socket, const char *format, ...)
{
	char line[320];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	send(socket, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1, MSG_NOSIGNAL);
	exit(EXIT_FAILURE);
}
