/* The files of the last listing as what is to be uploaded of them, where logs grow: whole files, or
 * pieces. */
#pragma once
#include "scan/rotated/rotation_table.h"
#include "scan/source.h"

struct rotation_logs;
/* All of it is borrowed until rotation_logs_free. is_stable: the listing has missed no file. 0, or
 * -errno with a sentence. */
int rotation_logs_new(struct rotation_table *table, struct source *sources, bool is_stable,
	struct rotation_logs **ret, struct problem *ret_problem);
/* As rotation_table_next. */
int rotation_logs_next(
	struct rotation_logs *logs, struct scan_entry *ret, struct problem *ret_problem);
void rotation_logs_free(struct rotation_logs *logs);
