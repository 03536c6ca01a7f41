/* Which conditions a service honours is kept with the row of its bucket, so that a run need not
 * look before each upload. Only doctor tries them out, and only it writes them down
 * (docs/protocol.md, "What a server can do is learnt once"). */
#pragma once
#include "marks/bucket_row.h"
#include "s3/s3.h"

/* Lets *s3 know what the row says of this server, if that is not too old and the server has the
 * name that it had. After the first reply of S3. */
void conditions_recall(const struct bucket_row *row, struct s3 *s3, int64_t now_s);
/* Sets in the row what doctor has found out and taught *s3. */
void conditions_note(struct bucket_row *row, const struct s3 *s3);
