/* plan.c - see plan.h. */
#include "vpg/shell/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *carrier[] = { "cat", NULL };

static bool same_place(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Adds a part that carries a file on another computer. */
static size_t add_carrier(struct plan *p, const struct line_file *file)
{
	p->parts[p->n] = (struct plan_part){ .nick = file->nick, .words = carrier, .n_words = 1,
					     .carries = true };
	return p->n++;
}

static void plan_input(struct plan *p, size_t part, const struct line_file *file)
{
	struct plan_end end = { PLAN_FILE, 0, file->path, false };

	if (!file->path)
		return;
	if (same_place(file->nick, p->parts[part].nick)) {
		p->parts[part].in = end;
		return;
	}
	if (!file->nick) {
		end.kind = PLAN_HERE;
		p->parts[part].in = end;
		return;
	}
	size_t from = add_carrier(p, file);
	p->parts[from].in = end;
	p->parts[from].out = (struct plan_end){ .kind = PLAN_PART, .part = part };
	p->parts[part].in = (struct plan_end){ .kind = PLAN_PART, .part = from };
}

static void plan_output(struct plan *p, size_t part, const struct line_file *file, bool err)
{
	struct plan_end end = { PLAN_FILE, 0, file->path, file->append };

	if (!file->path)
		return;
	if (!same_place(file->nick, p->parts[part].nick) && file->nick) {
		size_t to = add_carrier(p, file);

		p->parts[to].out = end;
		p->parts[to].in = (struct plan_end){ .kind = PLAN_PART, .part = part };
		end = (struct plan_end){ .kind = PLAN_PART, .part = to };
	} else if (!same_place(file->nick, p->parts[part].nick)) {
		end.kind = PLAN_HERE;
	}
	*(err ? &p->parts[part].err : &p->parts[part].out) = end;
}

static void plan_stage(struct plan *p, const struct line_stage *s, size_t part)
{
	plan_input(p, part, &s->in);
	plan_output(p, part, &s->out, false);
	plan_output(p, part, &s->err, true);
	if (s->err_to_out)
		p->parts[part].err.kind = PLAN_LIKE_OUT;
}

/* Connects a part with the next command by a pipe, unless a redirection has taken the pipe's place.
 * Then the end of the pipe that is left becomes /dev/null. */
static void join(struct plan *p, size_t part)
{
	static const struct plan_end nothing = { PLAN_FILE, 0, "/dev/null", false };
	struct plan_end *out = &p->parts[part].out, *in = &p->parts[part + 1].in;

	if (out->kind == PLAN_OWN && in->kind == PLAN_OWN) {
		*out = (struct plan_end){ .kind = PLAN_PART, .part = part + 1 };
		*in = (struct plan_end){ .kind = PLAN_PART, .part = part };
	} else if (out->kind == PLAN_OWN) {
		*out = nothing;
	} else if (in->kind == PLAN_OWN) {
		*in = nothing;
	}
}

int plan_make(struct plan *p, const struct line *l, size_t first, size_t end)
{
	size_t n = end - first;

	*p = (struct plan){ .parts = calloc(4 * n, sizeof *p->parts), .n = n, .last = n - 1 };
	if (!p->parts)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct line_stage *s = l->stages + first + i;

		p->parts[i] = (struct plan_part){ .nick = s->nick, .words = s->words,
						  .n_words = s->n_words };
	}
	for (size_t i = 0; i < n; i++)
		plan_stage(p, l->stages + first + i, i);
	for (size_t i = 0; i + 1 < n; i++)
		join(p, i);
	return 0;
}

void plan_free(struct plan *p)
{
	free(p->parts);
	*p = (struct plan){ 0 };
}
