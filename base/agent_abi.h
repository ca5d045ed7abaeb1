/* agent_abi.h - what `vmp exec` and the guest's agent (guest/guest_agent.c) say to each other.
 *
 * Both directions of the agent's device (base/guest_abi.h) carry frames: a struct agent_frame, then
 * `bytes` bytes.  A session is one command that runs in the guest.  The I/O server
 * (iosrv/agent.c) numbers the sessions and passes the frames on; between it and `vmp exec` a frame
 * is one message EXEC.
 *
 * A session begins with AGENT_RESIZE or not, AGENT_SPEC frames and AGENT_START, and ends with
 * AGENT_EXIT, AGENT_REFUSED or AGENT_HANGUP.  The bytes of AGENT_SPEC and AGENT_INPUT are paid from
 * a window of AGENT_IN_WINDOW bytes, which AGENT_TAKEN refills; those of AGENT_OUTPUT and
 * AGENT_ERROR each from one of AGENT_OUT_WINDOW, which AGENT_ROOM_OUT and AGENT_ROOM_ERR refill.
 *
 * Only the C library's headers are included: the guest's init is built from this file, too.
 */
#ifndef BASE_AGENT_ABI_H
#define BASE_AGENT_ABI_H

#include <stdint.h>

/* Little endian, as both sides are. */
struct agent_frame {
	uint32_t session;
	uint16_t kind, bytes;
	uint32_t value;
};

enum agent_limit {
	AGENT_FRAME_MAX = 4096, /* a frame and its bytes */
	AGENT_PAYLOAD = AGENT_FRAME_MAX - sizeof(struct agent_frame),
	AGENT_SESSIONS = 16, /* at once */
	AGENT_IN_WINDOW = 4096,
	AGENT_OUT_WINDOW = 65536,
	AGENT_SPEC_MAX = 131072,
};

enum agent_kind {
	/* to the agent */
	AGENT_SPEC = 1,  /* a part of what shall run: strings, each ended by a NUL byte (below) */
	AGENT_START,	 /* the last part has come; value: 1: on a terminal of its own */
	AGENT_INPUT,	 /* bytes of standard input; without any: its end */
	AGENT_RESIZE,	 /* value: the terminal's columns << 16 | rows */
	AGENT_SIGNAL,	 /* value: a signal for the command and its process group */
	AGENT_ROOM_OUT,	 /* value: so many more bytes of standard output may come; */
	AGENT_ROOM_ERR,	 /* of standard error */
	AGENT_GONE_OUT,	 /* nobody reads standard output any more; */
	AGENT_GONE_ERR,	 /* standard error */
	AGENT_HANGUP,	 /* `vmp exec` has gone */
	AGENT_RESET,	 /* of all sessions: the machine was saved, and goes on without them */
	/* from the agent */
	AGENT_OUTPUT,	 /* bytes of standard output, or of the terminal */
	AGENT_ERROR,	 /* bytes of standard error */
	AGENT_TAKEN,	 /* value: so many bytes of SPEC and INPUT were taken */
	AGENT_STARTED,
	AGENT_EXIT,	 /* value: the exit status; all output came before */
	/* from the I/O server */
	AGENT_REFUSED,	 /* the session has ended; its bytes: why, one line */
	AGENT_KINDS
};

/* The strings of a specification: the user (empty: the machine's), the folder to start in (empty:
 * the machine's), the number of variables, these as NAME=VALUE, then the command's arguments. */
enum agent_spec { AGENT_SPEC_USER, AGENT_SPEC_FOLDER, AGENT_SPEC_VARIABLES, AGENT_SPEC_FIRST };

#endif
