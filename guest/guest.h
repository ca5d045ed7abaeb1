/* guest.h - what the parts of the guest's first process share. */
#ifndef GUEST_GUEST_H
#define GUEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127, STATUS_BY_SIGNAL = 128 };

/* Who a command or shell is. `unknown`: the guest has no user of this name. */
struct user {
	uid_t uid;
	gid_t gid;
	char name[64], home[64];
	bool unknown;
};

/* init.c */
/* A line on standard error, with errno's reason. */
void complain(const char *what, const char *name);
/* Splits strings, each ended by a NUL byte, into a vector ended by NULL; NULL without memory. */
char **split_strings(char *text, size_t bytes);
/* Who the text means: a name of /etc/passwd, UID or UID:GID; empty: root. */
void user_of_text(struct user *user, const char *text);
/* The environment's HOME, USER and LOGNAME. */
void user_to_environment(const struct user *user);
/* The folder and those above it, if they are missing. Writes to `path` and puts it back. */
void make_folders(char *path);
void write_all(int fd, const void *bytes, size_t n);
/* In a child: become the user; execute a program or say why not. A failure ends the process. */
void become(const struct user *user);
__attribute__((noreturn)) void exec_or_explain(char **argv);
void forget_signals(void);
int exit_status(int wait_status);

/* root.c */
/* The disk that is the root; `boots`: its own init takes over. */
struct root { const char *device; bool boots; };
/* Make a disk the root, as the strings of /vmp/root say.  False: it cannot be; a line has said why.
 * The strings must last as long as `root`. */
bool root_enter(struct root *root, char **strings);
/* The name server of `--net user` is the root's, as long as the machine runs: its file stays. */
void root_name_servers(void);
/* Returns only if the root's init cannot be run; a line has said why. */
void root_run_init(void);

/* more_cpus.c: bring up the other processors. */
void more_cpus_bring_up(void);

/* guest_agent.c: start the process that runs the commands of `vmp exec`, if the machine has its
 * device.  A command is `machine` unless `vmp exec` names another user. */
void agent_start(const struct user *machine);

#endif
