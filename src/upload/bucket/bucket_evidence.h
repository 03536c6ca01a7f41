/* Objects that show whether the bucket is the one that the marks are about (docs/protocol.md, "The
 * bucket is the one that the marks know"). */
#pragma once
#include "upload/run.h"

/* Whether the service answered, even if it refused to say. False if the request did not get
 * through. */
bool is_answered(enum outcome outcome, const struct problem *problem);

/* What an object says of the bucket. */
enum evidence {
	EVIDENCE_NONE, /* it may not be looked at, or somebody else has written it since */
	EVIDENCE_THERE,
	EVIDENCE_GONE,
};

/* An object that the marks say is there. Borrowed. */
struct uploaded {
	const char *key;
	const char *etag; /* without quotes; "" if unknown */
};
/* One HEAD. True sets *ret. False with a sentence: it cannot be found out now. */
bool bucket_look_at(struct run *run, struct s3_conn *conn, const struct uploaded *object,
	const struct call_limits *limits, enum evidence *ret, struct problem *ret_problem);

/* Remembers an object that was proven to be in the bucket. Thread-safe. */
void bucket_saw_object(struct run *run, const char *key, const char *etag);

/* What to do about another bucket: the end of a sentence. */
#define BUCKET_WAY_OUT                                                                              \
	"check the endpoint and the credentials; if the bucket was deleted and created again, run " \
	"once with --new-bucket, which sets these marks aside and looks at each object"
