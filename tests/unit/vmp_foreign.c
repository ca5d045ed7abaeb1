/* vmp_foreign.c - tests of what users of other programs type: every option of `docker run`,
 * `qemu-system-i386` and `lkvm run` works with `vmp run`, or is refused with a line of its own; so
 * is every command of docker and lkvm, and the options of docker exec, ps and logs.
 *
 * The lists were compared with the programs' sources: docker's cli/command/container/opts.go,
 * run.go and create.go (August 2026), and kvmtool's builtin-run.c on x86 (August 2024).  QEMU's is
 * the help of 7.2, with the options of 10 (qemu-options.hx), and those that QEMU had and has
 * removed. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/options_line.h"
#include "tests/unit/unit.h"
#include "vmm/cli/foreign.h"

static const char *const docker[] = {
	"--add-host", "--annotation", "--attach", "--blkio-weight", "--blkio-weight-device",
	"--cap-add", "--cap-drop", "--cgroup-parent", "--cgroupns", "--cidfile", "--cpu-count",
	"--cpu-percent", "--cpu-period", "--cpu-quota", "--cpu-rt-period", "--cpu-rt-runtime",
	"--cpu-shares", "--cpus", "--cpuset-cpus", "--cpuset-mems", "--detach", "--detach-keys",
	"--device", "--device-cgroup-rule", "--device-read-bps", "--device-read-iops",
	"--device-write-bps", "--device-write-iops", "--disable-content-trust", "--dns",
	"--dns-opt", "--dns-option", "--dns-search", "--domainname", "--entrypoint", "--env",
	"--env-file", "--expose", "--gpus", "--group-add", "--health-cmd", "--health-interval",
	"--health-retries", "--health-start-interval", "--health-start-period", "--health-timeout",
	"--help", "--hostname", "--init", "--interactive", "--io-maxbandwidth", "--io-maxiops",
	"--ip", "--ip6", "--ipc", "--isolation", "--kernel-memory", "--label", "--label-file",
	"--link", "--link-local-ip", "--log-driver", "--log-opt", "--mac-address", "--memory",
	"--memory-reservation", "--memory-swap", "--memory-swappiness", "--mount", "--name",
	"--net", "--net-alias", "--network", "--network-alias", "--no-healthcheck",
	"--oom-kill-disable", "--oom-score-adj", "--pid", "--pids-limit", "--platform",
	"--privileged", "--publish", "--publish-all", "--pull", "--quiet", "--read-only",
	"--restart", "--rm", "--runtime", "--security-opt", "--shm-size", "--sig-proxy",
	"--stop-signal", "--stop-timeout", "--storage-opt", "--sysctl", "--tmpfs", "--tty",
	"--ulimit", "--use-api-socket", "--user", "--userns", "--uts", "--volume",
	"--volume-driver", "--volumes-from", "--workdir", "-P", "-a", "-c", "-d", "-e", "-h", "-i",
	"-l", "-m", "-p", "-q", "-t", "-u", "-v", "-w",
};

static const char *const qemu[] = {
	"--preconfig", "-D", "-L", "-S", "-accel", "-acpitable", "-action", "-add-fd", "-append",
	"-async-teardown", "-audio", "-audio-help", "-audiodev", "-bios", "-blockdev", "-boot",
	"-cdrom", "-chardev", "-chroot", "-compat", "-cpu", "-d", "-daemonize", "-debugcon",
	"-device", "-dfilter", "-display", "-drive", "-dtb", "-dump-vmstate", "-echr",
	"-enable-kvm", "-enable-sync-profile", "-fda", "-fdb", "-fsdev", "-full-screen", "-fw_cfg",
	"-gdb", "-global", "-h", "-hda", "-hdb", "-hdc", "-hdd", "-help", "-icount", "-incoming",
	"-initrd", "-iscsi", "-k", "-kernel", "-loadvm", "-m", "-machine", "-mem-path",
	"-mem-prealloc", "-mon", "-monitor", "-msg", "-mtdblock", "-name", "-net", "-netdev",
	"-nic", "-no-acpi", "-no-fd-bootchk", "-no-hpet", "-no-reboot", "-no-shutdown",
	"-no-user-config", "-nodefaults", "-nographic", "-numa", "-object", "-only-migratable",
	"-option-rom", "-overcommit", "-parallel", "-pflash", "-pidfile", "-plugin", "-portrait",
	"-qmp", "-qmp-pretty", "-readconfig", "-rotate", "-rtc", "-runas", "-s", "-sandbox", "-sd",
	"-seed", "-serial", "-set", "-singlestep", "-smbios", "-smp", "-snapshot", "-spice",
	"-tpmdev", "-trace", "-usb", "-usbdevice", "-uuid", "-version", "-vga", "-virtfs", "-vnc",
	"-watchdog-action", "-win2k-hack", "-xen-attach", "-xen-domid", "-xen-domid-restrict",
	"-jitdump", "-perfmap", "-preconfig", "-run-with", "-shim",
	"-balloon", "-bootp", "-clock", "-localtime", "-no-frame", "-no-kvm", "-realtime", "-redir",
	"-smb", "-soundhw", "-startdate", "-tftp", "-writeconfig",
};

static const char *const lkvm[] = {
	"--9p", "--balloon", "--bios", "--console", "--cpus", "--debug", "--debug-iodelay",
	"--debug-ioport", "--debug-mmio", "--debug-single-step", "--dev", "--disk", "--firmware",
	"--flash", "--gtk", "--hugetlbfs", "--initrd", "--kernel", "--loglevel", "--mem", "--name",
	"--network", "--no-dhcp", "--nodefaults", "--params", "--rng", "--sandbox", "--sdl",
	"--shmem", "--tty", "--vfio-pci", "--vidmode", "--virtio-legacy", "--virtio-transport",
	"--vnc", "--vsock", "-F", "-c", "-d", "-f", "-i", "-k", "-m", "-n", "-p",
};

/* All of docker's commands, and kvmtool's. */
static const char *const commands[] = {
	"attach", "build", "builder", "checkpoint", "commit", "config", "container", "context",
	"cp", "create", "diff", "events", "exec", "export", "history", "image", "images", "import",
	"info", "inspect", "kill", "load", "login", "logout", "logs", "manifest", "network",
	"node", "pause", "plugin", "port", "ps", "pull", "push", "rename", "restart", "rm", "rmi",
	"run", "save", "search", "secret", "service", "stack", "start", "stats", "stop", "swarm",
	"system", "tag", "top", "trust", "unpause", "update", "version", "volume", "wait",
	"balloon", "debug", "help", "list", "resume", "sandbox", "setup", "stat",
};

/* What docker's help lists behind `exec`, `ps` and `logs`. */
static const char *const lines[] = {
	"exec -d lab", "exec --detach lab", "exec --detach-keys x lab", "exec --env-file x lab",
	"exec --privileged lab", "ps -f x", "ps --filter x", "ps --format x", "ps -n 1",
	"ps --last 1", "ps -l", "ps --latest", "ps -q", "ps --quiet", "ps -s", "ps --size",
	"logs --details", "logs --since x", "logs -n 1", "logs --tail 1", "logs -t",
	"logs --timestamps", "logs --until x",
};

/* Returns whether `word` is an option of `vmp run` itself. */
static bool is_own(const char *word)
{
	struct option_info info;

	for (size_t i = 0; options_describe(VERB_RUN, i, &info); i++)
		if (!strncmp(word, "--", 2) && !strcmp(word + 2, info.name))
			return true;
	return !strcmp(word, "-h");
}

/* A hint is one line, and says more than which options there are. */
static bool is_answer(const char *word, const char *error)
{
	char general[128];

	snprintf(general, sizeof general, "no such option: %s; ", word);
	return !strncmp(error, general, strlen(general)) && !strchr(error, '\n') &&
	       strncmp(error + strlen(general), "see `vmp help run`", 18) != 0;
}

static void check_all(const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value;
		const struct foreign *row = foreign_option(words[i], FOREIGN_RUN, &value);
		struct options o;
		char line[160], ours[64];
		bool ok = row || is_own(words[i]);

		snprintf(line, sizeof line, "vmp run %s -- true", words[i]);
		if (row && row->kind == FOREIGN_HINT && !is_own(words[i]))
			ok = parse_line(&o, line) < 0 && is_answer(words[i], o.error);
		if (row && row->kind == FOREIGN_SAME) {
			snprintf(ours, sizeof ours, "--%s", row->text);
			ok = is_own(ours);
		}
		if (row && row->kind == FOREIGN_NOTHING)
			ok = parse_line(&o, line) == 0;
		if (!ok)
			printf("\n    no line of its own: %s\n", words[i]);
		CU_ASSERT(ok);
	}
}

static void docker_run(void) { check_all(docker, ARRAY_LEN(docker)); }
static void qemu_system(void) { check_all(qemu, ARRAY_LEN(qemu)); }
static void lkvm_run(void) { check_all(lkvm, ARRAY_LEN(lkvm)); }

/* QEMU takes each of its options with two dashes, too. */
static void two_dashes(void)
{
	for (size_t i = 0; i < ARRAY_LEN(qemu); i++) {
		char word[64];
		const char *value;

		snprintf(word, sizeof word, "-%s", qemu[i]);
		if (strlen(qemu[i]) > 2 && qemu[i][1] != '-' && !is_own(word) &&
		    !foreign_option(word, FOREIGN_RUN, &value) &&
		    !foreign_two_dashes(word, &value)) {
			printf("\n    %s\n", word);
			CU_FAIL("not known");
		}
	}
}

static void other_commands(void)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (options_find_verb(commands[i]) < 0 && !foreign_command(commands[i])) {
			printf("\n    no line of its own: %s\n", commands[i]);
			CU_FAIL("not known");
		}
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct options o;
		char line[64];

		snprintf(line, sizeof line, "vmp %s", lines[i]);
		if (!parse_line(&o, line) || strncmp(o.error, "no such option: ", 16) != 0 ||
		    strstr(o.error, "see `vmp help")) {
			printf("\n    no line of its own: %s: %s\n", line, o.error);
			CU_FAIL("not known");
		}
	}
}

static void check_hint(const char *line, const char *begin)
{
	struct options o;
	bool ok = parse_line(&o, line) < 0 && !strncmp(o.error, begin, strlen(begin));

	if (!ok)
		printf("\n    %s: %s\n", line, o.error);
	CU_ASSERT(ok);
}

/* docker takes several letters behind one dash, the last of them with a value. */
static void letters(void)
{
	check_hint("vmp run -itd -- sh", "no such option: -itd; `vmp up` starts");
	check_hint("vmp run -tid -- sh", "no such option: -tid; `vmp up` starts");
	check_hint("vmp run -dp 80:80 -- sh", "no such option: -dp; `vmp up` starts");
	check_hint("vmp run -itv /a:/b -- sh", "no such option: -itv; without COMMAND");
	check_hint("vmp run -ie A=1 -- sh", "no such option: -ie; write each letter");
	check_hint("vmp exec -itu root lab -- sh", "no such option: -itu; write each letter");
	check_hint("vmp exec -itd lab -- sh", "no such option: -itd; leave it away, and the");
	check_hint("vmp run -p80:80 -- sh", "no such option: -p80:80; --net user,forward");
	check_hint("vmp run -v/a:/b -- sh", "no such option: -v/a:/b; --share DIR");
	check_hint("vmp run -vdata:/b -- sh", "no such option: -vdata:/b; --share DIR");
	check_hint("vmp run -iteA=1 -- sh", "no such option: -iteA; without COMMAND");
	check_hint("vmp run -itv/a:/b -- sh", "no such option: -itv/a:/b; without COMMAND");
}

/* A letter that other programs have for another thing. */
static void letters_of_run(void)
{
	struct options o;

	check_hint("vmp run -n mode=user -- sh", "no such option: -n; --net user");
	check_hint("vmp run -f bios -- sh", "no such option: -f; leave it away");
	check_hint("vmp up -a stdin", "no such option: -a; leave it away");
	check_hint("vmp logs -f -n 10 lab", "no such option: -n; `vmp logs NAME | tail -n N`");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp status -n lab"), 0);
	CU_ASSERT_EQUAL(parse_line(&o, "vmp logs -f lab"), 0);
	CU_ASSERT_EQUAL(parse_line(&o, "vmp ps -a --no-trunc"), 0);
	CU_ASSERT_EQUAL(parse_line(&o, "vmp ps --all"), 0);
	check_hint("vmp ps -q", "no such option: -q; `vmp ps --json`");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp down -a"), 0);
}

/* Words that mean one thing to their users, and another one to vmp. */
static void two_meanings(void)
{
	struct options o;

	check_hint("vmp run -k fr -- sh", "no such option: -k fr; leave it away: a serial");
	check_hint("vmp run -k de-ch -- sh", "no such option: -k de-ch; leave it away: a serial");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -k ./fr -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.kernel, "./fr");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -k linux -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.kernel, "linux");
	check_hint("vmp run -h box -- sh", "-h box: -h alone is --help; the guest's host name is "
					   "--hostname box");
	check_hint("vmp run -hbox -- sh", "no such option: -hbox; if -h is meant: -h alone is");
	CU_ASSERT(parse_line(&o, "vmp run -h -- sh") == 0 && o.help);
	CU_ASSERT(parse_line(&o, "vmp status -h lab") == 0 && o.help);
	check_hint("vmp run -c 512 -- sh", "--cpus 512: too large; must be from 1 to 32; for "
					   "another program's -c: nice vmp run");
	check_hint("vmp run --cpus 1.5 -- sh", "--cpus 1.5: not a whole number; for another "
					       "program's --cpus: systemd-run --user --scope -p "
					       "CPUQuota=150%");
	check_hint("vmp run --cpus=0.5 -- sh", "--cpus 0.5: not a whole number; for another "
						"program's --cpus: systemd-run");
	check_hint("vmp run --rm=false -- sh", "no such option: --rm=false; a machine that has");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run --rm=true -- sh"), 0);
	check_hint("vmp -m 1G", "no such command: -m; options follow a command: vmp run -m ...");
}

/* The value of -u is a word of its own, or stands behind it if it can be nothing else. */
static void users(void)
{
	struct options o;

	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -u root -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.user, "root");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp exec -u nobody lab -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.user, "nobody");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -u1000:1000 -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.user, "1000:1000");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -u0:0 -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.user, "0:0");
	check_hint("vmp run -uroot -- sh", "no such option: -uroot; if -u is meant, write -u root");
	check_hint("vmp run -unknown -- sh", "no such option: -unknown; if -u is meant, write");
	check_hint("vmp run -verbos -- sh", "no such option: -verbos; if -v is meant: --share");
	check_hint("vmp run -user 1 -- sh", "no such option: -user; it is written as --user");
	check_hint("vmp run -cpus=1 -- sh", "no such option: -cpus; it is written as --cpus");
	check_hint("vmp run -usb -- sh", "no such option: -usb; leave it away");
	check_hint("vmp run -uuid 1 -- sh", "no such option: -uuid; leave it away");
}

/* Of QEMU's values that are lists, the first item counts. */
static void lists(void)
{
	struct options o;

	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -smp 4,sockets=1,cores=4 -- sh"), 0);
	CU_ASSERT_EQUAL(o.machine.cpus, 4);
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -smp cpus=3 -m size=1G,slots=2 -- sh"), 0);
	CU_ASSERT(o.machine.cpus == 3 && o.machine.mem_mib == 1024);
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -name guest=lab,debug-threads=on -m=1G -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.name, "lab");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -name lab,process=x -smp=2,cores=2 -- sh"), 0);
	CU_ASSERT_STRING_EQUAL(o.name, "lab");
	CU_ASSERT_EQUAL(parse_line(&o, "vmp run -m512m --memory 256m -- sh"), 0);
	CU_ASSERT_EQUAL(o.machine.mem_mib, 256);
	check_hint("vmp run -smp sockets=2 -- sh",
		   "-smp sockets=2: of a list the first item counts, as cpus=N");
	check_hint("vmp run -smp", "--cpus needs a value");
	check_hint("vmp run -m -- sh", "--mem needs a value");
}

/* Words that are nobody's get the general line. */
static void others(void)
{
	static const char *const words[] = { "-z", "--nonesuch", "-xyz", "---", "--m2" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const char *value;

		CU_ASSERT_PTR_NULL(foreign_option(words[i], FOREIGN_RUN, &value));
		CU_ASSERT_PTR_NULL(foreign_two_dashes(words[i], &value));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "docker run", docker_run },
		{ "qemu-system-i386", qemu_system },
		{ "lkvm run", lkvm_run },
		{ "two dashes", two_dashes },
		{ "other commands", other_commands },
		{ "letters", letters },
		{ "letters of vmp run", letters_of_run },
		{ "two meanings", two_meanings },
		{ "users", users },
		{ "lists", lists },
		{ "others", others },
		UNIT_END
	};

	return UNIT_RUN("vmp_foreign", tests);
}
