/* guest.h - what the parts of the guest's first process share. */
#ifndef GUEST_GUEST_H
#define GUEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/types.h>

enum { STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127, STATUS_BY_SIGNAL = 128 };

/* Who a command or shell is. `unknown`: the guest has no user of this name. */
struct user {
	uid_t uid;
	gid_t gid;
	char name[64], home[64];
	bool unknown;
	bool gid_given; /* and so all its groups */
};

/* init.c */
/* A line on standard error, with errno's reason. */
void complain(const char *what, const char *name);
/* Splits strings, each ended by a NUL byte, into a vector ended by NULL; NULL without memory. */
char **split_strings(char *text, size_t bytes);
/* The environment's HOME, USER and LOGNAME. */
void user_to_environment(const struct user *user);
/* The folder and those above it, if they are missing. Writes to `path` and puts it back. */
void make_folders(char *path);
void write_all(int fd, const void *bytes, size_t n);
/* In a child: execute a program or say why not. A failure ends the process. */
__attribute__((noreturn)) void exec_or_explain(char **argv);
void forget_signals(void);
int exit_status(int wait_status);
/* Waits for children until `command` has ended; sets *status to how. */
bool reap_command(pid_t command, int *status, int options);

/* guest_user.c */
/* Who the text means: a name of /etc/passwd, UID or UID:GID; empty: root. */
void user_of_text(struct user *user, const char *text);
/* In a child: become the user. A failure ends the process. */
void become(const struct user *user);

/* guest_console.c */
/* The console is the virtio one if there is one; call it once there is a /dev. */
void console_choose(void);
/* Gives the console to the user. */
void console_give(const struct user *user);
/* The size of the user's window: outside's, else the environment may know it (LINES, COLUMNS).
 * `device` is /dev/vmp-window, or -1. */
struct winsize console_window_size(int device);
/* In a process of its own: when the window outside changes, gives the console its size.  Until then
 * the console keeps the size that the user has given it. */
void console_follow_window(int device, struct winsize last);
/* Waits until the console has what programs wrote to it, which the kernel sends 16 bytes at a time.
 * A console that takes nothing for ten seconds, because nobody reads the monitor's output, does not
 * keep the machine from its end. */
void console_drain(int tty);
/* Runs the user's shell on the console; returns its status.  The calling process becomes the leader
 * of the console's session. */
int console_run_shell(const struct winsize *window, const struct user *user);

/* guest_disks.c */
/* Takes the last line off a table as /proc/mounts has it, of *bytes bytes; its words have no
 * escapes any more.  Returns false if there is none.  Pure. */
bool disks_take_last(char *table, size_t *bytes, char **device, char **where);
/* Unmounts what lies on disks, so that their file systems are clean; processes that keep one busy
 * are killed first. */
void disks_leave(void);

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

/* power.c: `poweroff`, `halt` and `reboot`. */
/* From now on their signals end the machine, while init listens. */
void power_take_requests(void);
/* Whether such a signal may interrupt this process here. */
void power_listen(bool now);
/* In a child: the signals are its own again. */
void power_forget(void);

/* more_cpus.c: bring up the other processors. */
void more_cpus_bring_up(void);

/* guest_agent.c: start the process that runs the commands of `vmp exec`, if the machine has its
 * device.  A command is `machine` unless `vmp exec` names another user. */
void agent_start(const struct user *machine);

#endif
