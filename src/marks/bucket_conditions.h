/* Which conditions a service honours is kept with the row of its bucket, so that a run need not
 * look before each upload (docs/protocol.md, "What a server can do is learnt once"). */
#pragma once
#include "marks/bucket_row.h"
#include "s3/s3.h"

/* Whether what the row says holds for this server now: it is not too old, and the server has the
 * name that it had. Then *s3 knows it too. After the first reply of S3. */
bool conditions_recall(const struct bucket_row *row, struct s3 *s3, int64_t now_s);
/* Takes into the row what *s3 has learnt from replies; `recalled` as conditions_recall() said, or
 * false to forget what the row has. True if that changes the row. */
bool conditions_note(struct bucket_row *row, const struct s3 *s3, bool recalled, int64_t now_s);
