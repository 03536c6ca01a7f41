#include "cli/status/status_json.h"
#include "base/clock.h"

static void set_optional(json_t *object, const char *name, const char *value)
{
	if (value)
		json_set_bytes(object, name, value);
	else
		json_object_set_new(object, name, json_null());
}

json_t *status_json_store(const char *marks, const struct store_settings *settings)
{
	json_t *object = json_event("store");
	json_set_bytes(object, "marks", marks);
	json_set_bytes(object, "table_id", settings->table_id);
	json_set_number(object, "shards", settings->shards);
	return object;
}

json_t *status_json_bucket(const char *bucket, const struct bucket_row *row)
{
	json_t *object = json_event("bucket");
	json_set_bytes(object, "bucket", bucket);
	json_set_number(object, "generation", row->generation);
	return object;
}

static json_t *version(const struct version *done)
{
	json_t *object = json_object();
	json_set_number(object, "bytes", done->size);
	json_object_set_new(object, "mtime_ns", json_integer(done->mtime_ns));
	json_set_bytes(object, "sum", done->sum);
	json_set_bytes(object, "etag", done->etag);
	return object;
}

static json_t *newer(const struct mark *mark)
{
	json_t *object = json_object();
	json_set_number(object, "bytes", mark->newer_size);
	json_object_set_new(object, "mtime_ns", json_integer(mark->newer_mtime_ns));
	return object;
}

json_t *status_json_mark(
	const char *bucket, const char *key, const struct mark *mark, const char *outlook)
{
	json_t *object = json_event("mark");
	json_set_bytes(object, "bucket", bucket);
	json_set_bytes(object, "key", key);
	json_set_bytes(object, "state", mark_state_name(mark->state));
	json_set_bytes(object, "session", mark->session);
	json_set_bytes(object, "claim", mark->claim);
	set_optional(object, "source", mark->source);
	json_object_set_new(object, "tries", json_integer(mark->tries));
	set_optional(object, "error", mark->error);
	json_set_time(object, "since", mark->at_s);
	set_optional(object, "upload_id", mark->upload.id);
	json_object_set_new(
		object, "last_done", mark->has_done ? version(&mark->done) : json_null());
	json_object_set_new(object, "newer", mark->has_newer ? newer(mark) : json_null());
	if (outlook)
		json_set_bytes(object, "outlook", outlook);
	return object;
}

json_t *status_json_session(const struct status_session *session)
{
	json_t *object = json_event("session");
	json_set_bytes(object, "session", session->id);
	json_set_number(object, "claims", session->claims);
	json_object_set_new(object, "known", json_boolean(session->known));
	set_optional(object, "owner", session->known ? session->info.owner : NULL);
	json_object_set_new(object, "open", json_boolean(session->known && session->info.is_open));
	json_object_set_new(object, "gone", json_boolean(session->known && session->info.is_gone));
	json_set_time(object, "started", session->known ? session->info.started_s : 0);
	json_set_time(object, "expires", session->known ? session->info.expires_s : 0);
	json_set_number(
		object, "lease_ms", session->known ? session->info.lease_ns / NS_PER_MS : 0);
	return object;
}

static void set_counts(json_t *object, const struct status_counts *counts)
{
	json_set_number(object, "done", counts->done);
	json_set_number(object, "claimed", counts->claimed);
	json_set_number(object, "failed", counts->failed);
	json_set_number(object, "changed", counts->changed);
	json_set_number(object, "unreadable", counts->unreadable);
	json_set_number(object, "bytes", counts->bytes_done);
}

json_t *status_json_folder(
	const char *bucket, const char *folder, const struct status_counts *counts)
{
	json_t *object = json_event("folder");
	json_set_bytes(object, "bucket", bucket);
	json_set_bytes(object, "prefix", folder);
	set_counts(object, counts);
	return object;
}

json_t *status_json_counts(
	const struct mark_space *space, const char *prefix, const struct status_counts *counts)
{
	json_t *object = json_event("status");
	json_set_bytes(object, "service", space->service);
	json_set_bytes(object, "bucket", space->bucket);
	json_set_bytes(object, "prefix", prefix);
	set_counts(object, counts);
	return object;
}
