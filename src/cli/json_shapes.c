#include "cli/json_shapes.h"
#include <string.h>

const struct json_shape json_shapes[JSON_SHAPES] = {
	[S3ONCE_EVENT_START] = {"start", HAS_RUN},
	[S3ONCE_EVENT_NOTE] = {"note", HAS_TEXT},
	[S3ONCE_EVENT_WARNING] = {"warning", HAS_TEXT},
	[S3ONCE_EVENT_UPLOADED] = {"uploaded", HAS_PATH | HAS_KEY | HAS_BYTES},
	[S3ONCE_EVENT_ADOPTED] = {"adopted", HAS_PATH | HAS_KEY | HAS_BYTES},
	[S3ONCE_EVENT_REFRESHED] = {"refreshed", HAS_PATH | HAS_KEY},
	[S3ONCE_EVENT_SKIPPED] = {"skipped", HAS_PATH | HAS_KEY},
	[S3ONCE_EVENT_OUTDATED] = {"outdated", HAS_PATH | HAS_KEY | HAS_TEXT},
	[S3ONCE_EVENT_PLANNED] = {"planned", HAS_PATH | HAS_KEY | HAS_BYTES},
	[S3ONCE_EVENT_LINK] = {"link", HAS_PATH},
	[S3ONCE_EVENT_YOUNG] = {"young", HAS_PATH},
	[S3ONCE_EVENT_OVERSIZED] = {"oversized", HAS_PATH | HAS_BYTES},
	[S3ONCE_EVENT_UNDERSIZED] = {"undersized", HAS_PATH | HAS_BYTES},
	[S3ONCE_EVENT_SPECIAL] = {"special", HAS_PATH | HAS_TEXT},
	[S3ONCE_EVENT_CHANGED] = {"refused", HAS_PATH | HAS_KEY | HAS_TEXT},
	[S3ONCE_EVENT_HELD] = {"held", HAS_PATH | HAS_KEY | HAS_TEXT},
	[S3ONCE_EVENT_FAILED] = {"failed", HAS_PATH | HAS_KEY | HAS_TEXT | HAS_REPLY},
	[S3ONCE_EVENT_RETRY] = {"retry", HAS_PATH | HAS_KEY | HAS_TEXT},
	[S3ONCE_EVENT_REMOVED] = {"removed", HAS_PATH | HAS_KEY | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_MOVED] = {"moved", HAS_PATH | HAS_KEY | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_REMOVABLE] = {"removable", HAS_PATH | HAS_KEY | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_KEPT] = {"kept", HAS_PATH | HAS_KEY | HAS_TEXT},
	[S3ONCE_EVENT_NOT_REMOVED] = {"not_removed", HAS_PATH | HAS_KEY | HAS_TEXT | HAS_REPLY},
	[S3ONCE_EVENT_PROVEN] = {"proven", HAS_PATH | HAS_KEY | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_UNPROVEN] = {"unproven", HAS_PATH | HAS_KEY | HAS_TEXT},
	[S3ONCE_EVENT_MANIFEST] = {"manifest", HAS_KEY | HAS_BYTES | HAS_OBJECT},
	[S3ONCE_EVENT_MANIFEST_FAILED] = {"manifest_failed", HAS_KEY | HAS_TEXT | HAS_REPLY},
	[S3ONCE_EVENT_PROGRESS] = {"progress", HAS_COUNTS},
	[S3ONCE_EVENT_FATAL] = {"fatal", HAS_TEXT | HAS_REPLY},
};

const struct json_count json_counts[] = {
	{"files", offsetof(struct s3once_counts, found)},
	{"uploaded", offsetof(struct s3once_counts, uploaded)},
	{"adopted", offsetof(struct s3once_counts, adopted)},
	{"refreshed", offsetof(struct s3once_counts, refreshed)},
	{"skipped", offsetof(struct s3once_counts, skipped)},
	{"outdated", offsetof(struct s3once_counts, outdated)},
	{"refused", offsetof(struct s3once_counts, changed)},
	{"failed", offsetof(struct s3once_counts, failed)},
	{"held", offsetof(struct s3once_counts, held)},
	{"young", offsetof(struct s3once_counts, young)},
	{"oversized", offsetof(struct s3once_counts, oversized)},
	{"undersized", offsetof(struct s3once_counts, undersized)},
	{"links", offsetof(struct s3once_counts, links)},
	{"special", offsetof(struct s3once_counts, special)},
	{"planned", offsetof(struct s3once_counts, planned)},
	{"removed", offsetof(struct s3once_counts, removed)},
	{"moved", offsetof(struct s3once_counts, moved)},
	{"kept", offsetof(struct s3once_counts, kept)},
	{"not_removed", offsetof(struct s3once_counts, not_removed)},
	{"removable", offsetof(struct s3once_counts, removable)},
	{"bytes_removed", offsetof(struct s3once_counts, bytes_removed)},
	{"bytes", offsetof(struct s3once_counts, bytes_uploaded)},
	{"bytes_sent", offsetof(struct s3once_counts, bytes_sent)},
	{"bytes_moved", offsetof(struct s3once_counts, bytes_moved)},
	{"bytes_found", offsetof(struct s3once_counts, bytes_found)},
	{"bytes_settled", offsetof(struct s3once_counts, bytes_settled)},
	{"bytes_under_way", offsetof(struct s3once_counts, bytes_under_way)},
	{"bytes_kept", offsetof(struct s3once_counts, bytes_kept)},
	{"claims_refused", offsetof(struct s3once_counts, claims_refused)},
	{NULL},
};

static const char *const limit_words[] = {
	[S3ONCE_LIMITED_BY_FILES] = "files",
	[S3ONCE_LIMITED_BY_CEILING] = "ceiling",
	[S3ONCE_LIMITED_BY_LATENCY] = "latency",
	[S3ONCE_LIMITED_BY_THROTTLING] = "throttling",
	[S3ONCE_LIMITED_BY_CPU] = "cpu",
	[S3ONCE_LIMITED_BY_DISK] = "disk",
	[S3ONCE_LIMITED_BY_MEMORY] = "memory",
	[S3ONCE_LIMITED_BY_DESCRIPTORS] = "descriptors",
	[S3ONCE_LIMITED_BY_THREADS] = "threads",
	[S3ONCE_LIMITED_BY_BANDWIDTH] = "bandwidth",
};
enum { LIMIT_WORDS = sizeof limit_words / sizeof *limit_words };

const char *json_limit_word(enum s3once_limited_by limit)
{
	return (size_t)limit < LIMIT_WORDS ? limit_words[limit] : "";
}
