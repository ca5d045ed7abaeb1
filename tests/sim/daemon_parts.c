/* daemon_parts.c - the simulator's owners hold their checkpoints themselves: nothing here is
 * called with parts (vmm/cli/parts/parts.h). */
#include "base/log.h"
#include "vmm/cli/run/run_private.h"

#define NEVER { bug_on(true); }

void parts_begin(struct parts *parts, bool changes) { (void)parts, (void)changes; NEVER }
void parts_add(struct parts *parts, const struct snapfile_record *record, const void *data)
{
	(void)parts, (void)record, (void)data;
	NEVER
}
void parts_seal(struct parts *parts) { (void)parts; NEVER }
void parts_commit(struct parts *parts) { (void)parts; NEVER }
void parts_abandon(struct parts *parts) { (void)parts; NEVER }
void parts_read(struct parts *parts) { (void)parts; NEVER }
bool parts_stay(const struct parts *parts) { (void)parts; bug_on(true); return false; }
bool parts_are_ready(const struct parts *parts) { (void)parts; bug_on(true); return false; }
bool parts_is_full(struct parts *parts) { (void)parts; bug_on(true); return false; }
int parts_next(struct parts *parts, struct snapfile_record *record, void *data)
{
	(void)parts, (void)record, (void)data;
	bug_on(true);
	return 0;
}

int run_parts_open(struct run *run) { (void)run; return 0; }
void run_parts_regain(struct run *run) { (void)run; }
bool run_parts_come(const struct run *run) { (void)run; return false; }
void run_parts_lose(struct run *run, uint32_t lost) { (void)run, (void)lost; }
int run_parts_check(const struct run *run, struct problem *p) { (void)run, (void)p; return 0; }
void run_but_processes(const struct run *run, pid_t but[MAX_HOLDERS + 2])
{
	(void)run;
	but[0] = 0;
}
