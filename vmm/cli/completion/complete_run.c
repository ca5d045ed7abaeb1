/* complete_run.c - `vmp complete`: reads from the run folders and the guest's image what complete.c
 * offers.  What cannot be read is not offered, since a shell's completion cannot show errors. */
#include "vmm/cli/completion/complete.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"
#include "vmm/cli/cluster/host_names.h"
#include "vmm/cli/guest/guest_image.h"
#include "vmm/cli/rundir.h"

enum { MAX_PROGRAMS = 1024 };

static void list_machines(const char *names[MAX_LISTED + 1])
{
	static struct rundir_list list;
	struct problem ignored;

	if (rundir_list(&list, &ignored))
		return;
	for (unsigned i = 0; i < list.n; i++)
		names[i] = list.name[i];
}

/* Lists the chosen machine's hosts, and returns how many processors it has.  Hosts have numbers
 * from 0 on, and in a cluster also names. */
static uint32_t list_hosts(const char *machine, const char *hosts[2 * MAX_NODES + 1])
{
	static struct machine_info info;
	static struct host_names names;
	static char numbers[MAX_NODES][8];
	struct problem ignored;
	struct rundir dir;
	size_t n = 0;

	if (rundir_find(&dir, machine, &ignored) || rundir_read_info(&dir, &info, &ignored))
		return 0;
	names_read(&names, dir.path);
	for (uint32_t i = 0; i < info.machine.hosts && i < MAX_NODES; i++) {
		snprintf(numbers[i], sizeof numbers[i], "%u", i);
		hosts[n++] = numbers[i];
		if (names.name[i][0])
			hosts[n++] = names.name[i];
	}
	return info.machine.cpus;
}

/* Lists the programs in the folders of the guest's PATH. */
static void list_programs(const char *names[MAX_PROGRAMS + 1])
{
	static struct image image; /* static, since the names that are listed point into it */
	char path[PATH_MAX];
	struct problem ignored;
	size_t n = 0;

	if (beside_path("guest/initramfs.cpio", path, sizeof path) || access(path, R_OK) ||
	    image_load(&image, path, &ignored))
		return;
	for (size_t i = 0; i < image.n_paths && n < MAX_PROGRAMS; i++) {
		const char *slash = strrchr(image.paths[i], '/');

		if (image_is_program(image.paths[i]))
			names[n++] = slash + 1;
	}
}

int complete_run(const struct options *o)
{
	static const char *machines[MAX_LISTED + 1], *hosts[2 * MAX_NODES + 1],
		*programs[MAX_PROGRAMS + 1];
	struct completion_facts facts = { machines, hosts, 0, programs };
	size_t n = 0;

	while (o->command && o->command[n])
		n++;
	list_machines(machines);
	facts.cpus = list_hosts(completion_machine(o->command, n), hosts);
	if (n > 1 && options_find_verb(o->command[0]) == VERB_RUN)
		list_programs(programs);
	completion_print(stdout, o->command, n, &facts);
	return fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}
