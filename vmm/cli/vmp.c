/* vmp.c - the command line `vmp`: reads the options and hands over to the one who does it. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/options.h"
#include "vmm/cli/query/query.h"
#include "vmm/cli/run/run.h"
#include "vmm/cli/run/up.h"
#include "vmm/cli/snapshot/save.h"

#define VMP_VERSION "0.1"

static int print_help(enum verb verb)
{
	static char text[8192];

	options_help(verb, text, sizeof text);
	return fputs(text, stdout) < 0 || fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}

static int print_version(void)
{
	puts("vmp " VMP_VERSION " (engines: ptrace, direct)");
	return fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}

/* A standard stream that the caller has closed must not become one of our sockets. */
static void open_missing_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct options options;

	open_missing_streams();
	log_open("vmp", 2, LOG_WARN);
	fault_open();
	if (options_parse(&options, argc, argv, cpus > 0 ? cpus : 1)) {
		log_error("%s", options.error);
		return EXIT_VMP_FAILURE;
	}
	if (options.help)
		return print_help(options.verb);
	switch (options.verb) {
	case VERB_RUN:
		return run_machine(&options);
	case VERB_UP:
		return up_machine(&options);
	case VERB_STATUS:
		return query_status(&options);
	case VERB_TOP:
		return query_top(&options);
	case VERB_DOWN:
		return query_down(&options);
	case VERB_CPU:
		return query_cpu_move(&options);
	case VERB_HOST:
		return query_host(&options);
	case VERB_POLICY:
		return query_policy(&options);
	case VERB_SNAPSHOT:
		return options.save ? save_machine(&options) : run_saved(&options);
	case VERB_STANDBY:
		return run_standby(&options);
	case VERB_CONSOLE:
		return query_console(&options);
	case VERB_REGS:
		return query_regs(&options);
	case VERB_PAGES:
		return query_pages(&options);
	case VERB_VERSION:
		return print_version();
	case VERB_HELP:
	case VERB_COUNT:
		break;
	}
	return print_help(VERB_HELP);
}
