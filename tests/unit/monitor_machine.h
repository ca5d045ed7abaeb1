/* monitor_machine.h - what the files of the test "monitor_engine" share: a machine of one CPU,
 * whose daemon is the test.  No other file includes it. */
#ifndef TESTS_MONITOR_MACHINE_H
#define TESTS_MONITOR_MACHINE_H

#include <sys/types.h>
#include "base/guest_abi.h"
#include "base/hostshm.h"
#include "base/wire.h"
#include "tests/unit/unit.h"

enum { RAM_PAGES = 4096, GUEST_BASE = 0x100000, STEPS = 10 };
extern const char monitor_guest_start[], monitor_guest_end[];

struct machine {
	struct host_shm *shm;
	uint8_t *ram;
	int channel;
	pid_t monitor;
	char log[256];
	struct msg_machine_end end;
	char why[256];
};

struct packet { struct msg_header header; char body[MAX_MSG_PAYLOAD + 64]; };

extern const char *machine_monitor; /* the program's path */
extern bool direct;		     /* the engine */

void machine_start(struct machine *t, const void *code, size_t bytes);
/* Acts as the daemon until the machine ends.  Returns false if it hangs. */
bool machine_play(struct machine *t, bool start);
void machine_stop(struct machine *t);
/* Sends a message to the monitor; machine_tell() posts it, too. */
void machine_send(struct machine *t, enum msg_type type, const void *body, size_t bytes);
void machine_tell(struct machine *t, enum msg_type type, const void *body, size_t bytes);
/* Returns false if another message arrived, or none.  Answers the CPU's farewell to the I/O server
 * meanwhile. */
bool machine_hear(struct machine *t, enum msg_type type, struct packet *p);
void on_the_direct_engine(void (*test)(void));

extern const struct unit_test tests_of_moves[]; /* monitor_moves.c */
extern const struct unit_test tests_of_debugger[]; /* monitor_debug.c */

#endif
