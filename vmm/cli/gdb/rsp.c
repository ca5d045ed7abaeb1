/* rsp.c - see rsp.h. */
#include "vmm/cli/gdb/rsp.h"

#include <string.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* ---- packets ---- */

static enum rsp_event read_outside(struct rsp_reader *r, uint8_t byte)
{
	switch (byte) {
	case '$':
		r->state = RSP_INSIDE;
		r->n = r->sum = 0;
		return RSP_NOTHING;
	case '+': return RSP_ACK;
	case '-': return RSP_NAK;
	case 3: return RSP_INTERRUPT;
	default: return RSP_FOREIGN;
	}
}

static enum rsp_event read_inside(struct rsp_reader *r, uint8_t byte)
{
	if (byte == '#') {
		r->text[r->n] = 0;
		r->state = RSP_SUM_HIGH;
		return RSP_NOTHING;
	}
	if (!byte || r->n == RSP_MAX_TEXT)
		return RSP_FOREIGN;
	r->text[r->n++] = (char)byte;
	r->sum += byte;
	return RSP_NOTHING;
}

enum rsp_event rsp_read(struct rsp_reader *r, uint8_t byte)
{
	int value = digit((char)byte);

	switch (r->state) {
	case RSP_OUTSIDE:
		return read_outside(r, byte);
	case RSP_INSIDE:
		return read_inside(r, byte);
	case RSP_SUM_HIGH:
		r->state = RSP_SUM_LOW;
		if (value < 0)
			return RSP_FOREIGN;
		r->sent_sum = (uint8_t)(value << 4);
		return RSP_NOTHING;
	case RSP_SUM_LOW:
		r->state = RSP_OUTSIDE;
		if (value < 0)
			return RSP_FOREIGN;
		return (r->sent_sum | value) == r->sum ? RSP_PACKET : RSP_DAMAGED;
	}
	return RSP_FOREIGN;
}

size_t rsp_frame(const char *text, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t sum = 0;

	out[0] = '$';
	memcpy(out + 1, text, n);
	for (size_t i = 0; i < n; i++)
		sum += (uint8_t)text[i];
	out[n + 1] = '#';
	out[n + 2] = digits[sum >> 4];
	out[n + 3] = digits[sum & 15];
	return n + 4;
}

void rsp_hex(const void *bytes, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *byte = bytes;

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[byte[i] >> 4];
		*out++ = digits[byte[i] & 15];
	}
	*out = 0;
}

size_t rsp_unhex(const char *text, void *bytes, size_t room)
{
	uint8_t *out = bytes;
	size_t n;

	for (n = 0; n < room && digit(text[0]) >= 0 && digit(text[1]) >= 0; n++, text += 2)
		out[n] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
	return n;
}

/* ---- commands ---- */

/* What follows a command's name. a, l: a number; t: a thread; *: any rest; otherwise that
 * character. */
static const struct row { const char *name, *form; enum rsp_kind kind; } rows[] = {
	{ "qSupported", "*", RSP_SUPPORTED },
	{ "QStartNoAckMode", "", RSP_NO_ACK },
	{ "?", "", RSP_WHY },
	{ "g", "", RSP_GET_REGISTERS },
	{ "G", "*", RSP_SET_REGISTERS },
	{ "p", "a", RSP_GET_REGISTER },
	{ "P", "a=*", RSP_SET_REGISTER },
	{ "m", "a,l", RSP_GET_MEMORY },
	{ "M", "a,l:*", RSP_SET_MEMORY },
	{ "Z0,", "a,l", RSP_INSERT },
	{ "z0,", "a,l", RSP_REMOVE },
	{ "Z2,", "a,l", RSP_WATCH },
	{ "z2,", "a,l", RSP_UNWATCH },
	{ "Z4,", "a,l", RSP_WATCH_ACCESS },
	{ "z4,", "a,l", RSP_UNWATCH_ACCESS },
	{ "Hg", "t", RSP_THREAD_OF_G },
	{ "Hc", "t", RSP_THREAD_OF_C },
	{ "T", "t", RSP_THREAD_LIVES },
	{ "qfThreadInfo", "", RSP_FIRST_THREADS },
	{ "qsThreadInfo", "", RSP_MORE_THREADS },
	{ "qThreadExtraInfo,", "t", RSP_THREAD_TEXT },
	{ "qC", "", RSP_THREAD_NOW },
	{ "qAttached", "*", RSP_ATTACHED },
	{ "qXfer:features:read:target.xml:", "a,l", RSP_FEATURES },
	{ "vCont?", "", RSP_RESUMES },
	{ "vCont", "*", RSP_RESUME },
	{ "c", "", RSP_CONTINUE },
	{ "s", "", RSP_STEP },
	{ "D", "*", RSP_DETACH },
	{ "k", "", RSP_KILL },
	{ "vKill", "*", RSP_KILL },
};

static bool take_number(const char **text, uint32_t *number)
{
	const char *at = *text;
	uint32_t value = 0;

	for (; digit(*at) >= 0; at++) {
		if (value >> 28)
			return false;
		value = value << 4 | (uint32_t)digit(*at);
	}
	if (at == *text)
		return false;
	*text = at;
	*number = value;
	return true;
}

static bool take_thread(const char **text, int32_t *thread)
{
	uint32_t number;

	if (!strncmp(*text, "-1", 2)) {
		*text += 2;
		*thread = -1;
		return true;
	}
	if (!take_number(text, &number) || number > INT32_MAX)
		return false;
	*thread = (int32_t)number;
	return true;
}

static bool fits(const char *text, const char *form, struct rsp_command *c)
{
	for (; *form; form++)
		switch (*form) {
		case 'a':
			if (!take_number(&text, &c->address))
				return false;
			break;
		case 'l':
			if (!take_number(&text, &c->length))
				return false;
			break;
		case 't':
			if (!take_thread(&text, &c->thread))
				return false;
			break;
		case '*':
			c->rest = text;
			return true;
		default:
			if (*text++ != *form)
				return false;
		}
	c->rest = text;
	return !*text;
}

struct rsp_command rsp_parse(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rsp_command command = { .kind = rows[i].kind };
		size_t n = strlen(rows[i].name);

		if (!strncmp(text, rows[i].name, n) && fits(text + n, rows[i].form, &command))
			return command;
	}
	return (struct rsp_command){ .kind = RSP_UNKNOWN, .rest = text };
}

bool rsp_next_action(const char **rest, struct rsp_action *action)
{
	const char *at = *rest;
	uint32_t signal;
	char what;

	if (*at++ != ';' || !strchr("csCS", what = *at) || !*at)
		return false;
	at++;
	if ((what == 'C' || what == 'S') && !take_number(&at, &signal))
		return false;
	*action = (struct rsp_action){ .step = what == 's' || what == 'S', .thread = -1 };
	if (*at == ':' && (at++, !take_thread(&at, &action->thread)))
		return false;
	if (*at && *at != ';')
		return false;
	*rest = at;
	return true;
}
