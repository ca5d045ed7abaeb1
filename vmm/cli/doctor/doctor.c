/* doctor.c - see doctor.h. */
#include "vmm/cli/doctor/doctor.h"

#include "base/limits.h"
#include "vmm/cli/jsontext.h"

const struct doctor_row doctor_rows[DOCTOR_ROWS] = {
#define DOCTOR(function, word, need, what_for, how) \
	{ word, DOCTOR_##need, what_for, how, doctor_look_##function },
#include "vmm/cli/doctor/doctor.def"
#undef DOCTOR
};

static void put_member(FILE *out, const char *name, const char *text, const char *after)
{
	fprintf(out, "\"%s\": ", name);
	json_put_string(out, text);
	fputs(after, out);
}

static void print_json_row(FILE *out, const struct doctor_row *row, const struct finding *f)
{
	fputs("  {", out);
	put_member(out, "check", row->word, ", ");
	fprintf(out, "\"ok\": %s, \"needed_by_all\": %s,\n   ", f->good ? "true" : "false",
		row->need == DOCTOR_ALL ? "true" : "false");
	put_member(out, "found", f->text, ",\n   ");
	put_member(out, "for", row->what_for, ",\n   ");
	put_member(out, "how", row->how, "}");
}

static void print_row(FILE *out, const struct doctor_row *row, const struct finding *f)
{
	fprintf(out, "%-7s %-16s %s\n",
		f->good			  ? "ok"
		: row->need == DOCTOR_ALL ? "MISSING"
					  : "lacks",
		row->word, f->text);
	if (!f->good)
		fprintf(out, "%24s for: %s\n%24s how: %s\n", "", row->what_for, "", row->how);
}

static void print_sum(FILE *out, unsigned missing, unsigned lacking)
{
	if (missing)
		fprintf(out, "\nNo machine runs here yet: see what is MISSING.\n");
	else if (lacking)
		fprintf(out, "\nMachines run here; %u thing%s would add what is said above.\n",
			lacking, lacking > 1 ? "s" : "");
	else
		fprintf(out, "\nMachines run here, and nothing is missing.\n");
}

bool doctor_print(FILE *out, const struct finding found[DOCTOR_ROWS], bool json)
{
	unsigned bad[2] = { 0 };

	if (json)
		fputs("[\n", out);
	for (unsigned i = 0; i < DOCTOR_ROWS; i++) {
		bad[doctor_rows[i].need] += !found[i].good;
		(json ? print_json_row : print_row)(out, &doctor_rows[i], &found[i]);
		if (json)
			fputs(i + 1 < DOCTOR_ROWS ? ",\n" : "\n]\n", out);
	}
	if (!json)
		print_sum(out, bad[DOCTOR_ALL], bad[DOCTOR_PART]);
	return !bad[DOCTOR_ALL];
}

int doctor_run(const struct options *o)
{
	static struct finding found[DOCTOR_ROWS];
	bool all;

	for (unsigned i = 0; i < DOCTOR_ROWS; i++)
		doctor_rows[i].look(&found[i], "");
	all = doctor_print(stdout, found, o->json);
	return fflush(stdout) ? EXIT_VMP_FAILURE : all ? 0 : 1;
}
