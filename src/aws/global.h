/* What the libraries below want done before the first thread starts. */
#pragma once

/* curl, libxml2 and jansson's hash seed. Returns 0 or -errno. Idempotent, not thread-safe. */
int aws_global_init(void);
