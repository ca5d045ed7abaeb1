/* query.c - see query.h. Each command is a loop around one connection that ends when the answer is whole. */
#include "vmm/query.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "vmm/client.h"
#include "vmm/cluster/names.h"
#include "vmm/dumptext.h"
#include "vmm/pageheat.h"
#include "vmm/placement.h"
#include "vmm/rundir.h"
#include "vmm/status.h"
#include "vmm/terminal.h"

enum { ANSWER_LIMIT_S = 10, PATIENCE_S = 2, BACK_MS = 100, BACK_TRIES = 600, LOOK_MS = 500, TOP_MS = 1000, GONE_LIMIT_MS = 10000 };

struct query {
	const struct options *o;
	struct event_base *base;
	struct client client;
	struct rundir rundir;
	struct machine_info info;
	uint32_t to_host; /* of cpu move, host remove */
	struct host_names names;
	struct msg_hosts hosts;
	void (*start)(struct query *); /* NULL once it has */
	struct event *limit, *typed, *window, *back, *signals[4];
	struct escape escape;
	bool raw, done;
	uint32_t kind;	/* of client */
	unsigned tries; /* console, top: the machine may be going back to a checkpoint */
	bool told;	/* of that */
	bool until_end; /* the machine's end is a good end of this command */
	int status;
	struct problem why;
	/* regs: each CPU's text as it comes in parts */
	char *dump[MAX_CPUS];
	size_t dump_bytes[MAX_CPUS];
	bool dump_done[MAX_CPUS];
	uint32_t dump_host[MAX_CPUS];
	/* pages */
	struct pageheat heat;
	bool asks_pages, node_done[MAX_NODES];
	/* status, top */
	struct status_look before, now;
	struct event *again;
	bool live;	/* top */
	bool progress_shown; /* host */
};

static void end_query(struct query *q, int status, const char *line)
{
	if (q->done)
		return;
	q->done = true;
	q->status = status;
	problem(&q->why, "%s", line);
	event_base_loopbreak(q->base);
}

static void on_signal(evutil_socket_t signal_number, short events, void *context)
{
	struct query *q = context;

	(void)events;
	end_query(q, q->live && signal_number == SIGINT ? 0 : 128 + signal_number, "");
}

static void on_limit(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events;
	end_query(context, EXIT_VMP_FAILURE, "the machine does not answer");
}

static bool wait_for_machine(struct query *q);

static void on_closed(void *context)
{
	struct query *q = context;

	if (wait_for_machine(q))
		return;
	if (q->until_end)
		end_query(q, 0, "");
	else
		end_query(q, EXIT_VMP_FAILURE, "the machine has ended");
}

/* ---- console ---- */

static void on_window_changed(evutil_socket_t fd, short events, void *context)
{
	struct query *q = context;
	struct msg_console_size size = { 0 };

	(void)fd, (void)events;
	terminal_size(&size.columns, &size.rows);
	if (size.columns)
		client_send(&q->client, MSG_CONSOLE_SIZE, VNODE_IOSRV, &size, sizeof size, NULL, 0);
}

static void on_typed(evutil_socket_t fd, short events, void *context)
{
	struct query *q = context;
	struct msg_console body = { 0 };
	char typed[256], bytes[512];
	ssize_t n = read(fd, typed, sizeof typed);
	bool quit = n <= 0 && errno != EINTR;
	size_t count = 0;

	(void)events;
	if (n > 0 && q->raw) {
		count = escape_filter(&q->escape, typed, n, bytes, &quit);
	} else if (n > 0) {
		memcpy(bytes, typed, n);
		count = n;
	}
	if (count)
		client_send(&q->client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body, bytes, count);
	if (quit)
		end_query(q, 0, "");
}

static void on_console(struct query *q, const void *body, size_t bytes)
{
	const char *at = (const char *)body + sizeof(struct msg_console);

	q->told = false;
	for (size_t n = bytes - sizeof(struct msg_console); n;) {
		ssize_t done = write(1, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			end_query(q, EXIT_VMP_FAILURE, "cannot write the console's output");
			return;
		}
		at += done;
		n -= done;
	}
}

static void start_console(struct query *q)
{
	struct msg_console_attach attach = { .backlog = 64 << 10 };

	q->until_end = true;
	q->window = evsignal_new(q->base, SIGWINCH, on_window_changed, q);
	q->typed = event_new(q->base, 0, EV_READ | EV_PERSIST, on_typed, q);
	if (!q->window || !q->typed || event_add(q->window, NULL) || event_add(q->typed, NULL))
		die("no memory");
	q->raw = terminal_raw();
	if (q->raw)
		dprintf(2, "Console of %s: Ctrl-] then q detaches.\r\n", q->rundir.name);
	client_send(&q->client, MSG_CONSOLE_ATTACH, VNODE_IOSRV, &attach, sizeof attach, NULL, 0);
	on_window_changed(0, 0, q);
}

/* ---- regs ---- */

static void start_regs(struct query *q)
{
	for (uint32_t cpu = 0; cpu < q->info.cpus; cpu++) {
		struct msg_dump dump = { .cpu = cpu };

		client_send(&q->client, MSG_DUMP_REQUEST, VNODE_CPU(cpu), &dump, sizeof dump, NULL, 0);
	}
}

static void on_dump(struct query *q, uint32_t host, const void *body, size_t bytes)
{
	struct msg_dump dump;
	size_t n = bytes - sizeof dump;
	char *grown;

	memcpy(&dump, body, sizeof dump);
	if (dump.cpu >= q->info.cpus || q->dump_done[dump.cpu])
		return;
	if (n) {
		grown = realloc(q->dump[dump.cpu], q->dump_bytes[dump.cpu] + n + 1);
		if (!grown)
			die("no memory");
		q->dump[dump.cpu] = grown;
		memcpy(grown + q->dump_bytes[dump.cpu], (const char *)body + sizeof dump, n);
		q->dump_bytes[dump.cpu] += n;
		grown[q->dump_bytes[dump.cpu]] = 0;
		return;
	}
	q->dump_done[dump.cpu] = true;
	q->dump_host[dump.cpu] = host;
	for (uint32_t cpu = 0; cpu < q->info.cpus; cpu++)
		if (!q->dump_done[cpu])
			return;
	end_query(q, 0, "");
}

static void put_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c == '\n')
			printf("\\n");
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

/* For people, a paragraph each; with --json the same text, one string for each CPU. */
static void print_regs(struct query *q)
{
	struct symbols symbols;

	symbols_load(&symbols, q->info.kernel);
	if (q->o->json)
		printf("[");
	for (uint32_t cpu = 0; cpu < q->info.cpus; cpu++) {
		const char *text = q->dump[cpu] ? q->dump[cpu] : "";

		if (q->o->json) {
			printf("%s\n  {\"cpu\": %u, \"host\": %u, \"text\": ", cpu ? "," : "", cpu, q->dump_host[cpu]);
			put_json_string(text);
			printf("}");
		} else {
			printf("%s", cpu ? "\n" : "");
			dump_print(stdout, text, &symbols);
		}
	}
	if (q->o->json)
		printf("\n]\n");
	symbols_free(&symbols);
}

/* ---- pages ---- */

static void start_pages(struct query *q)
{
	q->asks_pages = true;
	for (uint32_t node = 0; node < MAX_NODES; node++) {
		struct msg_pages pages = { .node = node };

		if (q->hosts.present >> node & 1)
			client_send(&q->client, MSG_PAGES_REQUEST, VNODE_DAEMON(node), &pages, sizeof pages, NULL, 0);
	}
}

static void check_pages(struct query *q)
{
	for (uint32_t node = 0; node < MAX_NODES; node++)
		if (q->hosts.present >> node & 1 && !q->node_done[node])
			return;
	end_query(q, 0, "");
}

static void on_pages(struct query *q, const void *body, size_t bytes)
{
	struct msg_pages pages;

	memcpy(&pages, body, sizeof pages);
	if (pages.node >= MAX_NODES)
		return;
	pageheat_add(&q->heat, (const char *)body + sizeof pages, (bytes - sizeof pages) / sizeof(struct page_heat));
	q->node_done[pages.node] = true;
	check_pages(q);
}

static void print_pages(struct query *q)
{
	struct symbols symbols;

	symbols_load(&symbols, q->info.kernel);
	pageheat_sort(&q->heat);
	if (q->o->json)
		printf("[");
	else
		printf("%10s  %-10s  %s\n", "requests", "physical", "kernel symbols there");
	for (size_t i = 0; i < q->heat.n && i < q->o->top; i++) {
		const struct page_heat *page = &q->heat.page[i];
		gpa_t address = gfn_to_gpa(page->gfn);
		char text[160];

		symbols_describe(&symbols, VMP_USER_LIMIT + address, PAGE_BYTES, text, sizeof text);
		if (q->o->json) {
			printf("%s\n  {\"physical\": \"0x%08x\", \"requests\": %u, \"symbols\": ", i ? "," : "", address,
			       page->faults);
			put_json_string(text);
			printf("}");
		} else {
			printf("%10u  0x%08x  %s\n", page->faults, address, text);
		}
	}
	if (q->o->json)
		printf("\n]\n");
	else if (!q->heat.n)
		printf("no page was asked for; a machine on one host has no need to\n");
	symbols_free(&symbols);
}

/* ---- status and top: two looks, half a second or a second apart ---- */

/* While a machine goes back to a checkpoint, its daemons may not have reached each other: some are asked in vain. */
static void look_again(struct query *q)
{
	static const struct timeval patience = { PATIENCE_S, 0 };

	if (q->live)
		event_add(q->again, &patience);
	q->before = q->now;
	memset(&q->now, 0, sizeof q->now);
	q->now.hosts = q->hosts;
	names_read(&q->now.names, q->rundir.path);
	report_ask_stats(&q->now.report, &q->client, q->hosts.present);
}

static void on_again(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events;
	look_again(context);
}

static void print_status(struct query *q)
{
	status_print(stdout, q->rundir.name, &q->info, &q->before, &q->now, q->o->json);
}

static void print_live(struct query *q)
{
	q->told = false;
	if (isatty(1))
		printf("\033[H\033[2J");
	print_status(q);
	if (!isatty(1))
		putchar('\n');
	if (fflush(stdout))
		end_query(q, EXIT_VMP_FAILURE, "cannot write the answer");
}

static void check_stats(struct query *q)
{
	static const struct timeval pauses[] = { { 0, LOOK_MS * 1000 }, { TOP_MS / 1000, 0 } };
	struct timespec time;

	if (q->now.at_ns || !report_has_stats(&q->now.report))
		return;
	clock_gettime(CLOCK_MONOTONIC, &time);
	q->now.at_ns = time.tv_sec * 1000000000ull + time.tv_nsec;
	if (q->before.at_ns && !q->live)
		end_query(q, 0, "");
	else if (q->before.at_ns)
		print_live(q);
	event_add(q->again, &pauses[q->live && q->before.at_ns]);
}

static void on_stats(struct query *q, const void *body, size_t bytes)
{
	report_on_stats(&q->now.report, body, bytes);
	check_stats(q);
}

static void start_status(struct query *q)
{
	q->again = evtimer_new(q->base, on_again, q);
	if (!q->again)
		die("no memory");
	look_again(q);
}

static void start_top(struct query *q)
{
	q->live = q->until_end = true;
	event_del(q->limit);
	start_status(q);
}

/* ---- down ---- */

static void start_down(struct query *q)
{
	struct msg_machine_end end = { .reason = END_USER, .status = EXIT_VMP_FAILURE };
	static const char line[] = "the machine was taken down by vmp down";

	q->until_end = true;
	client_send(&q->client, MSG_MACHINE_END, VNODE_CLI, &end, sizeof end, line, strlen(line));
}

/* ---- hosts by name ---- */

/* What was typed may be a host's name in the cluster file. */
static int find_host(struct query *q)
{
	const char *name = q->o->host;
	int host;

	names_read(&q->names, q->rundir.path);
	q->to_host = q->o->to_host;
	if (!name || q->o->add)
		return 0;
	host = names_find(&q->names, name);
	if (host < 0)
		return problem(&q->why, "this machine has no host %s; see vmp status", name);
	q->to_host = (uint32_t)host;
	return 0;
}

static const char *host_text(const struct query *q, uint32_t host)
{
	static char text[MAX_HOST_NAME + 32];
	char number[32];

	snprintf(number, sizeof number, "host %u", host);
	names_explain(&q->names, number, text, sizeof text);
	return text;
}

/* ---- cpu move ---- */

static void start_cpu_move(struct query *q)
{
	struct msg_cpu_move move = { .cpu = q->o->cpu, .host = q->to_host };

	event_del(q->limit); /* moves wait for each other */
	client_send(&q->client, MSG_CPU_MOVE, VNODE_CLI, &move, sizeof move, NULL, 0);
}

static void on_cpu_moved(struct query *q, const void *body, size_t bytes)
{
	struct msg_cpu_moved moved;
	struct problem p, explained;

	memcpy(&moved, body, sizeof moved);
	problem(&p, "%.*s", (int)(bytes - sizeof moved), (const char *)body + sizeof moved);
	if (!moved.error)
		printf("CPU %u runs on %s; it stood still for %.3f ms\n", moved.cpu, host_text(q, q->to_host), moved.pause_us / 1e3);
	names_explain(&q->names, p.line, explained.line, sizeof explained.line);
	end_query(q, moved.error ? EXIT_VMP_FAILURE : 0, explained.line);
}

/* ---- host add, host remove ---- */

static void start_host(struct query *q)
{
	struct msg_host host = { .host = q->to_host, .op = q->o->add ? HOST_ADD : HOST_REMOVE };

	event_del(q->limit); /* hosts come and go one after the other */
	client_send(&q->client, MSG_HOST, VNODE_CLI, &host, sizeof host, q->o->host, q->o->add ? strlen(q->o->host) : 0);
}

static void hide_progress(struct query *q)
{
	if (q->progress_shown && write(2, "\r\033[K", 4) < 0) {
		/* a terminal that is gone needs no cleaning */
	}
	q->progress_shown = false;
}

/* What takes long is shown where somebody sees it: one line that is redrawn. */
static void on_host(struct query *q, const void *body, size_t bytes)
{
	struct msg_host host;
	struct problem inner, p;

	memcpy(&host, body, sizeof host);
	if (q->done) /* the machine's end was heard first */
		return;
	problem(&inner, "%.*s", (int)(bytes - sizeof host), (const char *)body + sizeof host);
	if (q->o->add) /* the one that comes; one that goes has lost its name already */
		names_read(&q->names, q->rundir.path);
	names_explain(&q->names, inner.line, p.line, sizeof p.line);
	if (host.op == HOST_PROGRESS && isatty(2)) {
		q->progress_shown = dprintf(2, "\r\033[Kvmp: %s", p.line) > 0;
	} else if (host.op == HOST_DONE) {
		hide_progress(q);
		if (!host.error)
			printf("%s\n", p.line);
		end_query(q, host.error ? EXIT_VMP_FAILURE : 0, host.error ? p.line : "");
	}
}

/* ---- policy ---- */

static void start_policy(struct query *q)
{
	struct msg_policy policy = { .policy = (uint32_t)policy_of_name(q->o->policy) };

	event_del(q->limit); /* it is answered when all processors are there */
	client_send(&q->client, MSG_POLICY, VNODE_CLI, &policy, sizeof policy, NULL, 0);
}

static void on_policy(struct query *q, const void *body, size_t bytes)
{
	struct msg_policy policy;
	struct problem p;

	memcpy(&policy, body, sizeof policy);
	problem(&p, "%.*s", (int)(bytes - sizeof policy), (const char *)body + sizeof policy);
	if (q->done)
		return;
	if (!policy.error)
		printf("%s\n", p.line);
	end_query(q, policy.error ? EXIT_VMP_FAILURE : 0, policy.error ? p.line : "");
}

/* ---- console and top: the machine may go back to a checkpoint ---- */

static void attach_again(struct query *q)
{
	struct msg_console_attach attach = { .backlog = 0 };

	client_send(&q->client, MSG_CONSOLE_ATTACH, VNODE_IOSRV, &attach, sizeof attach, NULL, 0);
	on_window_changed(0, 0, q);
}

/* All that is counted begins anew. */
static void look_anew(struct query *q)
{
	memset(&q->now, 0, sizeof q->now);
	look_again(q);
}

/* A machine with checkpoints has lost a host: is it there again? Its folder is there as long as it may come. */
static void on_back(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval pause = { 0, BACK_MS * 1000 };
	struct query *q = context;
	struct rundir ignored;
	struct problem p;

	(void)fd, (void)events;
	if (++q->tries == BACK_TRIES || rundir_find(&ignored, q->rundir.name, &p)) {
		end_query(q, 0, "");
		return;
	}
	if (client_connect(&q->client, q->base, q->rundir.path, q->kind)) {
		event_add(q->back, &pause);
		return;
	}
	q->tries = 0;
	q->start = q->live ? look_anew : attach_again;
}

static bool wait_for_machine(struct query *q)
{
	static const struct timeval pause = { 0, BACK_MS * 1000 };

	if (!(q->typed || q->live) || !q->info.checkpoint_ms || q->done)
		return false;
	if (!q->back)
		q->back = evtimer_new(q->base, on_back, q);
	if (!q->back)
		die("no memory");
	if (!q->told)
		dprintf(2, "%s[vmp: a host was lost; the machine goes back to its last checkpoint%s]%s\n", q->raw ? "\r\n" : "",
			q->live ? "" : ", and may repeat itself", q->raw ? "\r" : "");
	q->told = true;
	if (q->again)
		event_del(q->again);
	client_close(&q->client);
	event_add(q->back, &pause);
	return true;
}

/* A machine's end in good order, or the loss of a part of it. */
static void on_machine_end(struct query *q, const void *body)
{
	struct msg_machine_end end;

	memcpy(&end, body, sizeof end);
	if (end.reason != END_PART_DIED)
		q->info.checkpoint_ms = 0;
	on_closed(q);
}

/* ---- all ---- */

/* The first message of all: the command can begin. Later: some answers will not come. */
static void on_hosts(struct query *q, const void *body)
{
	void (*start)(struct query *) = q->start;

	memcpy(&q->hosts, body, sizeof q->hosts);
	q->start = NULL;
	if (start) {
		start(q);
	} else if (q->again) {
		report_keep_hosts(&q->now.report, q->hosts.present);
		check_stats(q);
	} else if (q->asks_pages) {
		check_pages(q);
	}
}

static void on_message(void *context, const struct msg_header *header, const void *body)
{
	struct query *q = context;

	switch (header->type) {
	case MSG_HELLO:
	case MSG_LOG:
	case MSG_STREAM:
	case MSG_STREAM_ROOM:
	case MSG_COMMAND_EXIT:
	case MSG_MACHINE_UP:
		break;
	case MSG_CONSOLE:
		if (q->typed)
			on_console(q, body, header->bytes);
		break;
	case MSG_DUMP:
		on_dump(q, header->from_node, body, header->bytes);
		break;
	case MSG_PAGES:
		on_pages(q, body, header->bytes);
		break;
	case MSG_HOSTS:
		on_hosts(q, body);
		break;
	case MSG_POLICY:
		on_policy(q, body, header->bytes);
		break;
	case MSG_HOST:
		on_host(q, body, header->bytes);
		break;
	case MSG_CPU_MOVED:
		on_cpu_moved(q, body, header->bytes);
		break;
	case MSG_STATS:
		on_stats(q, body, header->bytes);
		break;
	case MSG_MACHINE_END:
		on_machine_end(q, body);
		break;
	default:
		log_warn("unexpected message %s from the node daemon", wire_type_name(header->type));
	}
}

static int open_query(struct query *q, const struct options *o, uint32_t kind)
{
	static const int quitting[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const struct timeval limit = { ANSWER_LIMIT_S, 0 };
	int error;

	*q = (struct query){ .o = o, .kind = kind };
	q->client = (struct client){ .fd = -1, .context = q, .on_message = on_message, .on_closed = on_closed };
	if (rundir_find(&q->rundir, o->name, &q->why) || rundir_read_info(&q->rundir, &q->info, &q->why) || find_host(q))
		return -1;
	signal(SIGPIPE, SIG_IGN);
	q->base = client_new_loop();
	if (!q->base)
		return problem(&q->why, "no memory");
	for (size_t i = 0; i < ARRAY_LEN(quitting); i++) {
		q->signals[i] = evsignal_new(q->base, quitting[i], on_signal, q);
		if (!q->signals[i] || event_add(q->signals[i], NULL))
			return problem(&q->why, "no memory");
	}
	q->limit = evtimer_new(q->base, on_limit, q);
	if (!q->limit || (kind == CLIENT_QUERY && event_add(q->limit, &limit)))
		return problem(&q->why, "no memory");
	error = client_connect(&q->client, q->base, q->rundir.path, kind);
	if (error)
		return problem(&q->why, "cannot connect to the machine %s: %s", q->rundir.name, strerror(-error));
	return 0;
}

static int close_query(struct query *q)
{
	struct event *events[] = { q->limit, q->typed, q->window, q->again, q->back, q->signals[0], q->signals[1],
				   q->signals[2], q->signals[3] };

	hide_progress(q);
	client_flush(&q->client, 100);
	terminal_restore();
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	client_close(&q->client);
	if (q->base)
		event_base_free(q->base);
	for (size_t i = 0; i < MAX_CPUS; i++)
		free(q->dump[i]);
	pageheat_free(&q->heat);
	if (q->why.line[0]) {
		log_error("%s", q->why.line);
		return q->status ? q->status : EXIT_VMP_FAILURE;
	}
	return q->status;
}

static int ask(const struct options *o, uint32_t kind, void (*start)(struct query *), void (*print)(struct query *))
{
	static struct query q;

	if (!open_query(&q, o, kind)) {
		q.start = start;
		event_base_dispatch(q.base);
		if (!q.status && print) {
			print(&q);
			if (fflush(stdout))
				problem(&q.why, "cannot write the answer: %s", strerror(errno));
		}
	}
	return close_query(&q);
}

int query_console(const struct options *o)
{
	return ask(o, CLIENT_CONSOLE, start_console, NULL);
}

int query_regs(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_regs, print_regs);
}

int query_pages(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_pages, print_pages);
}

int query_status(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_status, print_status);
}

int query_top(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_top, NULL);
}

/* Whoever asks for the end wants the name and the disk free afterwards. */
static void wait_until_gone(struct query *q)
{
	if (rundir_wait_gone(&q->rundir, GONE_LIMIT_MS)) {
		q->status = EXIT_VMP_FAILURE;
		problem(&q->why, "the machine %s has ended, but its process %d does not", q->rundir.name, q->info.pid);
	}
}

int query_down(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_down, wait_until_gone);
}

int query_cpu_move(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_cpu_move, NULL);
}

int query_host(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_host, NULL);
}

int query_policy(const struct options *o)
{
	return ask(o, CLIENT_QUERY, start_policy, NULL);
}
