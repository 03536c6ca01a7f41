/* What comes through a pipe becomes a file before it is sent: s3once_options.read is asked for all
 * of it once its key is claimed, and what it gives is in a file without a name. That file is sent
 * like any other. So nothing reaches S3 before the producer has ended well, the size is known when
 * the parts are planned, and whatever is sent again is read again. With options.spool the file gets
 * a name in that folder as soon as it is whole, and any later run for the same key sends it. */
#pragma once
#include "upload/file/file.h"

/* Of CLEAR, before there is a file: asks S3 whether something is under the key, and then reads all
 * that the pipe gives, or finds what an earlier run has kept. NEXT once that was opened as the
 * file, or why not. */
enum step piped_take(struct worker *worker, struct file *file);
/* All is done: removes what was kept. Main thread. */
void piped_forget(const struct run *run);
