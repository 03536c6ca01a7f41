/* The folders below a SOURCE that a scan is restricted to. */
#pragma once
#include "scan/names.h"
#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised is empty; immutable after only_init. */
struct only {
	struct names folders; /* relative to the source, each with a '/' behind it; the source
				 itself is "" */
};

/* Those of n folders, absolute paths without links, that lie below the source's directory or are
 * it. 0 or -ENOMEM; clear it in any case. */
int only_init(struct only *only, const char *directory, const char *const *folders, size_t n);
void only_clear(struct only *only);

/* Whether the files directly in this folder are asked for; relative to the source, which is "". */
bool only_has(const struct only *only, const char *relative);
/* Whether this folder, which is not the source, is one of them, or one of them lies below it. */
bool only_leads_to(const struct only *only, const char *relative);
