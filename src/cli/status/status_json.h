/* The events of `s3once status --json`, as docs/json.md describes them. New references, NULL if out
 * of memory. */
#pragma once
#include "cli/json.h"
#include "marks/bucket_row.h"
#include "upload/marks_status.h"

json_t *status_json_store(const char *marks, const struct store_settings *settings);
json_t *status_json_bucket(const char *bucket, const struct bucket_row *row);
/* outlook: what the next run will do, or NULL to leave it out. */
json_t *status_json_mark(
	const char *bucket, const char *key, const struct mark *mark, const char *outlook);
json_t *status_json_session(const struct status_session *session);
/* folder: the beginning of its keys. */
json_t *status_json_folder(
	const char *bucket, const char *folder, const struct status_counts *counts);
json_t *status_json_counts(
	const struct mark_space *space, const char *prefix, const struct status_counts *counts);
