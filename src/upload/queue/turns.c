/* Decides whose turn it is. The queue adds what may be begun and asks for the next task, under its
 * mutex. How many workers and large bodies there may be is decided elsewhere (level.h). Nothing
 * here waits. */
#include "upload/queue/queue.h"

uint64_t candidate_rank(const struct candidate *candidate)
{
	const uint64_t first_large = UINT64_C(1) << 63;
	if (candidate->size > SMALL_BYTES_MAX)
		return first_large | candidate->size;
	return candidate->mtime_ns > 0 ? (uint64_t)candidate->mtime_ns : 0;
}

/* This many multipart uploads may be open in any case, so that one huge file does not keep other
 * large files waiting. */
#define OPEN_LEAST 4

/* A worker that is alone sends this many small files between two large bodies. */
#define SMALL_TURNS BLOCK_FILES

/* Results of whose_turn() other than a line. */
enum { NEXT_PART = LINES, NEXT_NONE };

void turns_init(struct turns *turns, unsigned workers, uint64_t part_bytes)
{
	*turns = (struct turns){
		.workers = workers, .large_most = LARGE_MOST, .part_bytes = part_bytes};
	for (size_t i = 0; i < LINES; i++)
		turns->lines[i].end = &turns->lines[i].first;
}

static struct candidate *line_take(struct file_line *line)
{
	struct candidate *file = line->first;
	line->first = file->next;
	if (!line->first)
		line->end = &line->first;
	line->n--;
	return file;
}

struct candidate *turns_left(struct turns *turns)
{
	for (size_t i = 0; i < LINES; i++)
		if (turns->lines[i].n)
			return line_take(&turns->lines[i]);
	return NULL;
}

void turns_add(struct turns *turns, struct candidate *file, bool is_first)
{
	struct file_line *line = &turns->lines[file->size <= SMALL_BYTES_MAX     ? LINE_SMALL
					       : file->size <= turns->part_bytes ? LINE_WHOLE
										 : LINE_SPLIT];
	struct candidate **at = is_first || turns->is_ranked ? &line->first : line->end;
	while (turns->is_ranked && *at && candidate_rank(*at) <= candidate_rank(file))
		at = &(*at)->next;
	file->next = *at;
	*at = file;
	if (!file->next)
		line->end = &file->next;
	line->n++;
}

size_t turns_remove_block(struct turns *turns, unsigned block, struct candidate *ret[BLOCK_FILES])
{
	size_t n = 0;
	for (size_t i = 0; i < LINES; i++) {
		struct file_line *line = &turns->lines[i];
		struct candidate **at = &line->first;
		while (*at) {
			struct candidate *file = *at;
			if (file->block != block || n == BLOCK_FILES) {
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

static void add_parts(struct turns *turns, struct parts *parts)
{
	struct parts **at = &turns->parts;
	while (*at)
		at = &(*at)->next;
	parts->next = NULL;
	*at = parts;
}

void turns_open(struct turns *turns, struct parts *parts, unsigned n)
{
	*parts = (struct parts){.end_index = n};
	add_parts(turns, parts);
	turns->open++;
}

void turns_give_up(struct turns *turns, struct parts *parts)
{
	if (parts->next_index == parts->end_index)
		return;
	struct parts **at = &turns->parts;
	while (*at != parts)
		at = &(*at)->next;
	*at = parts->next;
	parts->next_index = parts->end_index;
}

/* Whether large bodies have their turn. While small files wait, large bodies have half of the
 * workers, and none if files have a rank. A single worker divides its time. */
static bool is_turn_of_large(const struct turns *turns)
{
	if (!turns->lines[LINE_SMALL].n)
		return true;
	if (turns->is_ranked)
		return false;
	if (turns->workers == 1)
		return turns->small_since_large >= SMALL_TURNS;
	return turns->large + turns->being_opened < turns->workers / 2;
}

/* Whether a file that waits to be sent in parts may be opened. With ranks, what was begun before
 * comes first. */
static bool may_open(const struct turns *turns)
{
	const unsigned open = turns->being_opened + turns->open;
	const bool others_first = turns->lines[LINE_WHOLE].n || turns->parts || turns->being_opened;
	return turns->lines[LINE_SPLIT].n && !(turns->is_ranked && others_first) &&
	       (open < OPEN_LEAST || open < turns->large_most);
}

/* Returns what is next, or NEXT_NONE. Parts and files that are sent whole take turns; with ranks,
 * the files come first. */
static size_t whose_turn(const struct turns *turns)
{
	const struct file_line *lines = turns->lines;
	const bool may_be_large = is_turn_of_large(turns);
	if (may_be_large && may_open(turns)) /* this sends nothing large yet, so it needs no room */
		return LINE_SPLIT;
	if (may_be_large && turns->large < turns->large_most) {
		const bool is_turn_of_parts = !turns->part_was_last && !turns->is_ranked;
		if (turns->parts && (is_turn_of_parts || !lines[LINE_WHOLE].n))
			return NEXT_PART;
		if (lines[LINE_WHOLE].n)
			return LINE_WHOLE;
	}
	return lines[LINE_SMALL].n ? LINE_SMALL : NEXT_NONE;
}

bool turns_has(const struct turns *turns)
{
	return whose_turn(turns) != NEXT_NONE;
}

bool turns_has_large(const struct turns *turns)
{
	return turns->large || turns->open || turns->parts || turns->lines[LINE_WHOLE].n ||
	       turns->lines[LINE_SPLIT].n;
}

bool turns_take(struct turns *turns, struct task *ret)
{
	const size_t next = whose_turn(turns);
	struct parts *parts = turns->parts;
	if (next == NEXT_NONE)
		return false;
	if (next == NEXT_PART) { /* each upload goes to the end, so they take turns */
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
			.opens = next == LINE_SPLIT};
	}
	if (next != LINE_SMALL)
		turns->part_was_last = next == NEXT_PART;
	turns->being_opened += ret->opens;
	turns->large += ret->is_large;
	turns->small_since_large = next == LINE_SMALL ? turns->small_since_large + 1 : 0;
	return true;
}

void turns_done(struct turns *turns, const struct task *task)
{
	turns->large -= task->is_large;
	turns->being_opened -= task->opens;
}
