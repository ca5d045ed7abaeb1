/* monitor_machine.c - plays the daemon of a machine with one monitor (monitor_machine.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/packet.h"
#include "tests/unit/monitor_machine.h"

const char *machine_monitor;
bool direct;

void machine_start(struct machine *t, const void *code, size_t bytes)
{
	int ram = memfd_create("ram", 0), shm = memfd_create("shm", 0),
	    cpus = memfd_create("cpus", 0), pair[2];
	int bell = eventfd(0, EFD_NONBLOCK);
	char argument[5][16];

	memset(t, 0, sizeof *t);
	CU_ASSERT_FATAL(!ftruncate(ram, (off_t)RAM_PAGES << PAGE_BITS) &&
			!ftruncate(shm, HOSTSHM_HEAD_BYTES) &&
			!ftruncate(cpus, (off_t)hostshm_cpus_bytes(RAM_PAGES)));
	t->ram = mmap(NULL, (size_t)RAM_PAGES << PAGE_BITS, PROT_READ | PROT_WRITE, MAP_SHARED, ram,
		      0);
	t->shm = hostshm_map(shm, cpus, RAM_PAGES);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t->shm);
	t->shm->magic = HOSTSHM_MAGIC;
	t->shm->n_cpus = 1;
	t->shm->ram_pages = RAM_PAGES;
	hostclock_set(&t->shm->clock, (struct clock_line){ clock_now_ns(), 0, 0 });
	t->shm->host_tsc_khz = 1000000;
	cpufeatures_look(&t->shm->features);
	for (unsigned i = 0; i < RAM_PAGES; i++)
		t->shm->page_right[i] = PAGE_WRITE;
	memcpy(t->ram + GUEST_BASE, code, bytes);
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	snprintf(argument[0], 16, "%d", pair[1]);
	snprintf(argument[1], 16, "%d", ram);
	snprintf(argument[2], 16, "%d", shm);
	snprintf(argument[3], 16, "%d", cpus);
	snprintf(argument[4], 16, "%d", bell);
	t->monitor = fork();
	if (!t->monitor) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		execl(machine_monitor, "vmp-monitor", "--cpu", "0", "--socket", argument[0],
		      "--ram-fd", argument[1], "--shm-fd", argument[2], "--cpus-fd", argument[3],
		      "--bell-fd", argument[4], "--log-fd", "2", "--engine",
		      direct ? "direct" : "ptrace", (char *)NULL);
		_exit(1);
	}
	close(pair[1]);
	close(ram);
	close(shm);
	close(cpus);
	close(bell);
	t->channel = pair[0];
	setsockopt(t->channel, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 60 },
		   sizeof(struct timeval));
}

bool machine_play(struct machine *t, bool start)
{
	struct { struct msg_header header; char body[MAX_MSG_PAYLOAD + 64]; } p;
	ssize_t n;

	while ((n = recv(t->channel, &p, sizeof p, 0)) > 0)
		switch (p.header.type) {
		case MSG_HELLO:
			if (!start)
				return true;
			t->shm->slot[0].start_eip = GUEST_BASE;
			hostshm_post(t->shm, 0, POST_START);
			break;
		case MSG_LOG:
			snprintf(t->log, sizeof t->log, "%.*s",
				 (int)(p.header.bytes - sizeof(struct msg_log)),
				 p.body + sizeof(struct msg_log));
			break;
		case MSG_MACHINE_END:
			memcpy(&t->end, p.body, sizeof t->end);
			snprintf(t->why, sizeof t->why, "%.*s",
				 (int)(p.header.bytes - sizeof t->end), p.body + sizeof t->end);
			return true;
		}
	return false;
}

void machine_stop(struct machine *t)
{
	pid_t vm = t->shm->vm_pid[0][0];

	kill(t->monitor, SIGKILL);
	waitpid(t->monitor, NULL, 0);
	if (vm) /* the tracer's death kills it; this process reaps it, unless the monitor has */
		CU_ASSERT(waitpid(vm, NULL, 0) == vm || errno == ECHILD);
	close(t->channel);
	munmap(t->ram, (size_t)RAM_PAGES << PAGE_BITS);
	hostshm_unmap(t->shm, RAM_PAGES);
}

void machine_send(struct machine *t, enum msg_type type, const void *body, size_t bytes)
{
	struct packet p = { .header = packet_header(type, VNODE_CPU(0), 0, (uint32_t)bytes) };

	memcpy(p.body, body, bytes);
	CU_ASSERT_FATAL(send(t->channel, &p, sizeof p.header + bytes, 0) > 0);
}

void machine_tell(struct machine *t, enum msg_type type, const void *body, size_t bytes)
{
	machine_send(t, type, body, bytes);
	hostshm_post(t->shm, 0, POST_MESSAGE);
}

/* The I/O server's answer: it grants no queue to this CPU any more. */
static void on_virtio_ask(struct machine *t, const struct packet *p)
{
	struct msg_virtio ask, left = { .op = VIRTIO_LEFT };

	memcpy(&ask, p->body, sizeof ask);
	if (ask.op == VIRTIO_LEAVE)
		machine_tell(t, MSG_VIRTIO_TELL, &left, sizeof left);
}

bool machine_hear(struct machine *t, enum msg_type type, struct packet *p)
{
	do {
		if (recv(t->channel, p, sizeof *p, 0) <= 0)
			return false;
		if (p->header.type == MSG_VIRTIO_ASK)
			on_virtio_ask(t, p);
	} while (p->header.type == MSG_LOG || p->header.type == MSG_HELLO ||
		 p->header.type == MSG_VIRTIO_ASK ||
		 p->header.type == MSG_CPU_HALTED /* a spare that has waited for a second */);
	return p->header.type == type;
}

void on_the_direct_engine(void (*test)(void))
{
	direct = true;
	test();
	direct = false;
}
