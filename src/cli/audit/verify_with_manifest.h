/* `s3once verify --manifest`: the objects that a run has listed. */
#pragma once
#include "cli/audit/manifest_setup.h"
#include "cli/audit/verify_view.h"

struct verify_with_manifest {
	struct manifest_wanted where;
	const char *manifest; /* a run, or the key of its manifest */
	struct verify verify; /* its s3 and headers are set here */
	struct verify_view *view;
	int (*exit_code)(const struct verify_end *end); /* of a comparison that has not failed */
};
/* Compares and tells; between signals_count() and signals_restore(). Returns the exit code but for
 * signals. */
int verify_with_manifest(struct verify_with_manifest *wanted);
