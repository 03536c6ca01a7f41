/* The input of a pipe becomes a file before it is sent. Once the key is claimed,
 * s3once_options.read is called for all of it, and the bytes go into a file without a name. That
 * file is sent like any other.
 *
 * So nothing reaches S3 before the producer has ended well, the size is known when the parts are
 * planned, and a body that is sent again is read again. With options.spool the file gets a name in
 * that folder once it is whole, and any later run for the same key sends it. */
#pragma once
#include "upload/file/file.h"

/* Step 5, SEND, while file->fd is -1. Checks whether there is an object under the key. Then reads
 * the pipe to its end, or takes the output that an earlier run has kept. Returns NEXT once the
 * output is open as the file, or the step to take instead. */
enum step spool_take(struct worker *worker, struct file *file);
/* Removes the kept output, once the file is done. Main thread. */
void spool_forget(const struct run *run);
