#include "upload/queue/turns.h"
#include <stdlib.h>

/* Several are open at once, so that one huge file does not keep the other large files waiting. */
#define OPEN_LEAST 4

/* A worker that is alone sends this many small files between two large bodies. */
#define SMALL_TURNS BLOCK_FILES

static void line_add(struct file_line *line, struct candidate *file)
{
	file->next = NULL;
	*line->end = file;
	line->end = &file->next;
	line->n++;
}

static void line_add_first(struct file_line *line, struct candidate *file)
{
	file->next = line->first;
	line->first = file;
	if (!file->next)
		line->end = &file->next;
	line->n++;
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

static void line_clear(struct file_line *line)
{
	while (line->n)
		free(line_take(line));
}

static size_t line_remove_block(
	struct file_line *line, unsigned block, struct candidate **ret, size_t most)
{
	size_t n = 0;
	struct candidate **at = &line->first;
	while (*at) {
		struct candidate *file = *at;
		if (file->block != block || n == most) {
			at = &file->next;
			continue;
		}
		*at = file->next;
		ret[n++] = file;
	}
	line->end = at;
	line->n -= n;
	return n;
}

void turns_init(struct turns *turns, unsigned workers, uint64_t part_bytes)
{
	*turns = (struct turns){.workers = workers, .part_bytes = part_bytes};
	bulk_init(&turns->bulk, workers < BULK_MOST ? workers : BULK_MOST);
	turns->small.end = &turns->small.first;
	turns->whole.end = &turns->whole.first;
	turns->split.end = &turns->split.first;
}

void turns_clear(struct turns *turns)
{
	line_clear(&turns->small);
	line_clear(&turns->whole);
	line_clear(&turns->split);
}

static int64_t line_oldest_ns(const struct file_line *line)
{
	int64_t oldest = INT64_MAX;
	for (const struct candidate *file = line->n ? line->first : NULL; file; file = file->next)
		oldest = file->mtime_ns < oldest ? file->mtime_ns : oldest;
	return oldest;
}

int64_t turns_oldest_ns(const struct turns *turns)
{
	const int64_t small = line_oldest_ns(&turns->small), whole = line_oldest_ns(&turns->whole),
		      split = line_oldest_ns(&turns->split);
	const int64_t large = whole < split ? whole : split;
	return small < large ? small : large;
}

size_t turns_files(const struct turns *turns)
{
	return turns->small.n + turns->whole.n + turns->split.n;
}

static struct file_line *line_of(struct turns *turns, const struct candidate *file)
{
	return file->size <= SMALL_BYTES_MAX     ? &turns->small
	       : file->size <= turns->part_bytes ? &turns->whole
						 : &turns->split;
}

void turns_add_file(struct turns *turns, struct candidate *file)
{
	line_add(line_of(turns, file), file);
}

void turns_add_first(struct turns *turns, struct candidate *file)
{
	line_add_first(line_of(turns, file), file);
}

size_t turns_remove_block(struct turns *turns, unsigned block, struct candidate *ret[BLOCK_FILES])
{
	size_t n = line_remove_block(&turns->small, block, ret, BLOCK_FILES);
	n += line_remove_block(&turns->whole, block, ret + n, BLOCK_FILES - n);
	return n + line_remove_block(&turns->split, block, ret + n, BLOCK_FILES - n);
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

static void take_file(struct turns *turns, struct file_line *line, struct task *ret)
{
	*ret = (struct task){.kind = TASK_FILE,
		.file = line_take(line),
		.is_bulk = line == &turns->whole,
		.opens = line == &turns->split};
}

/* The uploads take turns, too. */
static void take_part(struct turns *turns, struct task *ret)
{
	struct parts *parts = turns->parts;
	*ret = (struct task){
		.kind = TASK_PART, .parts = parts, .index = parts->next_index++, .is_bulk = true};
	parts->under_way++;
	turns->parts = parts->next;
	if (parts->next_index < parts->end_index)
		add_parts(turns, parts);
}

/* A worker that is alone divides its time between small files and large bodies. */
static bool must_yield(const struct turns *turns)
{
	return turns->workers == 1 && turns->small.n && turns->small_since_bulk < SMALL_TURNS;
}

/* While small files wait, half of the workers are theirs. */
static bool has_worker(const struct turns *turns)
{
	const unsigned half = turns->workers > 1 ? turns->workers / 2 : 1;
	return !turns->small.n || turns->under_way + turns->being_opened < half;
}

/* Nothing large is sent for that, so it need not wait for its turn on the line. */
static bool may_open(const struct turns *turns)
{
	const unsigned open = turns->being_opened + turns->open;
	return turns->split.n && (open < OPEN_LEAST || open < turns->bulk.at_once);
}

static bool has_room(const struct turns *turns)
{
	return turns->under_way < turns->bulk.at_once;
}

static bool has_bulk(const struct turns *turns)
{
	return !must_yield(turns) && has_worker(turns) &&
	       (may_open(turns) || (has_room(turns) && (turns->parts || turns->whole.n)));
}

bool turns_has(const struct turns *turns)
{
	return turns->small.n || has_bulk(turns);
}

static bool take_bulk(struct turns *turns, struct task *ret)
{
	if (!has_bulk(turns))
		return false;
	if (may_open(turns))
		take_file(turns, &turns->split, ret);
	else if (turns->parts && !(turns->part_was_last && turns->whole.n))
		take_part(turns, ret);
	else
		take_file(turns, &turns->whole, ret);
	turns->part_was_last = ret->kind == TASK_PART;
	turns->being_opened += ret->opens;
	turns->under_way += ret->is_bulk;
	turns->small_since_bulk = 0;
	return true;
}

bool turns_take(struct turns *turns, struct task *ret)
{
	if (take_bulk(turns, ret))
		return true;
	if (!turns->small.n)
		return false;
	take_file(turns, &turns->small, ret);
	turns->small_since_bulk++;
	return true;
}

void turns_done(struct turns *turns, const struct task *task)
{
	turns->under_way -= task->is_bulk;
	turns->being_opened -= task->opens;
}
