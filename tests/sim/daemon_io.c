/* daemon_io.c - the I/O server of daemon-sim: iosrv/serve.c and the chips; this file replaces
 * iosrv_main.c and worker.c.  See daemons.h.
 *
 * Its disk is a file; the guest's writes are kept apart from it.  The messages that it has
 * collected leave a moment after one has come, so that several may come before.  Work that takes
 * long is done later.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "iosrv/diskimage.h"
#include "iosrv/iosrv.h"
#include "tests/sim/daemons.h"

static struct {
	bool wakes; /* it is awake, and will soon sleep */
	uint32_t turn[N_CHIPS]; /* of its timer: a later setting replaces earlier ones */
	bool works[N_CHIPS];
	char folder[32], image[IO_PATH]; /* the same for all seeds */
} io;
enum { IO_SLEEPS, IO_WORKED, IO_TIMER = IO_WORKED + N_CHIPS /* + chip + N_CHIPS * turn */ };
enum { WORK_NS = 1000000 };

static void again(uint32_t id)
{
	world_after(WORLD_IO, 0, PORT_IOSRV, id, NULL, 0);
}

unsigned iosrv_cpus(void) { return machine->n_cpus; }

void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		const void *payload, size_t payload_bytes)
{
	(void)to;
	children_say(0, PORT_IOSRV, 0, type, body, (uint32_t)body_bytes, payload,
		     (uint32_t)payload_bytes);
}

void iosrv_start_work(const struct chip *chip)
{
	unsigned number = chips_number(chip);

	bug_on(io.works[number]);
	io.works[number] = true;
	world_after_ns(1 + sim_random(machine, WORK_NS), WORLD_IO, 0, PORT_IOSRV,
		       IO_WORKED + number, NULL, 0);
}

static void finish_work(unsigned number)
{
	while (io.works[number]) {
		io.works[number] = false;
		/* on_worked() may begin the next work */
		chips[number]->on_worked(chips[number]->work());
	}
}

void iosrv_finish_work(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		finish_work(i);
}

void iosrv_start_timer(const struct chip *chip, unsigned ms)
{
	unsigned number = chips_number(chip);

	(void)ms;
	again(IO_TIMER + number + N_CHIPS * ++io.turn[number]);
}

void io_on_message(const struct packet *packet)
{
	struct message m = packet_message(&packet->header, packet->body);

	serve(&m);
	if (!io.wakes)
		again(IO_SLEEPS);
	io.wakes = true;
}

static void sleep_soon(void)
{
	io.wakes = false;
	chips_flush();
}

void io_on_event(uint32_t id)
{
	if (id == IO_SLEEPS)
		sleep_soon();
	else if (id < IO_TIMER)
		finish_work(id - IO_WORKED);
	else if ((id - IO_TIMER) / N_CHIPS == io.turn[(id - IO_TIMER) % N_CHIPS])
		serve_timer(chips[(id - IO_TIMER) % N_CHIPS]);
}

/* ---- the disk ---- */

void io_sector(uint8_t *to, uint32_t sector, uint8_t version)
{
	for (unsigned i = 0; i < SECTOR_BYTES; i++)
		to[i] = (uint8_t)(sector * 7 + version * 31 + i + i / 256);
}

static void remove_folder(void)
{
	DIR *folder = opendir(io.folder);

	for (struct dirent *file; folder && (file = readdir(folder));)
		unlinkat(dirfd(folder), file->d_name, 0);
	closedir(folder);
	rmdir(io.folder);
}

void io_path(char path[IO_PATH], const char *name)
{
	if (!io.folder[0]) {
		snprintf(io.folder, sizeof io.folder, "%s/daemon-sim-XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		if (!mkdtemp(io.folder))
			die("no folder %s", io.folder);
		atexit(remove_folder);
	}
	snprintf(path, IO_PATH, "%s/%s", io.folder, name);
}

static void make_image(void)
{
	uint8_t bytes[SECTOR_BYTES];
	FILE *file;

	io_path(io.image, "disk");
	file = fopen(io.image, "w");
	for (uint32_t sector = 0; file && sector < DISK_SECTORS; sector++) {
		io_sector(bytes, sector, 0);
		fwrite(bytes, 1, sizeof bytes, file);
	}
	if (!file || fclose(file))
		die("no disk %s", io.image);
}

uint32_t io_input_waiting(void)
{
	const struct msg_io_request status = { .kind = IO_PORT_IN,
					       .address = VMP_STREAM_PORT + VMP_STREAM_STATUS,
					       .size = 4,
					       .count = 1 };

	return chips_access(&status, NULL) & ~VMP_STREAM_EOF;
}

void io_check_disk(const uint8_t *version)
{
	uint8_t is[SECTOR_BYTES], should_be[SECTOR_BYTES];

	for (uint32_t sector = 0; sector < DISK_SECTORS; sector++) {
		io_sector(should_be, sector, version[sector]);
		if (diskimage_read(ide_image(), sector, 1, is) || memcmp(is, should_be, sizeof is))
			sim_fail(machine, "sector %u is not what was written last", sector);
	}
}

/* ---- its process ---- */

void io_start(bool loads)
{
	char spec[80], why[256];

	io_end();
	if (!io.image[0])
		make_image();
	serve_start(loads);
	snprintf(spec, sizeof spec, "%s,snapshot", io.image);
	if (ide_open(spec, why, sizeof why))
		die("%s", why);
}

void io_end(void)
{
	ide_close();
	io.wakes = false;
	memset(io.turn, 0, sizeof io.turn);
	memset(io.works, 0, sizeof io.works);
}

void iosrv_watch(enum watched which, int socket, bool read, bool write)
{
	(void)which, (void)socket, (void)read, (void)write;
}
