/* Marks and services for the commands that show the results of runs, or tidy up after them: opening
 * marks, and the marks of this host's systemd units. commands.c calls this for most commands; init
 * and doctor call it directly. push does not: the library opens its own. */
#include "cli/open_marks.h"
#include "base/log.h"
#include "http/http.h"
#include "store/state_folder.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int services_open(const struct access *access, struct services *ret, struct problem *ret_problem)
{
	*ret = (struct services){0};
	int r = aws_global_init();
	if (r < 0)
		return problem_error(
			ret_problem, r, "the libraries cannot be set up: %s", strerror(-r));
	r = aws_settings_resolve(&access->aws, &ret->aws, ret_problem);
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

bool marks_of_units_are_there(const char *own)
{
	struct stat st;
	const bool is_root = geteuid() == 0;
	/* With DynamicUser=, the folder is a symbolic link that only root can follow, so it is
	 * examined with lstat(). */
	const bool has_folder = lstat(UNITS_FOLDER, &st) == 0;
	const bool may_have_marks = !is_root || access(MARKS_OF_UNITS, F_OK) == 0;
	return has_folder && may_have_marks && strcmp(own, MARKS_OF_UNITS) != 0;
}

void marks_of_units_choose(const char **spec)
{
	char own[PATH_MAX];
	const bool is_local = !*spec || strcmp(*spec, "local") == 0;
	if (geteuid() || !is_local)
		return;
	if (state_path(STATE_MARKS, FOLDER_NOT_MADE, own, sizeof own))
		*own = 0; /* there is no such path, and access() below fails */
	if (!marks_of_units_are_there(own))
		return;
	*spec = "sqlite:" MARKS_OF_UNITS;
	if (access(own, F_OK) == 0)
		log_warning("these are the marks of the systemd units, %s; those of root's own "
			    "runs are in %s: --marks local looks there",
			*spec, quote(own).text);
}

bool marks_own_are_there(void)
{
	char own[PATH_MAX];
	return state_path(STATE_MARKS, FOLDER_NOT_MADE, own, sizeof own) == 0 &&
	       access(own, F_OK) == 0;
}

void marks_describe_missing(const struct marks_place *place, struct problem *ret_problem)
{
	problem_set(ret_problem,
		"there are no marks at %s yet: push makes them, or name others with --marks%s",
		quote(place->path).text,
		marks_of_units_are_there(place->path)
			? "; the systemd units keep theirs in sqlite:" MARKS_OF_UNITS
			  ", which root reads with --job NAME"
			: "");
}

bool marks_are_missing(const struct marks_place *place, struct problem *ret_problem)
{
	if (place->is_dynamodb || access(place->path, F_OK) == 0 || errno != ENOENT)
		return false;
	marks_describe_missing(place, ret_problem);
	return true;
}

int marks_open(const struct marks_place *place, const struct services *services,
	struct open_marks *ret, struct problem *ret_problem)
{
	*ret = (struct open_marks){0};
	int r = marks_place_open(place, services->aws, services->http, &ret->store, ret_problem);
	if (r < 0)
		return r;
	r = store_conn_new(ret->store, &ret->conn);
	if (r < 0) /* the caller closes the store after an error, too */
		problem_set(ret_problem, "the marks cannot be opened: %s", strerror(-r));
	return r;
}

void marks_close(struct open_marks *marks)
{
	store_conn_free(marks->conn);
	store_close(marks->store);
	*marks = (struct open_marks){0};
}
