/* refuse.h - how a program beside the I/O server (vmp-net, vmp-share) says that it cannot start. */
#ifndef IOSRV_REFUSE_H
#define IOSRV_REFUSE_H

/* Sends this line, cut at 319 bytes, through the socket to the I/O server, and ends the program
 * with status 1. */
void refuse_to_start(int socket, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

#endif
