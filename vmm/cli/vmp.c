/* vmp.c - the command `vmp`: parses the options and calls the command's function. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/options.h"
#include "vmm/cli/parts/part_holder.h"
#include "vmm/cli/run/run.h"
#include "vmm/cli/snapshot/save.h"

#define VMP_VERSION "0.1"

static int print_help(enum verb verb)
{
	static char text[8192];

	options_help(verb, text, sizeof text);
	return fputs(text, stdout) < 0 || fflush(stdout) ? EXIT_VMP_FAILURE : 0;
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
	puts("vmp " VMP_VERSION " (engines: ptrace, direct)");
	return fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}

/* Opens /dev/null for standard streams that the caller has closed, so that none of our sockets gets
 * their number. */
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
	return functions[options.verb](&options);
}
