#include "cli/options/setup_options.h"

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
	access_groups(&options->access, groups);
	groups[ACCESS_GROUPS] =
		(struct option_group){NULL, access_checksum_options, &options->access};
	groups[ACCESS_GROUPS + 1] = (struct option_group){"Output", output_options, options};
	return (struct command){.groups = groups, .n_groups = SETUP_GROUPS};
}
