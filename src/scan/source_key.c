/* Makes the key of a file: from its path, by --as, or by the template, which may need the id of its
 * content (source_identify()). It also makes the path for messages. Every entry of a SOURCE passes
 * here. An entry whose key no service could hold becomes a PROBLEM here, and nowhere else. */
#include "scan/content/identity_cache.h"
#include "scan/key/key.h"
#include "scan/key/key_template.h"
#include "scan/open.h"
#include "scan/scan_entry.h"
#include "scan/source.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

void source_set_path(const struct source *source, const char *relative, struct text *path)
{
	const bool is_tree = source->directory_fd >= 0;
	/* from a list of paths: shown without the SOURCE */
	const bool is_absolute = is_tree && *relative == '/';
	text_reset(path);
	if (!is_absolute)
		text_add(path, source_given(source));
	if (!is_tree)
		return;
	const bool needs_slash = !is_absolute && path->len && path->data[path->len - 1] != '/';
	if (needs_slash)
		text_add_char(path, '/');
	text_add(path, strcmp(relative, ".") == 0 ? "" : relative);
}

int source_identify(const struct scan_options *options, int fd, const struct file_state *version,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_why)
{
	struct file_state after;
	struct identity_file file = {
		.cache = options->identities, .size = version->size, .mtime_ns = version->mtime_ns};
	if (file.cache && file_identity_of(fd, &file.identity))
		file.cache = NULL; /* the file system has no lasting handles */
	if (identity_file_find(&file, ret_id))
		return 0;
	/* More lines may be written to a rotated log that is still open for writing. */
	if (options->rotated && !options->takes_open_logs && file_is_being_written(fd))
		return -ESTALE;
	const struct content content = {fd, version->size, options->abandon, options->abandon_arg};
	int error = content_id(&content, ret_id, ret_why);
	if (!error)
		error = file_state_of(fd, &after);
	if (!error && !file_state_equal(version, &after))
		error = -ESTALE;
	if (!error)
		identity_file_keep(&file, ret_id);
	return error;
}

/* Whether the open file begins with the shorter content that the cache has of it. An error of
 * reading is ignored here, since source_identify() will meet it, too. */
static bool begins_with_earlier(
	const struct scan_options *options, int fd, const struct file_state *state)
{
	struct identity_file file = {
		.cache = options->identities, .size = state->size, .mtime_ns = state->mtime_ns};
	char id[CONTENT_ID_CHARS + 1];
	struct content_prefix earlier = {.id = id};
	if (file_identity_of(fd, &file.identity) ||
		!identity_file_earlier(&file, &earlier.bytes, id))
		return false;
	const struct content content = {fd, state->size, options->abandon, options->abandon_arg};
	struct content_measured ignored;
	struct problem ignored_problem;
	return content_measure(&content, &earlier, 1, &ignored, &ignored_problem) == 0 &&
	       earlier.is_there;
}

bool source_has_grown(const struct source *source, const struct scan_entry *found)
{
	struct file_state state;
	const int fd = source_open_file(source, found->relative, &state);
	if (fd < 0)
		return false;
	const bool has_grown = begins_with_earlier(source->options, fd, &state);
	close(fd);
	return has_grown;
}

/* Reads the content id of the head, and sets the head to the version that was read. The head
 * becomes a PROBLEM if the file cannot be read, and WAITS if that version is too young. Returns 0,
 * or the error with a sentence if the scan cannot go on. */
static int identify_head(struct source *source, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	struct file_state before;
	const int fd = source_open_file(source, head->relative, &before);
	const int error = fd < 0 ? fd
				 : source_identify(source->options, fd, &before, head->content_id,
					   &head->problem);
	if (fd >= 0)
		close(fd);
	if (error) {
		head->kind = SCAN_PROBLEM;
		if (error == -ESTALE)
			problem_set(&head->problem,
				"changed while it was read for {id} of --key; the next run takes "
				"it, and --min-age leaves out files that were modified a moment "
				"ago");
		return open_explain_unread(error, &head->problem, ret_problem);
	}
	entry_set_version(head, &before);
	if (is_too_young(&before, source->options))
		entry_let_wait(head, S3ONCE_WAIT_YOUNG);
	return 0;
}

/* Adds the template's key for the head to source->key, which holds the prefix. Returns 0,
 * -ENOMEM, or -EINVAL with a sentence in the head if the result is too long or cannot be a key.
 * After 0, source->key.error may still be -ENOMEM. */
static int render_key(struct source *source)
{
	struct scan_entry *head = &source->head;
	/* The key is made of the path without the suffix of compression. The object's key has that
	 * suffix after the whole key. */
	struct text bare = TEXT(SOURCE_PATH_BYTES_MAX);
	text_add_bytes(&bare, head->relative, strlen(head->relative) - strlen(head->suffix));
	const struct key_subject subject = {.relative = text_string(&bare),
		.mtime_ns = head->mtime_ns,
		.content_id = head->content_id};
	const int error = bare.error ? bare.error
				     : key_template_render(source->options->key_template, &subject,
					       &source->key, &head->problem);
	text_clear(&bare);
	/* By the template alone, several pieces of a log may have the same key. */
	if (head->is_piece && head->offset)
		text_addf(&source->key, "~%" PRIu64, head->offset);
	if (source->key.error == -EMSGSIZE)
		return problem_error(&head->problem, -EINVAL,
			"--key makes a key of more than %zu bytes of it", source->key.max);
	return error;
}

/* Makes the key of the head by the template, after the prefix that source->key holds. If the key
 * depends on the content, the content of a FILE is read first. Returns 0, or -errno with a sentence
 * if the scan cannot go on.
 *
 * In three cases no key is made, and source->key still holds only the prefix. The entry is no file.
 * Or the template can make no key of the file, which becomes a PROBLEM. Or the key depends on a
 * content that was not read, or that may change, since the file WAITS. */
static int add_template_key(struct source *source, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	const bool needs_id = key_template_needs_id(source->options->key_template);
	int error = scan_check_cancelled(source->options, ret_problem);
	/* The id of a rotated file is known from the listing. A file that is too large is not sent,
	 * and needs no key. */
	const bool has_to_be_read = needs_id && head->kind == SCAN_FILE && !head->is_rotated &&
				    !entry_is_too_large(head, source->options);
	if (!error && has_to_be_read)
		error = identify_head(source, ret_problem);
	const bool lacks_id = needs_id && (!*head->content_id || head->kind == SCAN_WAITS);
	if (error || lacks_id || !entry_is_file(head))
		return error;
	error = render_key(source);
	if (error == -ENOMEM)
		return scan_no_memory(ret_problem);
	if (head->is_piece) /* a piece is part of the decompressed content */
		head->suffix = "";
	if (!head->is_rotated)
		head->content_id[0] = '\0'; /* the mark compares size and mtime, not the content */
	if (error) {
		head->kind = SCAN_PROBLEM;
		text_reset(&source->key); /* also clears its error */
		key_add_base(&source->key, source->options->prefix);
	}
	return 0;
}

/* Makes the key of the head by --as, or of its path. */
static void add_path_key(struct source *source)
{
	const char *relative = source->head.relative;
	const bool is_source_itself = strcmp(relative, ".") == 0;
	if (source->options->as)
		text_add(&source->key, source->options->as);
	else
		text_add(&source->key, is_source_itself ? "" : relative);
}

/* Makes the head a PROBLEM if S3 cannot hold the key of its object, which is source->key with the
 * suffix of compression after it. Returns 0 or -ENOMEM. */
static int check_object_key(struct source *source)
{
	struct scan_entry *head = &source->head;
	const size_t key_bytes = source->key.len;
	text_add(&source->key, head->suffix);
	if (source->key.error)
		return source->key.error;
	if (!key_valid(text_string(&source->key), source->key.len, &head->problem))
		head->kind = SCAN_PROBLEM;
	text_cut(&source->key, key_bytes);
	return 0;
}

int source_name_head(struct source *source, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	const struct scan_options *options = source->options;
	const bool uses_template =
		options->key_template && (head->is_rotated || !options->template_is_for_rotated);
	text_cut(&source->key, source->key_base_bytes);
	source_set_path(source, head->relative, &source->path);
	const int error = uses_template ? add_template_key(source, ret_problem) : 0;
	if (error)
		return error;
	if (!uses_template)
		add_path_key(source);
	if (source->key.error || source->path.error)
		return scan_no_memory(ret_problem);
	/* If the template has made no key, source->key holds only the prefix. */
	const bool has_key = !uses_template || source->key.len > source->key_base_bytes;
	if (has_key && entry_is_file(head) && check_object_key(source))
		return scan_no_memory(ret_problem);
	head->key = has_key ? text_string(&source->key) : "";
	head->path = text_string(&source->path);
	head->source = source->index;
	return 1;
}

int source_next_named(struct source *source, struct problem *ret_problem)
{
	int r = source_next_unnamed(source, ret_problem);
	return r > 0 ? source_name_head(source, ret_problem) : r;
}
