/* S3's XML replies, read with libxml2 and without I/O. Nothing is fetched, no entity is expanded,
 * and a document type is refused. Nothing in a reply is ever used as an address.
 *
 * A root element may have another name than AWS's if it has what the reply is for.
 *
 * All functions return -ENOMEM, or -EBADMSG for bytes that are not the expected XML. What the
 * request did is unknown then. White space before the document is allowed, since S3 sends it to
 * keep a connection alive. */
#pragma once
#include "aws/xml_document.h"
#include "http/http.h"
#include "s3/s3.h"
#include <libxml/tree.h>

/* Is call.read_error of a reply that needs no body. 1 if the reply is an <Error>, otherwise 0. The
 * region is that of x-amz-bucket-region, or of <Region> in <Error>, or "". */
int s3_reply_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);
/* The same for a reply that has to be XML if its status is 200. -EBADMSG if it is not. */
int s3_reply_error_or_xml(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);

/* Reads <InitiateMultipartUploadResult>. The caller frees *ret_upload_id. */
int s3_reply_create(const char *xml, size_t n, char **ret_upload_id);

/* Reads the etag, without quotes, and the checksum of <CompleteMultipartUploadResult>. They are ""
 * where the reply has none. */
int s3_reply_complete(const char *xml, size_t n, struct s3_object *ret);

/* A page of a listing, and who is given what it lists. Exactly one of the three functions is set,
 * and says which listing it is. Any value of it but 0 ends the reading: 1 is returned. */
struct s3_page {
	/* Of <ListPartsResult>. */
	int (*part)(void *arg, const struct s3_part *part);
	/* Of <ListMultipartUploadsResult>, and of <ListBucketResult>. Keys are decoded where the
	 * reply says that they are encoded. */
	int (*upload)(void *arg, const struct s3_upload *upload);
	int (*object)(void *arg, const struct s3_listed *object);
	void *arg;
	/* Whether there is a page after this one. That of uploads begins after the last upload of
	 * this one, since servers disagree about what NextKeyMarker holds. */
	bool has_more;
	/* The part-number-marker of the next page of parts, and 0 after the last page. It is to be
	 * that of this page before. */
	unsigned next_part;
};
/* The last two are untouched unless 0 is returned. */
int s3_reply_page(const char *xml, size_t n, struct s3_page *page);

/* Reads from <LifecycleConfiguration> the fewest days after which an enabled rule aborts unfinished
 * uploads of all keys below `prefix`. 0 if no rule does. */
int s3_reply_abort_days(const char *xml, size_t n, const char *prefix, unsigned *ret_days);

/* Copies an ETag of a header or an element without its quotes and without W/. ret becomes "" if it
 * does not fit. */
void s3_strip_etag(const char *etag, char ret[static S3_ETAG_MAX + 1]);

/* Reads how many tags with a key <Tagging> lists. */
int s3_reply_tags(const char *xml, size_t n, size_t *ret);
