/* options_value.c - an option's value is checked and put into struct options. */
#include "vmm/cli/options_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/quantity.h"

static int set_number(struct options *o, const struct option_rule *rule, const char *value)
{
	uint32_t number = 0;
	int error = quantity_parse_number(value, &number);

	if (error == -EINVAL)
		return options_fail(o, "--%s %s: not a whole number", rule->name, value);
	if (error || number < rule->min || number > rule->max)
		return options_fail(o, "--%s %s: must be from %u to %u", rule->name, value,
				    rule->min, rule->max);
	*(uint32_t *)((char *)o + rule->offset) = number;
	return 0;
}

static int set_time(struct options *o, const struct option_rule *rule, const char *value)
{
	char least[16], most[16];
	uint32_t ms = 0;
	int error = quantity_parse_ms(value, &ms);

	quantity_print_ms(rule->min, least, sizeof least);
	quantity_print_ms(rule->max, most, sizeof most);
	if (error == -EINVAL)
		return options_fail(o, "--%s %s: not a time; write it as 90, 1.5s or 1m30s",
				    rule->name, value);
	if (error == -EDOM)
		return options_fail(o, "--%s %s: must be a whole number of milliseconds",
				    rule->name, value);
	if (error || ms < rule->min || ms > rule->max)
		return options_fail(o, "--%s %s: must be from %s to %s", rule->name, value, least,
				    most);
	*(uint32_t *)((char *)o + rule->offset) = ms;
	return 0;
}

/* Returns NAME=VALUE from this process's environment, or NULL. */
static const char *inherited(const char *name)
{
	size_t n = strlen(name);

	for (char **e = environ; *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e;
	return NULL;
}

static int set_list(struct options *o, const struct option_rule *rule, const char *value)
{
	const char *variable = strchr(value, '=') ? value : inherited(value);

	if (!*value || value[0] == '=')
		return options_fail(o, "--%s %s: must be NAME=VALUE", rule->name, value);
	if (!variable)
		return options_fail(o,
				    "--%s %s: there is no such variable here; write it as "
				    "NAME=VALUE",
				    rule->name, value);
	if (o->n_env == MAX_ENV_OPTIONS)
		return options_fail(o, "--%s: at most %d variables", rule->name, MAX_ENV_OPTIONS);
	o->env[o->n_env++] = variable;
	return 0;
}

/* A guest has one share and one root: the first one would be dropped without a word. */
static int set_text(struct options *o, const struct option_rule *rule, const char *value)
{
	const char **text = (const char **)((char *)o + rule->offset);

	if (*text && (!strcmp(rule->name, "share") || !strcmp(rule->name, "root")))
		return options_fail(o, "--%s %s: there is --%s %s already, and a guest has one",
				    rule->name, value, rule->name, *text);
	*text = value;
	return 0;
}

static int apply(struct options *o, const struct option_rule *rule, const char *value)
{
	switch (rule->kind) {
	case OPTION_FLAG:
		*(bool *)((char *)o + rule->offset) = true;
		return 0;
	case OPTION_TEXT:
		if (!*value)
			return options_fail(o, "--%s needs a value: --%s %s", rule->name,
					    rule->name, rule->value);
		return set_text(o, rule, value);
	case OPTION_NUMBER:
		return set_number(o, rule, value);
	case OPTION_TIME:
		return set_time(o, rule, value);
	case OPTION_LIST:
		return set_list(o, rule, value);
	}
	return -EINVAL;
}

int options_apply(struct options *o, const struct option *option, const char *value)
{
	if (strcmp(option->name, "name") && strcmp(option->name, "help"))
		o->typed++;
	if (option->row)
		return machine_set(&o->machine, option->row, value, o->error, sizeof o->error);
	return apply(o, option->rule, value);
}
