/* Where the manifests of runs are: PREFIX/_s3once/runs/dt=YYYY-MM-DD/host=HOST/RUN.jsonl.gz. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

#define MANIFEST_SUFFIX ".jsonl.gz"

/* Adds the folder of all manifests of runs that were given this prefix: "PREFIX/_s3once/runs/". */
void manifest_add_folder(struct text *key, const char *prefix);

/* The run that a manifest belongs to. All strings are borrowed. */
struct manifest_run {
	const char *prefix;  /* of the run */
	const char *host;    /* on which it ran */
	const char *session; /* its session's id, which makes the name unique */
	int64_t started_s;   /* since 1970, UTC */
};
/* Adds the whole key. RUN is the name of the run, "20261122T135501Z-SESSION". */
void manifest_add_key(struct text *key, const struct manifest_run *run);

/* Whether this is the key of a manifest, or of its signature, below any prefix. */
bool manifest_is_key(const char *key);
/* Whether this is the key of a manifest and not of a signature. */
bool manifest_is_list_key(const char *key);
/* The folder of the manifests of a day, by the name of a run that began on it: adds
 * "PREFIX/_s3once/runs/dt=YYYY-MM-DD/". Returns false if it is not such a name. */
bool manifest_add_day(struct text *key, const char *prefix, const char *run_name);
