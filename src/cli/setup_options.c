#include "cli/setup_options.h"
#include <string.h>

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = offsetof(struct setup_options, json),
		.help = "print a line of JSON for each to standard output"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this help and exit"},
	{NULL},
};

struct command setup_command(
	struct option_group groups[static SETUP_GROUPS], struct setup_options *options)
{
	struct access *access = &options->access;
	const struct option_group filled[SETUP_GROUPS] = {
		{"Marks", access_marks_options, access},
		{"Services", access_s3_options, access},
		{NULL, access_options, access},
		{NULL, access_checksum_options, access},
		{"Output", output_options, options},
	};
	memcpy(groups, filled, sizeof filled);
	return (struct command){.groups = groups, .n_groups = SETUP_GROUPS};
}
