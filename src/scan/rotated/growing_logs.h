/* The files of the last listing as what is to be uploaded of them, where logs grow: whole files, or
 * pieces. */
#pragma once
#include "scan/rotated/rotation_table.h"
#include "scan/source.h"

struct growing_logs;
/* All of it is borrowed until growing_logs_free. is_stable: the listing has missed no file. 0, or
 * -errno with a sentence. */
int growing_logs_new(struct rotation_table *table, struct source *sources, bool is_stable,
	struct growing_logs **ret, struct problem *ret_problem);
/* As rotation_table_next. */
int growing_logs_next(
	struct growing_logs *logs, struct scan_entry *ret, struct problem *ret_problem);
void growing_logs_free(struct growing_logs *logs);

/* A piece of a log as a file that never changes, while the log grows, is renamed or compressed. As
 * scan_open_piece. */
int growing_logs_copy_piece(const struct source *source, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem);
