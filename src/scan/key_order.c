/* Several SOURCEs as one stream in byte order of their keys, for scan.c. If two files have the same
 * key, each of them becomes a PROBLEM. No file is opened here.
 *
 * Keys that are paths rise within each SOURCE, so that the streams are merged as they come. Keys
 * that a template makes do not rise. Then all files are found first, and sorted in a temporary
 * file, so that memory does not grow with their number. */
#include "base/checksum.h"
#include "base/statements.h"
#include "scan/key/key.h"
#include "scan/rotated/rotation.h"
#include "scan/scan_entry.h"
#include "scan/scratch.h"
#include "scan/source.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_BETWEEN_ASKING 100000 /* steps of SQLite's virtual machine: some milliseconds */

struct order {
	struct source *sources;
	size_t n;
	const struct scan_options *options;
	bool repeats_key;         /* the next file has the same key as the file handed out last */
	struct problem collision; /* if so, the sentence about both */

	/* Merging. */
	struct source **heads; /* from `first` on: the sources that have not ended, in order of the
				  keys of their heads */
	size_t first, n_heads;
	bool first_is_handed_out; /* the head of heads[first] was handed out, and is stale */

	/* Sorting. */
	sqlite3 *db;                   /* NULL: the keys are paths, and are merged */
	size_t reading;                /* index of the source that is being read */
	struct rotation rotation;      /* reads the sources, instead of that, if logs rotate */
	sqlite3_stmt *insert, *sorted; /* sorted: NULL while the sources are being read */
	bool has_row;                  /* sorted is at a row that was not handed out */
};

/* Returns the remedy for two files of one key. */
static const char *collision_remedy(const struct scan_options *options)
{
	/* The template that comes with --rotated cannot distinguish any more than it does. */
	if (!options->key_template || options->template_is_for_rotated)
		return "exclude one, or upload them below different prefixes";
	/* {path} and {name} change with each rotation. */
	if (options->rotated)
		return "exclude one, or make --key distinguish them, for instance by {dir} or "
		       "{id:8}";
	return "exclude one, or make --key distinguish them, for instance by {path} or {mtime:…}";
}

/* Hands the entry out. A file becomes a PROBLEM if the file before it or the next file has the same
 * key. next_path is the path of the next file if it has the same key, otherwise NULL. Returns 1. */
static int hand_out_entry(struct order *order, const struct scan_entry *entry,
	const char *next_path, struct scan_entry *ret)
{
	*ret = *entry;
	/* An entry that takes no key may come between two files of one key. It leaves
	 * order->repeats_key as it is, for the second file. For instance, a walk sorts a folder as
	 * "x/", and yields its PROBLEM after the file "x-1". But that PROBLEM has the key "x", so
	 * the merge hands it out before the file "x-1" of another SOURCE. */
	if (!entry_is_file(entry))
		return 1;
	const bool has_previous_key = order->repeats_key, has_next_key = next_path != NULL;
	order->repeats_key = has_next_key;
	if (!has_previous_key && !has_next_key)
		return 1;
	ret->kind = SCAN_PROBLEM;
	ret->collides = true;
	/* The sentence names one other file: if there are two, the one before. */
	if (has_previous_key)
		ret->problem = order->collision;
	if (has_next_key)
		collision_explain(entry->key, entry->path, next_path,
			collision_remedy(order->options), &order->collision);
	if (!has_previous_key)
		ret->problem = order->collision;
	return 1;
}

/* Compares the heads of two sources by their keys. If the keys are equal, files come before entries
 * that take no key, so that two files with one key are neighbours. */
static int compare_heads(const void *one, const void *other)
{
	const struct source *a = *(struct source *const *)one, *b = *(struct source *const *)other;
	int difference = strcmp(a->head.key, b->head.key);
	if (!difference)
		difference = entry_is_file(&b->head) - entry_is_file(&a->head);
	return difference ? difference : (a->index > b->index) - (a->index < b->index);
}

/* Reads the first entry of each source, and sorts the sources by these. Returns 0, or -errno with a
 * sentence. */
static int begin_merge(struct order *order, struct problem *ret_problem)
{
	order->heads = calloc(order->n, sizeof(struct source *));
	if (!order->heads)
		return scan_no_memory(ret_problem);
	for (size_t i = 0; i < order->n; i++) {
		int r = source_next_named(&order->sources[i], ret_problem);
		if (r < 0)
			return r;
		if (r > 0)
			order->heads[order->n_heads++] = &order->sources[i];
	}
	qsort(order->heads, order->n_heads, sizeof(struct source *), compare_heads);
	return 0;
}

/* Moves the first of n heads, whose source has a new head, to its place among the others, which are
 * in order. `from` and `to` enclose that place. */
static void place_first(struct source **heads, size_t n)
{
	struct source *moved = heads[0];
	size_t from = 1, to = n;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (compare_heads(&heads[middle], &moved) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	memmove(heads, heads + 1, (from - 1) * sizeof(struct source *));
	heads[from - 1] = moved;
}

/* Hands out the next entry where keys are paths. Returns 1, 0 at the end, or -errno with a
 * sentence. */
static int next_merged(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	if (order->first_is_handed_out) {
		const int r = source_next_named(order->heads[order->first], ret_problem);
		if (r < 0)
			return r;
		if (r > 0)
			place_first(order->heads + order->first, order->n_heads - order->first);
		else
			order->first++; /* the source has ended, and is skipped from now on */
	}
	order->first_is_handed_out = order->first < order->n_heads;
	if (!order->first_is_handed_out)
		return 0;
	struct source **heads = order->heads + order->first;
	const struct scan_entry *first = &heads[0]->head;
	const struct scan_entry *second =
		order->first + 1 < order->n_heads ? &heads[1]->head : NULL;
	/* If another file has this key, compare_heads() puts it second. */
	const bool have_same_key = second && entry_is_file(first) && entry_is_file(second) &&
				   strcmp(first->key, second->key) == 0;
	return hand_out_entry(order, first, have_same_key ? second->path : NULL, ret);
}

/* There is no index: ORDER BY sorts by writing and reading the disk in order, where an index would
 * seek back and forth.
 *
 * facts is the struct scan_entry as raw memory, up to the end of its content_id. Its pointers are
 * set again when a row is read. entry.suffix (".gz", for instance) is the end of relative, so that
 * the column has only the offset at which it begins. */
static const char create_sql[] =
	"CREATE TABLE files(key TEXT, source INT, relative TEXT, suffix INT, facts BLOB)";
static const char insert_sql[] = "INSERT INTO files VALUES(?, ?, ?, ?, ?)";
static const char sorted_sql[] = "SELECT * FROM files ORDER BY key, source, relative";
enum { KEY, SOURCE, RELATIVE, SUFFIX, FACTS };

/* Sets the sentence of this SQLite error, and returns the -errno of the scan. */
static int sorting_failed(const struct order *order, int rc, struct problem *ret_problem)
{
	return scratch_failed(
		order->db, rc, "the keys that --key makes cannot be sorted", ret_problem);
}

/* SQLite calls it while it sorts, and gives up if it returns 1. */
static int is_sorting_over(void *arg)
{
	return scan_is_cancelled(((const struct order *)arg)->options);
}

/* Makes the database, and prepares to read the sources. Returns 0, or -errno with a sentence; then
 * order_free() has to be called as well. */
static int begin_sorting(struct order *order, struct problem *ret_problem)
{
	int rc = scratch_open(create_sql, &order->db);
	if (!rc)
		rc = sqlite3_prepare_v2(order->db, insert_sql, -1, &order->insert, NULL);
	if (rc)
		return sorting_failed(order, rc, ret_problem);
	sqlite3_progress_handler(order->db, STEPS_BETWEEN_ASKING, is_sorting_over, order);
	order->rotation = (struct rotation){
		.sources = order->sources, .n = order->n, .options = order->options};
	return 0;
}

/* Reads the next entry of all sources, in any order. Returns 1 and the source whose head it is, 0
 * at the end, or -errno with a sentence. */
static int read_next(struct order *order, struct source **ret, struct problem *ret_problem)
{
	if (order->options->rotated) {
		int r = rotation_next(&order->rotation, ret, ret_problem);
		return r > 0 ? source_name_head(*ret, ret_problem) : r;
	}
	for (; order->reading < order->n; order->reading++) {
		*ret = &order->sources[order->reading];
		int r = source_next_named(*ret, ret_problem);
		if (r)
			return r;
	}
	return 0;
}

/* Moves to the next sorted row. Sets order->has_row to whether there is one. Returns 0, or -errno
 * with a sentence. */
static int step_sorted(struct order *order, struct problem *ret_problem)
{
	const int rc = sqlite3_step(order->sorted);
	order->has_row = rc == SQLITE_ROW;
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return 0;
	return sorting_failed(order, rc, ret_problem);
}

/* Inserts a file with its key. Returns SQLite's result. */
static int insert_file(const struct order *order, const struct scan_entry *file)
{
	sqlite3_stmt *s = order->insert;
	const size_t suffix_at = strlen(file->relative) - strlen(file->suffix);
	const size_t bytes = offsetof(struct scan_entry, content_id) + strlen(file->content_id);
	/* Columns are counted from 0, and parameters from 1. */
	sqlite3_bind_text(s, KEY + 1, file->key, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, SOURCE + 1, (int64_t)file->source);
	sqlite3_bind_text(s, RELATIVE + 1, file->relative, -1, SQLITE_STATIC);
	sqlite3_bind_int(s, SUFFIX + 1, (int)suffix_at);
	sqlite3_bind_blob(s, FACTS + 1, file, (int)bytes, SQLITE_STATIC);
	sqlite3_step(s);
	return sqlite3_reset(s); /* also returns an error of the bindings */
}

/* Reads the sources to the end, and inserts every file that has a key, so that it is sorted. A file
 * that WAITS is inserted, too, since a later run would upload it under its key. Any other entry is
 * not sorted: it returns 1 and this entry, and goes on in the next call. At the end it reads the
 * first sorted row, and returns 0. */
static int next_unsorted(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	struct source *source;
	int r, rc = SQLITE_OK;
	while (!rc && (r = read_next(order, &source, ret_problem)) > 0) {
		const struct scan_entry *head = &source->head;
		const bool has_key = entry_is_file(head) && *head->key;
		/* A file that only the final listing has found is left to the next run. It is
		 * handed out to be counted as waiting, so its key need not be checked. */
		if (!has_key || order->rotation.is_listed_again) {
			*ret = *head;
			return 1;
		}
		rc = insert_file(order, head);
	}
	if (!rc && r < 0)
		return r;
	if (!rc)
		rc = sqlite3_prepare_v2(order->db, sorted_sql, -1, &order->sorted, NULL);
	return rc ? sorting_failed(order, rc, ret_problem) : step_sorted(order, ret_problem);
}

static struct source *row_source(const struct order *order)
{
	return &order->sources[sqlite3_column_int64(order->sorted, SOURCE)];
}

/* Makes the entry of the present row the head of its source again. Returns 0, or -ENOMEM with a
 * sentence. */
static int take_row(struct order *order, struct source *source, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	const void *facts = sqlite3_column_blob(order->sorted, FACTS);
	text_reset(&source->key);
	text_add(&source->key, column_string(order->sorted, KEY));
	text_reset(&source->relative);
	text_add(&source->relative, column_string(order->sorted, RELATIVE));
	source_set_path(source, text_string(&source->relative), &source->path);
	/* These columns are empty only if memory ran out. */
	if (!facts || !source->key.len || !source->relative.len || source->key.error ||
		source->relative.error || source->path.error)
		return scan_no_memory(ret_problem);
	/* The stored entry ends with its content_id; later members stay empty. Its pointers are
	 * stale, since the texts of the source were overwritten. */
	source_empty_head(source);
	memcpy(head, facts, (size_t)sqlite3_column_bytes(order->sorted, FACTS));
	head->key = source->key.data;
	head->relative = source->relative.data;
	head->suffix = head->relative + sqlite3_column_int(order->sorted, SUFFIX);
	head->path = text_string(&source->path);
	return 0;
}

/* Whether the present row is an empty log with this key, like the entry before it, whose content id
 * is `before`. Two such logs are indistinguishable, and one object is enough for both. */
static bool repeats_empty_log(const struct order *order, const char *key, const char *before)
{
	static const char empty[] = SHA256_OF_NOTHING;
	const size_t id_at = offsetof(struct scan_entry, content_id), id_bytes = sizeof empty - 1;
	if (!order->has_row || strcmp(before, empty) != 0 ||
		strcmp(column_string(order->sorted, KEY), key) != 0)
		return false;
	/* The content id is the end of the facts, without a NUL. */
	const bool has_id = (size_t)sqlite3_column_bytes(order->sorted, FACTS) == id_at + id_bytes;
	const char *facts = sqlite3_column_blob(order->sorted, FACTS);
	return has_id && memcmp(facts + id_at, empty, id_bytes) == 0;
}

/* Hands out the next entry where a template makes the keys: first all that are not sorted, then the
 * sorted rows. A row is handed out once the key of the row after it is known. Returns as
 * order_next(). */
static int next_sorted(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	struct text next_path = TEXT(SOURCE_PATH_BYTES_MAX);
	int r = order->sorted ? 0 : next_unsorted(order, ret, ret_problem);
	if (r || !order->has_row)
		return r;
	struct source *source = row_source(order);
	r = take_row(order, source, ret_problem);
	if (r == 0)
		r = step_sorted(order, ret_problem);
	while (r == 0 && repeats_empty_log(order, source->head.key, source->head.content_id))
		r = step_sorted(order, ret_problem);
	if (r < 0)
		return r;
	const char *next_key = order->has_row ? column_string(order->sorted, KEY) : NULL;
	const bool have_same_key = next_key && strcmp(source->head.key, next_key) == 0;
	if (have_same_key)
		source_set_path(
			row_source(order), column_string(order->sorted, RELATIVE), &next_path);
	if (next_path.error || (next_key && !*next_key)) /* a key is empty if memory ran out */
		r = scan_no_memory(ret_problem);
	else
		r = hand_out_entry(
			order, &source->head, have_same_key ? text_string(&next_path) : NULL, ret);
	text_clear(&next_path);
	return r;
}

/* Begins to merge the sources or, if a template makes their keys, to sort them. Returns 0, or
 * -errno with a sentence. */
static int order_new(
	struct source *sources, size_t n, struct order **ret, struct problem *ret_problem)
{
	struct order *order = calloc(1, sizeof *order);
	if (!order)
		return scan_no_memory(ret_problem);
	*order = (struct order){.sources = sources, .n = n, .options = sources->options};
	const int r = order->options->key_template ? begin_sorting(order, ret_problem)
						   : begin_merge(order, ret_problem);
	if (r < 0)
		order_free(order);
	else
		*ret = order;
	return r;
}

int order_next(struct order **order, struct source *sources, size_t n, struct scan_entry *ret,
	struct problem *ret_problem)
{
	const int r = *order ? 0 : order_new(sources, n, order, ret_problem);
	if (!*order) /* order_new() has failed */
		return r;
	return (*order)->db ? next_sorted(*order, ret, ret_problem)
			    : next_merged(*order, ret, ret_problem);
}

void order_free(struct order *order)
{
	if (!order)
		return;
	free(order->heads);
	rotation_clear(&order->rotation);
	sqlite3_finalize(order->insert);
	sqlite3_finalize(order->sorted);
	sqlite3_close(order->db);
	free(order);
}
