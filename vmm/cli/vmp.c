/* vmp.c - the command `vmp`: parses the options and calls the command's function. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/options.h"
#include "vmm/cli/parts/part_holder.h"
#include "vmm/cli/run/run.h"
#include "vmm/cli/snapshot/save.h"

#define VMP_VERSION "0.1"

/* Returns the status after the last output: what could not be written is an error. */
static int printed(bool well)
{
	if (well && !fflush(stdout))
		return 0;
	log_error("cannot write standard output: %s", strerror(errno));
	return EXIT_VMP_FAILURE;
}

static int print_help(enum verb verb)
{
	static char text[8192];

	options_help(verb, text, sizeof text);
	return printed(fputs(text, stdout) >= 0);
}

static int (*const functions[VERB_COUNT])(const struct options *) = {
#define COMMAND(verb, word, machine, function, ...) [VERB_##verb] = function,
#include "vmm/cli/commands.def"
#undef COMMAND
};

int vmp_snapshot(const struct options *o) { return o->save ? save_machine(o) : run_saved(o); }

int vmp_help(const struct options *o) { return print_help(o->verb); }

int vmp_version(const struct options *o)
{
	(void)o;
	return printed(puts("vmp " VMP_VERSION " (engines: ptrace, direct)") >= 0);
}

/* Opens /dev/null for standard streams that the caller has closed, so that none of our sockets gets
 * their number.  For reading alone: what is written there is an error, as without a stream. */
static void open_missing_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
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
	return functions[options.verb](&options);
}
