/* savefile.c - see savefile.h. */
#include "vmm/cli/snapshot/savefile.h"

int savefile_begin(struct savefile *s, const char *path, struct problem *p)
{
	*s = (struct savefile){ .file = snapfile_create(path, p) };
	return s->file ? 0 : -1;
}

static int is_no_machine(const struct problem *inner, struct problem *p)
{
	return problem(p, "the machine's state %s; this is a bug in vmp", inner->line);
}

int savefile_add(struct savefile *s, const struct snapfile_record *record, const void *data,
		 struct problem *p)
{
	struct problem inner;

	if (saved_has(&s->machine, record))
		return 0;
	if (saved_add(&s->machine, record, data, &inner))
		return is_no_machine(&inner, p);
	return snapfile_write(s->file, record, data, p);
}

int savefile_commit(struct savefile *s, struct problem *p)
{
	struct snapfile_writer *file = s->file;
	struct problem inner;

	if (saved_complete(&s->machine, &inner)) {
		savefile_abandon(s);
		return is_no_machine(&inner, p);
	}
	s->file = NULL;
	return snapfile_commit(file, p);
}

void savefile_abandon(struct savefile *s)
{
	snapfile_abandon(s->file);
	saved_free(&s->machine);
	s->file = NULL;
}
