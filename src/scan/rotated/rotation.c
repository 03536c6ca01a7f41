#include "scan/rotated/rotation.h"
#include "base/clock.h"
#include "base/wait_until.h"
#include "scan/open.h"
#include "scan/rotated/rotation_identity.h"
#include "scan/rotated/rotation_logs.h"
#include "scan/rotated/rotation_table.h"
#include "scan/scan_over.h"
#include "scan/source_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_FIRST_NS (250 * NS_PER_MS) /* after listings that differ; doubles each time */

struct rotation {
	struct source *sources;
	size_t n;
	const struct scan_options *options;
	struct rotation_table *table;
	struct rotation_logs *logs; /* hands out the table's entries where logs grow, else NULL */
	bool is_listed, keeps_changing;
};

int rotation_new(
	struct source *sources, size_t n, struct rotation **ret, struct problem *ret_problem)
{
	struct rotation *rotation = calloc(1, sizeof *rotation);
	if (!rotation) {
		open_out_of_resources(-ENOMEM, ret_problem);
		return -ENOMEM;
	}
	*rotation = (struct rotation){.sources = sources, .n = n, .options = sources->options};
	int r = rotation_table_new(rotation->options->rotated, rotation->options->takes_live,
		&rotation->table, ret_problem);
	if (r < 0) {
		free(rotation);
		return r;
	}
	*ret = rotation;
	return 0;
}

void rotation_free(struct rotation *rotation)
{
	if (rotation) {
		rotation_logs_free(rotation->logs);
		rotation_table_free(rotation->table);
	}
	free(rotation);
}

static int list_source(
	struct rotation *rotation, struct source *source, struct problem *ret_problem)
{
	int r = source_rewind(source);
	if (r < 0) {
		open_out_of_resources(r, ret_problem);
		return r;
	}
	while ((r = source_read(source, ret_problem)) > 0) {
		source->head.source = source->index;
		r = rotation_table_add(rotation->table, &source->head, ret_problem);
		if (r == 0)
			r = scan_may_be_over(rotation->options, ret_problem);
		if (r < 0)
			return r;
	}
	return r;
}

/* 1 if it found what the listing before found, 0 if not, or -errno. */
static int list_sources(struct rotation *rotation, struct problem *ret_problem)
{
	int r = rotation_table_begin(rotation->table, ret_problem);
	for (size_t i = 0; r == 0 && i < rotation->n; i++)
		r = list_source(rotation, &rotation->sources[i], ret_problem);
	return r < 0 ? r : rotation_table_end(rotation->table, ret_problem);
}

/* A file that no longer has this name is found by the next listing. */
static bool has_moved(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EINVAL;
}

static int not_read(struct rotation *rotation, const struct scan_entry *entry, int error,
	struct problem *why, struct problem *ret_problem)
{
	if (error == -ECANCELED || open_out_of_resources(error, ret_problem))
		return error == -ECANCELED ? scan_may_be_over(rotation->options, ret_problem)
					   : error;
	if (error == -ESTALE)
		return rotation_table_know(rotation->table, entry, NULL, NULL, ret_problem);
	if (error != -EFBIG) /* which has its own sentence */
		open_explain_unread(error, why);
	return rotation_table_know(rotation->table, entry, NULL, why->text, ret_problem);
}

static int identify_file(
	struct rotation *rotation, const struct scan_entry *entry, struct problem *ret_problem)
{
	struct file_state state;
	struct problem why = {.text = ""};
	char id[CONTENT_ID_CHARS + 1];
	const uint64_t max_bytes = rotation->options->max_bytes;
	if (max_bytes && entry->size > max_bytes)
		return rotation_table_know(rotation->table, entry, "", NULL, ret_problem);
	int fd = source_open_file(&rotation->sources[entry->source], entry->relative, &state);
	if (fd < 0)
		return has_moved(fd) ? 0 : not_read(rotation, entry, fd, &why, ret_problem);
	int r = 0;
	if (rotation_is_version(entry, &state)) {
		r = rotation_identify(rotation->options, fd, entry, id, &why);
		r = r < 0 ? not_read(rotation, entry, r, &why, ret_problem)
			  : rotation_table_know(rotation->table, entry, id, NULL, ret_problem);
	}
	close(fd);
	return r < 0 ? r : scan_may_be_over(rotation->options, ret_problem);
}

/* How many files were looked at, or -errno. */
static long identify_all(struct rotation *rotation, struct problem *ret_problem)
{
	struct scan_entry entry;
	long n = 0;
	int r;
	while ((r = rotation_table_unknown(rotation->table, &entry, ret_problem)) > 0) {
		r = identify_file(rotation, &entry, ret_problem);
		if (r < 0)
			return r;
		n++;
	}
	return r < 0 ? r : n;
}

static int pause_before(
	const struct rotation *rotation, unsigned round, struct problem *ret_problem)
{
	int r;
	wait_until((r = scan_may_be_over(rotation->options, ret_problem)) < 0,
		.deadline_ns = clock_boot_ns() + (PAUSE_FIRST_NS << round));
	return r;
}

/* A listing goes through names in order, so that a file may be renamed from where it has not been
 * to where it has been already. Two listings with the same files have missed none, and each of them
 * was read under a name of that time. */
static int list_until_stable(struct rotation *rotation, struct problem *ret_problem)
{
	int r = list_sources(rotation, ret_problem);
	for (unsigned round = 0; r >= 0; round++) {
		long n = identify_all(rotation, ret_problem);
		if (n < 0)
			return (int)n;
		if (r > 0 && n == 0)
			return 0;
		if (round == ROTATION_ROUNDS) {
			rotation->keeps_changing = true;
			return 0;
		}
		if (round && r == 0)
			r = pause_before(rotation, round - 1, ret_problem);
		if (r >= 0)
			r = list_sources(rotation, ret_problem);
	}
	return r;
}

static void tell_changing(struct rotation *rotation)
{
	struct scan_entry *head = &rotation->sources[0].head;
	*head = (struct scan_entry){.kind = SCAN_PROBLEM, .relative = ".", .suffix = ""};
	problem_set(&head->problem,
		"the rotated files kept changing their names while they were listed %d times; the "
		"next run takes what this one has missed",
		ROTATION_ROUNDS + 1);
	rotation->keeps_changing = false;
}

int rotation_next(
	struct rotation *rotation, struct source **ret_source, struct problem *ret_problem)
{
	struct scan_entry entry;
	if (!rotation->is_listed) {
		int r = list_until_stable(rotation, ret_problem);
		if (r < 0)
			return r;
		rotation->is_listed = true;
		if (rotation->options->log_rows)
			r = rotation_logs_new(rotation->table, rotation->sources,
				!rotation->keeps_changing, &rotation->logs, ret_problem);
		if (r < 0)
			return r;
	}
	if (rotation->keeps_changing) {
		tell_changing(rotation);
		*ret_source = &rotation->sources[0];
		return 1;
	}
	int r = rotation->logs ? rotation_logs_next(rotation->logs, &entry, ret_problem)
			       : rotation_table_next(rotation->table, &entry, ret_problem);
	if (r > 0) {
		*ret_source = &rotation->sources[entry.source];
		(*ret_source)->head = entry;
	}
	return r;
}
