/* standby_fake.c - a standby that follows a script: VMP_SSH names this program in the tests of
 * standby_sender.c.
 *
 * The script (VMP_FAKE) has an answer for each record that needs one, separated by commas.  An
 * answer consists of words, separated by `|`; each is printed as a line, except those in
 * fake_does().  What the standby has received is written to HEARD_FD.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/standby.h"

static struct { char *script; unsigned records; uint32_t sum; } fake;

uint32_t add_up(uint32_t sum, const struct snapfile_record *record, const void *data)
{
	const uint8_t *bytes = data;

	sum = (sum * 31 + record->kind) * 31 + record->index;
	for (uint32_t i = 0; i < record->bytes; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

/* `nothing`; `leaves`: it ends; `deaf`: it reads nothing any more; `stops`: until a SIGCONT; `+X`:
 * X without the line's end. */
static void fake_does(const char *word)
{
	if (!strcmp(word, "nothing"))
		return;
	if (!strcmp(word, "leaves"))
		_exit(3);
	if (!strcmp(word, "deaf"))
		close(0);
	else if (!strcmp(word, "stops"))
		raise(SIGSTOP);
	else if (*word == '+')
		dprintf(1, "%s", word + 1);
	else
		dprintf(1, "%s\n", word);
}

static void fake_answers(void)
{
	char *words = strsep(&fake.script, ","), *word;

	while ((word = strsep(&words, "|")))
		fake_does(word);
}

/* One letter for each record. */
static bool fake_on_record(void *context, const struct snapfile_record *record, const void *data)
{
	static const char letters[] = "OBC.PRGE";

	(void)context;
	if (record->kind < STANDBY_ORDERS) {
		fake.records++;
		fake.sum = add_up(fake.sum, record, data);
		return true;
	}
	dprintf(HEARD_FD, "%c", letters[record->kind - STANDBY_ORDERS]);
	switch (record->kind) {
	case STANDBY_ORDERS:
		if (record->index)
			fake_answers();
		break;
	case STANDBY_BEGIN:
		dprintf(HEARD_FD, "%u", record->index);
		fake.records = fake.sum = 0;
		break;
	case STANDBY_COMMIT:
		dprintf(HEARD_FD, "(%u %x)", fake.records, fake.sum);
		fake_answers();
		break;
	case STANDBY_PREPARE:
	case STANDBY_GO:
		fake_answers();
		break;
	case STANDBY_END:
		_exit(0);
	}
	return true;
}

int be_a_standby(void)
{
	static struct record_reader reader = { .on_record = fake_on_record };
	char bytes[5000], *script = getenv("VMP_FAKE");
	ssize_t n;

	fake.script = script;
	if (!strncmp(script, "dies ", 5)) {
		dprintf(2, "%s\n", script + 5);
		return 255;
	}
	while ((n = read(0, bytes, sizeof bytes)) > 0)
		if (record_read(&reader, bytes, (size_t)n))
			return 1;
	dprintf(HEARD_FD, "$");
	return 0;
}
