#include "upload/file/file_encoding.h"
#include "base/quote.h"
#include "base/text.h"
#include "scan/content/decompress.h"
#include "scan/key/key.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first bytes of the file decide, not its name. */
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
	if (run->files.filter && !filter_wants_file(run->files.filter, name))
		return false;
	const int fd = scan_open_file(run->files.scan, file->candidate->source, name, &state);
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
	const char *suffix = codecs[run->bodies.encoding.codec].suffix;
	const size_t n = strlen(c->relative), bytes = strlen(suffix);
	const bool ends = n > bytes && strcmp(c->relative + n - bytes, suffix) == 0;
	struct text name = TEXT(1024UL * 1024);
	if (run->files.key_template || run->options.files_from ||
		object_rules_name_encoding(run->bodies.rules) ||
		!scan_source_is_directory(run->files.scan, c->source) || (is_compressed && !ends))
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

enum step file_choose_encoding(struct worker *worker, struct file *file, int *ret_error)
{
	const struct run *run = worker->run;
	struct candidate *c = file->candidate;
	const struct codec_info *codec = &codecs[run->bodies.encoding.codec];
	const bool by_header = object_rules_name_encoding(run->bodies.rules);
	bool is_left = !*run->bodies.encoding.name || c->was_compressed ||
		       s3_headers_value(file->target.headers, "content-encoding");
	*ret_error = 0;
	if (is_left) {
		send_as_it_is(file);
		return STEP_NEXT;
	}
	*ret_error = is_compressed(file->fd, &is_left);
	if (*ret_error)
		return STEP_NEXT;
	if (is_left) {
		send_as_it_is(file);
		return check_neighbour(worker, file, true);
	}
	if (!by_header && strlen(c->key) + strlen(codec->suffix) > KEY_BYTES_MAX)
		return too_long(worker, file, codec->suffix);
	file->encoding = &run->bodies.encoding;
	candidate_set_suffix(c, by_header ? "" : codec->suffix);
	file->target.content_encoding = by_header ? codec->name : NULL;
	file->target.content_type =
		object_rules_type(run->bodies.rules, by_header ? c->relative : c->object);
	return check_neighbour(worker, file, false);
}
