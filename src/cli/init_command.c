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

/* Sets up the marks that were chosen. Returns the exit code. */
static int set_up(struct command_frame *frame, unsigned shards)
{
	struct problem *problem = &frame->problem;
	const struct marks_place *place = &frame->place;
	const bool is_table = place->is_dynamodb;
	const struct table_setup setup = {.table = place->table,
		.shards = shards ? shards : SHARDS_OF_TABLE,
		.timeout_ms = ACTIVE_TIMEOUT_MS};
	struct store_settings settings = {0};
	struct table_made made = {0};
	/* A table is made by way of the services, and the file of marks by opening it. */
	if (is_table ? services_open(&frame->access, &frame->services, problem)
		     : marks_open(place, &frame->services, &frame->marks, problem))
		return S3ONCE_EXIT_SETUP;
	const enum outcome o =
		is_table ? table_create(frame->services.aws, frame->services.http, &setup,
				   &settings, &made, problem)
			 : settings_load_or_make(frame->marks.conn,
				   shards ? shards : SHARDS_OF_FILE, NULL, &settings, problem);
	if (o != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	/* A table that was set up before keeps its number of shards. */
	if (shards && shards != settings.shards)
		return problem_error(problem, S3ONCE_EXIT_SETUP,
			"%s has %s, which cannot be changed: leave --shards out, or name another",
			is_table ? place->table : "this file",
			human_things(settings.shards, "shard").text);
	if (!is_table) {
		output_resultf(&frame->output, "%s is ready; marks of one host need no other setup",
			quote(place->path).text);
		return S3ONCE_EXIT_OK;
	}
	report_table(&frame->output, place->table, &settings, &made);
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
		frame.code = set_up(&frame, options.shards);
	return frame_end(&frame);
}
