/* tracefile.h - --trace FILE: every fetch of a page, as JSON that Perfetto (ui.perfetto.dev) and
 * Chrome (chrome://tracing) open.
 *
 * A process of the picture is a host; a thread is a CPU, or the host's daemon.  A fetch is a slice
 * on its CPU, with its stages below it; a page that is taken from a host's CPUs is a slice of the
 * daemon.  A slice's arguments name the page, the instruction, and the guest kernel's symbols.
 */
#ifndef VMM_CLI_QUERY_TRACEFILE_H
#define VMM_CLI_QUERY_TRACEFILE_H

#include <stddef.h>
#include <stdio.h>
#include "base/trace.h"
#include "vmm/shared/problem.h"

struct tracefile {
	FILE *file; /* NULL: there is none */
	struct trace_of_host {
		struct trace_event *event; /* owned */
		size_t count;
		uint64_t lost;
		bool complete;
	} host[MAX_NODES];
};

/* Opens the file.  Its old contents stay until it is written. */
int tracefile_open(struct tracefile *trace, const char *path, struct problem *p);
/* A part of a host's events came: the body of a TRACE message with its payload. */
void tracefile_on_part(struct tracefile *trace, const void *body, size_t bytes);
/* Writes the file; `kernel` is the vmlinux for symbols, or NULL.  Returns 0, or -1 if it could not
 * be written whole. */
int tracefile_write(struct tracefile *trace, const char *kernel, struct problem *p);
void tracefile_free(struct tracefile *trace);

#endif
