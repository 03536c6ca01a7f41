/* Whose turn it is. The queue adds what may be begun and asks for the next task, under its mutex.
 * How many workers and large bodies there may be is decided elsewhere (level.h), and nothing waits
 * here.
 */
#include "upload/queue/turns.h"
#include <stdlib.h>

/* Several are open at once, so that one huge file does not keep the other large files waiting. */
#define OPEN_LEAST 4

/* A worker that is alone sends this many small files between two large bodies. */
#define SMALL_TURNS BLOCK_FILES

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

void turns_clear(struct turns *turns)
{
	for (size_t i = 0; i < LINES; i++)
		while (turns->lines[i].n)
			free(line_take(&turns->lines[i]));
}

int64_t turns_oldest_ns(const struct turns *turns)
{
	int64_t oldest = INT64_MAX;
	for (size_t i = 0; i < LINES; i++)
		for (const struct candidate *file = turns->lines[i].first; file; file = file->next)
			oldest = file->mtime_ns < oldest ? file->mtime_ns : oldest;
	return oldest;
}

size_t turns_files(const struct turns *turns)
{
	size_t n = 0;
	for (size_t i = 0; i < LINES; i++)
		n += turns->lines[i].n;
	return n;
}

static struct file_line *line_of(struct turns *turns, const struct candidate *file)
{
	return &turns->lines[file->size <= SMALL_BYTES_MAX     ? LINE_SMALL
			     : file->size <= turns->part_bytes ? LINE_WHOLE
							       : LINE_SPLIT];
}

void turns_add_file(struct turns *turns, struct candidate *file)
{
	struct file_line *line = line_of(turns, file);
	file->next = NULL;
	*line->end = file;
	line->end = &file->next;
	line->n++;
}

void turns_add_first(struct turns *turns, struct candidate *file)
{
	struct file_line *line = line_of(turns, file);
	file->next = line->first;
	line->first = file;
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

void turns_close(struct turns *turns)
{
	turns->open--;
}

/* While small files wait, half of the workers are theirs. A worker that is alone divides its time
 * between them and large bodies. */
static bool is_turn_of_large(const struct turns *turns)
{
	if (!turns->lines[LINE_SMALL].n)
		return true;
	if (turns->workers == 1)
		return turns->small_since_large >= SMALL_TURNS;
	return turns->large + turns->being_opened < turns->workers / 2;
}

/* Nothing large is sent for that, so it need not wait for room. */
static bool may_open(const struct turns *turns)
{
	const unsigned open = turns->being_opened + turns->open;
	return turns->lines[LINE_SPLIT].n && (open < OPEN_LEAST || open < turns->large_most);
}

static bool may_take_large(const struct turns *turns)
{
	const bool has_room = turns->large < turns->large_most;
	return is_turn_of_large(turns) &&
	       (may_open(turns) || (has_room && (turns->parts || turns->lines[LINE_WHOLE].n)));
}

bool turns_has(const struct turns *turns)
{
	return turns->lines[LINE_SMALL].n || may_take_large(turns);
}

bool turns_has_large(const struct turns *turns)
{
	return turns->large || turns->open || turns->parts || turns->lines[LINE_WHOLE].n ||
	       turns->lines[LINE_SPLIT].n;
}

static void take_file(struct turns *turns, size_t line, struct task *ret)
{
	*ret = (struct task){.kind = TASK_FILE,
		.file = line_take(&turns->lines[line]),
		.is_large = line == LINE_WHOLE,
		.opens = line == LINE_SPLIT};
}

/* The uploads take turns, too. */
static void take_part(struct turns *turns, struct task *ret)
{
	struct parts *parts = turns->parts;
	*ret = (struct task){
		.kind = TASK_PART, .parts = parts, .index = parts->next_index++, .is_large = true};
	parts->under_way++;
	turns->parts = parts->next;
	if (parts->next_index < parts->end_index)
		add_parts(turns, parts);
}

bool turns_take(struct turns *turns, struct task *ret)
{
	if (!turns_has(turns))
		return false;
	if (!may_take_large(turns)) {
		take_file(turns, LINE_SMALL, ret);
		turns->small_since_large++;
		return true;
	}
	if (may_open(turns))
		take_file(turns, LINE_SPLIT, ret);
	else if (turns->parts && !(turns->part_was_last && turns->lines[LINE_WHOLE].n))
		take_part(turns, ret);
	else
		take_file(turns, LINE_WHOLE, ret);
	turns->part_was_last = ret->kind == TASK_PART;
	turns->being_opened += ret->opens;
	turns->large += ret->is_large;
	turns->small_since_large = 0;
	return true;
}

void turns_done(struct turns *turns, const struct task *task)
{
	turns->large -= task->is_large;
	turns->being_opened -= task->opens;
}
