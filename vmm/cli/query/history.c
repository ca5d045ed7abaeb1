/* history.c - see history.h. */
#include "vmm/cli/query/history.h"

#include <math.h>
#include <string.h>

enum { LEVELS = 8, LEFT_COLUMNS = 17, RIGHT_COLUMNS = 18, LEAST_BARS = 10, USUAL_COLUMNS = 80 };
enum { SHOWN_MOVES = 5 };

static void shift(struct history_line *line, float value)
{
	memmove(line->value, line->value + 1, sizeof line->value - sizeof *line->value);
	line->value[HISTORY_LOOKS - 1] = value;
}

static void add_cpu(struct history *h, uint32_t cpu, const struct status_look *before,
		    const struct status_look *now)
{
	const struct cpu_stats *a = &before->report.cpu[cpu], *b = &now->report.cpu[cpu];
	bool seen = now->report.cpu_seen[cpu];

	shift(&h->cpu_load[cpu],
	      seen ? (float)status_cpu_load(a, b, now->at_ns - before->at_ns) : NAN);
	if (seen && h->cpu[cpu].has && h->cpu[cpu].host != b->node) {
		h->cpu[cpu].from = h->cpu[cpu].host;
		h->cpu[cpu].at_ns = now->at_ns;
	}
	if (seen) {
		h->cpu[cpu].has = true;
		h->cpu[cpu].host = b->node;
	}
}

void history_add(struct history *h, const struct status_look *before, const struct status_look *now)
{
	for (uint32_t host = 0; host < MAX_NODES; host++) {
		bool there = now->report.hosts >> host & 1;
		struct host_figures f = { 0 };

		if (there)
			f = status_host_figures(host, before, now);
		shift(&h->host_load[host], there && f.cpus ? (float)f.load : NAN);
		shift(&h->host_pages[host], there ? (float)f.pages_in : NAN);
	}
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
		add_cpu(h, cpu, before, now);
	h->n += h->n < HISTORY_LOOKS;
}

void history_bars(const struct history_line *line, unsigned n, unsigned width, float most,
		  bool blocks, char *out)
{
	static const char ascii[] = "_.:-=+*#";

	n = n < width ? n : width;
	for (unsigned i = HISTORY_LOOKS - n; i < HISTORY_LOOKS; i++) {
		float value = line->value[i];
		int level = most > 0 ? (int)(value / most * LEVELS) : 0;

		level = level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level;
		if (isnan(value))
			*out++ = ' ';
		else if (!blocks)
			*out++ = ascii[level];
		else
			memcpy(out, (char[]){ '\xe2', '\x96', (char)(0x81 + level) }, 3), out += 3;
	}
	*out = 0;
}

static bool is_empty(const struct history_line *line, unsigned n)
{
	for (unsigned i = HISTORY_LOOKS - n; i < HISTORY_LOOKS; i++)
		if (!isnan(line->value[i]))
			return false;
	return true;
}

static float largest(const struct history_line *line, unsigned n)
{
	float most = 0;

	for (unsigned i = HISTORY_LOOKS - n; i < HISTORY_LOOKS; i++)
		most = line->value[i] > most ? line->value[i] : most; /* false for a NAN */
	return most;
}

/* What print_bars() needs for all lines. */
struct view { FILE *out; const struct history *h; unsigned width; bool blocks; };

static void print_bars(const struct view *v, const char *name, const struct history_line *line,
		       float most, const char *right)
{
	char bars[3 * HISTORY_LOOKS + 1];

	history_bars(line, v->h->n, v->width, most, v->blocks, bars);
	fprintf(v->out, "%-*s%s  %s\n", LEFT_COLUMNS, name, bars, right);
}

static void print_host(const struct view *v, uint32_t host)
{
	float most = largest(&v->h->host_pages[host], v->h->n);
	char name[40], right[40];

	if (is_empty(&v->h->host_pages[host], v->h->n))
		return;
	snprintf(name, sizeof name, "host %u load", host);
	if (!is_empty(&v->h->host_load[host], v->h->n))
		print_bars(v, name, &v->h->host_load[host], 100, "of 100 %");
	snprintf(name, sizeof name, "host %u pages in", host);
	snprintf(right, sizeof right, "of %.0f/s", most);
	print_bars(v, name, &v->h->host_pages[host], most, right);
}

static void print_cpu(const struct view *v, uint32_t cpu, uint64_t now_ns)
{
	const struct history *h = v->h;
	char name[40], right[60] = "";

	if (is_empty(&h->cpu_load[cpu], h->n))
		return;
	snprintf(name, sizeof name, "CPU %u load", cpu);
	if (h->cpu[cpu].at_ns && now_ns >= h->cpu[cpu].at_ns)
		snprintf(right, sizeof right, "host %u to %u, %us", h->cpu[cpu].from,
			 h->cpu[cpu].host, (unsigned)((now_ns - h->cpu[cpu].at_ns) / 1000000000));
	print_bars(v, name, &h->cpu_load[cpu], 100, right);
}

void history_print(FILE *out, const struct history *h, uint64_t now_ns, uint32_t columns,
		   bool blocks)
{
	uint32_t room = columns ? columns : USUAL_COLUMNS;
	struct view v = { .out = out, .h = h, .blocks = blocks };

	v.width = room > LEFT_COLUMNS + RIGHT_COLUMNS + LEAST_BARS
			  ? room - LEFT_COLUMNS - RIGHT_COLUMNS
			  : LEAST_BARS;
	v.width = v.width < HISTORY_LOOKS ? v.width : HISTORY_LOOKS;
	fprintf(out, "\nThe last %u looks, the newest on the right:\n",
		h->n < v.width ? h->n : v.width);
	for (uint32_t host = 0; host < MAX_NODES; host++)
		print_host(&v, host);
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
		print_cpu(&v, cpu, now_ns);
}

/* Prints words, the first of them at column `at`, in lines of at most `columns` characters (0: one
 * line).  The lines after the first begin at column `left`. */
static void print_words(FILE *out, const char *words, uint32_t at, uint32_t left, uint32_t columns)
{
	while (*words) {
		uint32_t n = (uint32_t)strcspn(words, " ");

		if (columns && at > left && at + 1 + n > columns) {
			fprintf(out, "\n%*s", (int)left, "");
			at = left;
		} else {
			putc(' ', out), at++;
		}
		at += (uint32_t)fwrite(words, 1, n, out);
		words += n + (words[n] == ' ');
	}
	putc('\n', out);
}

void history_print_moves(FILE *out, const struct status_look *now, uint32_t columns)
{
	unsigned shown = now->n_notes < SHOWN_MOVES ? now->n_notes : SHOWN_MOVES;

	if (shown)
		fprintf(out, "\nThe last moves:\n");
	for (unsigned i = 0; i < shown; i++) {
		const struct move_note *note = &now->note[now->n_notes - 1 - i];
		uint64_t ago_ns = now->at_ns > note->at_ns ? now->at_ns - note->at_ns : 0;
		int ago = fprintf(out, "%6llu s ago:", (unsigned long long)(ago_ns / 1000000000));
		int at = ago + fprintf(out, " CPU %u from host %u to %u;", note->cpu, note->from,
				       note->to);

		print_words(out, note->why, (uint32_t)at, (uint32_t)ago + 1, columns);
	}
}

/* Prints a line, cut to `columns` characters.  Returns its length in bytes. */
static size_t fit_line(FILE *out, const char *line, uint32_t columns)
{
	size_t bytes = strcspn(line, "\n"), shown = 0;
	uint32_t at = 0;

	for (; shown < bytes; shown++) {
		bool begins = ((unsigned char)line[shown] & 0xc0) != 0x80; /* a character */

		if (begins && columns && at++ == columns)
			break;
	}
	fwrite(line, 1, shown, out);
	return bytes;
}

void history_fit(FILE *out, const char *text, uint32_t columns, uint32_t rows)
{
	uint32_t lines = 0, left;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	/* the cursor is in the line below the last one */
	left = rows > 1 && lines > rows - 1 ? lines - (rows - 2) : 0;
	for (uint32_t i = 0; i < lines - left; i++) {
		text += fit_line(out, text, columns) + 1;
		putc('\n', out);
	}
	if (left)
		fprintf(out, "... %u more lines: make the window higher\n", left);
}
