/* A line of a manifest: one object, as JSON (docs/json.md, "Manifests"). */
#pragma once
#include "marks/mark.h"
#include <jansson.h>

/* A line: one object, and the file that it was made of. All strings are borrowed. */
struct manifest_entry {
	const char *event;   /* the run's event for the file: "uploaded", "adopted", "refreshed" or
				"skipped" */
	const char *bucket;  /* without a '/' */
	const char *key;     /* key of the object */
	const char *path;    /* path of the file, raw bytes */
	uint64_t file_size;  /* bytes of the file; differs from `size` if it was compressed */
	int64_t mtime_ns;    /* modification time of the file */
	const char *content; /* id of its content, or "" */
	const char *version_id, *etag; /* version and etag of the object, or "" */
	bool etag_is_md5; /* the etag is the MD5 of the object's content, or of the MD5s of its
			     parts */
	uint64_t size;    /* size of the object in bytes */
	char sums[CHECKSUMS]
		 [S3_SUM_MAX + 1]; /* checksums of the object, as S3 writes them; "" if unknown */
};
/* Sets all fields but event, bucket, key and path, by the version in the file's mark. Strings are
 * borrowed from the version. */
void manifest_entry_set_version(struct manifest_entry *entry, const struct version *version);
/* Sets the checksums that were computed of the object's content. Those of other kinds stay. */
void manifest_entry_set_sums(struct manifest_entry *entry, const struct sums *sums);
/* The line, without its newline; the caller frees it. NULL: out of memory. */
char *manifest_entry_line(const struct manifest_entry *entry);

/* Reads a line of n bytes. `ret` borrows from *ret_owner, which the caller gives to json_decref().
 * Unknown members are ignored. "file_size" and "mtime" are not read either, so that these fields
 * stay 0. Returns false with a sentence about the fault of the line; then nothing has to be
 * freed. */
bool manifest_entry_read(const char *line, size_t n, struct manifest_entry *ret, json_t **ret_owner,
	struct problem *ret_problem);

/* Lists for other programs. */

enum manifest_format {
	MANIFEST_JSON,              /* the lines as they are */
	MANIFEST_SHA256SUM,         /* as `sha256sum -c` and `rclone check -C` read it */
	MANIFEST_SHA1SUM,           /* as `sha1sum -c` */
	MANIFEST_MD5SUM,            /* as `md5sum -c` */
	MANIFEST_S3_BATCH,          /* S3BatchOperations_CSV_20180820: bucket, key */
	MANIFEST_S3_BATCH_VERSIONS, /* the same list with versions: bucket, key, version id */
	MANIFEST_FORMATS
};
/* The names of the formats as options have them, in the order of the enum, with a NULL at the end.
 */
extern const char *const manifest_format_names[MANIFEST_FORMATS + 1];

/* Adds the line of an entry in a format other than MANIFEST_JSON, without its newline. In lists of
 * sums, the name of a file is the key without `base`, with which every key has to begin. Returns
 * false with a sentence if the entry lacks a value that the format needs. */
bool manifest_add_list_line(enum manifest_format format, const struct manifest_entry *entry,
	const char *base, struct text *ret, struct problem *ret_problem);
