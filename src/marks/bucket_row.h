/* The row of a bucket, which the store keeps beside the marks. It names an object, by which a run
 * recognises the bucket (docs/protocol.md, "The bucket is the one that the marks know"). */
#pragma once
#include "marks/mark.h"
#include "s3/s3.h"

/* Zero means that there is no row. */
struct bucket_row {
	char version[ID_CHARS + 1]; /* random, changes with each write; "": no row */
	int generation; /* generation of the marks: 0, and 1 more after each --bucket new */
	/* The witness: an object whose existence a run has proven. "": none. */
	char last_key[KEY_BYTES_MAX + 1];
	char last_etag[S3_ETAG_MAX + 1];
	/* The key of the object that --bucket-id-object has named, and the id in its metadata. Once
	 * this object is known, it is the witness. "": none. */
	char id_key[KEY_BYTES_MAX + 1];
	char id[S3_ID_MAX + 1];
	bool has_id; /* there is an id; bucket_row_write() sets this */
	/* The names of the conditions that the server was seen to honour, separated by spaces. With
	 * them a run need not send a HEAD before each upload. Only doctor tries the conditions and
	 * records them (docs/protocol.md, "What a server can do is learnt once"). */
	char honours[1024];
	char honours_server[S3_SERVER_MAX + 1]; /* its Server header when `honours` was seen */
	int64_t honours_at_s;                   /* store time of that observation */
	int64_t at_s;                           /* store time of the last change */
};

/* Reads the row consistently. Also OK if the row does not exist; *ret is zero then. SETUP: the row
 * is damaged. */
enum outcome bucket_row_read(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct bucket_row *ret, struct problem *ret_problem);
/* Replaces the row if it still has the version row->version, or writes it if that is "" and there
 * is no row. OK: *row is the new row, with its version, has_id and at_s. REFUSED: another uploader
 * wrote first, and *ret_seen is the present row. */
enum outcome bucket_row_write(struct store_conn *conn, const struct mark_space *space,
	struct bucket_row *row, const struct call_limits *limits, struct bucket_row *ret_seen,
	struct problem *ret_problem);

/* Teaches *s3 the conditions in the row that the server honours. They do not count if they were
 * found too long ago or, because the store's clock was set back, later than now_s. Nor do they if
 * the tested server had another name than this one. It is called after the first reply of S3, which
 * has the name of the server. */
void conditions_recall(const struct bucket_row *row, struct s3 *s3, int64_t now_s);
/* Sets honours and honours_server in the row to the results of doctor, which are in *s3. The caller
 * sets honours_at_s. */
void conditions_note(struct bucket_row *row, const struct s3 *s3);
