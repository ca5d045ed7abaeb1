/* hostshm.c - posting to a CPU and draining pins; see hostshm.h for the rules. */
#include "base/hostshm.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/layout.h"

struct host_shm *hostshm_map(int head_fd, int cpus_fd, uint32_t ram_pages)
{
	size_t rest = hostshm_cpus_bytes(ram_pages);
	char *at = mmap(NULL, HOSTSHM_HEAD_BYTES + rest, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (mmap(at, HOSTSHM_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, head_fd,
		 0) == MAP_FAILED ||
	    mmap(at + HOSTSHM_HEAD_BYTES, rest, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 cpus_fd, 0) == MAP_FAILED) {
		munmap(at, HOSTSHM_HEAD_BYTES + rest);
		return NULL;
	}
	return (struct host_shm *)at;
}

void hostshm_unmap(struct host_shm *shm, uint32_t ram_pages)
{
	munmap(shm, HOSTSHM_HEAD_BYTES + hostshm_cpus_bytes(ram_pages));
}

void hostshm_give_all_rights(struct host_shm *shm, uint32_t ram_pages)
{
	uint8_t *rights = (uint8_t *)shm->page_right;

	memset(rights, PAGE_WRITE, ram_pages);
	if (ram_pages > RAM_HOLE_GFN)
		memset(rights + RAM_HOLE_GFN, PAGE_NONE, RAM_HOLE_END_GFN - RAM_HOLE_GFN);
}

/* A CPU that goes to run sets RUNNING and checks its posts; a signal sent to a stopped VM process
 * stops it again as soon as it runs.  A VM process that passes its CPU on is not RUNNING; the next
 * one sets `space` before RUNNING.
 *
 * A CPU gets one signal each time that it is RUNNING, however often it is kicked.  It clears
 * `kicked` before it sets RUNNING; whoever finds it set leaves the signal to him who set it.
 * (TRICKS: kick-is-a-hint, one-kick) */
static void send_signal(struct host_shm *shm, unsigned cpu)
{
	struct vcpu_slot *slot = &shm->slot[cpu];
	pid_t pid;

	if (atomic_exchange(&slot->kicked, 1))
		return;
	pid = atomic_load(&shm->vm_pid[cpu][atomic_load(&slot->space) % MAX_SPACES]);
	if (pid > 0)
		kill(pid, SIGUSR1);
}

void hostshm_kick(struct host_shm *shm, unsigned cpu)
{
	enum slot_state state = doorbell_ring(&shm->doorbell[cpu]);

	if (state == SLOT_RUNNING)
		send_signal(shm, cpu);
	else if (state != SLOT_POLLING)
		syscall(SYS_futex, &shm->doorbell[cpu].wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void hostshm_post_interrupt(struct host_shm *shm, unsigned cpu, uint8_t vector)
{
	if (doorbell_post(&shm->doorbell[cpu], vector))
		hostshm_kick(shm, cpu);
}

static bool is_absent(struct host_shm *shm, unsigned cpu)
{
	return atomic_load(&shm->doorbell[cpu].state) == SLOT_ABSENT;
}

bool hostshm_try_interrupt(struct host_shm *shm, unsigned cpu, uint8_t vector, bool nmi)
{
	if (is_absent(shm, cpu))
		return false;
	if (nmi)
		hostshm_post(shm, cpu, POST_NMI);
	else
		hostshm_post_interrupt(shm, cpu, vector);
	if (!is_absent(shm, cpu))
		return true;
	/* refused, unless the CPU has collected it */
	return nmi
		? !(atomic_fetch_and(&shm->slot[cpu].post, ~POST_NMI) & POST_NMI)
		: !doorbell_take_back(&shm->doorbell[cpu], vector);
}

void hostshm_post(struct host_shm *shm, unsigned cpu, uint32_t bits)
{
	atomic_fetch_or(&shm->slot[cpu].post, bits);
	hostshm_kick(shm, cpu);
}

/* (TRICKS: dead-pins) */
void hostshm_forget_pins(struct vcpu_slot *slot)
{
	for (unsigned i = 0; i < PINS_PER_CPU; i++)
		atomic_store(&slot->pin[i], 0);
}

static uint64_t now_ms(void) { return clock_now_ns() / 1000000; }

/* (TRICKS: pin-then-look) */
int hostshm_drain_pins(struct host_shm *shm, gfn_t gfn, hostshm_is_gone *is_gone, void *ctx)
{
	enum { YIELDS_PER_QUESTION = 64 };
	uint64_t limit_ms = 0;
	unsigned yields = 0;

	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned cpu = 0; cpu < shm->n_cpus; cpu++)
		for (unsigned i = 0; i < PINS_PER_CPU; i++)
			while (hostshm_pin_holds(atomic_load(&shm->slot[cpu].pin[i]), gfn)) {
				sched_yield();
				if (++yields % YIELDS_PER_QUESTION)
					continue;
				if (!limit_ms)
					limit_ms = now_ms() + HOSTSHM_PIN_LIMIT_MS;
				if (is_gone(ctx, cpu))
					hostshm_forget_pins(&shm->slot[cpu]);
				else if (now_ms() > limit_ms)
					return (int)cpu;
			}
	return -1;
}
