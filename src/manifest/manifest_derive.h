/* Makes lists for other programs from the entries of a manifest. Pure. */
#pragma once
#include "manifest/manifest_entry.h"

enum manifest_format {
	MANIFEST_JSON,              /* the lines as they are */
	MANIFEST_SHA256SUM,         /* as `sha256sum -c` and `rclone check -C` read it */
	MANIFEST_SHA1SUM,           /* as `sha1sum -c` */
	MANIFEST_MD5SUM,            /* as `md5sum -c` */
	MANIFEST_S3_BATCH,          /* S3BatchOperations_CSV_20180820: bucket, key */
	MANIFEST_S3_BATCH_VERSIONS, /* the same with versions: bucket, key, version id */
	MANIFEST_FORMATS
};
/* Of options, NULL-terminated, in this order. */
extern const char *const manifest_format_names[MANIFEST_FORMATS + 1];

/* Adds the line of an entry, without its newline. Names in lists of sums are relative to `base`,
 * the part of all keys that is left out. Returns false with a sentence if the entry lacks what the
 * format needs. Not for MANIFEST_JSON. */
bool manifest_derive(enum manifest_format format, const struct manifest_entry *entry,
	const char *base, struct text *ret, struct problem *ret_problem);
