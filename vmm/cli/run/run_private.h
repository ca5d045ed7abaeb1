/* run_private.h - the state of a run, and the functions that its files call in each other. */
#ifndef VMM_CLI_RUN_RUN_PRIVATE_H
#define VMM_CLI_RUN_RUN_PRIVATE_H

#include "base/dispatch.h"
#include "vmm/cli/client.h"
#include "vmm/cli/cluster/cluster.h"
#include "vmm/cli/cluster/reserve.h"
#include "vmm/cli/gdb/gdb_server.h"
#include "vmm/cli/query/report.h"
#include "vmm/cli/run/checks.h"
#include "vmm/cli/run/last_words.h"
#include "vmm/cli/run/launch.h"
#include "vmm/cli/run/owner_life.h"
#include "vmm/cli/run/run.h"
#include "vmm/cli/run/standby_step.h"
#include "vmm/cli/rundir.h"
#include "vmm/cli/snapshot/checkpoint.h"
#include "vmm/cli/snapshot/keptfile.h"
#include "vmm/cli/snapshot/load.h"
#include "vmm/cli/standby/sender.h"
#include "vmm/cli/streams.h"
#include "vmm/cli/terminal.h"
#include "vmm/cli/watch/recorder.h"

enum { PROGRESS_MS = 2000 }; /* work that takes longer shows its progress */

struct run {
	const struct options *o;
	struct event_base *base; /* where `loop` runs */
	struct loop loop;
	struct client client;
	struct launch launch;
	struct launch_plan plan; /* for hosts that are added */
	struct hostcpu cpu;	 /* the processors' features that the guest sees */
	struct cluster cluster;	 /* with --cluster */
	unsigned adding;	 /* the host of the cluster that is being added; 0: none */
	uint32_t joins;		 /* bit set of the hosts that it joins */
	/* the host that is being added is a peer: the question whether it can be borrowed */
	struct peers_asked asked;
	struct loop_event *on_asked;
	char asked_for[MAX_HOST_NAME];
	struct reserve reserve;	 /* of a machine that was taken over: its peers */
	uint32_t hosts;		 /* bit set of the machine's hosts */
	struct rundir rundir;
	struct report report;
	struct recorder recorder; /* --report */
	struct load load;
	struct checkpoint checkpoint;
	struct keptfile keptfile;
	struct {
		/* bit sets of hosts, as far as the machine's daemons have reported: those that are
		 * lost, and those of which nothing had been heard for a while just then */
		uint32_t lost, silent;
		uint64_t since_ns; /* since when the machine is going back; 0: it is not */
		struct problem said /* a daemon's report of the loss */, why;
		/* when a cluster's remaining hosts are prepared, or that has taken too long */
		struct loop_event *regrouped;
		struct loop_event *grace; /* until then, hosts that were silent are waited for */
		/* in a cluster: one more than the checkpoints that had been taken when host 0 was
		 * last lost */
		uint64_t first_at;
		uint32_t before;	 /* how many hosts there were */
		bool agreed;		 /* the standby counted as many */
		bool doubt;	/* the standby was silent: it may take over the machine too */
		bool broke;	/* its connection had ended: so may it then */
		/* this computer stood still for so long: the standby may have done so */
		uint64_t still_ns;
	} back;
	enum owner_state life;
	bool leave_asked; /* somebody waits for host 0 to leave, or for the answer that it stays */
	uint32_t yielded; /* how many times host 0 has left */
	struct {
		struct sender to;
		uint32_t cannot;      /* bit set: hosts of the cluster that cannot be a standby */
		/* how many checkpoints had been taken when its copy was made; when the copy that
		 * is on its way was made */
		uint64_t copied, copies;
		/* until then, a standby whose connection broke may be alive */
		uint64_t forgotten_ns;
		/* looks for a standby again; ends the run when the machine has moved there */
		struct loop_event *again;
	} standby;
	struct { /* of the parts of the last checkpoint */
		struct parts parts;
		/* bit sets of hosts: those that are asked later; those that are lost now */
		uint32_t cannot, lost;
		/* the machine has been this process's; it may have become another owner's */
		bool owns, left;
		struct loop_event *again; /* NULL: there are no parts */
	} holders;
	/* `vmp standby`: the machine is another process's until this one takes it over */
	bool stands_by;
	struct takeover *takeover; /* for stands_by; or NULL */
	struct gdbserver gdb;
	bool loads;	/* `vmp snapshot load`, or the machine has gone back to a checkpoint */
	/* how much its stream device has room for, and how much it had received */
	uint32_t input_room, input_taken;
	struct options loaded;	/* the options, completed by the snapshot's or the cluster's file */
	char disk[MAX_DISKS][SAVED_DISK_BYTES]; /* of a machine that is loaded */
	char live[SAVED_DISK_BYTES]; /* its live folder, as DIR[,ro] */
	struct stream_in in;
	struct stream_out out, err;
	struct escape escape;
	struct loop_event *retry, *tick, *typed, *limit, *death, *starter;
	struct loop_event *signals[6];
	/* start_ns: of the run. connect_ns: of the last start of daemons. */
	uint64_t start_ns, connect_ns;
	const char *kernel;	/* path of the guest kernel */
	int log_fd, archive_fd;
	int log_error; /* 0, or the errno of the first write to the log that failed */
	bool log_shown; /* on a terminal */
	bool log_kept; /* the log is in memory, for `vmp logs`, and is cut when it grows too long */
	struct loop_event *log_look;
	bool interactive, raw, connected;
	bool held;		/* the machine waits for a debugger */
	/* `vmp up`: standard error is its socket until userland is there; see up.c */
	bool background;
	bool reboots;  /* the guest has restarted its machine, which starts again */
	bool rebooted; /* it is not the first start */
	bool progress_shown, output_seen;
	struct last_words said; /* by the guest kernel, since this start */
	bool ended;		/* the status is decided */
	/* --stats or --summary: the hosts send their counters when they end */
	bool report_expected;
	bool report_failed; /* --report could not be written; a line has said why */
	bool forced;		/* waits no more for output */
	int status;
	struct problem why;	/* empty: no line is printed */
};

/* Returns whether the machine is there: its console and its streams flow. */
static inline bool run_is_there(const struct run *run)
{
	return run->life == OWNER_RUNS || owner_leaves(run->life);
}

/* run.c */
uint64_t run_now_ns(void);
bool run_wants_report(const struct run *run);
void run_hide_progress(struct run *run);
/* Ends the run; the first call counts.  `line` may be empty; status 125 always comes with one. */
void run_end(struct run *run, int status, const char *line);
void run_proceed_to_end(struct run *run); /* some of what the end waits for may have happened */
void run_look_for_deaths(struct run *run); /* after a moment */
void run_connect(struct run *run); /* connects to node 0's daemon, as soon as it listens */
void run_on_loaded(void *context);
void run_on_load_failed(void *context, const char *line);

/* run_log.c */
int run_open_log(struct run *run, struct problem *p);
int run_log_watch(struct run *run); /* cut it from now on; 0 or -1 */
void run_log_write(struct run *run, const char *bytes, size_t n);
/* Returns whether all of the log could be written; otherwise `p` says why not. */
bool run_log_is_whole(const struct run *run, struct problem *p);

/* start.c.  These return 0, or -1 with the problem. */
int run_prepare(struct run *run, struct host_files *files, struct problem *p);
int run_prepare_saved(struct run *run, struct problem *p);
int run_start(struct run *run, const struct host_files *files, struct problem *p);
int run_start_saved(struct run *run, uint32_t hosts, struct problem *p);
struct machine_info run_info(const struct run *run, uint32_t hosts);
/* Checks whether so many hosts (in a cluster: with these lines) may hold the guest's memory. */
int run_hosts_hold(const struct run *run, const struct cluster_host *lines, uint32_t hosts,
		   struct problem *p);

/* run_messages.c */
/* calls one of the handlers in base/msg.def */
void run_on_message(void *context, const struct message *m);
#define NODE_TO_RUN(name, how, handler) HANDLER_##how(struct run *run, name, handler)
#include "base/msg.def"

/* load_flow.c */
void run_attach_streams(struct run *run);

/* run_hosts.c */
int run_begin_cluster(struct run *run, struct problem *p);   /* begins to prepare the hosts */
void run_reserve(struct run *run); /* begins to reserve the peers of a machine taken over */
int run_prepare_cluster(struct run *run, struct problem *p); /* waits until they are prepared */
/* tells node 0 where a host of the cluster listens, if it does */
void run_tell_where(struct run *run, unsigned host);
void run_tell_ends(struct run *run);

/* go_back.c */
/* This has happened to the machine: sets run->life, and returns what is to be done.  When the run
 * has ended, that is nothing. */
enum owner_action run_happens(struct run *run, enum owner_event event);
int run_make_checkpoints(struct run *run); /* 0 or -ENOMEM */
void run_set_checkpoints(struct run *run); /* applies the options */
bool run_go_back(struct run *run, const char *died);
/* checks whether all remaining hosts of the cluster are prepared */
void run_look_at_regrouped(struct run *run);
void run_report_back(struct run *run);
bool run_can_go_back(const struct run *run);
/* ends everything of the machine except its checkpoint, its console and its streams */
void run_leave_machine(struct run *run, uint32_t lost);
/* From the last checkpoint: starts the machine on so many hosts; on those of a cluster, for this
 * reason. */
void run_start_elsewhere(struct run *run, uint32_t hosts);
void run_start_again(struct run *run, const char *why);
int run_load_kept(struct run *run, uint32_t hosts, struct problem *p);

/* yield.c */
void run_yield(struct run *run);	/* host 0 is to leave */
void run_yield_begins(struct run *run); /* its last checkpoint begins */
/* does the action if it is one by which host 0 stays, for this reason */
void run_stays(struct run *run, enum owner_action action, const char *why);
void run_on_stands_still(void *context);
void run_say_gone(const struct run *run); /* to the log */
/* The machine is there: after RETURNS with host 0, after MOVES without. */
void run_yield_ends(struct run *run, enum owner_action action);

/* run_standby.c */
int run_standby_open(struct run *run);
void run_standby_look(struct run *run);	 /* takes the next step, if there is one */
bool run_standby_may_live(const struct run *run); /* it has a copy, and is silent */
bool run_standby_may_be_there(const struct run *run); /* though its connection has broken */
bool run_standby_has_orders(const struct run *run); /* it knows which hosts the machine has */
/* Returns for how long this computer stood still, if the standby may have taken over meanwhile; or
 * 0. */
uint64_t run_standby_may_have_gone_on(const struct run *run);
void run_standby_leave(struct run *run);	  /* drops the connection to it */
/* tells vmp-host of each host that the machine is over: far_tell_over() */
void run_tell_over(struct run *run);
bool run_standby_is_busy(void *context); /* the checkpoint is on its way to the standby */
/* the reason if no other computer can take over this machine; NULL: one may be able to */
const char *run_standby_why_not(const struct run *run);
/* the machine has ended: tells the standby, and waits for a while until it has heard that */
void run_standby_end(struct run *run);
void run_standby_name(const struct run *run, char name[MAX_NAME]); /* its host; "": there is none */

/* run_parts.c: without --checkpoint-parts they do nothing */
int run_parts_open(struct run *run); /* 0, or -1 without memory */
void run_parts_look(struct run *run); /* starts holders, and ends those that are not needed */
/* The checkpoint before the last one is not needed any more; unless the standby `lags`, and knows
 * of no other. */
void run_parts_settle(struct run *run, bool lags);
/* Connects again the holders of the last checkpoint that are not connected, on hosts that ssh
 * reaches; run_parts_come() returns whether some have not answered yet. */
void run_parts_regain(struct run *run);
bool run_parts_come(const struct run *run);
/* This process takes the machine over, whose parts are where parts_print() has said: connects their
 * holders, and waits for them.  Returns 0, or -1 with the problem. */
int run_parts_adopt(struct run *run, uint32_t number, const char *text, struct problem *p);
void run_parts_lose(struct run *run, uint32_t lost); /* the holders of these hosts are lost */
/* Checks whether the last checkpoint is whole.  Returns 0, or -1 with the problem. */
int run_parts_check(const struct run *run, struct problem *p);
/* Ends the holders, unless they are another owner's, or may become that. */
void run_parts_close(struct run *run);
/* Writes the children that are not part of the machine, with a 0 at the end. */
void run_but_processes(const struct run *run, pid_t but[MAX_HOLDERS + 2]);

/* takeover.c: `vmp standby` */
/* 0: the machine is this process's now, or run->ended; or -1 */
int run_stand_by(struct run *run, struct problem *p);
int run_take_over(struct run *run, struct problem *p);
void run_has_taken_over(struct run *run); /* if it has, the machine is there */
/* this process ends; with the reason if there is one */
void run_takeover_ends(struct run *run, const char *why);

#endif
