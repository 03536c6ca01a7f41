/* A run over a bucket of which nothing has shown that it is the one that the marks are about. It
 * may upload, but before it believes the first mark that says done it looks for objects of such
 * marks (docs/protocol.md, "The bucket is the one that the marks know").
 *
 * The marks are two groups: those written while the bucket was in doubt (bucket_row.h says from
 * when to when), whose objects may be in another bucket, and all others. Each group is believed
 * once one object of it was seen. */
#pragma once
#include "upload/run.h"

struct bucket_doubt;
/* run->bucket is the row. `others_are_shown`: the start of the run has shown that this is the
 * bucket of the marks that were not written in doubt. `is_new`: the doubt begins with this run, so
 * it ends with the first object of those marks. Returns 0 and sets run->doubt, or -errno. */
int bucket_doubt_new(struct run *run, bool others_are_shown, bool is_new);
/* NULL-safe, frees run->doubt. */
void bucket_doubt_free(struct run *run);
/* Whether marks are still to be asked about. Cheap. */
bool bucket_is_in_doubt(const struct run *run);

enum belief {
	BELIEF_YES,    /* skip it */
	BELIEF_PARKED, /* its object is not there: the candidate was taken, and is reported once
			  another one is */
	BELIEF_OVER,   /* the run is over */
};
/* A file that is to be skipped because its mark says done. */
struct bucket_skip {
	struct candidate *candidate;
	int64_t at_s;                  /* of the mark */
	enum s3once_event_type event;  /* how it is reported if it is parked */
	const char *said;              /* static, goes with that event; NULL: nothing */
	const struct version *version; /* what the mark says is done, for the manifest; NULL: it is
					  not known, and there is none */
};
/* At most three requests to S3 a run and group; one thread asks, others wait for it. `marks` is the
 * caller's connection. Thread-safe. */
enum belief bucket_believe(
	struct run *run, struct store_conn *marks, const struct bucket_skip *skip);
/* The same of a file whose mark, as it is known, leaves nothing to do: takes the candidate and
 * reports it as skipped. version as above. False: the run is over. */
bool bucket_skip_done(struct run *run, struct store_conn *marks, struct candidate *candidate,
	const struct version *version);

/* After the last worker: files that are still parked end the run with exit 3. */
void bucket_doubt_end(struct run *run);
/* The end of a run: keeps the object that was proven last, and which conditions the server was seen
 * to honour, with the marks, unless the bucket is still in doubt. What fails is only logged. */
void bucket_keep(struct run *run, struct store_conn *marks);
