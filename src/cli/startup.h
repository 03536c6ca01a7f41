/* What the process is before anything else happens. */
#pragma once

/* No core dumps (they would hold secrets), standard descriptors that are closed lead to /dev/null,
 * as many descriptors as the hard limit allows, SIGPIPE and SIGXFSZ ignored. Call first in main,
 * once. */
void startup_prepare(void);

#define STARTUP_BEFORE_CHARS 64
/* The limits and signals as startup_prepare found them, in a word. */
void startup_before(char ret[static STARTUP_BEFORE_CHARS]);
/* Makes them so again, in a child that is about to become another program. */
void startup_restore(const char *before);
