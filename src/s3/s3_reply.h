/* S3's XML replies, read with libxml2. Pure. Nothing is fetched, no entity is expanded, a document
 * type is refused; nothing of a reply is ever used as an address.
 *
 * A root element of another name than AWS's is taken if it has what the reply is for.
 *
 * All return -EBADMSG for bytes that are not the XML expected (then what the request did is
 * unknown) and -ENOMEM. White space before the document is allowed: S3 sends it to keep a
 * connection alive. */
#pragma once
#include "http/http.h"
#include "s3/s3_read.h"

/* For call.read_error. A reply that needs no body: 1 if it is an <Error>, else 0. The region comes
 * from x-amz-bucket-region, or the <Error>'s <Region>; "" if neither names one. */
int s3_reply_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);
/* The same where a 200 must carry XML: -EBADMSG if it does not. */
int s3_reply_error_or_xml(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);

/* <InitiateMultipartUploadResult>: *ret_upload_id is the caller's to free. */
int s3_reply_create(const char *xml, size_t n, char **ret_upload_id);

/* <CompleteMultipartUploadResult>: etag without quotes and sum, "" where the reply has none. */
int s3_reply_complete(const char *xml, size_t n, struct s3_object *ret);

/* <ListPartsResult>: each part in turn; nonzero from `each` ends it and is returned. *ret_next is
 * the part-number-marker of the next page, 0 after the last. */
int s3_reply_parts(const char *xml, size_t n, int (*each)(void *arg, const struct s3_part *part),
	void *arg, unsigned *ret_next);

/* <ListMultipartUploadsResult>, the same, with keys decoded where the reply says they are encoded.
 * *ret_more: there is a page after this one, which begins after the last upload of it (servers
 * disagree about what NextKeyMarker holds). */
int s3_reply_uploads(const char *xml, size_t n,
	int (*each)(void *arg, const struct s3_upload *upload), void *arg, bool *ret_more);

/* <ListBucketResult>: each object in turn, its key decoded where the reply says that keys are
 * encoded; nonzero from `each` ends it and is returned. *ret_more: there are objects after the last
 * one. */
int s3_reply_objects(const char *xml, size_t n,
	int (*each)(void *arg, const struct s3_listed *object), void *arg, bool *ret_more);

/* <LifecycleConfiguration>: the fewest days after which an enabled rule aborts unfinished uploads
 * of all keys below prefix; 0: none does. */
int s3_reply_abort_days(const char *xml, size_t n, const char *prefix, unsigned *ret_days);

/* An ETag as a header or an element carries it, without its quotes (and W/). ret becomes "" if it
 * does not fit. */
void s3_strip_etag(const char *etag, char ret[static S3_ETAG_MAX + 1]);
