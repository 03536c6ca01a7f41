/* Checks that S3 still has an object of a done mark. No such mark is trusted before S3 has shown
 * one (docs/protocol.md, "The bucket is the one that the marks know"). Nothing is written. */
#pragma once
#include "marks/bucket_row.h"

/* All borrowed. */
struct witness_asking {
	struct store_conn *marks;
	struct s3_conn *s3;
	const struct mark_space *space;
	/* The headers with each of the caller's own keys that objects may be encrypted with, and
	 * then NULL; NULL: there is none. */
	const struct s3_headers *const *keys;
	/* A reply that is not S3's own, but a proxy's, counts as no answer. Without an answer,
	 * requests are retried for limits.patience_ms. */
	struct call_limits limits;
};

enum witness_answer {
	WITNESS_NO_ANSWER, /* S3 or the marks did not answer, with a sentence */
	WITNESS_NOTHING,   /* there is no object to check: no mark is done */
	WITNESS_SHOWN,
	WITNESS_BEGUN_ANEW, /* another uploader has begun anew with --bucket new since the row was
			      read, with a sentence. The object that S3 has shown may be one that
			      this uploader has sent since */
	WITNESS_REFUSED,    /* S3 itself has denied access to these credentials (403) */
	WITNESS_GONE, /* S3 itself has none of the objects, with a sentence: it is another bucket,
			 or one that was emptied */
};
/* The object that S3 has shown. */
struct witness_shown {
	char key[KEY_BYTES_MAX + 1], etag[S3_ETAG_MAX + 1];
	int64_t id_age_s; /* for the id object: struct s3_object.age_s; otherwise -1 */
};
/* Checks the witness of the row. If the witness is gone, a few other objects are checked, unless
 * the witness is the id object, which alone decides. space->generation is that of the row. SHOWN
 * sets *ret. */
enum witness_answer witness_ask(const struct witness_asking *asking, const struct bucket_row *row,
	struct witness_shown *ret, struct problem *ret_problem);

/* The answer of S3 about one key. */
enum witness_look {
	LOOK_NO_ANSWER, /* with a sentence */
	LOOK_THERE,     /* the object in question */
	LOOK_ANOTHER,   /* S3 itself has shown another object */
	LOOK_REFUSED,   /* HEAD and GET were refused (403), with a sentence */
	LOOK_ENCRYPTED, /* S3 itself has rejected the request (400), as for an object that is
			   encrypted with a key which was not given (SSE-C), with a sentence */
	LOOK_GONE,
};
struct witness_wanted {
	const char *key;
	const char *etag; /* NULL: any object will do */
	const char *id;   /* the id, if it is the id object; otherwise NULL */
};
/* Sends a HEAD. If the reply is 404, 403 or 400, sends a GET as well, since the reply to a HEAD
 * cannot name a reason. Retries while there is no answer, for limits.patience_ms. *ret is set if an
 * object exists. */
enum witness_look witness_look(const struct witness_asking *asking,
	const struct witness_wanted *wanted, struct s3_object *ret, struct problem *ret_problem);
