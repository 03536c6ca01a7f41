/* Whether the bucket is the one that the marks are about. Internal to bucket_check.c. */
#pragma once
#include "marks/bucket_row.h"
#include "upload/bucket/bucket_evidence.h"
#include "upload/run.h"

enum bucket_likeness {
	IS_SAME,
	IS_OTHER,
	IS_IN_DOUBT, /* the object that was proven last is gone, and nothing else shows anything */
	IS_UNKNOWN,
	CANNOT_TELL
};

struct bucket_comparison {
	struct run *run;
	struct store_conn *marks;
	struct s3_conn *s3;
	struct call_limits limits;
	struct bucket_row row;        /* as the marks have it */
	struct s3_identity told;      /* as the service shows it now */
	char object_id[ID_CHARS + 1]; /* of --bucket-id-object, as it is now */
	enum evidence last;           /* of row.last_key */
	bool last_was_looked_at;
	enum bucket_likeness likeness;
	bool doubt_is_new; /* this run is the first in doubt */
	struct problem *problem;
};

/* Compares what the service says of the bucket now with the row. Fills told, object_id, last and
 * last_was_looked_at. CANNOT_TELL and IS_OTHER: with a sentence in *problem. */
enum bucket_likeness bucket_compare(struct bucket_comparison *check);
/* Whether both are known and differ. */
bool bucket_differs(const char *now, const char *before);
