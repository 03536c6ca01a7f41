/* Reads objects range by range. */
#include "audit/object_read.h"
#include "base/files.h"
#include "manifest/manifest_file.h"
#include <string.h>

/* The number of bytes of an object in memory at once. */
#define RANGE_BYTES (4U << 20)

enum outcome object_read(
	const struct object_reading *reading, bool *ret_is_replaced, struct problem *ret_problem)
{
	const struct s3_object *object = reading->object;
	struct http_reply range = {0};
	char etag[S3_ETAG_MAX + 1];
	enum outcome o = OUTCOME_OK;
	*ret_is_replaced = false;
	for (uint64_t at = 0; o == OUTCOME_OK && at < object->size; at += RANGE_BYTES) {
		const uint64_t left = object->size - at;
		const size_t n = left < RANGE_BYTES ? (size_t)left : RANGE_BYTES;
		o = s3_get_range(reading->conn, reading->target, at, n, reading->limits, &range,
			etag, ret_problem);
		if (o != OUTCOME_OK)
			break;
		if (strcmp(etag, object->etag) != 0) {
			o = outcome_error(
				ret_problem, OUTCOME_LOCAL, "it was replaced while it was read");
			*ret_is_replaced = true;
			break;
		}
		digest_update(reading->digest, range.body.data, n);
		const int error = reading->fd >= 0 ? write_all(reading->fd, range.body.data, n) : 0;
		if (error) {
			manifest_explain_write_error(reading->fd, error, ret_problem);
			o = OUTCOME_LOCAL;
		}
	}
	http_reply_clear(&range);
	return o;
}
