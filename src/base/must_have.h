/* Running out of memory in a command ends the process. That is safe, since a command may be killed
 * at any moment. Code that is linked by other programs returns -ENOMEM instead. */
#pragma once

/* Returns `made`. If that is NULL, since memory ran out, the process ends with S3ONCE_EXIT_SETUP
 * after a message. */
void *must_have(void *made);
