/* quantity.c - see quantity.h. */
#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit { const char *suffix; uint64_t times, divided_by; };

enum { ONE = 1000000 };

/* Read the decimal number at *at, in millionths, so that six decimals are possible; set *at behind
 * it.  A number beyond 10^12 stops growing: it is too large. */
static int read_millionths(const char **at, __uint128_t *millionths)
{
	const uint64_t most = 1000000000000;
	uint64_t whole = 0, decimals = 0, digit = ONE;

	if ((**at < '0' || **at > '9') && **at != '.')
		return -EINVAL;
	for (; **at >= '0' && **at <= '9'; ++*at)
		whole = whole > most ? whole : whole * 10 + (uint64_t)(**at - '0');
	if (**at == '.') {
		if ((*at)[1] < '0' || (*at)[1] > '9')
			return -EINVAL;
		for (++*at; **at >= '0' && **at <= '9'; ++*at) {
			digit /= 10;
			if (!digit && **at != '0')
				return -EDOM;
			decimals += digit * (uint64_t)(**at - '0');
		}
	}
	*millionths = (__uint128_t)whole * ONE + decimals;
	return 0;
}

/* Returns the unit whose suffix is the `bytes` letters at `at`, or NULL. */
static const struct unit *find_unit(const struct unit *units, size_t n_units, const char *at,
				    size_t bytes)
{
	for (size_t i = 0; i < n_units; i++)
		if (strlen(units[i].suffix) == bytes && !strncasecmp(units[i].suffix, at, bytes))
			return &units[i];
	return NULL;
}

static bool is_larger(const struct unit *a, const struct unit *b)
{
	return (__uint128_t)a->times * b->divided_by > (__uint128_t)b->times * a->divided_by;
}

/* Parse a number with a unit, or several of them from the largest unit to the smallest, as 1m30s.
 * Only a number that stands alone may have the unit "". */
static int parse(const char *text, const struct unit *units, size_t n_units, uint32_t *value)
{
	const struct unit *unit = NULL, *before;
	__uint128_t sum = 0;

	do {
		__uint128_t millionths;
		int error = read_millionths(&text, &millionths);
		size_t letters = strcspn(text, "0123456789.");

		if (error)
			return error;
		before = unit;
		unit = find_unit(units, n_units, text, letters);
		if (!unit || (before && (!letters || !is_larger(before, unit))))
			return -EINVAL;
		millionths *= unit->times;
		if (millionths % ((__uint128_t)unit->divided_by * ONE))
			return -EDOM;
		sum += millionths / unit->divided_by / ONE;
		text += letters;
	} while (*text);
	if (sum > UINT32_MAX)
		return -ERANGE;
	*value = (uint32_t)sum;
	return 0;
}

int quantity_parse_number(const char *text, uint32_t *number)
{
	static const struct unit units[] = { { "", 1, 1 } };

	return strchr(text, '.') ? -EINVAL : parse(text, units, ARRAY_LEN(units), number);
}

int quantity_parse_mib(const char *text, uint32_t *mib)
{
	static const struct unit units[] = {
		{ "", 1, 1 }, { "B", 1, 1 << 20 },
		{ "K", 1, 1024 }, { "KB", 1, 1024 }, { "Ki", 1, 1024 }, { "KiB", 1, 1024 },
		{ "M", 1, 1 }, { "MB", 1, 1 }, { "Mi", 1, 1 }, { "MiB", 1, 1 },
		{ "G", 1024, 1 }, { "GB", 1024, 1 }, { "Gi", 1024, 1 }, { "GiB", 1024, 1 },
		{ "T", 1 << 20, 1 }, { "TB", 1 << 20, 1 }, { "TiB", 1 << 20, 1 },
	};

	return parse(text, units, ARRAY_LEN(units), mib);
}

int quantity_parse_ms(const char *text, uint32_t *ms)
{
	static const struct unit units[] = {
		{ "", 1000, 1 }, { "ms", 1, 1 }, { "msec", 1, 1 },
		{ "s", 1000, 1 }, { "sec", 1000, 1 }, { "secs", 1000, 1 },
		{ "second", 1000, 1 }, { "seconds", 1000, 1 },
		{ "m", 60000, 1 }, { "min", 60000, 1 }, { "mins", 60000, 1 },
		{ "minute", 60000, 1 }, { "minutes", 60000, 1 },
		{ "h", 3600000, 1 }, { "hr", 3600000, 1 }, { "hour", 3600000, 1 },
		{ "hours", 3600000, 1 }, { "d", 86400000, 1 }, { "day", 86400000, 1 },
		{ "days", 86400000, 1 },
	};

	return parse(text, units, ARRAY_LEN(units), ms);
}

static size_t print(uint32_t value, const char *suffix, char *text, size_t bytes)
{
	return (size_t)snprintf(text, bytes, "%u%s", value, suffix);
}

size_t quantity_print_number(uint32_t number, char *text, size_t bytes)
{
	return print(number, "", text, bytes);
}

size_t quantity_print_mib(uint32_t mib, char *text, size_t bytes)
{
	return print(mib, "M", text, bytes);
}

size_t quantity_print_ms(uint32_t ms, char *text, size_t bytes)
{
	if (ms % 1000)
		return print(ms, "ms", text, bytes);
	if (ms % 3600000 || !ms)
		return print(ms / 1000, "s", text, bytes);
	return print(ms / 3600000, "h", text, bytes);
}
