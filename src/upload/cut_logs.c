#include "upload/cut_logs.h"
#include "base/clock.h"
#include "scan/rotated/log_rows.h"
#include "store/sqlite_file.h"
#include "store/store.h"
#include "upload/run_options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NULL where a run that leaves no traces finds no file. */
static int open_file_of(const struct run *run, const struct marks_place *place, sqlite3 **ret,
	struct problem *ret_problem)
{
	char *name = NULL;
	*ret = NULL;
	if (run->options.dry_run && access(place->path, F_OK))
		return 0;
	const int error =
		sqlite_file_open(place->path, run->options.dry_run != 0, ret, &name, ret_problem);
	free(name);
	return error;
}

static int open_rows(struct run *run, const struct marks_place *place, struct problem *ret_problem)
{
	const struct s3once_options *o = &run->options;
	char *scope;
	sqlite3 *db;
	int error = open_file_of(run, place, &db, ret_problem);
	if (error)
		return error;
	if (asprintf(&scope, "%s/%s", o->bucket, o->prefix) < 0) {
		problem_set(ret_problem, "out of memory");
		sqlite3_close(db);
		return -ENOMEM;
	}
	const struct log_rows_options options = {.db = db,
		.scope = scope,
		.only_looks = o->dry_run != 0,
		.now_s = clock_wall_ns() / (int64_t)NS_PER_S};
	error = log_rows_new(&options, &run->log_rows, ret_problem);
	free(scope);
	return error;
}

int cut_logs_open(struct run *run, struct problem *ret_problem)
{
	struct marks_place place;
	if (!run_options_cut_logs(&run->options))
		return 0;
	int error = marks_place_parse(run->options.marks, &place, ret_problem);
	if (!error && place.is_dynamodb) {
		problem_set(ret_problem,
			"--live and --if-grown=tail|fail need marks in a file of this host (--marks "
			"local or sqlite:PATH): only the host that has a log open knows its file "
			"again when it has grown");
		error = -EINVAL;
	}
	if (!error)
		error = open_rows(run, &place, ret_problem);
	marks_place_clear(&place);
	return error;
}
