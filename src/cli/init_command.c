/* `s3once init`: sets up where marks are kept. It calls src/marks/setup.h for a table, and opens
 * the file of marks of one host, which makes it. It may be run again at any time: it only ever adds
 * what is missing, and refuses to change the number of shards. */
#include "base/log.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "marks/setup.h"
#include <string.h>

#define ACTIVE_TIMEOUT_MS (5 * 60 * 1000)

struct init_options {
	struct access access;
	unsigned shards;
};

static const struct option init_own_options[] = {
	VALUE("shards", NUMBER, offsetof(struct init_options, shards), "N",
		"spread a bucket's marks over N partitions; this\n"
		"cannot be changed later; each takes 1,000 writes a\n"
		"second, and a file costs two [16, in SQLite 1]",
		.least = 1, .most = SHARDS_MAX),
	{NULL},
};

/* The number of shards never changes. If one was asked for that the store does not have, it is
 * refused. */
static int check_shards(
	struct command_frame *frame, unsigned asked, unsigned shards, const char *name)
{
	if (!asked || asked == shards)
		return S3ONCE_EXIT_OK;
	problem_set(&frame->problem,
		"%s has %u shard%s, which cannot be changed: leave --shards out, or name another",
		name, shards, shards == 1 ? "" : "s");
	return S3ONCE_EXIT_SETUP;
}

static int init_table(struct command_frame *frame, unsigned shards)
{
	const char *table = frame->place.table;
	const struct table_setup setup = {
		.table = table,
		.shards = shards ? shards : SHARDS_OF_TABLE,
		.timeout_ms = ACTIVE_TIMEOUT_MS,
	};
	struct store_settings settings = {0};
	bool created, ttl;
	if (services_open(frame->access, &frame->services, &frame->problem) < 0 ||
		table_create(frame->services.aws, frame->services.http, &setup, &settings, &created,
			&ttl, &frame->problem) != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	const int code = check_shards(frame, shards, settings.shards, table);
	if (code)
		return code;
	output_tell(&frame->output, "table %s %s: %u shard%s%s", table,
		created ? "was created and is ready" : "is ready", settings.shards,
		settings.shards == 1 ? "" : "s", ttl ? ", time to live on 'expires'" : "");
	if (!ttl)
		log_warning(
			"this server does not support time to live: rows of ended sessions stay in the table");
	return S3ONCE_EXIT_OK;
}

static int init_file(struct command_frame *frame, unsigned shards)
{
	struct store_settings settings = {0};
	if (marks_open(&frame->place, &frame->services, &frame->marks, &frame->problem) < 0 ||
		settings_load(frame->marks.conn, true, shards ? shards : SHARDS_OF_FILE, NULL,
			&settings, &frame->problem) != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	const int code = check_shards(frame, shards, settings.shards, "this file");
	if (code)
		return code;
	output_tell(&frame->output, "%s is ready; marks of one host need no other setup",
		quote(frame->place.path).text);
	return S3ONCE_EXIT_OK;
}

static int init_marks(struct command_frame *frame, unsigned shards)
{
	if (frame->n > 0)
		problem_set(&frame->problem, "'%s': init takes no arguments, only options",
			quote(frame->operands[0]).text);
	else if (!frame->access->marks)
		problem_set(&frame->problem,
			"nothing to set up: name the table with --marks dynamodb:TABLE or "
			"S3ONCE_MARKS");
	if (frame->problem.text[0] || !frame_choose_marks(frame, false))
		return frame->code;
	return frame->place.is_dynamodb ? init_table(frame, shards) : init_file(frame, shards);
}

#define ACCESS offsetof(struct init_options, access)

static const struct option_group groups[] = {
	{"What to set up", access_marks_options, ACCESS, true},
	{NULL, init_own_options},
	{"Services", access_dynamodb_options, ACCESS, true},
	{NULL, access_options, ACCESS, true},
	{"Output", no_options},
	{NULL},
};

static const struct command init_command = {
	.name = "init",
	.operands = "",
	.about = "Creates the DynamoDB table that keeps the marks of many hosts, waits until it\n"
		 "is active, and turns time to live on. It is safe to run it again. Marks of one\n"
		 "host (sqlite:PATH, local) need no init; if asked to, it creates their file.\n",
	.groups = groups,
	.examples = "  s3once init --marks dynamodb:s3once\n"
		    "  s3once init --marks dynamodb:s3once --shards 64 --region eu-west-1\n"
		    "\n"
		    "Exit codes: 0 ready; 2 usage; 3 the table could not be set up. More: man\n"
		    "s3once-init\n",
};

int init_main(int argc, char **argv)
{
	struct init_options options = {0};
	struct command_frame frame = {
		.command = &init_command, .values = &options, .access = &options.access};
	if (frame_begin(&frame, argc, argv))
		frame.code = init_marks(&frame, options.shards);
	return frame_end(&frame);
}
