/* What is set up before anything else happens in the process. */
#pragma once

/* Is called once, first in main(). It turns core dumps off, since they would hold secrets. It opens
 * standard descriptors that are closed as /dev/null, raises the limit of descriptors to the hard
 * limit, and ignores SIGPIPE and SIGXFSZ. */
void startup_prepare(void);

#define STARTUP_BEFORE_CHARS 64
/* Writes the limits and signals as startup_prepare() found them, as one word. */
void startup_before(char ret[static STARTUP_BEFORE_CHARS]);
/* Restores them, in a child that is about to become another program. */
void startup_restore(const char *before);
