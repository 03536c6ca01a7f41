/* Rows of a report that are sorted by their keys, in a temporary file. */
#pragma once
#include "audit/batch_report.h"

struct batch_rows;
/* 0 or -errno with a sentence, as all of these. */
int batch_rows_new(struct batch_rows **ret, struct problem *ret_problem);
void batch_rows_free(struct batch_rows *rows); /* NULL is fine */
int batch_rows_add(
	struct batch_rows *rows, const struct batch_row *row, struct problem *ret_problem);
/* After the last one was added. 1 and the next row, or 0 at the end. */
int batch_rows_next(struct batch_rows *rows, struct batch_row *ret, struct problem *ret_problem);
