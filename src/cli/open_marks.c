/* Marks and services for the commands that look at what runs did, or tidy up behind them: which
 * ones were chosen, whether they are there, and how they are opened. commands.c calls it for all of
 * them, and the commands that need only a part of it themselves. A push does the same by the
 * library. It makes an SQLite file only for who asks to, which is init. */
#include "cli/open_marks.h"
#include "aws/global.h"
#include "base/log.h"
#include "base/quote.h"
#include "http/http.h"
#include "store/state_folder.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int services_open(const struct access *access, struct services *ret, struct problem *ret_problem)
{
	const struct aws_options options = {
		.profile = access->profile,
		.region = access->region,
		.endpoint_url = access->endpoint_url,
		.checksum = access->checksum,
		.dynamodb_endpoint_url = access->dynamodb_endpoint_url,
		.ca_bundle = access->ca_bundle,
		.request_timeout_ms = access->request_timeout_ms,
	};
	*ret = (struct services){0};
	int r = aws_global_init();
	if (r < 0) {
		problem_set(ret_problem, "the libraries cannot be set up: %s", strerror(-r));
		return r;
	}
	r = aws_settings_resolve(&options, &ret->aws, ret_problem);
	if (r < 0)
		return r;
	const struct http_options http = {
		.ca_bundle = ret->aws->ca_bundle, .stall_timeout_ms = ret->aws->stall_timeout_ms};
	r = http_shared_new(&http, &ret->http);
	if (r < 0)
		problem_set(ret_problem, "HTTP cannot be set up: %s", strerror(-r));
	return r;
}

void services_close(struct services *services)
{
	http_shared_free(services->http);
	aws_settings_free(services->aws);
	*services = (struct services){0};
}

void marks_place_name(const struct marks_place *place, struct text *ret)
{
	const char *where = place->is_dynamodb ? place->table : place->path;
	text_add(ret, place->is_dynamodb ? "dynamodb:" : "sqlite:");
	text_add_escaped_string(ret, where);
}

/* The state of the units, which DynamicUser= keeps for a user of their own. */
#define UNITS "/var/lib/s3once"
#define MARKS "marks.db"

/* Whether the units keep marks on this host that are not those of this process. */
static bool has_marks_of_units(const char *own)
{
	struct stat st;
	return lstat(UNITS, &st) == 0 && (geteuid() || access(UNITS "/" MARKS, F_OK) == 0) &&
	       strcmp(own, UNITS "/" MARKS) != 0;
}

void marks_of_units_choose(const char **spec)
{
	char own[PATH_MAX];
	if (geteuid() || (*spec && strcmp(*spec, "local") != 0))
		return;
	if (state_path(MARKS, own, sizeof own))
		*own = 0;
	if (!has_marks_of_units(own))
		return;
	*spec = "sqlite:" UNITS "/" MARKS;
	if (access(own, F_OK) == 0)
		log_warning("these are the marks of the systemd units, %s; those of root's own "
			    "runs are in %s: --marks local looks there",
			*spec, quote(own).text);
}

/* Root runs what units run, too, to try it out, and then has marks of both. */
static void tell_of_units(const struct marks_place *place)
{
	if (geteuid() == 0 && access(place->path, F_OK) == 0 && has_marks_of_units(place->path))
		log_warning("these are the marks of root's own runs; the systemd units keep theirs "
			    "in sqlite:" UNITS "/" MARKS ": --job NAME or --marks looks there");
}

bool marks_are_there(const struct marks_place *place, struct problem *ret_problem)
{
	if (place->is_dynamodb || access(place->path, F_OK) == 0 || errno != ENOENT)
		return true;
	problem_set(ret_problem,
		"there are no marks at %s yet: push makes them, or name others with --marks%s",
		quote(place->path).text,
		has_marks_of_units(place->path) ? "; the systemd units keep theirs in sqlite:" UNITS
						  "/" MARKS ", which root reads with --job NAME"
						: "");
	return false;
}

bool marks_own_are_there(void)
{
	char own[PATH_MAX];
	return state_path(MARKS, own, sizeof own) == 0 && access(own, F_OK) == 0;
}

int marks_place_chosen(const struct access *access, bool only_read, struct marks_place *ret,
	struct problem *ret_problem)
{
	const char *spec = access_marks(access);
	const int error = marks_place_parse(spec ? spec : "local", ret, ret_problem);
	ret->only_read = only_read;
	if (!error && (!spec || strcmp(spec, "local") == 0))
		tell_of_units(ret);
	return !error ? 0 : error == -EINVAL ? S3ONCE_EXIT_USAGE : S3ONCE_EXIT_SETUP;
}

bool marks_load_settings(struct open_marks *marks, const char *name, struct store_settings *ret,
	struct problem *ret_problem)
{
	enum outcome o = settings_load(marks->conn, false, 0, NULL, ret, ret_problem);
	if (o == OUTCOME_ABSENT)
		problem_set(
			ret_problem, "%s was never set up: run s3once init --marks %s", name, name);
	else if (o != OUTCOME_OK && !strstr(ret_problem->text, strchr(name, ':') + 1))
		problem_prefix(ret_problem, "%s", name);
	return o == OUTCOME_OK;
}

int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem)
{
	*ret = (struct open_marks){0};
	int r = marks_place_open(place, services->aws, services->http, &ret->store, ret_problem);
	if (r < 0)
		return r;
	r = store_conn_new(ret->store, &ret->conn);
	if (r < 0)
		problem_set(ret_problem, "the marks cannot be opened: %s", strerror(-r));
	return r;
}

void marks_close(struct open_marks *marks)
{
	store_conn_free(marks->conn);
	store_close(marks->store);
	*marks = (struct open_marks){0};
}
