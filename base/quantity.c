/* quantity.c - see quantity.h. */
#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit { const char *suffix; uint64_t times, divided_by; };

/* Parse a number with a unit.  It counts in millionths, so that six decimals are possible.  A
 * number beyond 10^12 stops growing: it is too large. */
static int parse(const char *text, const struct unit *units, size_t n_units, uint32_t *value)
{
	const uint64_t one = 1000000, most = 1000000000000;
	uint64_t whole = 0, millionths = 0, digit = one;
	const char *at = text;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++)
		whole = whole > most ? whole : whole * 10 + (uint64_t)(*at - '0');
	if (*at == '.') {
		if (at[1] < '0' || at[1] > '9')
			return -EINVAL;
		for (at++; *at >= '0' && *at <= '9'; at++) {
			digit /= 10;
			if (!digit && *at != '0')
				return -EDOM;
			millionths += digit * (uint64_t)(*at - '0');
		}
	}
	for (size_t i = 0; i < n_units; i++) {
		const struct unit *unit = &units[i];
		__uint128_t amount = ((__uint128_t)whole * one + millionths) * unit->times;

		if (strcasecmp(at, unit->suffix))
			continue;
		if (amount / unit->divided_by / one > UINT32_MAX)
			return -ERANGE;
		if (amount % ((__uint128_t)unit->divided_by * one))
			return -EDOM;
		*value = (uint32_t)(amount / unit->divided_by / one);
		return 0;
	}
	return -EINVAL;
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
		{ "", 1000, 1 }, { "s", 1000, 1 }, { "sec", 1000, 1 }, { "ms", 1, 1 },
		{ "m", 60000, 1 }, { "min", 60000, 1 }, { "h", 3600000, 1 },
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
	return ms % 1000 ? print(ms, "ms", text, bytes) : print(ms / 1000, "s", text, bytes);
}
