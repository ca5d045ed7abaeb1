/* snapfile.h - the file of a saved machine: a head, one compressed stream of records, a tail with sizes and checksum.
 *
 *   head    "vmpsnap\n", version, checksum of the head
 *   stream  zlib: records of struct snapfile_record, each followed by its data; the first is SNAPSHOT_MACHINE
 *   tail    "vmpsend\n", records, bytes before compression, CRC-32 of them, checksum of the tail; then the file ends
 *
 * A file appears under its name when it is whole and on the disk, or not at all: it is written without a name where the
 * file system can do that (O_TMPFILE), and else under a name for a while, FILE.vmp-NNNNNN.  Who is killed between the last two steps
 * leaves it whole, but under such a name, and the file before under its own.  The next who writes FILE removes it: whoever is alive
 * holds a lock (flock) on what he writes.
 */
#ifndef VMM_CLI_SNAPSHOT_SNAPFILE_H
#define VMM_CLI_SNAPSHOT_SNAPFILE_H

#include "base/limits.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

enum { SNAPFILE_VERSION = 5 };

/* One item of the machine (base/wire.h: enum snapshot_kind, and its index); bytes <= MAX_MSG_PAYLOAD. */
struct snapfile_record { uint32_t kind, index, bytes; };

struct snapfile_writer;
struct snapfile_writer *snapfile_create(const char *path, struct problem *p); /* NULL with the reason */
int snapfile_write(struct snapfile_writer *w, const struct snapfile_record *record, const void *data, struct problem *p);
/* Bytes so far: of records, and of the file. */
uint64_t snapfile_raw_bytes(const struct snapfile_writer *w);
uint64_t snapfile_file_bytes(const struct snapfile_writer *w);
/* Both free the writer. commit: 0 when the file stands on the disk under its name; -1: nothing is left. */
int snapfile_commit(struct snapfile_writer *w, struct problem *p);
void snapfile_abandon(struct snapfile_writer *w); /* may be NULL */

struct snapfile_reader;
struct snapfile_reader *snapfile_open(const char *path, struct problem *p);
/* 1 with a record and its data (room for MAX_MSG_PAYLOAD); 0 at the end, the checksums being right; -1 with the reason. */
int snapfile_read(struct snapfile_reader *r, struct snapfile_record *record, void *data, struct problem *p);
void snapfile_close(struct snapfile_reader *r); /* may be NULL */

#endif
