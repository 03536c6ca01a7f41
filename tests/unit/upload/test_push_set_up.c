/* The files and stores that a run opens before its threads begin: marks that a dry run cannot reach
 * are not mistaken for missing ones, and a stop request ends the requests for marks at once. */
#include "base/clock.h"
#include "steps.h"

/* Makes a run with the options of `steps`, which is not set up yet. S3 and DynamoDB answer by this
 * one step. */
static bool begin(struct steps *steps, const struct script_step *step)
{
	char text[400] = "";
	if (!script_start(&steps->server, step, 1))
		return false;
	steps->options.endpoint_url = steps->options.dynamodb_endpoint_url = steps->server.url;
	if (!CHECK_INT(s3once_push_new(&steps->options, &steps->push, text, sizeof text), 0)) {
		fprintf(stderr, "\t%s\n", text);
		return false;
	}
	steps->run = &steps->push->run;
	return true;
}

static void end(struct steps *steps)
{
	char all[100];
	if (steps->run->session)
		session_close(steps->run->session, steps->push->conn);
	steps->run->session = NULL;
	s3once_push_free(steps->push);
	script_clear(&steps->server);
	snprintf(all, sizeof all, "rm -r %s", steps->folder);
	CHECK_INT(system(all), 0);
}

/* A dry run makes no marks, but marks that may be there have to be read. */
static void test_dry_run(bool is_reached)
{
	const struct script_step none = {NULL, .close = true};
	struct steps steps;
	char unreached[120];
	if (!steps_make(&steps, "x", 1))
		return;
	snprintf(unreached, sizeof unreached, "sqlite:%s/db", steps.path); /* below a file */
	steps.options.marks = is_reached ? steps.marks : unreached;
	steps.options.dry_run = 1;
	if (!begin(&steps, &none))
		return;
	CHECK_INT(push_set_up(steps.push), is_reached);
	CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], !is_reached);
	CHECK(access(steps.database, F_OK) != 0);
	end(&steps);
}

/* A dry run only reads the settings of a table, and does not try out what the table can do. */
static void test_dry_run_with_a_table(void)
{
	const struct script_step settings = {
		STEPS_REPLY("200", "",
			"{\"Item\":{\"id\":{\"S\":\"0123456789abcdef0123456789abcdef\"},"
			"\"layout\":{\"N\":\"1\"},\"shards\":{\"N\":\"4\"}}}"),
		.close = true};
	struct steps steps;
	if (!steps_make(&steps, "x", 1))
		return;
	steps.options.marks = "dynamodb:table";
	steps.options.dry_run = 1;
	if (!begin(&steps, &settings))
		return;
	CHECK(push_set_up(steps.push));
	script_stop(&steps.server);
	CHECK_INT(steps.server.n_requests, 1);
	end(&steps);
}

static void ask_to_stop(void *arg)
{
	struct steps *steps = arg;
	run_ask_to_stop(steps->run);
}

/* Nothing is under way yet that would have to finish, so the grace does not count, and the end is
 * no error. */
static void test_stop(void)
{
	const uint64_t timeout_ms = 20000;
	struct steps steps;
	const struct script_step silence = {.meanwhile = ask_to_stop, .arg = &steps};
	if (!steps_make(&steps, "x", 1))
		return;
	steps.options.marks = "dynamodb:table";
	steps.options.request_timeout_ms = timeout_ms;
	steps.options.grace_ms = 10 * timeout_ms;
	if (!begin(&steps, &silence))
		return;
	const uint64_t begun_ns = clock_boot_ns();
	CHECK(!push_set_up(steps.push));
	CHECK(clock_boot_ns() - begun_ns < timeout_ms * NS_PER_MS / 2);
	CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], 0);
	end(&steps);
}

int main(void)
{
	test_dry_run(true);
	test_dry_run(false);
	test_dry_run_with_a_table();
	test_stop();
	return check_result();
}
