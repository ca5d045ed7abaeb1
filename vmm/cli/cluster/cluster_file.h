/* cluster_file.h - parses a cluster file: the computers of a machine, one per line, in the order of
 * their numbers.
 *
 *   HOST [user=U] [port=P] [address=A] [cpus=N] [memory=M] [phoenix="LINE"]...
 *
 * The first is the computer where vmp is typed.  `#` begins a comment. phoenix= may be repeated.
 * Each is a line of the Phoenix configuration (thesis A.7: dest, listen_port); together they
 * replace the connection that host 0 would make.  Pure.
 */
#ifndef VMM_CLI_CLUSTER_CLUSTER_FILE_H
#define VMM_CLI_CLUSTER_CLUSTER_FILE_H

#include "base/limits.h"
#include "base/types.h"
#include "vmm/shared/hostmem.h"
#include "vmm/shared/problem.h"

enum {
	MAX_USER_NAME = 33,
	MAX_PHOENIX_LINES = 8,
	MAX_PHOENIX_LINE = 200,
	MAX_CLUSTER_BYTES = 65536
};

struct cluster_host {
	char name[MAX_HOST_NAME];
	char user[MAX_USER_NAME]; /* "": ssh decides */
	uint32_t port;		  /* of ssh; 0: ssh decides */
	char address[MAX_HOST_NAME]; /* by which the daemons reach it; "": as ssh has */
	uint32_t cpus;		  /* processors that begin on this host; default 1 */
	/* how much of the guest's memory the host may hold; 0: no limit of its own */
	uint32_t memory_mib;
	char phoenix[MAX_PHOENIX_LINES][MAX_PHOENIX_LINE];
	uint32_t n_phoenix;
};

struct cluster_file { struct cluster_host host[MAX_NODES]; uint32_t n; };

/* Parses a file.  Returns 0, or -1 with "LINE:COLUMN: what is wrong". */
int cluster_file_parse(struct cluster_file *file, const char *text, size_t bytes,
		       struct problem *p);

/* Prints a host's line without its end.  Parsing the line gives the same host again.  A host that
 * was parsed always fits. */
enum { CLUSTER_LINE = 256 + MAX_PHOENIX_LINES * (MAX_PHOENIX_LINE + 16) };
void cluster_file_print_line(const struct cluster_host *host, char line[CLUSTER_LINE]);

/* Returns the index of the host of this name, or -1. */
int cluster_file_find(const struct cluster_file *file, const char *name);

/* Changes the file to what it is on the computer of host `name`: that host's line comes first, and
 * the others keep their order.  A host named localhost is renamed to `old_first_name`, an address
 * for example; if there is none, `old_first_name` is not used.  Returns 0; or -1, with the file
 * unchanged, if there is no such host, or if the new name is invalid or taken. */
int cluster_file_make_first(struct cluster_file *file, const char *name,
			    const char *old_first_name);

/* Of some hosts' lines: how many processors they ask for, and how many of the hosts ask for at
 * least one. */
uint32_t cluster_file_cpus(const struct cluster_host *host, uint32_t hosts);
uint32_t cluster_file_askers(const struct cluster_host *host, uint32_t hosts);
/* Returns how much of the guest's memory the hosts may hold together, if a host whose line does not
 * say may hold `each_mib`; 0: no limit. */
uint32_t cluster_file_memory(const struct cluster_host *host, uint32_t hosts, uint32_t each_mib);
/* Sets memory= of a host that has none, and whose control group leaves less than all of the guest's
 * memory, to what it leaves; each_mib: --host-mem, or 0. */
void cluster_file_bound(struct cluster_host *host, uint32_t mem_mib, uint32_t each_mib,
			const struct hostmem *has);
/* Checks whether a host's computer has memory for all that it may come to hold of a guest of
 * `mem_mib`.  Returns 0, or -1 with the problem. */
int cluster_file_fits(const struct cluster_host *host, uint32_t mem_mib, uint32_t each_mib,
		      const struct hostmem *has, struct problem *p);
/* Sets where each of `cpus` processors begins: on the hosts in turn, as many on each as it asks
 * for.  The remaining ones go in turn to the hosts that ask for any, or to all hosts if none
 * asks. */
void cluster_file_place(const struct cluster_host *host, uint32_t hosts, uint32_t cpus,
			uint8_t place[MAX_CPUS]);

#endif
