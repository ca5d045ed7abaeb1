/* presence.h - a name that a process holds while it lives, and that others on its computer can
 * check: the name of a machine's host there.
 *
 * The name is the lock of a file in this user's private folder (/tmp/vmp-UID), so that no other
 * user can hold or check it.  The lock ends with the process, however that ends.  A file without a
 * lock is removed by the next process that finds it.
 */
#ifndef VMM_SHARED_PRESENCE_H
#define VMM_SHARED_PRESENCE_H

#include "base/limits.h"
#include "base/types.h"
#include "vmm/shared/vote.h"

enum { PRESENCE_ID = 16, MAX_PRESENCE = PRESENCE_ID + MAX_HOST_NAME + 2 };

/* Writes the name for the host `host` of the machine with this random id. */
void presence_name(char name[MAX_PRESENCE], const char *id, const char *host);
/* Takes the name.  Returns a descriptor that holds it; or -1 if another process holds it, or there
 * is no private folder. */
int presence_hold(const char *name);
/* Releases the name and removes its file.  `fd` may be -1. */
void presence_release(int fd, const char *name);
/* Returns whether a process holds the name; true in doubt, for example without free descriptors. */
bool presence_is_held(const char *name);

/* Asks for the vote of that name (vote.h) for this owner, which is a word of up to PRESENCE_ID
 * characters.  GIVEN: sets *held to a descriptor that holds it; otherwise to -1. */
enum vote presence_vote(int *held, const char *name, const char *owner);
/* The owner is about to run the machine there.  Once for a vote; `held` may be -1. */
void presence_vote_runs(int held);
/* Gives it up.  `held` may be -1. */
void presence_unvote(int held, const char *name);

/* A standby on that computer (vmm/cli/standby/sender.h) listens for one word: the machine's owner
 * is alive, and has ended what runs under this name.  Returns a descriptor, which can be polled; or
 * -1 if another standby listens already. */
int presence_listen(const char *name);
void presence_unlisten(int fd, const char *name);
/* Returns whether a process of this user has sent the word, and takes it from the socket. */
bool presence_heard(int fd);
/* A process that listens on such a name may also get an owner's connection: PRESENCE_PASSED
 * descriptors, which another process passes to it.  presence_pass() returns whether somebody has
 * them in its queue; presence_passed() stores those that have come, close-on-exec, and returns
 * whether there were any of this user's. */
enum { PRESENCE_PASSED = 3 };
bool presence_pass(const char *name, const int fds[PRESENCE_PASSED]);
bool presence_passed(int fd, int fds[PRESENCE_PASSED]);
/* Sends the word.  Returns true if a standby has it in its queue, or listens and can take no
 * more. */
bool presence_tell(const char *name);

#endif
