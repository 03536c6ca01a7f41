/* The keys of the manifests of runs: PREFIX/_s3once/runs/dt=YYYY-MM-DD/host=HOST/RUN.jsonl.gz. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

#define MANIFEST_SUFFIX ".jsonl.gz"

/* Adds the folder of the manifests of all runs to this prefix: "PREFIX/_s3once/runs/". */
void manifest_add_folder(struct text *key, const char *prefix);

/* The run that a manifest belongs to. All strings are borrowed. */
struct manifest_run {
	const char *prefix;  /* prefix of the run */
	const char *host;    /* host on which it ran; "" becomes "unknown" */
	const char *session; /* its session's id, which makes the name unique */
	int64_t started_s;   /* beginning of the run, in seconds since 1970, UTC */
};
/* Adds the whole key:
 * "PREFIX/_s3once/runs/dt=2026-11-22/host=HOST/20261122T135501Z-SESSION.jsonl.gz". */
void manifest_add_key(struct text *key, const struct manifest_run *run);

/* Whether this is the key of a manifest below any prefix. */
bool manifest_is_key(const char *key);
/* Whether this is the key of a manifest, or of the signature of one. */
bool manifest_is_key_or_signature(const char *key);
/* Adds the folder of the manifests of the day on which a run began. For the run
 * "20261122T135501Z-SESSION", that is "PREFIX/_s3once/runs/dt=2026-11-22/". Returns false, and adds
 * nothing, if run_name does not begin with a day. */
bool manifest_add_day_folder(struct text *key, const char *prefix, const char *run_name);
