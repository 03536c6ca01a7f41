#include "scan/rotated/rotation_logs.h"
#include "scan/open.h"
#include "scan/rotated/grown_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS 5 /* while other runs change the same rows */

struct rotation_logs {
	struct rotation_table *table;
	struct source *sources;
	bool is_stable;
	struct log_family family;
	char *name;              /* of the family */
	struct scan_entry ahead; /* the first of the next family */
	bool has_ahead, is_begun;
	size_t file, piece; /* what comes next of the family */
};

int rotation_logs_new(struct rotation_table *table, struct source *sources, bool is_stable,
	struct rotation_logs **ret, struct problem *ret_problem)
{
	struct rotation_logs *logs = calloc(1, sizeof *logs);
	if (!logs) {
		open_out_of_resources(-ENOMEM, ret_problem);
		return -ENOMEM;
	}
	*logs = (struct rotation_logs){.table = table, .sources = sources, .is_stable = is_stable};
	*ret = logs;
	return 0;
}

static void clear_family(struct rotation_logs *logs)
{
	for (size_t i = 0; i < logs->family.n_files; i++)
		free(logs->family.files[i].relative);
	free(logs->family.files);
	log_family_clear_rows(&logs->family);
	free(logs->name);
	logs->name = NULL;
	logs->family = (struct log_family){.options = logs->sources->options};
	logs->file = logs->piece = 0;
}

void rotation_logs_free(struct rotation_logs *logs)
{
	if (!logs)
		return;
	clear_family(logs);
	free(logs);
}

static int add_file(struct rotation_logs *logs, const struct scan_entry *entry)
{
	struct log_family *family = &logs->family;
	struct grown_file *files = reallocarray(family->files, family->n_files + 1, sizeof *files);
	if (!files)
		return -ENOMEM;
	family->files = files;
	struct grown_file *file = &files[family->n_files];
	*file = (struct grown_file){.entry = *entry, .relative = strdup(entry->relative)};
	if (!file->relative)
		return -ENOMEM;
	family->n_files++;
	file->is_live = !entry->is_rotated;
	file->entry.relative = file->relative;
	file->entry.suffix = file->relative + strlen(file->relative) - strlen(entry->suffix);
	return 0;
}

static bool is_of_family(const struct rotation_logs *logs, const struct scan_entry *entry)
{
	return &logs->sources[entry->source] == logs->family.source &&
	       strcmp(rotation_table_family(logs->table), logs->name) == 0;
}

static int compare_times(const void *a, const void *b)
{
	const struct grown_file *x = a, *y = b;
	return x->entry.mtime_ns < y->entry.mtime_ns ? -1 : x->entry.mtime_ns > y->entry.mtime_ns;
}

/* Reads the files of the next family: 1, 0 if there is none, or -errno. */
static int gather_family(struct rotation_logs *logs, struct problem *ret_problem)
{
	struct log_family *family = &logs->family;
	int r = 1;
	clear_family(logs);
	if (!logs->is_begun)
		r = rotation_table_next(logs->table, &logs->ahead, ret_problem);
	else if (!logs->has_ahead)
		r = 0;
	logs->is_begun = true;
	if (r <= 0)
		return r;
	family->source = &logs->sources[logs->ahead.source];
	logs->name = strdup(rotation_table_family(logs->table));
	while (r > 0 && logs->name && is_of_family(logs, &logs->ahead)) {
		if (add_file(logs, &logs->ahead)) {
			open_out_of_resources(-ENOMEM, ret_problem);
			return -ENOMEM;
		}
		r = rotation_table_next(logs->table, &logs->ahead, ret_problem);
	}
	logs->has_ahead = r > 0;
	if (r < 0 || !logs->name) {
		if (!logs->name)
			open_out_of_resources(-ENOMEM, ret_problem);
		return r < 0 ? r : -ENOMEM;
	}
	family->name = (struct log_family_name){
		.directory = family->source->directory ? family->source->directory : "",
		.family = logs->name};
	if (family->n_files)
		qsort(family->files, family->n_files, sizeof *family->files, compare_times);
	return 1;
}

static bool is_wanted(const struct log_family *family)
{
	for (size_t i = 0; i < family->n_files; i++)
		if (family->files[i].entry.kind == SCAN_FILE)
			return true;
	return false;
}

static void forget_attempt(struct log_family *family, const enum scan_kind *kinds)
{
	for (size_t i = 0; i < family->n_files; i++) {
		struct grown_file *file = &family->files[i];
		file->entry.kind = kinds[i];
		file->row = NULL;
		file->has_identity = file->is_whole = file->has_grown = file->is_changed = false;
	}
	family->has_waiting = false;
}

static void refuse_files(struct log_family *family, const char *why)
{
	for (size_t i = 0; i < family->n_files; i++) {
		struct scan_entry *entry = &family->files[i].entry;
		if (entry->kind != SCAN_FILE)
			continue;
		entry->kind = SCAN_PROBLEM;
		problem_set(&entry->problem, "%s", why);
	}
}

static int settle_family(struct rotation_logs *logs, struct problem *ret_problem)
{
	struct log_family *family = &logs->family;
	if (!is_wanted(family))
		return 0;
	if (family->source->directory_fd < 0) {
		refuse_files(family,
			"is a single file: with --live and --if-grown, name its folder, so that "
			"all files of the log are seen");
		return 0;
	}
	enum scan_kind *kinds = calloc(family->n_files, sizeof *kinds);
	if (!kinds) {
		open_out_of_resources(-ENOMEM, ret_problem);
		return -ENOMEM;
	}
	for (size_t i = 0; i < family->n_files; i++)
		kinds[i] = family->files[i].entry.kind;
	int r = -EAGAIN;
	for (unsigned i = 0; r == -EAGAIN && i < ATTEMPTS; i++) {
		forget_attempt(family, kinds);
		family->is_unsure = !logs->is_stable;
		r = log_family_settle(family, ret_problem);
	}
	/* The rows that another run keeps elsewhere will not change soon. */
	if (r == -EAGAIN) {
		forget_attempt(family, kinds);
		refuse_files(family,
			"or another file of its family was moved to another folder (logrotate's "
			"olddir), or is a hard link, or another run is at work on it; with --live "
			"and --if-grown, logs have to stay in their folder");
		r = 0;
	}
	free(kinds);
	return r;
}

static void make_piece(const struct grown_file *file, size_t i, struct scan_entry *ret)
{
	const struct log_piece *piece = &file->row->pieces[i];
	*ret = file->entry;
	ret->is_rotated = ret->is_piece = true;
	ret->offset = piece->start;
	ret->size = piece->end - piece->start;
	ret->mtime_ns = piece->mtime_ns;
	memcpy(ret->content_id, piece->id, sizeof ret->content_id);
}

static void make_grown(const struct grown_file *file, struct scan_entry *ret)
{
	*ret = file->entry;
	ret->kind = SCAN_PROBLEM;
	problem_set(&ret->problem,
		"has grown since its first %llu bytes were uploaded; --if-grown=tail uploads what is "
		"new, and --if-grown=whole all of it under another key",
		(unsigned long long)file->row->end);
}

/* What comes next of the family: 1, or 0 if that was all. */
static int next_of_family(struct rotation_logs *logs, struct scan_entry *ret)
{
	struct log_family *family = &logs->family;
	if (*family->notice.text) {
		*ret = (struct scan_entry){.kind = SCAN_NOTICE,
			.key = "",
			.path = "",
			.suffix = "",
			.relative = ".",
			.source = family->source->index,
			.problem = family->notice};
		*family->notice.text = '\0';
		return 1;
	}
	while (logs->file < family->n_files) {
		const struct grown_file *file = &family->files[logs->file];
		const bool is_cut = file->entry.kind == SCAN_FILE && file->row && !file->is_whole;
		const bool shares = is_cut && !grown_file_had(file, file->row);
		const size_t n = shares ? 0 : !is_cut ? 1 : file->row->n_pieces + file->has_grown;
		if (logs->piece == n) {
			logs->file++;
			logs->piece = 0;
			continue;
		}
		const size_t i = logs->piece++;
		if (!is_cut)
			*ret = file->entry;
		else if (i < file->row->n_pieces)
			make_piece(file, i, ret);
		else
			make_grown(file, ret);
		return 1;
	}
	return 0;
}

int rotation_logs_next(
	struct rotation_logs *logs, struct scan_entry *ret, struct problem *ret_problem)
{
	while (!next_of_family(logs, ret)) {
		int r = gather_family(logs, ret_problem);
		if (r <= 0)
			return r;
		r = settle_family(logs, ret_problem);
		if (r < 0)
			return r;
	}
	return 1;
}
