/* `s3once init` sets up the place where marks are kept. It creates the DynamoDB table
 * (src/marks/store_settings.h), or the SQLite file of one host, by opening it. init may be run
 * again at any time: it only adds missing parts, and refuses to change the number of shards. */
#include "base/log.h"
#include "cli/commands.h"
#include "cli/human_figures.h"
#include "marks/store_settings.h"

#define ACTIVE_TIMEOUT_MS (5 * 60 * 1000) /* the most time until the table can be used */

struct init_options {
	unsigned shards;
};

static const struct option init_own_options[] = {
	VALUE("shards", NUMBER, offsetof(struct init_options, shards), "N",
		"spread a bucket's marks over N partitions; this\ncannot be changed later; each "
		"takes 1,000 writes a second, and a file costs two [16, in SQLite 1]",
		.min = 1, .max = SHARDS_MAX),
	{NULL},
};

/* Prints the properties of a table that is ready, and warns of those that limit its use. */
static void report_table(struct output *output, const char *table,
	const struct store_settings *settings, const struct table_made *made)
{
	const char *replicas = made->shape.replicas; /* the other Regions; "": none */
	const bool is_split = made->shape.is_split;
	output_resultf(output, "table %s %s: %s%s", table,
		made->created ? "was created and is ready" : "is ready",
		human_things(settings->shards, "shard").text,
		made->has_ttl ? ", time to live on 'expires'" : "");
	if (*replicas && !is_split)
		output_resultf(output, "its replicas (%s) are strongly consistent", replicas);
	if (is_split)
		log_warning(
			"table %s has replicas (%s), and each Region judges claims by its own: "
			"hosts of two Regions may send one file at once, and S3 stores one of both; "
			"let all hosts use one Region (--region), or make the replicas strongly "
			"consistent; locks in this table would exclude nobody in another Region",
			table, replicas);
	if (!made->has_ttl)
		log_warning("%s: rows of ended sessions stay in the table",
			*replicas && !is_split ? "strongly consistent replicas have no time to live"
					       : "this server does not support time to live");
}

/* Marks that were set up before keep their number of shards. Returns false with a sentence if
 * another one was asked for; 0: none was. */
static bool check_shards(struct command_frame *frame, unsigned asked, unsigned present)
{
	if (!asked || asked == present)
		return true;
	return problem_error(&frame->problem, false,
		"%s has %s, which cannot be changed: leave --shards out, or name another",
		frame->place.is_dynamodb ? frame->place.table : "this file",
		human_things(present, "shard").text);
}

/* Creates the table of the marks, or completes it. Returns the exit code. */
static int set_up_table(struct command_frame *frame, unsigned shards)
{
	const char *table = frame->place.table;
	const struct table_setup setup = {.table = table,
		.shards = shards ? shards : SHARDS_OF_TABLE,
		.timeout_ms = ACTIVE_TIMEOUT_MS};
	struct store_settings settings = {0};
	struct table_made made = {0};
	if (services_open(&frame->access, &frame->services, &frame->problem) < 0)
		return S3ONCE_EXIT_SETUP;
	if (table_create(frame->services.aws, frame->services.http, &setup, &settings, &made,
		    &frame->problem) != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	if (!check_shards(frame, shards, settings.shards))
		return S3ONCE_EXIT_SETUP;
	report_table(&frame->output, table, &settings, &made);
	return S3ONCE_EXIT_OK;
}

/* Makes the file of the marks by opening it, unless it is there. Returns the exit code. */
static int set_up_file(struct command_frame *frame, unsigned shards)
{
	struct store_settings settings = {0};
	if (marks_open(&frame->place, &frame->services, &frame->marks, &frame->problem) < 0)
		return S3ONCE_EXIT_SETUP;
	if (settings_load_or_make(frame->marks.conn, shards ? shards : SHARDS_OF_FILE, NULL,
		    &settings, &frame->problem) != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	if (!check_shards(frame, shards, settings.shards))
		return S3ONCE_EXIT_SETUP;
	output_resultf(&frame->output, "%s is ready; marks of one host need no other setup",
		quote(frame->place.path).text);
	return S3ONCE_EXIT_OK;
}

static const struct command init_command = {
	.name = "init",
	.operands = "",
	.about = "Creates the DynamoDB table that keeps the marks of many hosts, waits until it\n"
		 "is active, and turns time to live on. It is safe to run it again. Marks of one\n"
		 "host need no init; without --marks dynamodb:TABLE, it creates their file.\n",
	.groups = (const struct option_group[]){{"What to set up", init_own_options}, {NULL}},
	.shares = SHARES_MARKS | SHARES_SERVICES,
	.examples = "  s3once init --marks dynamodb:s3once\n"
		    "  s3once init --marks dynamodb:s3once --shards 64 --region eu-west-1\n\n"
		    "Exit codes: 0 ready; 2 usage; 3 the table could not be set up.\n",
};

int init_main(int argc, char **argv)
{
	struct init_options options = {0};
	struct command_frame frame = {.command = &init_command, .values = &options};
	if (!frame_begin(&frame, argc, argv))
		return frame_end(&frame);
	if (frame_choose_marks(&frame, MARKS_WRITTEN))
		frame.code = frame.place.is_dynamodb ? set_up_table(&frame, options.shards)
						     : set_up_file(&frame, options.shards);
	return frame_end(&frame);
}
