/* `s3once init`: sets up where marks are kept. */
#include "base/log.h"
#include "base/problem.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/open_marks.h"
#include "cli/options/access.h"
#include "cli/options/options.h"
#include "marks/setup.h"
#include <errno.h>
#include <string.h>

#define ACTIVE_TIMEOUT_MS (5 * 60 * 1000)

struct init_options {
	struct access access;
	unsigned shards;
};

static const struct option init_own_options[] = {
	{.name = "shards",
		.type = OPTION_NUMBER,
		.offset = offsetof(struct init_options, shards),
		.argument = "N",
		.help = "spread a bucket's marks over N partitions; this\n"
			"cannot be changed later; each takes 1,000 writes a\n"
			"second, and a file costs two [16, in SQLite 1]",
		.least = 1,
		.most = SHARDS_MAX},
	{NULL},
};

static const struct option init_help_options[] = {
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this help and exit"},
	{NULL},
};

enum { GROUPS = 5 };

static struct command init_command(
	struct option_group groups[static GROUPS], struct init_options *options)
{
	struct access *access = options ? &options->access : NULL;
	const struct option_group filled[GROUPS] = {
		{"What to set up", access_marks_options, access},
		{NULL, init_own_options, options},
		{"Services", access_dynamodb_options, access},
		{NULL, access_options, access},
		{"Output", init_help_options, options},
	};
	memcpy(groups, filled, sizeof filled);
	return (struct command){
		.name = "init",
		.operands = "",
		.about =
			"Creates the DynamoDB table that keeps the marks of many hosts, waits until it is\n"
			"active, and turns time to live on. It is safe to run it again. Marks of one host\n"
			"(sqlite:PATH, local) need no init; if asked to, it creates their file.\n",
		.groups = groups,
		.n_groups = GROUPS,
		.examples =
			"  s3once init --marks dynamodb:s3once\n"
			"  s3once init --marks dynamodb:s3once --shards 64 --region eu-west-1\n"
			"\n"
			"Exit codes: 0 ready; 2 usage; 3 the table could not be set up. More: man s3once-init\n",
	};
}

/* The number of shards never changes. If one was asked for that the store does not have, it is
 * refused. */
static int check_shards(
	const struct init_options *options, const struct store_settings *settings, const char *name)
{
	struct problem problem;
	if (!options->shards || options->shards == settings->shards)
		return S3ONCE_EXIT_OK;
	problem_set(&problem,
		"%s has %u shard%s, which cannot be changed: leave --shards out, or name another",
		name, settings->shards, settings->shards == 1 ? "" : "s");
	return command_fail("init", S3ONCE_EXIT_SETUP, &problem);
}

static int init_table(const struct init_options *options, const struct marks_place *place,
	const struct services *services)
{
	const struct table_setup setup = {
		.table = place->table,
		.shards = options->shards ? options->shards : SHARDS_OF_TABLE,
		.timeout_ms = ACTIVE_TIMEOUT_MS,
	};
	struct store_settings settings = {0};
	struct problem problem = {0};
	bool created, ttl;
	if (table_create(services->aws, services->http, &setup, &settings, &created, &ttl,
		    &problem) != OUTCOME_OK)
		return command_fail("init", S3ONCE_EXIT_SETUP, &problem);
	int code = check_shards(options, &settings, place->table);
	if (code)
		return code;
	printf("table %s %s: %u shard%s%s\n", place->table,
		created ? "was created and is ready" : "is ready", settings.shards,
		settings.shards == 1 ? "" : "s", ttl ? ", time to live on 'expires'" : "");
	if (!ttl)
		log_warning(
			"this server does not support time to live: rows of ended sessions stay in the table");
	return S3ONCE_EXIT_OK;
}

static int init_file(const struct init_options *options, const struct marks_place *place,
	const struct services *services)
{
	struct open_marks marks;
	struct store_settings settings = {0};
	struct problem problem = {0};
	int code = S3ONCE_EXIT_OK;
	if (marks_open(place, services, &marks, &problem) < 0 ||
		settings_load(marks.conn, true, options->shards ? options->shards : SHARDS_OF_FILE,
			NULL, &settings, &problem) != OUTCOME_OK)
		code = command_fail("init", S3ONCE_EXIT_SETUP, &problem);
	if (code == S3ONCE_EXIT_OK)
		code = check_shards(options, &settings, "this file");
	if (code == S3ONCE_EXIT_OK)
		printf("%s is ready; marks of one host need no other setup\n",
			quote(place->path).text);
	marks_close(&marks);
	return code;
}

static int init_at(const struct init_options *options, const char *spec)
{
	struct marks_place place;
	struct services services = {0};
	struct problem problem = {0};
	int code, r = marks_place_parse(spec, &place, &problem);
	if (r < 0)
		code = command_fail(
			"init", r == -EINVAL ? S3ONCE_EXIT_USAGE : S3ONCE_EXIT_SETUP, &problem);
	else if (place.is_dynamodb && services_open(&options->access, &services, &problem) < 0)
		code = command_fail("init", S3ONCE_EXIT_SETUP, &problem);
	else
		code = (place.is_dynamodb ? init_table : init_file)(options, &place, &services);
	services_close(&services);
	marks_place_clear(&place);
	return code;
}

int init_main(int argc, char **argv)
{
	struct init_options options = {0};
	struct option_group groups[GROUPS];
	struct command command = init_command(groups, &options);
	struct problem problem = {0};
	int n = options_parse(&command, argc, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	const char *spec = access_marks(&options.access);
	if (n > 0)
		problem_set(&problem, "'%s': init takes no arguments, only options",
			quote(argv[0]).text);
	else if (n == 0 && !spec)
		problem_set(&problem,
			"nothing to set up: name the table with --marks dynamodb:TABLE or "
			"S3ONCE_MARKS");
	if (problem.text[0])
		return command_fail("init", S3ONCE_EXIT_USAGE, &problem);
	return init_at(&options, spec);
}
