#include "aws_probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct content {
	char *bytes;
	size_t n, at;
	struct http_body body;
	struct sums sums;
};

static long read_content(void *arg, void *buf, size_t n)
{
	struct content *content = arg;
	size_t left = content->n - content->at;
	n = n < left ? n : left;
	memcpy(buf, content->bytes + content->at, n);
	content->at += n;
	return (long)n;
}

static int rewind_content(void *arg, uint64_t offset)
{
	((struct content *)arg)->at = (size_t)offset;
	return 0;
}

static void load(
	struct content *content, const char *path, unsigned digests, const struct probe *probe)
{
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END) < 0)
		probe_die("cannot read the file");
	content->n = (size_t)ftell(file);
	content->bytes = malloc(content->n + 1);
	rewind(file);
	if (!content->bytes || fread(content->bytes, 1, content->n, file) != content->n)
		probe_die("cannot read the file");
	fclose(file);
	struct digest digest;
	if (digest_init(&digest, digests) < 0)
		probe_die("out of memory");
	digest_update(&digest, content->bytes, content->n);
	digest_finish(&digest, &content->sums);
	digest_clear(&digest);
	if (probe->wrong_digest) {
		content->sums.crc32c[0] ^= 1;
		content->sums.md5[0] ^= 1;
	}
	content->at = 0;
	content->body = (struct http_body){.bytes = content->n, .memory = content->bytes};
	if (probe->stream)
		content->body = (struct http_body){.bytes = content->n,
			.read = read_content,
			.rewind = rewind_content,
			.arg = content};
}

static struct s3_target target_of(struct probe *probe)
{
	return (struct s3_target){.key = probe_argument(probe, 0)};
}

static void set_object(struct probe *probe, const struct s3_object *object)
{
	probe_set(probe, "size", json_integer((json_int_t)object->size));
	probe_set(probe, "etag", json_string(object->etag));
	probe_set(probe, "crc32c", json_string(object->sum.text));
	probe_set(probe, "table", json_string(object->meta.table_id));
	probe_set(probe, "claim", json_string(object->meta.claim_id));
	probe_set(probe, "mtime_ns", json_integer(object->meta.mtime_ns));
	probe_set(probe, "part_bytes", json_integer((json_int_t)object->meta.part_bytes));
}

static enum outcome s3_put(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	struct content content;
	struct s3_object object;
	load(&content, probe_argument(probe, 1), s3_wanted_digests(s3, CHECKSUM_CRC32C), probe);
	const struct s3_put put = {.target = target_of(probe),
		.body = &content.body,
		.sums = &content.sums,
		.condition = probe->condition,
		.meta = probe->meta,
		.limits = probe->limits};
	enum outcome outcome = s3_put_object(conn, &put, &object, &probe->problem);
	if (outcome == OUTCOME_OK)
		set_object(probe, &object);
	probe_set(probe, "sent_md5", json_boolean(content.sums.kinds & DIGEST_MD5));
	free(content.bytes);
	return outcome;
}

static enum outcome s3_head(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	struct s3_object object;
	struct s3_target target = target_of(probe);
	target.version_id = probe->n_arguments > 1 ? probe_argument(probe, 1) : NULL;
	enum outcome outcome =
		s3_head_object(conn, &target, &probe->limits, &object, &probe->problem);
	if (outcome == OUTCOME_OK)
		set_object(probe, &object);
	return outcome;
}

/* range KEY OFFSET N [VERSION] */
static enum outcome s3_range(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	struct http_reply reply = {0};
	char etag[S3_ETAG_MAX + 1];
	struct s3_target target = target_of(probe);
	target.version_id = probe->n_arguments > 3 ? probe_argument(probe, 3) : NULL;
	enum outcome outcome =
		s3_get_range(conn, &target, strtoull(probe_argument(probe, 1), NULL, 10),
			strtoull(probe_argument(probe, 2), NULL, 10), &probe->limits, &reply, etag,
			&probe->problem);
	if (outcome == OUTCOME_OK)
		probe_set(probe, "bytes", json_stringn(text_string(&reply.body), reply.body.len));
	http_reply_clear(&reply);
	return outcome;
}

static enum outcome s3_create(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	struct s3_created created = {0};
	const struct s3_create create = {
		.target = target_of(probe), .meta = probe->meta, .limits = probe->limits};
	enum outcome outcome = s3_create_upload(conn, &create, &created, &probe->problem);
	if (outcome == OUTCOME_OK)
		probe_set(probe, "upload_id", json_string(created.upload_id));
	free(created.upload_id);
	return outcome;
}

static json_t *part_to_json(const struct s3_part *part)
{
	return json_pack("{si sI ss ss}", "number", part->part_number, "size",
		(json_int_t)part->size, "etag", part->etag, "crc32c", part->sum.text);
}

static enum outcome s3_part(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	struct content content;
	struct s3_part part;
	load(&content, probe_argument(probe, 3), s3_wanted_digests(s3, CHECKSUM_CRC32C), probe);
	const struct s3_put put = {.target = target_of(probe),
		.upload_id = probe_argument(probe, 1),
		.part_number = (unsigned)atoi(probe_argument(probe, 2)),
		.body = &content.body,
		.sums = &content.sums,
		.limits = probe->limits};
	enum outcome outcome = s3_upload_part(conn, &put, &part, &probe->problem);
	if (outcome == OUTCOME_OK)
		probe_set(probe, "part", part_to_json(&part));
	free(content.bytes);
	return outcome;
}

static int take_part(void *arg, const struct s3_part *part)
{
	probe_append(arg, "parts", part_to_json(part));
	return probe_wants_end(arg, "parts");
}

static enum outcome s3_parts(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	const struct s3_target target = target_of(probe);
	return s3_list_parts(conn, &target, probe_argument(probe, 1), &probe->limits, take_part,
		probe, &probe->problem);
}

/* complete KEY UPLOAD-ID FILE NUMBER:ETAG... */
static enum outcome s3_complete(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	struct content content;
	struct s3_object object;
	struct s3_part *parts = calloc((size_t)probe->n_arguments, sizeof *parts);
	load(&content, probe_argument(probe, 2), DIGEST_CRC32C, probe);
	struct s3_complete complete = {.target = target_of(probe),
		.upload_id = probe_argument(probe, 1),
		.parts = parts,
		.whole = &content.sums,
		.condition = probe->condition,
		.limits = probe->limits};
	for (int i = 3; i < probe->n_arguments; i++)
		if (sscanf(probe->arguments[i], "%u:%128s", &parts[complete.n_parts].part_number,
			    parts[complete.n_parts].etag) >= 1)
			complete.n_parts++;
	enum outcome outcome = s3_complete_upload(conn, &complete, &object, &probe->problem);
	if (outcome == OUTCOME_OK)
		set_object(probe, &object);
	free(content.bytes);
	free(parts);
	return outcome;
}

static enum outcome s3_abort(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	return s3_abort_upload(conn, probe_argument(probe, 0), probe_argument(probe, 1),
		&probe->limits, &probe->problem);
}

static int take_upload(void *arg, const struct s3_upload *upload)
{
	probe_append(arg, "uploads",
		json_pack("{ss ss sI}", "key", upload->key, "upload_id", upload->upload_id,
			"initiated_s", (json_int_t)upload->initiated_s));
	return probe_wants_end(arg, "uploads");
}

static enum outcome s3_uploads(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	return s3_list_uploads(conn, probe->n_arguments ? probe->arguments[0] : NULL,
		&probe->limits, take_upload, probe, &probe->problem);
}

static int take_object(void *arg, const struct s3_listed *object)
{
	probe_append(arg, "objects",
		json_pack("{ss sI ss}", "key", object->key, "size", (json_int_t)object->size,
			"etag", object->etag));
	return 0;
}

/* objects PREFIX AFTER: one page */
static enum outcome s3_objects(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	bool more = false;
	const struct s3_listing listing = {.prefix = probe_argument(probe, 0),
		.after = probe_argument(probe, 1),
		.each = take_object,
		.arg = probe};
	enum outcome outcome =
		s3_list_objects(conn, &listing, &probe->limits, &more, &probe->problem);
	probe_set(probe, "more", json_boolean(more));
	return outcome;
}

static enum outcome s3_bucket(struct probe *probe, struct s3_conn *conn, struct s3 *s3)
{
	return s3_look_for_bucket(conn, &probe->limits, &probe->problem);
}

static const struct {
	const char *name;
	enum outcome (*run)(struct probe *probe, struct s3_conn *conn, struct s3 *s3);
} commands[] = {
	{"put", s3_put},
	{"head", s3_head},
	{"range", s3_range},
	{"create", s3_create},
	{"part", s3_part},
	{"parts", s3_parts},
	{"complete", s3_complete},
	{"abort", s3_abort},
	{"uploads", s3_uploads},
	{"objects", s3_objects},
	{"bucket", s3_bucket},
};

static size_t find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i].name, name) == 0)
			return i;
	probe_die("no such command");
}

static void call(struct probe *probe, struct s3_conn *conn, struct s3 *s3, size_t command)
{
	for (unsigned i = 0; i < probe->repeat; i++) {
		probe->result = json_object();
		enum outcome outcome = commands[command].run(probe, conn, s3);
		json_t *knows = json_array();
		for (int feature = 0; feature < S3_FEATURES; feature++)
			json_array_append_new(
				knows, json_integer(s3_supports(s3, (enum s3_feature)feature)));
		probe_set(probe, "knows", knows);
		probe_print(probe, outcome, s3_service(s3));
	}
}

void probe_s3(struct probe *probe, const struct aws_settings *settings, struct http_shared *http,
	char **words)
{
	struct s3 *s3;
	struct s3_conn *conn;
	if (s3_open(settings, http, words[1], &s3, NULL) < 0 || s3_conn_new(s3, &conn) < 0)
		probe_die("cannot open s3");
	for (char **first = words + 2; first;) {
		char **end = first + 1;
		while (*end && strcmp(*end, "then") != 0)
			end++;
		probe->arguments = first + 1;
		probe->n_arguments = (int)(end - first) - 1;
		call(probe, conn, s3, find_command(*first));
		first = *end && end[1] ? end + 1 : NULL;
	}
	s3_conn_free(conn);
	s3_close(s3);
}
