/* console.c - `vmp console`: connects the terminal to the machine's console, until Ctrl-] q or the
 * machine's end. */
#include "vmm/cli/query/query_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"

static void on_window_changed(evutil_socket_t fd, short events, void *context)
{
	struct query *q = context;

	(void)fd, (void)events;
	terminal_send_size(&q->client);
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
		count = terminal_filter(&q->escape, typed, n, bytes, &quit);
	} else if (n > 0) {
		memcpy(bytes, typed, n);
		count = n;
	}
	if (count)
		client_send(&q->client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body, bytes, count);
	if (quit)
		query_end(q, 0, "");
}

void console_on_output(struct query *q, const struct message *m, const struct msg_console *console)
{
	const char *at = m->payload;

	(void)console;
	if (q->done || !q->typed)
		return;
	q->told = false;
	for (size_t n = m->payload_bytes; n;) {
		ssize_t done = write(1, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			query_end(q, EXIT_VMP_FAILURE, "cannot write the console's output");
			return;
		}
		at += done;
		n -= done;
	}
}

void console_start(struct query *q)
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


void console_attach_again(struct query *q)
{
	struct msg_console_attach attach = { .backlog = 0 };

	client_send(&q->client, MSG_CONSOLE_ATTACH, VNODE_IOSRV, &attach, sizeof attach, NULL, 0);
	on_window_changed(0, 0, q);
}
