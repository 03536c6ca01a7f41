/* The scan of a run and its needs on this host. s3once_push_new() opens the scan, push_set_up() the
 * folder that files are moved to. The thread of the scan and the workers use them. Nothing here
 * sends a request. */
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "lease/process.h"
#include "scan/content/identity_cache.h"
#include "scan/key/key_template.h"
#include "scan/rotated/log_rows.h"
#include "store/sqlite_file.h"
#include "store/store.h"
#include "upload/run.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most bytes of "host:directory". Each byte of the path may become \xNN. */
#define SOURCE_OF_MARKS_MAX (4 * PATH_MAX + 300)

/* Makes "host:directory" of each source. Marks keep it as the origin of a file, so it has the whole
 * path. That is escaped, since it may have any bytes, and the store takes only text. */
static int name_sources(struct run_files *files, const struct s3once_options *o)
{
	struct process self;
	process_self(&self);
	files->sources_of_marks = calloc(o->n_sources + 1, sizeof *files->sources_of_marks);
	for (size_t i = 0; files->sources_of_marks && i < o->n_sources; i++) {
		struct text name = TEXT(SOURCE_OF_MARKS_MAX);
		text_addf(&name, "%s:", self.host);
		text_add_escaped_string(&name, scan_source_path(files->scan, i));
		if (!name.error)
			files->sources_of_marks[i] = strdup(text_string(&name));
		text_clear(&name);
		if (!files->sources_of_marks[i])
			return -ENOMEM;
	}
	return files->sources_of_marks ? 0 : -ENOMEM;
}

/* Makes files->families, and files->key_template if keys are made by a template. Returns 0, or
 * -errno with a sentence. */
static int read_template(
	struct run_files *files, const struct s3once_options *o, struct problem *problem)
{
	const int error = family_rules_new(&files->families, problem);
	if (error || (!o->key_template && !o->rotated))
		return error;
	const struct key_template_options options = {
		.text = o->key_template ? o->key_template : ROTATED_KEY,
		/* The times in ROTATED_KEY are UTC. */
		.time_zone = o->key_template ? o->time_zone : NULL,
		/* --time-zone may be given only for the times of --bwlimit. Any --bwlimit is
		 * enough here, even one without times: a job may have a time zone and a limit with
		 * times, and one run of it may override the limit. */
		.zone_has_other_use = o->n_rates != 0,
		.families = files->families,
		.names_families = o->rotated != 0};
	return key_template_new(&options, &files->key_template, problem);
}

/* Opens the cache of the contents' ids. If it cannot be opened, the run continues, and the next run
 * reads the contents again. */
static void open_identities(struct run_files *files, const struct s3once_options *o)
{
	char path[4096];
	struct problem problem;
	/* A dry run makes neither the folder nor the file. */
	if (state_path(STATE_IDENTITIES, o->dry_run ? FOLDER_NOT_MADE : FOLDER_MADE, path,
		    sizeof path))
		return;
	if (o->dry_run && access(path, F_OK))
		return;
	if (identity_cache_open(path, clock_wall_s(), &files->identities, &problem))
		log_info("the content of files is read again by each run: %s", problem.text);
}

/* Opens files->log_rows, where a run keeps the pieces of growing logs. These rows are in the SQLite
 * file of its marks. A dry run does not make this file. If there is none yet, a dry run continues
 * without it. */
static int open_log_rows(
	struct run_files *files, const struct s3once_options *o, struct problem *ret_problem)
{
	struct marks_place place;
	struct sqlite_file file = {0};
	char *scope = NULL;
	if (!o->live)
		return 0;
	int error = marks_place_parse(o->marks, &place, ret_problem);
	if (!error && place.is_dynamodb)
		error = problem_error(ret_problem, -EINVAL,
			"--live needs marks in a file of this host (--marks local or sqlite:PATH): "
			"only the host that has a log open knows its file again when it has "
			"grown");
	if (!error && (!o->dry_run || access(place.path, F_OK) == 0))
		error = sqlite_file_open(place.path, o->dry_run != 0, &file, ret_problem);
	if (!error && asprintf(&scope, "%s/%s", o->bucket, o->prefix) < 0) {
		sqlite3_close(file.db);
		scope = NULL;
		error = problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	/* log_rows_new() takes the connection, even if it fails. Without one (NULL) there are no
	 * rows. */
	if (!error)
		error = log_rows_new(file.db, scope, o->dry_run != 0, clock_wall_s(),
			&files->log_rows, ret_problem);
	free(scope);
	free(file.name);
	marks_place_clear(&place);
	return error;
}

/* Whether s3once keeps its state in this file, or writes it during the run. A file of marks that is
 * open must not be opened to be read: see state_folder.h. */
static bool is_own(void *arg, const char *path, dev_t dev, ino_t ino)
{
	const struct run *run = arg;
	const char *log = run->options.log_file, *name = path_name(path);
	struct stat st;
	/* The names are compared first, which saves the stat() of nearly all files. */
	const bool may_be_log = log && strcmp(name, path_name(log)) == 0;
	const bool is_log =
		may_be_log && stat(log, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	return is_log || own_files_contain(&run->files.own_files, dev, ino) ||
	       state_contains(name, dev, ino);
}

int run_files_open(struct run *run, struct problem *problem)
{
	struct run_files *files = &run->files;
	const struct s3once_options *o = &run->options;
	int error = read_template(files, o, problem);
	const bool keys_have_ids =
		files->key_template && key_template_needs_id(files->key_template);
	if (!error && (o->rotated || keys_have_ids))
		open_identities(files, o);
	if (!error)
		error = open_log_rows(files, o, problem);
	if (error)
		return error;
	const struct scan_options options = {
		.sources = o->sources,
		.n_sources = o->n_sources,
		.prefix = o->prefix,
		.as = o->as,
		.is_piped = o->read != NULL,
		.key_template = files->key_template,
		.rotated = o->rotated ? files->families : NULL,
		.log_rows = files->log_rows,
		.takes_open_logs = o->final != 0,
		.template_is_for_rotated = !o->key_template,
		.identities = files->identities,
		.files_from = o->files_from,
		.folders = o->folders,
		.n_folders = o->n_folders,
		.filter = files->filter,
		.follow = o->follow != 0,
		.one_file_system = o->one_file_system != 0,
		.min_age_ms = o->min_age_ms,
		.read_only = o->dry_run != 0,
		.now_wall_ns = clock_wall_ns(),
		.max_bytes = o->max_bytes,
		.is_own = is_own,
		.is_own_arg = run,
		.abandon = run_ends_scan,
		.abandon_arg = run,
	};
	error = scan_open(&options, &files->scan, problem);
	if (!error && name_sources(files, o)) {
		error = problem_error(problem, -ENOMEM, "out of memory");
		scan_close(files->scan);
		files->scan = NULL; /* so that push_set_up() reports the problem */
	}
	return error;
}

/* Whether `path` is the directory or lies within it. If it does, files that are moved to it would
 * be uploaded again. Of all directories, only the root has a slash at its end. */
static bool is_within(const char *directory, const char *path)
{
	const size_t n = strlen(directory);
	const bool ends_with_slash = n && directory[n - 1] == '/';
	if (strncmp(directory, path, n) != 0)
		return false;
	return ends_with_slash || path[n] == '/' || !path[n];
}

bool run_files_open_move_to(
	struct run_files *files, const struct s3once_options *o, struct problem *problem)
{
	const char *given = o->move_to;
	struct stat target, source;
	if (!given)
		return true;
	char *path = realpath(given, NULL);
	files->move_to_fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	bool good = files->move_to_fd >= 0 && fstat(files->move_to_fd, &target) == 0;
	if (!good)
		problem_set(problem, "--move-to %s cannot be opened: %s; make the directory first",
			quote(given).text, strerror(errno));
	/* If the stat() of a SOURCE below fails, the scan reports that. */
	for (size_t i = 0; good && i < o->n_sources; i++) {
		const char *directory = scan_source_path(files->scan, i);
		if (scan_source_is_directory(files->scan, i) && is_within(directory, path))
			good = problem_error(problem, false,
				"--move-to %s lies in the SOURCE %s, so that what is moved there "
				"would be uploaded again: choose a directory outside of it",
				quote(given).text, quote(directory).text);
		else if (stat(directory, &source) == 0 && source.st_dev != target.st_dev)
			good = problem_error(problem, false,
				"--move-to %s is on another file system than the SOURCE %s, and files "
				"are only renamed: choose a directory on the same one",
				quote(given).text, quote(directory).text);
	}
	free(path);
	return good;
}

void run_files_close(struct run_files *files)
{
	for (char **name = files->sources_of_marks; name && *name; name++)
		free(*name);
	free(files->sources_of_marks);
	scan_close(files->scan);
	key_template_free(files->key_template);
	log_rows_free(files->log_rows);
	identity_cache_close(files->identities);
	family_rules_free(files->families);
	filter_free(files->filter);
	own_files_clear(&files->own_files);
	if (files->move_to_fd >= 0)
		close(files->move_to_fd);
}
