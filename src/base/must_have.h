/* How a command meets the end of memory: it may end at any moment, so that it ends. What is linked
 * by other programs returns -ENOMEM instead. */
#pragma once

/* What was made. If it is NULL, since memory ran out, the process ends with S3ONCE_EXIT_SETUP after
 * a message. */
void *must_have(void *made);
