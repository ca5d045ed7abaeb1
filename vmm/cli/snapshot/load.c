/* load.c - see load.h. */
#include "vmm/cli/snapshot/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "vmm/shared/ram.h"
#include "vmm/shared/tsc.h"

/* TURN: items between two looks at other events */
enum { TURN = 256, UNTAKEN = 64, SYNC_PAGES = 1024, RUN_PAGES = 16 };

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

	if (!saved_counter_goes_on(&load->saved, tsc_mark().ticks, clock_date_ns()))
		return problem(p, "%s: the saved guest reads the processor's time-stamp counter as "
			       "its clock, and this is not the computer where it was saved, or it "
			       "has been restarted since", load->path);
	*cpu = (struct hostcpu){ .hides = true, .features = machine->features };
	memcpy(cpu->vendor, machine->vendor, sizeof cpu->vendor - 1);
	return load_check_processor(cpu, &why)
		       ? problem(p, "%s: this computer's %s", load->path, why.line)
		       : 0;
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

void load_kept(struct load *load, const struct kept *kept, struct parts *parts)
{
	load_close(load);
	load->kept = kept;
	load->parts = parts;
	load->cursor = (struct kept_cursor){ 0 };
	load->saved = *kept_machine(kept);
	load->untaken = load->pages = 0;
	load->all_sent = false;
}

/* Reads the next record, from the checkpoint or the file, as snapfile_read() or parts_next()
 * does. */
static int read_next(struct load *load, struct snapfile_record *record, void *data,
		     struct problem *p)
{
	if (!load->kept)
		return snapfile_read(load->reader, record, data, p);
	if (kept_next(load->kept, &load->cursor, record, data))
		return 1;
	return load->parts ? parts_next(load->parts, record, data) : 0;
}

static bool for_iosrv(uint32_t kind)
{
	return kind == SNAPSHOT_CHIP || kind == SNAPSHOT_DISK || kind == SNAPSHOT_BLOCK ||
	       kind == SNAPSHOT_FOLDER || kind == SNAPSHOT_FILES || kind == SNAPSHOT_LAST;
}

/* Asks each host to answer when it has processed all items before this. */
static void send_sync(struct load *load)
{
	struct msg_snapshot sync = { .step = SNAPSHOT_SYNC };

	load->untaken += load->hosts;
	client_send(load->client, MSG_SNAPSHOT, VNODE_CLI, &sync, sizeof sync, NULL, 0);
}

static void send_item(struct load *load, uint32_t kind, uint32_t index, const void *data,
		      uint32_t bytes)
{
	struct msg_snapshot_item item = { .kind = kind, .index = index };

	load->untaken += for_iosrv(kind);
	client_send(load->client, MSG_SNAPSHOT_ITEM, VNODE_CLI, &item, sizeof item, data, bytes);
	if (kind == SNAPSHOT_PAGE && ++load->pages % SYNC_PAGES == 0)
		send_sync(load);
}

/* ---- the memory of hosts on this computer ---- */

/* Pages that wait to be written together; the next record is read behind them. */
static uint8_t run_bytes[RUN_PAGES * PAGE_BYTES + MAX_MSG_PAYLOAD];

static uint8_t *run_end(const struct load *load) { return run_bytes + load->run * PAGE_BYTES; }

static void open_ram(struct load *load, const char *rundir)
{
	char path[4096];
	struct stat st;

	for (unsigned host = 0; host < load->hosts; host++) {
		snprintf(path, sizeof path, RAM_LINK_FORMAT, rundir, host);
		load->ram[host] = open(path, O_WRONLY | O_CLOEXEC);
		if (load->ram[host] < 0 || fstat(load->ram[host], &st))
			continue;
		load->here |= 1u << host;
		load->ram_pages = (uint32_t)(st.st_size >> PAGE_BITS);
	}
}

/* Closes the hosts' memory, which would otherwise live as long as this process. */
static void close_ram(struct load *load)
{
	for (; load->here; load->here &= load->here - 1)
		close(load->ram[__builtin_ctz(load->here)]);
	load->run = 0;
}

static bool is_here(const struct load *load, const struct snapfile_record *record)
{
	return record->kind == SNAPSHOT_PAGE && record->bytes == PAGE_BYTES &&
	       record->index < load->ram_pages &&
	       load->here >> ram_host_of(record->index, load->ram_pages, load->hosts) & 1;
}

static bool write_run(struct load *load)
{
	size_t bytes = load->run * PAGE_BYTES;
	unsigned host;
	struct problem p;

	if (!load->run)
		return true;
	host = ram_host_of(load->run_first, load->ram_pages, load->hosts);
	load->run = 0;
	errno = ENOSPC;
	if (pwrite(load->ram[host], run_bytes, bytes, (off_t)load->run_first << PAGE_BITS) ==
	    (ssize_t)bytes)
		return true;
	problem(&p, "the memory of host %u cannot be loaded: %s", host, strerror(errno));
	load->on_failed(load->context, p.line);
	return false;
}

/* Adds the page at run_end() to those that wait. */
static bool add_to_run(struct load *load, gfn_t gfn)
{
	const uint8_t *data = run_end(load);

	if (load->run &&
	    (gfn != load->run_first + load->run || gfn % ram_stripe(load->ram_pages) == 0)) {
		if (!write_run(load))
			return false;
		memmove(run_bytes, data, PAGE_BYTES);
	}
	if (!load->run)
		load->run_first = gfn;
	return ++load->run < RUN_PAGES || write_run(load);
}

/* ---- items ---- */

/* Starts the machine when all items are taken. */
static void check_loaded(struct load *load)
{
	struct msg_snapshot loaded = { .step = SNAPSHOT_LOADED,
				       .clock_ns = load->saved.machine.clock_ns };

	if (!load->all_sent || load->untaken)
		return;
	close_ram(load);
	client_send(load->client, MSG_SNAPSHOT, VNODE_CLI, &loaded, sizeof loaded, NULL, 0);
	load->on_loaded(load->context);
}

static bool send_next(struct load *load)
{
	struct snapfile_record record;
	struct problem p;

	switch (read_next(load, &record, run_end(load), &p)) {
	case 1:
		if (is_here(load, &record))
			return add_to_run(load, record.index);
		if (record.kind != SNAPSHOT_MACHINE)
			send_item(load, record.kind, record.index, run_end(load), record.bytes);
		return true;
	case 0:
		if (!write_run(load))
			return false;
		send_item(load, SNAPSHOT_LAST, 0, NULL, 0);
		send_sync(load);
		load->all_sent = true;
		return false;
	case PARTS_LATER:
		return false;
	default:
		load->on_failed(load->context, p.line);
		return false;
	}
}

static void on_more(void *context)
{
	struct load *load = context;

	for (unsigned n = 0; n < TURN; n++) {
		if (!client_has_room(load->client)) { /* the daemon is slow: try again later */
			loop_after(load->more, LOOP_MS);
			return;
		}
		if (load->untaken >= UNTAKEN || load->all_sent || !send_next(load))
			return;
	}
	loop_after(load->more, 0);
}

void load_start(struct load *load, struct client *client, unsigned hosts, const char *rundir)
{
	load->hosts = hosts;
	open_ram(load, rundir);
	load->client = client;
	load->more = loop_timer(&client->loop, on_more, load);
	if (!load->more)
		die("no memory");
	if (load->parts)
		parts_read(load->parts);
	on_more(load);
}

void load_go_on(struct load *load)
{
	if (load->more && !load->all_sent && !loop_is_armed(load->more))
		on_more(load);
}

void load_taken(struct load *load)
{
	if (!load->more || !load->untaken)
		return;
	load->untaken--;
	if (load->all_sent)
		check_loaded(load);
	else if (load->untaken == UNTAKEN - 1)
		on_more(load);
}

void load_close(struct load *load)
{
	loop_remove(load->more);
	load->more = NULL;
	close_ram(load);
	snapfile_close(load->reader);
	load->reader = NULL;
	saved_free(&load->saved);
}
