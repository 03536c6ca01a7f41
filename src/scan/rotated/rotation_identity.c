#include "scan/rotated/rotation_identity.h"
#include "base/path.h"
#include "scan/content/identity_cache.h"
#include "scan/key/family.h"
#include "scan/open.h"
#include "scan/source_file.h"
#include <errno.h>
#include <unistd.h>

bool rotation_is_version(const struct scan_entry *found, const struct file_state *state)
{
	const struct file_state version = {.size = found->size,
		.mtime_ns = found->mtime_ns,
		.dev = found->dev,
		.ino = found->ino};
	return file_state_is_version(state, &version);
}

int rotation_identify(const struct scan_options *options, int fd, const struct scan_entry *entry,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_problem)
{
	struct file_state after;
	const struct identity_file file =
		identity_file_of(options->identities, fd, entry->size, entry->mtime_ns);
	if (identity_file_find(&file, ret_id))
		return 0;
	if (file_is_being_written(fd))
		return -ESTALE;
	const struct content content = {fd, entry->size, options->is_over, options->is_over_arg};
	int r = content_id(&content, ret_id, ret_problem);
	if (r == 0)
		r = file_state_of(fd, &after);
	if (r == 0 && !rotation_is_version(entry, &after))
		r = -ESTALE;
	if (r == 0)
		identity_file_keep(&file, ret_id);
	return r;
}

static int look_at_content(struct source *source)
{
	struct scan_entry *head = &source->head;
	const struct scan_options *options = source->options;
	struct file_state state;
	if (options->max_bytes && head->size > options->max_bytes) {
		problem_set(&head->problem, "is larger than --max-size");
		return -EFBIG;
	}
	const int fd = source_open_file(source, head->relative, &state);
	if (fd < 0)
		return fd;
	int r = -ESTALE;
	if (rotation_is_version(head, &state))
		r = rotation_identify(options, fd, head, head->content_id, &head->problem);
	close(fd);
	return r;
}

static const char *why_not_rotated(const struct family *family)
{
	return family->is_unfinished
		       ? "is not finished, or was put aside, by its name: --rotated leaves it out"
		       : "does not have the name of a rotated file: --rotated takes it for a live log";
}

int rotation_look(struct source *source, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	struct family family;
	family_of(source->options->rotated, path_name(head->relative), &family);
	head->is_rotated = family.is_rotated;
	head->suffix = family.suffix;
	head->kind = SCAN_PROBLEM;
	if (!family.is_rotated) {
		problem_set(&head->problem, "%s", why_not_rotated(&family));
		return 0;
	}
	const int r = look_at_content(source);
	if (r == 0)
		head->kind = SCAN_FILE;
	else if (r == -ECANCELED)
		problem_set(ret_problem, "stopped while the file was read");
	else if (r == -ESTALE)
		problem_set(&head->problem, "is being written to");
	else if (!open_out_of_resources(r, ret_problem) && r != -EFBIG) /* which has its own */
		open_explain_unread(r, &head->problem);
	return r == -ECANCELED || open_out_of_resources(r, ret_problem) ? r : 0;
}
