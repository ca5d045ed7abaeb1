/* limits.h - every limit of the machine in one place. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
	MAX_CPUS = 32,
	MAX_NODES = 32,
	MIN_RAM_MIB = 32,
	/* above 3 GiB with PAE (base/layout.h) */
	MAX_RAM_MIB = 16384,
	MAX_RAM_PAGES = (MAX_RAM_MIB + 256) << 8, /* with the hole: base/layout.h */
	DEFAULT_RAM_MIB = 256,
	MAX_MSG_PAYLOAD = 8192,	   /* bytes after a message's fixed body */
	MAX_PRELOADED = 96,	   /* runs of pages that hold data when a machine starts */
	MAX_NAME = 64,		   /* a machine's name */
	MAX_HOST_NAME = 64,	   /* a host's name in a cluster file */
	MAX_CMDLINE = 2048,	   /* the guest kernel's command line (its own limit) */
	MAX_DISKS = 4,
	/* host address spaces of one virtual CPU: as many as CR3's low bits can name */
	MAX_SPACES = 8,
	/* pages that a CPU requests together with the one that it waits for */
	MAX_AHEAD = 512,
	/* pages, or runs of pages, that one virtual CPU may pin at once */
	PINS_PER_CPU = 4,
	EXIT_VMP_FAILURE = 125,	   /* exit status: vmp itself failed, or the machine died */
};

#endif
