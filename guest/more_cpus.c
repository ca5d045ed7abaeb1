/* more_cpus.c - the other processors, which init brings up on a machine of several hosts. */
#include "guest/guest.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Says whether more processors are to come (guest-patches/21-domains-at-once). */
static void announce(bool more)
{
	int fd = open("/sys/module/core/parameters/vmp_more_cpus", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return; /* an ordinary kernel */
	if (write(fd, more ? "1" : "0", 1) < 0)
		complain("cannot announce", "processors");
	close(fd);
}

/* Brings up the other processors.  On several hosts the kernel boots with one (maxcpus=1), so that
 * nothing that it sets up, and no tick meanwhile, needs another host.  Init stays on its processor:
 * each of the others fetches the pages that it needs itself. */
void more_cpus_bring_up(void)
{
	cpu_set_t first, all;
	char path[64], online;
	bool announced = false;
	int fd;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	memset(&all, 0xff, sizeof all);
	for (unsigned cpu = 1;; cpu++) {
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/online", cpu);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			break;
		if (read(fd, &online, 1) == 1 && online == '0') {
			if (!announced)
				announce(true);
			announced = true;
			sched_setaffinity(0, sizeof first, &first);
			if (pwrite(fd, "1", 1, 0) < 0)
				complain("cannot bring up", path);
		}
		close(fd);
	}
	if (announced)
		announce(false);
	sched_setaffinity(0, sizeof all, &all);
}
