/* S3's replies: the headers of an object, and XML, which is read with libxml2 and without I/O.
 * Nothing is fetched, no entity is expanded, and a document type is refused. Nothing in a reply is
 * ever used as an address.
 *
 * All functions that read XML return -ENOMEM, or -EBADMSG for bytes that are not the expected XML.
 * The effect of the request is unknown then. White space before the document is allowed, since S3
 * sends it to keep a connection alive. */
#pragma once
#include "aws/xml_document.h"
#include "http/http.h"
#include "s3/s3.h"

/* The call.read_error of a request whose reply needs no body. Returns 1 if the reply is an <Error>,
 * otherwise 0; or -ENOMEM. The region is that of x-amz-bucket-region, or of <Region> in <Error>, or
 * "". */
int s3_reply_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);
/* Likewise for a reply that has to be XML if its status is 2xx. Returns -EBADMSG if it is not. */
int s3_reply_error_or_xml(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);

/* The header's value, or "" where it is missing or does not fit. */
void s3_copy_header(const struct http_reply *reply, const char *name, char *ret, size_t size);
/* The etag, without quotes, and the checksum that the reply's headers show; "" where it has none.
 */
void s3_read_sum(const struct http_reply *reply, char ret_etag[static S3_ETAG_MAX + 1],
	struct s3_sum *ret_sum);
/* Whether the reply shows an encryption with which the etag is no MD5: SSE-KMS or SSE-C. */
bool s3_reply_is_encrypted(const struct http_reply *reply);

/* A kind of reply. */
struct s3_document {
	/* The name of the root element at AWS, and of one of its children. Other servers name the
	 * root differently, and AWS's own libraries do not read its name. So a root of another name
	 * is accepted if it has this child. NULL: only the name counts. */
	const char *name, *child;
	/* Reads the document into `arg`, whose type the document defines. Returns 0, 1 if a page's
	 * function ends the reading, or -errno. */
	int (*read)(void *arg, const xmlNode *root);
	size_t max_bytes; /* the most bytes of the reply; 0: 1 MiB */
	/* The request is not repeated if a successful reply is not XML: some servers do not know
	 * this request, and answer it as if it were another one. */
	bool may_be_other;
};
/* Reads a reply. Returns the result of document->read(), or -errno. */
int s3_reply_read(const struct s3_document *document, const char *xml, size_t n, void *arg);

/* `arg` is a char **, which is set to the upload id. The caller frees it. */
extern const struct s3_document s3_reply_create;
/* `arg` is a struct s3_object. Sets its etag, without quotes, and its checksum. They are "" where
 * the reply has none. */
extern const struct s3_document s3_reply_complete;
/* `arg` is a struct s3_page, with the function for this listing set. Its results are untouched
 * unless 0 is returned. */
extern const struct s3_document s3_reply_parts, s3_reply_uploads, s3_reply_objects;
/* `arg` is a struct s3_abort_days. */
extern const struct s3_document s3_reply_abort_days;
/* `arg` is a size_t *, which is set to the number of tags with a key. */
extern const struct s3_document s3_reply_tags;

/* A page of a listing, and the function that is called for each element of it. Exactly one of the
 * three functions is set, and selects the listing. If it returns anything but 0, the reading ends
 * and returns 1. */
struct s3_page {
	/* For <ListPartsResult>. */
	int (*part)(void *arg, const struct s3_part *part);
	/* For <ListMultipartUploadsResult>, and for <ListBucketResult>. Keys are decoded if the
	 * reply declares them as encoded. */
	int (*upload)(void *arg, const struct s3_upload *upload);
	int (*object)(void *arg, const struct s3_listed *object);
	void *arg;
	/* Whether there is a page after this one. NextKeyMarker is not read, since servers disagree
	 * about its meaning. */
	bool has_more;
	/* Before a page of parts is read, the part-number-marker of its request, or 0. After that,
	 * the marker of the next page, or 0 after the last page. */
	unsigned next_part;
};
/* `days` is the fewest days after which an enabled lifecycle rule aborts unfinished uploads of all
 * keys below `prefix`. It is 0 if no rule does. */
struct s3_abort_days {
	const char *prefix;
	unsigned days;
};

/* Copies an ETag of a header or an element, without its quotes and without W/. ret becomes "" if
 * etag is NULL or does not fit. */
void s3_strip_etag(const char *etag, char ret[static S3_ETAG_MAX + 1]);
