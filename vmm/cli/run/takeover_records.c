/* takeover_records.c - what a standby does with the records that come from the owner: orders,
 * copies of checkpoints, and words about its life (standby_life.def). */
#include "vmm/cli/run/takeover_private.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/faultpoint.h"
#include "vmm/shared/hostmem.h"

static int check_memory(const struct orders *orders, struct problem *p)
{
	struct hostmem has;

	hostmem_look(&has, "");
	if (*orders->parts || has.mib >= orders->machine.mem_mib)
		return 0;
	return problem(p, "a copy of the machine needs %u MiB, and %s is %llu MiB",
		       orders->machine.mem_mib, hostmem_name(&has), (unsigned long long)has.mib);
}

static int take_processor(struct run *run, const struct orders *orders, struct problem *p)
{
	struct problem why;

	run->cpu = (struct hostcpu){ .hides = true };
	snprintf(run->cpu.vendor, sizeof run->cpu.vendor, "%.*s", (int)sizeof run->cpu.vendor - 1,
		 orders->vendor);
	if (cpufeatures_parse(&run->cpu.features, orders->features))
		return problem(p,
			       "its orders do not say what the guest has seen of its processors");
	return load_check_processor(&run->cpu, &why) ? problem(p, "its %s", why.line) : 0;
}

/* Listens for a neighbour's message.  If another standby, which has lost its owner, listens here
 * already, it gets the message instead. */
static void listen_here(struct run *run)
{
	struct takeover *t = run->takeover;
	char present[MAX_PRESENCE];
	int fd;

	presence_name(present, t->orders.id, t->orders.host);
	fd = presence_listen(present);
	t->word = fd >= 0 ? event_new(run->base, fd, EV_READ | EV_PERSIST, takeover_on_word, run)
			  : NULL;
	if (t->word)
		event_add(t->word, NULL);
	else
		presence_unlisten(fd, present);
}

/* Pages are in parts: none comes here. */
static void refuse_page(void *context, const struct snapfile_record *record, const void *data)
{
	struct takeover *t = context;

	(void)record, (void)data;
	problem(&t->trouble, "has a page, though its pages are in parts");
}

static void take_places(struct takeover *t, uint32_t number, const char *text, uint32_t bytes)
{
	if (!bytes || bytes > sizeof t->places_come.text || text[bytes - 1]) {
		problem(&t->trouble, "does not say where its parts are");
		return;
	}
	t->places_come.number = number;
	memcpy(t->places_come.text, text, bytes);
}

static int take_orders(struct run *run, struct problem *p)
{
	struct takeover *t = run->takeover;
	struct orders *orders = &t->orders;

	if (orders_parse(orders, t->text, t->text_bytes, p) || check_memory(orders, p) ||
	    take_processor(run, orders, p))
		return -1;
	t->options = (struct options){ .verb = VERB_STANDBY, .machine = orders->machine };
	t->options.machine.net = orders->net[0] ? orders->net : NULL;
	t->options.checkpoint_parts = *orders->parts;
	if (*orders->parts)
		kept_put_elsewhere(run->checkpoint.kept, refuse_page, t);
	if (takeover_happens(run, STANDBY_ON_ORDERS) == STANDBY_DO_LISTEN)
		listen_here(run);
	return takeover_keep_times(run, silence_for(orders->machine.checkpoint_ms))
		       ? problem(p, "no memory")
		       : 0;
}

/* Refuses, and ends.  A copy that this process has is used by nobody else. */
static bool refuse(struct run *run, const char *why)
{
	takeover_say(run->takeover, "refused %s\n", why);
	run_end(run, EXIT_VMP_FAILURE, "");
	return false;
}

static bool on_orders(struct run *run, const struct snapfile_record *record, const void *data)
{
	struct takeover *t = run->takeover;
	struct problem p;

	if (t->text_bytes + record->bytes > sizeof t->text)
		return refuse(run, "its orders are too long");
	memcpy(t->text + t->text_bytes, data, record->bytes);
	t->text_bytes += record->bytes;
	if (!record->index)
		return true;
	if (take_orders(run, &p))
		return refuse(run, p.line);
	t->text_bytes = 0;
	takeover_say(t, "ready\n");
	return true;
}

static int check_image(const struct snapshot_disk *disk, struct problem *p)
{
	struct stat st;

	if (stat(disk->path, &st))
		return problem(p, "the disk's image is not there: %s: %s", disk->path,
			       strerror(errno));
	if ((uint64_t)st.st_size == disk->bytes &&
	    st.st_mtim.tv_sec * 1000000000ull + st.st_mtim.tv_nsec == disk->mtime_ns)
		return 0;
	return problem(p, "the disk's image %s is another one there; a copy must have its time, "
		       "too (cp -p, rsync -t)",
		       disk->path);
}

/* The guest's files are open in the owner's folder: it must be the same one, by a network file
 * system. */
static int check_folder(const struct snapshot_folder *folder, struct problem *p)
{
	struct stat st;

	if (stat(folder->path, &st))
		return problem(p, "the live folder is not there: %s: %s", folder->path,
			       strerror(errno));
	return st.st_ino == folder->inode
		       ? 0
		       : problem(p, "the live folder %s is another one there", folder->path);
}

static int check_images(const struct run *run, struct problem *p)
{
	const struct saved_machine *machine = checkpoint_machine(&run->checkpoint);

	if (machine->folder.path[0] && check_folder(&machine->folder, p))
		return -1;
	for (unsigned i = 0; i < saved_disks(machine); i++)
		if (check_image(&machine->disk[i], p))
			return -1;
	return 0;
}

static bool on_commit(struct run *run, uint32_t age_ms)
{
	struct takeover *t = run->takeover;
	struct problem why = t->trouble, p;

	if (!why.line[0] && !kept_commit(run->checkpoint.kept, &why)) {
		if (check_images(run, &p))
			return refuse(run, p.line);
		run->checkpoint.kept_cut_ns = run_now_ns() - age_ms * 1000000ull;
		t->places = t->places_come;
		takeover_say(t, "kept\n");
		return true;
	}
	problem(&p, "the checkpoint %s", why.line);
	return refuse(run, p.line);
}

bool takeover_on_record(void *context, const struct snapfile_record *record, const void *data)
{
	struct run *run = context;
	struct takeover *t = run->takeover;

	takeover_hears(run);
	if (t->life == STANDBY_IS_NEW && record->kind != STANDBY_ORDERS)
		return false;
	switch (record->kind) {
	case STANDBY_ORDERS:
		fault_die_at(FAULT_STANDBY_DIES, 1);
		return on_orders(run, record, data);
	case STANDBY_BEGIN:
		fault_die_at(FAULT_STANDBY_DIES, 2);
		t->trouble.line[0] = 0;
		kept_begin(run->checkpoint.kept, record->index);
		return true;
	case STANDBY_PARTS:
		take_places(t, record->index, data, record->bytes);
		return true;
	case STANDBY_COMMIT:
		return on_commit(run, record->index);
	case STANDBY_ALIVE:
		takeover_say(t, "alive %u\n", record->index);
		return true;
	case STANDBY_PREPARE:
		fault_die_at(FAULT_STANDBY_DIES, 3);
		if (takeover_happens(run, STANDBY_ON_PREPARE) == STANDBY_DO_PREPARE)
			takeover_prepare(run);
		return true;
	case STANDBY_RELEASE:
		if (takeover_happens(run, STANDBY_ON_RELEASE) == STANDBY_DO_RELEASE)
			takeover_release(run);
		return true;
	case STANDBY_GO:
		fault_die_at(FAULT_STANDBY_DIES, 4);
		return checkpoint_machine(&run->checkpoint) &&
		       takeover_happens(run, STANDBY_ON_GO) == STANDBY_DO_NOTHING;
	case STANDBY_END:
		if (takeover_happens(run, STANDBY_ON_END) == STANDBY_DO_END)
			run_end(run, 0, "");
		return true;
	default:
		if (!t->trouble.line[0])
			kept_add(run->checkpoint.kept, record, data, &t->trouble);
		return true;
	}
}

void takeover_on_bytes(struct bufferevent *from, void *context)
{
	struct run *run = context;
	struct evbuffer *input = bufferevent_get_input(from);
	size_t n;

	while (!run->ended && standby_has_owner(run->takeover->life) &&
	       (n = evbuffer_get_contiguous_space(input)) > 0) {
		if (record_read(&run->takeover->reader, evbuffer_pullup(input, (ssize_t)n), n)) {
			run_end(run, EXIT_VMP_FAILURE, "what its owner says is nothing that a "
				"standby knows");
			return;
		}
		evbuffer_drain(input, n);
	}
}
