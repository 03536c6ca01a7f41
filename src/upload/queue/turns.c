/* The turns of small files, large files and parts. The queue adds files and parts that may be
 * begun, and asks for the next task. It holds its mutex meanwhile. level.h decides how many workers
 * and large bodies there may be. Nothing here waits. */
#include "upload/queue/queue.h"

uint64_t candidate_rank(const struct candidate *candidate)
{
	const uint64_t first_large = UINT64_C(1) << 63; /* above the rank of any small file */
	if (candidate->size > S3ONCE_SMALL_BYTES_MAX)
		return first_large | candidate->size;
	return candidate->mtime_ns > 0 ? (uint64_t)candidate->mtime_ns : 0;
}

/* The number of multipart uploads that may be open even if fewer large bodies may be sent at once,
 * so that one huge file does not keep other large files waiting. */
#define OPEN_UPLOADS_MIN 4

/* The number of small files that a worker on its own sends between two large bodies. */
#define SMALL_TURNS BLOCK_FILES

/* Results of next_turn() other than one of the lines in which files wait. */
enum { NEXT_PART = LINES, NEXT_NONE };

void turns_init(struct turns *turns, unsigned workers, uint64_t part_bytes)
{
	*turns = (struct turns){
		.workers = workers, .max_large = LARGE_BODIES_MAX, .part_bytes = part_bytes};
	for (size_t i = 0; i < LINES; i++)
		turns->lines[i].end = &turns->lines[i].first;
}

/* Takes out the first file of the line, which must not be empty. */
static struct candidate *line_take(struct file_line *line)
{
	struct candidate *file = line->first;
	line->first = file->next;
	if (!line->first)
		line->end = &line->first;
	line->n--;
	return file;
}

struct candidate *turns_pop_any(struct turns *turns)
{
	for (size_t i = 0; i < LINES; i++)
		if (turns->lines[i].n)
			return line_take(&turns->lines[i]);
	return NULL;
}

/* Returns the line of files that are sent like this one. */
static struct file_line *line_of(struct turns *turns, const struct candidate *file)
{
	return &turns->lines[file->size <= S3ONCE_SMALL_BYTES_MAX ? LINE_SMALL
			     : file->size <= turns->part_bytes    ? LINE_WHOLE
								  : LINE_SPLIT];
}

/* Inserts a file at `at`, the link that is to point to it. With ranks, `at` is the first link of
 * the line, and the file comes after all files of a lower or the same rank. */
static void line_insert(
	struct turns *turns, struct file_line *line, struct candidate **at, struct candidate *file)
{
	while (turns->is_ranked && *at && candidate_rank(*at) <= candidate_rank(file))
		at = &(*at)->next;
	file->next = *at;
	*at = file;
	if (!file->next)
		line->end = &file->next;
	line->n++;
}

void turns_add(struct turns *turns, struct candidate *file)
{
	struct file_line *line = line_of(turns, file);
	line_insert(turns, line, turns->is_ranked ? &line->first : line->end, file);
}

void turns_add_first(struct turns *turns, struct candidate *file)
{
	struct file_line *line = line_of(turns, file);
	line_insert(turns, line, &line->first, file);
}

size_t turns_remove_block(struct turns *turns, unsigned serial, struct candidate *ret[BLOCK_FILES])
{
	size_t n = 0;
	for (size_t i = 0; i < LINES; i++) {
		struct file_line *line = &turns->lines[i];
		struct candidate **at = &line->first;
		while (*at) {
			struct candidate *file = *at;
			/* `ret` has room for a whole block, so n never reaches its end too early.
			 */
			if (file->block_serial != serial || n == BLOCK_FILES) {
				at = &file->next;
				continue;
			}
			*at = file->next;
			line->n--;
			ret[n++] = file;
		}
		line->end = at;
	}
	return n;
}

/* Appends the upload to the list of those with parts to be handed out. */
static void add_parts(struct turns *turns, struct parts *parts)
{
	struct parts **at = &turns->parts;
	while (*at)
		at = &(*at)->next;
	parts->next = NULL;
	*at = parts;
}

void turns_open_parts(struct turns *turns, struct parts *parts, unsigned n)
{
	*parts = (struct parts){.end_index = n};
	add_parts(turns, parts);
	turns->uploads_open++;
}

void turns_drop_parts(struct turns *turns, struct parts *parts)
{
	if (parts->next_index == parts->end_index)
		return; /* turns_take() removed it from the list with its last part */
	struct parts **at = &turns->parts;
	while (*at != parts)
		at = &(*at)->next;
	*at = parts->next;
	parts->next_index = parts->end_index;
}

/* Whether it is the turn of large bodies. While small files wait, large bodies get half of the
 * workers, or none if files go by rank. A single worker sends a large body after SMALL_TURNS small
 * files. */
static bool is_turn_of_large(const struct turns *turns)
{
	if (!turns->lines[LINE_SMALL].n)
		return true;
	if (turns->is_ranked)
		return false;
	if (turns->workers == 1)
		return turns->small_since_large >= SMALL_TURNS;
	return turns->large + turns->uploads_beginning < turns->workers / 2;
}

/* Whether a file waits to be sent in parts, and its upload may be begun now. With ranks, larger
 * files wait for smaller ones: for those that are sent whole, and for uploads that were begun
 * before. */
static bool may_begin_upload(const struct turns *turns)
{
	const unsigned begun = turns->uploads_beginning + turns->uploads_open;
	const bool has_smaller =
		turns->lines[LINE_WHOLE].n || turns->parts || turns->uploads_beginning;
	const bool waits_for_smaller = turns->is_ranked && has_smaller;
	if (!turns->lines[LINE_SPLIT].n || waits_for_smaller)
		return false;
	return begun < OPEN_UPLOADS_MIN || begun < turns->max_large;
}

/* Returns the line whose first file is next, or NEXT_PART, or NEXT_NONE. If it is the turn of large
 * bodies, parts and large files that are sent whole take turns. With ranks, the large files that
 * are sent whole come before all parts. */
static size_t next_turn(const struct turns *turns)
{
	const struct file_line *lines = turns->lines;
	const bool may_be_large = is_turn_of_large(turns);
	if (may_be_large &&
		may_begin_upload(turns)) /* beginning an upload sends nothing large yet */
		return LINE_SPLIT;
	if (may_be_large && turns->large < turns->max_large) {
		const bool is_turn_of_parts = !turns->part_was_last && !turns->is_ranked;
		if (turns->parts && (is_turn_of_parts || !lines[LINE_WHOLE].n))
			return NEXT_PART;
		if (lines[LINE_WHOLE].n)
			return LINE_WHOLE;
	}
	return lines[LINE_SMALL].n ? LINE_SMALL : NEXT_NONE;
}

const struct candidate *turns_next_small(const struct turns *turns)
{
	return next_turn(turns) == LINE_SMALL ? turns->lines[LINE_SMALL].first : NULL;
}

bool turns_has(const struct turns *turns)
{
	return next_turn(turns) != NEXT_NONE;
}

bool turns_has_large(const struct turns *turns)
{
	return turns->large || turns->uploads_open || turns->parts || turns->lines[LINE_WHOLE].n ||
	       turns->lines[LINE_SPLIT].n;
}

bool turns_take(struct turns *turns, struct task *ret)
{
	const size_t next = next_turn(turns);
	struct parts *parts = turns->parts;
	if (next == NEXT_NONE)
		return false;
	if (next == NEXT_PART) {
		/* The upload goes to the end of the list, so that uploads take turns. */
		*ret = (struct task){.kind = TASK_PART,
			.parts = parts,
			.index = parts->next_index++,
			.is_large = true};
		parts->under_way++;
		turns->parts = parts->next;
		if (parts->next_index < parts->end_index)
			add_parts(turns, parts);
	} else {
		*ret = (struct task){.kind = TASK_FILE,
			.file = line_take(&turns->lines[next]),
			.is_large = next == LINE_WHOLE,
			.begins_upload = next == LINE_SPLIT};
	}
	if (next != LINE_SMALL)
		turns->part_was_last = next == NEXT_PART;
	turns->uploads_beginning += ret->begins_upload;
	turns->large += ret->is_large;
	turns->small_since_large = next == LINE_SMALL ? turns->small_since_large + 1 : 0;
	return true;
}

void turns_done(struct turns *turns, const struct task *task)
{
	turns->large -= task->is_large;
	turns->uploads_beginning -= task->begins_upload;
}
