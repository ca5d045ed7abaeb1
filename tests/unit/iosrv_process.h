/* iosrv_process.h - the I/O server as a process, for tests that are its daemon. */
#ifndef TESTS_UNIT_IOSRV_PROCESS_H
#define TESTS_UNIT_IOSRV_PROCESS_H

#include <sys/types.h>
#include "base/packet.h"

enum { WAIT_MS = 60000 /* for hangs alone */, STILL_MS = 50 };

struct packet {
	struct msg_header header;
	uint8_t bytes[256 + MAX_MSG_PAYLOAD];
};

extern int daemon_end; /* the test's end of its socket */
extern pid_t server;

void find_server(const char *self); /* build/tests/unit/TEST -> build/vmp-iosrv */
void start_with(const char *option, const char *value);
void start(const char *disk); /* NULL: none */
void stop(void);	      /* closing the socket ends it */
/* The next message; false if none comes. */
bool receive(struct packet *p, int timeout_ms);
void send_bytes(uint16_t type, const void *bytes, size_t count);
void request(struct msg_io_request q, const void *payload, size_t payload_bytes);
/* A well-formed request is answered, and nothing else comes before its answer. */
bool answers(void);
/* The server ends the machine with a line that contains `word`. */
bool fails(const char *word);
void expect_hello(void);
/* A disk image, and what --disk says of it. */
int make_image(char image[64]);
void remove_image(char *image, int fd);

#endif
