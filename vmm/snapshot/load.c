/* load.c - see load.h. */
#include "vmm/snapshot/load.h"

#include <string.h>
#include <time.h>
#include "base/log.h"
#include "vmm/tsc.h"

enum { TURN = 256 /* items between two looks at other events */, UNTAKEN = 64, SYNC_PAGES = 1024 };

int load_check_processor(struct hostcpu *cpu, struct problem *p)
{
	struct hostcpu here;

	hostcpu_look(&here);
	return hostcpu_agree(cpu, &here, false, p);
}

static int check_processor(const struct load *load, struct hostcpu *cpu, struct problem *p)
{
	const struct snapshot_machine *machine = &load->saved.machine;
	struct problem why;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!saved_counter_goes_on(&load->saved, tsc_mark().ticks, now.tv_sec * 1000000000ull + now.tv_nsec))
		return problem(p, "%s: the saved guest reads the processor's time-stamp counter as its clock, and this is not the "
			       "computer where it was saved, or it has been restarted since", load->path);
	*cpu = (struct hostcpu){ .hides = true, .features = machine->features };
	memcpy(cpu->vendor, machine->vendor, sizeof cpu->vendor - 1);
	return load_check_processor(cpu, &why) ? problem(p, "%s: this computer's %s", load->path, why.line) : 0;
}

int load_open(struct load *load, const char *path, struct hostcpu *cpu, struct problem *p)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;
	struct problem inner;
	int result;

	load->path = path;
	load->reader = snapfile_open(path, p);
	if (!load->reader)
		return -1;
	while ((result = snapfile_read(load->reader, &record, data, p)) == 1)
		if (saved_add(&load->saved, &record, data, &inner))
			return problem(p, "%s is damaged: it %s", path, inner.line);
	if (result < 0)
		return -1;
	if (saved_complete(&load->saved, &inner))
		return problem(p, "%s is damaged: it %s", path, inner.line);
	snapfile_close(load->reader);
	load->reader = snapfile_open(path, p);
	return load->reader ? check_processor(load, cpu, p) : -1;
}

void load_kept(struct load *load, const struct kept *kept)
{
	load_close(load);
	load->kept = kept;
	load->cursor = (struct kept_cursor){ 0 };
	load->saved = *kept_machine(kept);
	load->untaken = load->pages = 0;
	load->all_sent = false;
}

/* As snapfile_read(). */
static int read_next(struct load *load, struct snapfile_record *record, void *data, struct problem *p)
{
	if (load->kept)
		return kept_next(load->kept, &load->cursor, record, data);
	return snapfile_read(load->reader, record, data, p);
}

static bool for_iosrv(uint32_t kind)
{
	return kind == SNAPSHOT_CHIP || kind == SNAPSHOT_DISK || kind == SNAPSHOT_BLOCK || kind == SNAPSHOT_LAST;
}

/* Each host answers when it has got here. */
static void send_sync(struct load *load)
{
	struct msg_snapshot sync = { .step = SNAPSHOT_SYNC };

	load->untaken += load->hosts;
	client_send(load->client, MSG_SNAPSHOT, VNODE_CLI, &sync, sizeof sync, NULL, 0);
}

static void send_item(struct load *load, uint32_t kind, uint32_t index, const void *data, uint32_t bytes)
{
	struct msg_snapshot_item item = { .kind = kind, .index = index };

	load->untaken += for_iosrv(kind);
	client_send(load->client, MSG_SNAPSHOT_ITEM, VNODE_CLI, &item, sizeof item, data, bytes);
	if (kind == SNAPSHOT_PAGE && ++load->pages % SYNC_PAGES == 0)
		send_sync(load);
}

/* All is taken: the machine may start. */
static void check_loaded(struct load *load)
{
	struct msg_snapshot loaded = { .step = SNAPSHOT_LOADED, .clock_ns = load->saved.machine.clock_ns };

	if (!load->all_sent || load->untaken)
		return;
	client_send(load->client, MSG_SNAPSHOT, VNODE_CLI, &loaded, sizeof loaded, NULL, 0);
	load->on_loaded(load->context);
}

static bool send_next(struct load *load)
{
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;
	struct problem p;

	switch (read_next(load, &record, data, &p)) {
	case 1:
		if (record.kind != SNAPSHOT_MACHINE)
			send_item(load, record.kind, record.index, data, record.bytes);
		return true;
	case 0:
		send_item(load, SNAPSHOT_LAST, 0, NULL, 0);
		send_sync(load);
		load->all_sent = true;
		return false;
	default:
		load->on_failed(load->context, p.line);
		return false;
	}
}

static void on_more(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval at_once = { 0, 0 }, moment = { 0, 1000 };
	struct load *load = context;

	(void)fd, (void)events;
	for (unsigned n = 0; n < TURN; n++) {
		if (!client_has_room(load->client)) { /* the daemon is slow: look again later */
			event_add(load->more, &moment);
			return;
		}
		if (load->untaken >= UNTAKEN || load->all_sent || !send_next(load))
			return;
	}
	event_add(load->more, &at_once);
}

void load_start(struct load *load, struct client *client, unsigned hosts)
{
	load->hosts = hosts;
	load->client = client;
	load->more = evtimer_new(client->base, on_more, load);
	if (!load->more)
		die("no memory");
	on_more(-1, 0, load);
}

void load_taken(struct load *load)
{
	if (!load->more || !load->untaken)
		return;
	load->untaken--;
	if (load->all_sent)
		check_loaded(load);
	else if (load->untaken == UNTAKEN - 1)
		on_more(-1, 0, load);
}

void load_close(struct load *load)
{
	if (load->more)
		event_free(load->more);
	load->more = NULL;
	snapfile_close(load->reader);
	load->reader = NULL;
	saved_free(&load->saved);
}
