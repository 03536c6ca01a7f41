#include "upload/file_encoding.h"
#include "base/quote.h"
#include "base/text.h"
#include "scan/collision.h"
#include "scan/decompress.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By its first bytes, not its name. */
static int is_compressed(int fd, bool *ret)
{
	char first[DECOMPRESS_MAGIC_BYTES];
	struct decompress *decompress = NULL;
	const ssize_t n = pread(fd, first, sizeof first, 0);
	if (n < 0)
		return -errno;
	const int error = decompress_new(first, (size_t)n, &decompress);
	decompress_free(decompress);
	*ret = error == 0;
	return error == -ENOENT ? 0 : error;
}

static void send_as_it_is(struct file *file)
{
	file->encoding = NULL;
	file->target.content_encoding = NULL;
	if (!file->candidate->was_compressed)
		candidate_set_suffix(file->candidate, "");
}

/* Whether this file of the same folder is there, is wanted, and is compressed or not. */
static bool is_there(struct worker *worker, const struct file *file, const char *name, bool wanted)
{
	const struct run *run = worker->run;
	struct file_state state;
	bool compressed = !wanted;
	if (run->filter && !filter_wants_file(run->filter, name))
		return false;
	const int fd = scan_open_file(run->scan, file->candidate->source, name, &state);
	if (fd < 0)
		return false;
	const int error = is_compressed(fd, &compressed);
	close(fd);
	return !error && compressed == wanted;
}

static enum step collide(
	struct worker *worker, struct file *file, const char *key, size_t cut, const char *added)
{
	struct problem problem;
	struct text path = TEXT(1024UL * 1024);
	const char *own = file->candidate->path;
	text_add_bytes(&path, own, strlen(own) - cut);
	text_add(&path, added);
	const struct collision collision = {key, own, text_string(&path),
		"exclude one of them, or use --content-encoding in place of the suffix"};
	collision_tell(&collision, &problem);
	text_clear(&path);
	return file_fail(worker, file, &problem);
}

/* X and X.zst of one folder would be one object. NEXT: they are not both there. What else may have
 * the same key shows when the object is looked at. */
static enum step check_neighbour(struct worker *worker, struct file *file, bool is_compressed)
{
	const struct run *run = worker->run;
	const struct candidate *c = file->candidate;
	const char *suffix = codecs[run->encoding.codec].suffix;
	const size_t n = strlen(c->relative), bytes = strlen(suffix);
	const bool ends = n > bytes && !strcmp(c->relative + n - bytes, suffix);
	struct text name = TEXT(1024UL * 1024);
	if (run->key_template || run->options.files_from ||
		object_rules_name_encoding(run->rules) ||
		!scan_source_is_directory(run->scan, c->source) || (is_compressed && !ends))
		return STEP_NEXT;
	text_add_bytes(&name, c->relative, is_compressed ? n - bytes : n);
	text_add(&name, is_compressed ? "" : suffix);
	const bool collides =
		!name.error && is_there(worker, file, text_string(&name), !is_compressed);
	text_clear(&name);
	if (!collides)
		return STEP_NEXT;
	return collide(
		worker, file, c->object, is_compressed ? bytes : 0, is_compressed ? "" : suffix);
}

static enum step too_long(struct worker *worker, struct file *file, const char *suffix)
{
	struct problem problem;
	problem_set(&problem,
		"its key has more than %u bytes with the %s that --compress adds; use a shorter "
		"prefix, or --content-encoding in place of the suffix",
		KEY_BYTES_MAX, suffix);
	return file_fail(worker, file, &problem);
}

enum step file_choose_encoding(struct worker *worker, struct file *file)
{
	const struct run *run = worker->run;
	struct candidate *c = file->candidate;
	const struct codec_info *codec = &codecs[run->encoding.codec];
	const bool by_header = object_rules_name_encoding(run->rules);
	bool is_left = !*run->encoding.name || c->was_compressed ||
		       s3_headers_value(file->target.headers, "content-encoding");
	if (is_left) {
		send_as_it_is(file);
		return STEP_NEXT;
	}
	const int error = is_compressed(file->fd, &is_left);
	if (error)
		return file_read_error(worker, file, error);
	if (is_left) {
		send_as_it_is(file);
		return check_neighbour(worker, file, true);
	}
	if (!by_header && strlen(c->key) + strlen(codec->suffix) > KEY_BYTES_MAX)
		return too_long(worker, file, codec->suffix);
	file->encoding = &run->encoding;
	candidate_set_suffix(c, by_header ? "" : codec->suffix);
	file->target.content_encoding = by_header ? codec->name : NULL;
	file->target.content_type =
		object_rules_type(run->rules, by_header ? c->relative : c->object);
	return check_neighbour(worker, file, false);
}

/* An encoder of another version makes other bytes, so that what the object says of itself has to
 * do: it became visible only after all of the file was read as it had been opened. */
static enum proof by_metadata(
	const struct worker *worker, const struct file *file, const struct s3_meta *meta)
{
	if (strcmp(meta->table, worker->run->space.settings.table_id) != 0 ||
		meta->written_for != S3_WRITTEN_FOR_THIS)
		return PROOF_MISSING;
	if (*meta->content)
		return PROOF_YES; /* it was compared */
	return meta->mtime_ns != file->state.mtime_ns                     ? PROOF_NO
	       : meta->ctime_ns && meta->ctime_ns == file->state.ctime_ns ? PROOF_YES
									  : PROOF_MISSING;
}

/* NEXT: *ret says whether the object's file had this content, as far as it says. */
static enum step compare_metadata(
	struct worker *worker, struct file *file, const struct s3_meta *meta, bool *ret)
{
	char hex[2 * sizeof file->sums.sha256 + 1];
	*ret = meta->content_bytes == file->state.size;
	if (!*ret || !*meta->content)
		return STEP_NEXT;
	const enum step step = file_sum(worker, file, DIGEST_SHA256);
	if (step != STEP_NEXT)
		return step;
	hex_encode(file->sums.sha256, sizeof file->sums.sha256, hex);
	*ret = strcmp(hex, meta->content) == 0;
	return STEP_NEXT;
}

static enum step compare_whole(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct s3_object *object, enum proof *ret)
{
	unsigned parts;
	const unsigned kinds = proof_needs(object, &parts) | DIGEST_OF(checksum_default());
	const struct range range = file_range(file, encoding, NULL, 0);
	struct sums sums;
	const int error = file_digest(worker, file, kinds, &range, &sums);
	if (error)
		return file_read_error(worker, file, error);
	file->stored = sums;
	file_note_whole(file);
	*ret = proof_whole(&sums, object, true);
	return STEP_NEXT;
}

static enum step compare_parts(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct plan *plan, const struct s3_object *object,
	enum proof *ret)
{
	unsigned parts;
	const unsigned kinds = proof_needs(object, &parts) | DIGEST_OF(checksum_default());
	struct sums *sums = NULL;
	const enum step step =
		file_sum_parts(worker, file, &(struct sending){encoding, plan, kinds}, &sums);
	if (step != STEP_NEXT)
		return step;
	file->stored = sums_combine(sums, plan->n_parts);
	file_note_parts(file, sums, plan, object->sum.kind);
	*ret = proof_parts(sums, plan->n_parts, object, true);
	free(sums);
	return STEP_NEXT;
}

/* The encoding of this build makes the object's bytes again, if that is what it was made with. */
static enum step compare_bytes(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct s3_object *object, enum proof *ret)
{
	struct plan plan;
	const struct s3_meta *meta = &object->meta;
	const uint64_t part_bytes = *meta->encoding ? meta->part_bytes : 0;
	/* The mark has a checksum of the content, too. */
	enum step step =
		file->summed ? STEP_NEXT : file_sum(worker, file, DIGEST_OF(checksum_default()));
	if (step != STEP_NEXT)
		return step;
	if (!part_bytes)
		return compare_whole(worker, file, encoding, object, ret);
	if (plan_resume(file->state.size, part_bytes, &plan))
		return STEP_NEXT;
	return compare_parts(worker, file, encoding, &plan, object, ret);
}

enum step file_compare_encoded(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	const struct s3_meta *meta = &object->meta;
	const struct encoding *encoding = file->encoding;
	struct encoding theirs;
	*ret = PROOF_NO;
	if (*meta->encoding) {
		bool is_same;
		const enum step step = compare_metadata(worker, file, meta, &is_same);
		if (step != STEP_NEXT || !is_same)
			return step;
		encoding = encoding_named(meta->encoding, &theirs) ? NULL : &theirs;
	}
	if (encoding)
		return compare_bytes(worker, file, encoding, object, ret);
	*ret = by_metadata(worker, file, meta);
	if (*ret != PROOF_YES)
		return STEP_NEXT;
	file_note_whole(file);
	file->sent_part_bytes = meta->part_bytes;
	file->stored = (struct sums){.bytes = object->size};
	return file->summed ? STEP_NEXT : file_sum(worker, file, DIGEST_OF(checksum_default()));
}
