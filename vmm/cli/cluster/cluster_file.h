/* cluster_file.h - a cluster file: the computers of a machine, one per line, in the order of their numbers.
 *
 *   HOST [user=U] [port=P] [cpus=N] [memory=M] [phoenix="LINE"]...
 *
 * The first is the computer where vmp is typed.  `#` begins a comment.  phoenix= may be repeated: a line each of the Phoenix
 * configuration (thesis A.7: dest, listen_port), which replace the connection that host 0 would make.  Pure.
 */
#ifndef VMM_CLI_CLUSTER_CLUSTER_FILE_H
#define VMM_CLI_CLUSTER_CLUSTER_FILE_H

#include "base/limits.h"
#include "base/types.h"
#include "vmm/shared/hostmem.h"
#include "vmm/shared/problem.h"

enum { MAX_USER_NAME = 33, MAX_PHOENIX_LINES = 8, MAX_PHOENIX_LINE = 200, MAX_CLUSTER_BYTES = 65536 };

struct cluster_host {
	char name[MAX_HOST_NAME];
	char user[MAX_USER_NAME]; /* "": as ssh decides */
	uint32_t port;		  /* of ssh; 0: as ssh decides */
	uint32_t cpus;		  /* processors that begin there; 1 if it is not said */
	uint32_t memory_mib;	  /* how much of the guest's memory it may hold; 0: no limit of its own */
	char phoenix[MAX_PHOENIX_LINES][MAX_PHOENIX_LINE];
	uint32_t n_phoenix;
};

struct cluster_file { struct cluster_host host[MAX_NODES]; uint32_t n; };

/* 0, or -1 with "LINE:COLUMN: what is wrong". */
int cluster_file_parse(struct cluster_file *file, const char *text, size_t bytes, struct problem *p);

/* A host's line, without its end, such that parsing it gives the same again: as parsed, it fits. */
enum { CLUSTER_LINE = 256 + MAX_PHOENIX_LINES * (MAX_PHOENIX_LINE + 16) };
void cluster_file_print_line(const struct cluster_host *host, char line[CLUSTER_LINE]);

/* The host of this name, or -1. */
int cluster_file_find(const struct cluster_file *file, const char *name);

/* The file as the computer of host `name` has it: its line is the first, the others keep their order, and whoever was called
 * localhost where the file comes from has `old_first_name` (an address, say; not looked at if there is none). -1, and the file is as
 * it was: there is no such host, or that is no name, or a host's name already. */
int cluster_file_make_first(struct cluster_file *file, const char *name, const char *old_first_name);

/* Of some hosts' lines: how many processors they ask for, and how many of the hosts ask for any. */
uint32_t cluster_file_cpus(const struct cluster_host *host, uint32_t hosts);
uint32_t cluster_file_askers(const struct cluster_host *host, uint32_t hosts);
/* How much of the guest's memory they may hold together, if those that do not say may hold `each_mib`; 0: as much as there is. */
uint32_t cluster_file_memory(const struct cluster_host *host, uint32_t hosts, uint32_t each_mib);
/* Has a host's computer memory for all that it may come to hold of a guest of `mem_mib`? 0, or -1 with why not. */
int cluster_file_fits(const struct cluster_host *host, uint32_t mem_mib, uint32_t each_mib, const struct hostmem *has,
		      struct problem *p);
/* Where each of `cpus` processors begins: in turn, up to what each host asks for; what is left over, in turn again, to those that
 * ask for any, or to all, if none does. */
void cluster_file_place(const struct cluster_host *host, uint32_t hosts, uint32_t cpus, uint8_t place[MAX_CPUS]);

#endif
