/* run_private.h - a run, and what its parts are to each other. */
#ifndef VMM_CLI_RUN_RUN_PRIVATE_H
#define VMM_CLI_RUN_RUN_PRIVATE_H

#include "base/dispatch.h"
#include "vmm/cli/client.h"
#include "vmm/cli/cluster/cluster.h"
#include "vmm/cli/gdb/gdb_server.h"
#include "vmm/cli/query/report.h"
#include "vmm/cli/run/checks.h"
#include "vmm/cli/run/launch.h"
#include "vmm/cli/run/run.h"
#include "vmm/cli/rundir.h"
#include "vmm/cli/snapshot/checkpoint.h"
#include "vmm/cli/snapshot/keptfile.h"
#include "vmm/cli/snapshot/load.h"
#include "vmm/cli/standby/sender.h"
#include "vmm/cli/streams.h"
#include "vmm/cli/terminal.h"

enum { PROGRESS_MS = 2000 }; /* work that takes longer than this shows that it goes on */

struct run {
	const struct options *o;
	struct event_base *base;
	struct client client;
	struct launch launch;
	struct launch_plan plan; /* for hosts that come */
	struct hostcpu cpu;	 /* what the guest sees of the hosts' processors */
	struct cluster cluster;	 /* with --cluster */
	unsigned adding;	 /* the host that comes, of a cluster; 0: none */
	uint32_t joins;		 /* bit set: those that it joins */
	uint32_t hosts;		 /* bit set of those that there are */
	struct rundir rundir;
	struct report report;
	struct load load;
	struct checkpoint checkpoint;
	struct keptfile keptfile;
	struct {
		uint32_t lost;	   /* bit set of hosts, as far as the machine's daemons have said */
		uint64_t since_ns; /* 0: the machine does not go back just now */
		struct problem said /* of the loss, by a daemon */, why;
		struct event *regrouped; /* a cluster's hosts that are left are prepared, or it has taken too long */
		bool regroups;		 /* that is waited for */
		uint64_t first_at;	 /* of a cluster: checkpoints taken when host 0 was lost last, and one */
		uint32_t before;	 /* how many hosts there were */
		bool doubt;		 /* the standby was silent: it may go on with the machine, too */
	} back;
	enum { YIELD_NOT, YIELD_WANTED /* host 0 shall go */, YIELD_STANDS /* and the machine stands still, and is kept */,
	       YIELD_LEFT /* it has gone, with all others: the machine is there again when it is loaded */,
	       YIELD_BACK /* the same, but that host 0 stays after all */ } yield;
	uint32_t yielded; /* so many times host 0 has gone */
	struct {
		struct sender to;
		uint32_t cannot;      /* bit set: hosts of the cluster that have refused */
		uint64_t copied, copies; /* how many checkpoints had been taken when its copy was the last; the one that is on its way */
		uint64_t forgotten_ns; /* one whose connection broke may be there until then */
		struct event *again;  /* look for one again; the end, when the machine has gone there */
	} standby;
	bool stands_by;		   /* `vmp standby`: this process is another one's, until it takes the machine over */
	struct takeover *takeover; /* then; or NULL */
	struct gdbserver gdb;
	bool loads;		/* `vmp snapshot load`, or the machine has gone back to a checkpoint */
	bool attached;		/* the console and the streams flow */
	uint32_t input_room, input_taken; /* what its stream device has room for, and what it had got */
	struct options loaded;	/* the options, with what the snapshot's or the cluster's file says */
	char disk[4200];
	struct stream_in in;
	struct stream_out out, err;
	struct escape escape;
	struct event *retry, *tick, *typed, *limit, *death, *starter;
	struct event *signals[8];
	uint64_t start_ns, connect_ns; /* the machine's beginning; of the last start of daemons */
	const char *kernel;	/* the file */
	int log_fd, archive_fd;
	bool interactive, raw, connected;
	bool held;		/* the machine waits for a debugger */
	bool background;	/* `vmp up`: standard error is its socket until userland is there; see up.c */
	bool progress_shown, output_seen;
	bool ended;		/* the status is decided */
	bool report_expected;	/* --stats or --summary: what the hosts send as they end */
	bool forced;		/* no more waiting for output */
	int status;
	struct problem why;	/* empty: nothing to say */
};

/* run.c */
uint64_t run_now_ns(void);
bool run_wants_report(const struct run *run);
void run_hide_progress(struct run *run);
/* The first end wins. `line` may be empty; status 125 always comes with one. */
void run_end(struct run *run, int status, const char *line);
void run_proceed_to_end(struct run *run); /* something that the end waits for may have happened */
void run_look_for_deaths(struct run *run); /* in a moment */
void run_connect(struct run *run); /* to node 0's daemon, as soon as it listens */
void run_on_loaded(void *context);
void run_on_load_failed(void *context, const char *line);

/* start.c: 0, or -1 with the problem */
int run_prepare(struct run *run, struct host_files *files, struct problem *p);
int run_prepare_saved(struct run *run, struct problem *p);
int run_start(struct run *run, const struct host_files *files, struct problem *p);
int run_start_saved(struct run *run, uint32_t hosts, struct problem *p);
int run_open_log(struct run *run, struct problem *p);
struct machine_info run_info(const struct run *run, uint32_t hosts);
/* May so many hosts (with a cluster: of these lines) hold the guest's memory? */
int run_hosts_hold(const struct run *run, const struct cluster_host *lines, uint32_t hosts, struct problem *p);

/* messages.c */
void run_on_message(void *context, const struct message *m); /* calls one of the handlers that base/msg.def names */
#define NODE_TO_RUN(name, how, handler) HANDLER_##how(struct run *run, name, handler)
#include "base/msg.def"

/* load_flow.c */
void run_attach_streams(struct run *run);

/* run_hosts.c */
int run_begin_cluster(struct run *run, struct problem *p);   /* its hosts are being prepared */
int run_prepare_cluster(struct run *run, struct problem *p); /* they are */
void run_tell_where(struct run *run, unsigned host); /* a host of the cluster listens, if it does */
void run_tell_ends(struct run *run);

/* go_back.c */
int run_make_checkpoints(struct run *run); /* 0, or not */
void run_set_checkpoints(struct run *run); /* as the options say */
bool run_go_back(struct run *run, const char *died);
void run_look_at_regrouped(struct run *run); /* a host of the cluster that is left is prepared, or is not */
void run_report_back(struct run *run);
bool run_can_go_back(const struct run *run);
void run_leave_machine(struct run *run, uint32_t lost); /* nothing is left of it but its checkpoint, its console and its streams */
/* From the checkpoint that has just been taken: on so many hosts; on those of a cluster, for this reason. */
void run_start_elsewhere(struct run *run, uint32_t hosts);
void run_start_again(struct run *run, const char *why);
int run_load_kept(struct run *run, uint32_t hosts, struct problem *p);

/* yield.c */
void run_yield(struct run *run);	/* host 0 shall go */
void run_yield_begins(struct run *run); /* its last checkpoint */
void run_stays(struct run *run, const char *why);
void run_on_stands_still(void *context);
void run_say_gone(const struct run *run); /* to the log */
void run_yield_ends(struct run *run); /* the machine is there again, without host 0 or with it */

/* standby.c */
int run_standby_open(struct run *run);
void run_standby_look(struct run *run);	 /* does it know all that it should? */
bool run_standby_may_live(const struct run *run); /* it has a copy, and nothing is heard of it */
void run_standby_leave(struct run *run);	  /* what becomes of it is its own business */
void run_tell_over(struct run *run);	  /* to one that nobody could tell otherwise: far_tell_over() */
bool run_standby_is_busy(void *context); /* the checkpoint that stands is on its way there */
const char *run_standby_why_not(const struct run *run); /* another computer cannot go on with this machine; NULL: perhaps it can */
void run_standby_end(struct run *run);	 /* the machine has ended: it shall not go on with it; when it has heard that, or a while has passed */
void run_standby_name(const struct run *run, char name[MAX_NAME]); /* of its host; "": there is none */

/* takeover.c: `vmp standby` */
int run_stand_by(struct run *run, struct problem *p); /* 0: the machine is this process's now, or run->ended; or -1 */
int run_take_over(struct run *run, struct problem *p);
void run_has_taken_over(struct run *run); /* if it has, the machine is there */
void run_takeover_ends(struct run *run, const char *why); /* this process does; with the reason if it is for one */

#endif
