#include "cli/lock/lock_command.h"

static const char *const dialects[] = {"java", "go", "python", "dlm", NULL};
static const char *const releases[] = {"default", "delete", "mark", NULL};
static const char *const token_sources[] = {"default", "row", "counter", "none", NULL};

#define FIELD(name) offsetof(struct lock_options, name)

const struct option lock_place_options[] = {
	{.name = "locks",
		.type = OPTION_STRING,
		.offset = FIELD(place),
		.argument = "PLACE",
		.help = "where the locks are: dynamodb:TABLE, sqlite:PATH\n"
			"or local, a file of this user on this host [local, or\n"
			"as S3ONCE_LOCKS says]"},
	{.name = "dialect",
		.type = OPTION_CHOICE,
		.offset = FIELD(dialect),
		.argument = "NAME",
		.help = "whose rows the table has: java, go, python or dlm\n[java]",
		.choices = dialects},
	{.name = "key-name",
		.type = OPTION_STRING,
		.offset = FIELD(key_name),
		.argument = "NAME",
		.help = "the table's partition key [as the dialect has it]"},
	{.name = "sort-name",
		.type = OPTION_STRING,
		.offset = FIELD(sort_name),
		.argument = "NAME",
		.help = "the table's sort key [as the dialect has it]"},
	{.name = "release-by",
		.type = OPTION_CHOICE,
		.offset = FIELD(release_by),
		.argument = "WAY",
		.help = "default, delete, or mark: the row stays [mark for\n"
			"go and files, else delete]",
		.choices = releases},
	{.name = "tokens",
		.type = OPTION_CHOICE,
		.offset = FIELD(tokens),
		.argument = "FROM",
		.help = "fencing tokens: default, row, counter or none; all\n"
			"users say the same [counter]",
		.choices = token_sources},
	{NULL},
};

const struct option lock_key_options[] = {
	{.name = "sort-key",
		.type = OPTION_STRING,
		.offset = FIELD(sort_key),
		.argument = "KEY",
		.help = "the lock's sort key, where the table has one; the\n"
			"slot's number for dlm [none; python: -]"},
	{NULL},
};

const struct option lock_wait_options[] = {
	{.name = "wait",
		.type = OPTION_DURATION,
		.offset = FIELD(wait_ms),
		.argument = "DUR",
		.help = "for the lock to come free; 0: try once [for ever]"},
	{.name = "lease",
		.type = OPTION_DURATION,
		.offset = FIELD(lease_ms),
		.argument = "DUR",
		.help = "how long others wait for a holder that is silent;\n"
			"1s to 1d [20s]",
		.least = 1000,
		.most = 24 * 3600 * 1000},
	{.name = "slots",
		.type = OPTION_NUMBER,
		.offset = FIELD(slots),
		.argument = "N",
		.help = "how many may hold it at once; all users say the\nsame [1]",
		.least = 1,
		.most = 1000},
	{.name = "owner",
		.type = OPTION_STRING,
		.offset = FIELD(owner),
		.argument = "NAME",
		.help = "what others read of the holder [host, process id]"},
	{NULL},
};

const struct option lock_output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = FIELD(json),
		.help = "JSON on standard output, an object a line"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};
