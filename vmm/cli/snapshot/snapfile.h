/* snapfile.h - the file of a saved machine: a head, one compressed stream of records, a tail with
 * sizes and checksum.
 *
 *   head    "vmpsnap\n", version, checksum of the head
 *   stream  zlib: records of struct snapfile_record, each followed by its data; the first is
 *           SNAPSHOT_MACHINE
 *   tail    "vmpsend\n", records, bytes before compression, CRC-32 of them, checksum of the tail;
 *           then the file ends
 *
 * A file gets its name when it is complete and on the disk, or never.  It is written without a name
 * where the file system can do that (O_TMPFILE), otherwise under the temporary name
 * FILE.vmp-NNNNNN. A writer that is killed between the last two steps leaves the new file under a
 * temporary name, and the old file under its own.  The next writer of FILE removes such a file.  It
 * can tell it from one that is being written, since a writer holds a lock (flock) on its file.
 */
#ifndef VMM_CLI_SNAPSHOT_SNAPFILE_H
#define VMM_CLI_SNAPSHOT_SNAPFILE_H

#include "base/limits.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

/* Of the last row of forms.def, which says when there is a new one: a file of another version is
 * refused. */
enum {
#define FORM(version, form) SNAPFILE_FORM_##version = version,
#include "iosrv/forms.def"
#undef FORM
	SNAPFILE_NEXT,
	SNAPFILE_VERSION = SNAPFILE_NEXT - 1
};

/* One item of the machine (enum snapshot_kind in base/wire.h, and its index); bytes <=
 * MAX_MSG_PAYLOAD. */
struct snapfile_record { uint32_t kind, index, bytes; };

struct snapfile_writer;
/* NULL with the reason */
struct snapfile_writer *snapfile_create(const char *path, struct problem *p);
int snapfile_write(struct snapfile_writer *w, const struct snapfile_record *record,
		   const void *data, struct problem *p);
/* Bytes so far: of the records, and of the file. */
uint64_t snapfile_raw_bytes(const struct snapfile_writer *w);
uint64_t snapfile_file_bytes(const struct snapfile_writer *w);
/* Both free the writer. snapfile_commit() returns 0 when the file is on the disk under its name;
 * after -1 nothing is left of it. */
int snapfile_commit(struct snapfile_writer *w, struct problem *p);
void snapfile_abandon(struct snapfile_writer *w); /* may be NULL */

struct snapfile_reader;
struct snapfile_reader *snapfile_open(const char *path, struct problem *p);
/* Returns 1 with a record and its data (room for MAX_MSG_PAYLOAD); 0 at the end, if the checksums
 * are right; -1 with the reason. */
int snapfile_read(struct snapfile_reader *r, struct snapfile_record *record, void *data,
		  struct problem *p);
void snapfile_close(struct snapfile_reader *r); /* may be NULL */

#endif
