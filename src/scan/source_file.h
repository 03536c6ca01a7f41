/* What a SOURCE was given as, and the files in it. */
#pragma once
#include "scan/source.h"

/* Opens what is at relative for reading, as scan_open_file() promises. */
int source_open_file(
	const struct source *source, const char *relative, struct file_state *ret_state);
/* The SOURCE as it was given. Borrowed from the options. */
const char *source_given(const struct source *source);
