/* S3's XML replies, read with libxml2 and without I/O. Nothing is fetched, no entity is expanded,
 * and a document type is refused. Nothing in a reply is ever used as an address.
 *
 * All functions return -ENOMEM, or -EBADMSG for bytes that are not the expected XML. What the
 * request did is unknown then. White space before the document is allowed, since S3 sends it to
 * keep a connection alive. */
#pragma once
#include "aws/xml_document.h"
#include "http/http.h"
#include "s3/s3.h"

/* Is call.read_error of a reply that needs no body. 1 if the reply is an <Error>, otherwise 0. The
 * region is that of x-amz-bucket-region, or of <Region> in <Error>, or "". */
int s3_reply_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);
/* The same for a reply that has to be XML if its status is 200. -EBADMSG if it is not. */
int s3_reply_error_or_xml(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64]);

/* A kind of reply. */
struct s3_document {
	/* Of the root element, as AWS names it. Servers differ in these names, and AWS's own
	 * libraries do not read them, so that a root of another name is taken for it if it has this
	 * child, unless that is NULL. */
	const char *name, *child;
	/* Reads it into what `arg` is. 0, 1 if a visitor has ended it, or -errno. */
	int (*read)(void *arg, const xmlNode *root);
	size_t max_bytes; /* of the reply; 0: 1 MiB */
	/* Some servers do not know the request, and answer another one with something else. */
	bool may_be_other;
};
/* What its `read` returns, or -errno. */
int s3_reply_read(const struct s3_document *document, const char *xml, size_t n, void *arg);

/* Sets a char *, which the caller frees, to the id of the upload. */
extern const struct s3_document s3_reply_create;
/* Sets the etag, without quotes, and the checksum of a struct s3_object. They are "" where the
 * reply has none. */
extern const struct s3_document s3_reply_complete;
/* Of a struct s3_page, by which of its functions is set. Its results are untouched unless 0 is
 * returned. */
extern const struct s3_document s3_reply_parts, s3_reply_uploads, s3_reply_objects;
/* Of a struct s3_abort_days. */
extern const struct s3_document s3_reply_abort_days;
/* Sets a size_t to how many tags with a key there are. */
extern const struct s3_document s3_reply_tags;

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
/* The fewest days after which an enabled lifecycle rule aborts unfinished uploads of all keys below
 * `prefix`. 0 if no rule does. */
struct s3_abort_days {
	const char *prefix;
	unsigned days;
};

/* Reads a whole number; NULL is none. 0 or -EBADMSG, and *ret is untouched. */
int s3_read_number(const char *text, uint64_t most, uint64_t *ret);
/* Copies a text; NULL is "". It becomes "" if it does not fit, since half a value would be a wrong
 * one. */
void s3_set_text(char *ret, size_t size, const char *text);
/* Copies an ETag of a header or an element, or NULL, without its quotes and without W/. ret becomes
 * "" if there is none, or if it does not fit. */
void s3_strip_etag(const char *etag, char ret[static S3_ETAG_MAX + 1]);
