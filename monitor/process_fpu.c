/* process_fpu.c - the FPU and vector registers of a VM process: of a stopped one on the ptrace
 * engine, and on the direct engine those that it has left in the memory that it shares with its
 * monitor. */
#include "monitor/monitor.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

/* Save the registers of a stopped process.  If ptrace reports that it does not exist, it has been
 * killed.  Wait until it is dead, so that monitor_end() reports its death as the cause. */
static int save_stopped(pid_t pid, uint8_t *to)
{
	int bytes = fpstate_save(pid, to);
	siginfo_t child;

	while (bytes == -ESRCH && waitid(P_PID, pid, &child, WEXITED | WNOWAIT | __WALL) &&
	       errno == EINTR)
		;
	return bytes;
}

int process_fpu_save(struct monitor *m, uint8_t *to)
{
	static uint8_t xsave[DIRECT_XSAVE_BYTES];
	struct xsave_layout layout;
	uint32_t bytes;

	if (!m->direct_engine)
		return save_stopped(m->vm.pid, to);
	bytes = m->direct->xsave_bytes;
	if (!bytes) /* the VM process has not run yet */
		return fpstate_at_reset(to);
	if (bytes > sizeof xsave)
		return -EINVAL;
	memcpy(xsave, m->direct->xsave, bytes);
	fpstate_layout(&layout);
	return fpstate_pack(&layout, xsave, bytes, to);
}

int process_fpu_load(struct monitor *m, const uint8_t *from, size_t bytes, char *why,
		     size_t why_bytes)
{
	if (!m->direct_engine)
		return fpstate_load(m->vm.pid, from, bytes, why, why_bytes);
	memcpy(m->direct_fpu, from, bytes);
	m->direct_fpu_bytes = bytes;
	return 0;
}

int process_fpu_change(struct monitor *m, const uint8_t *from, size_t bytes)
{
	static uint8_t xsave[DIRECT_XSAVE_BYTES];
	uint32_t xsave_bytes = m->direct->xsave_bytes;
	struct xsave_layout layout;
	char why[160];

	if (!m->direct_engine)
		return fpstate_load(m->vm.pid, from, bytes, why, sizeof why) ? -EINVAL : 0;
	if (!xsave_bytes || xsave_bytes > sizeof xsave) /* the VM process has not run yet */
		return -EBUSY;
	memcpy(xsave, m->direct->xsave, xsave_bytes);
	fpstate_layout(&layout);
	if (fpstate_unpack(&layout, from, bytes, xsave, xsave_bytes, why, sizeof why))
		return -EINVAL;
	memcpy(m->direct->xsave, xsave, xsave_bytes);
	return 0;
}
