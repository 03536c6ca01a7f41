/* Reads comma-separated values (RFC 4180) from a file, whose bytes need not be trusted. Memory does
 * not grow with the size of the file. A reader belongs to one thread. */
#pragma once
#include "base/problem.h"
#include <stddef.h>
#include <stdio.h>

#define CSV_FIELDS_MAX   16
#define CSV_RECORD_BYTES (64U << 10) /* a longer record is an error */

struct csv;
/* Each record has at most n_fields fields. If the last one of them is not in quotation marks, it is
 * the rest of the line, commas included. The stream is borrowed until csv_free. Returns NULL if out
 * of memory. */
struct csv *csv_new(FILE *stream, size_t n_fields);
void csv_free(struct csv *csv); /* NULL is fine */

/* The fields without their quotation marks, NUL-terminated. Borrowed until the next call. */
struct csv_record {
	const char *fields[CSV_FIELDS_MAX];
	size_t n;
};
/* Returns 1 and the next record, empty lines left out, or 0 at the end. -EBADMSG with a sentence
 * that names the line, or another -errno with a sentence; it must not be called again then. */
int csv_next(struct csv *csv, struct csv_record *ret, struct problem *ret_problem);
