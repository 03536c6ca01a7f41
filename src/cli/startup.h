/* What the process is before anything else happens. */
#pragma once

/* No core dumps (they would hold secrets), standard descriptors that are closed lead to /dev/null,
 * as many descriptors as the hard limit allows, SIGPIPE ignored. Call first in main, once. */
void startup_prepare(void);
