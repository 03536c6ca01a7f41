/* Several SOURCEs as one stream in byte order of their keys, for scan.c; two files of one key
 * become a PROBLEM each. Keys that are paths rise within each SOURCE, so that the streams are
 * merged as they come. Keys that a template makes do not: then all files are found first, and
 * sorted in a temporary file, so that memory stays flat. It opens no files itself. */
#include "scan/key/key.h"
#include "scan/open.h"
#include "scan/rotated/rotation.h"
#include "scan/scan_entry.h"
#include "scan/source.h"
#include "scan/source_key.h"
#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES_MAX       (256UL * 1024) /* as a source's */
#define STEPS_BETWEEN_ASKING 100000         /* of SQLite's machine: some milliseconds */

/* A sorted file, which is compared with the next one for its key. */
struct row {
	struct scan_entry entry;
	struct text key, relative, path;
};

struct order {
	struct source *sources;
	size_t n;
	const struct scan_options *options;

	/* Merging. */
	struct source **heap; /* heap[0] has the smallest key of the n_heads heads */
	size_t n_heads;
	bool is_used; /* heap[0] was handed out and is to be moved on */

	/* Sorting. */
	sqlite3 *db;                   /* NULL: the keys are paths, and are merged */
	size_t at;                     /* sources[at] is being read */
	struct rotation *rotation;     /* reads them where logs rotate, else NULL */
	sqlite3_stmt *insert, *sorted; /* sorted: NULL while the sources are being read */
	struct row rows[2], *next;     /* next: read, not handed out */
};

static void refuse_both(struct scan_entry *a, struct scan_entry *b, const char *remedy)
{
	const struct collision collision = {a->key, a->path, b->path, remedy};
	struct problem problem;
	collision_tell(&collision, &problem);
	if (!a->collides)
		a->problem = problem;
	b->problem = problem;
	a->collides = b->collides = true;
}

static int hand_out(const struct scan_entry *entry, struct scan_entry *ret)
{
	*ret = *entry;
	if (entry->collides)
		ret->kind = SCAN_PROBLEM;
	return 1;
}

/* Files of one key are neighbours: what takes no key comes behind them. */
static bool before(const struct source *a, const struct source *b)
{
	int order = strcmp(a->head.key, b->head.key);
	if (order != 0)
		return order < 0;
	if (entry_is_file(&a->head) != entry_is_file(&b->head))
		return entry_is_file(&a->head);
	return a->index < b->index;
}

static size_t smaller_child(const struct order *order, size_t i)
{
	size_t child = 2 * i + 1;
	if (child + 1 < order->n_heads && before(order->heap[child + 1], order->heap[child]))
		child++;
	return child;
}

static void sink(struct order *order, size_t i)
{
	for (size_t child; (child = smaller_child(order, i)) < order->n_heads; i = child) {
		struct source *moved = order->heap[i];
		if (!before(order->heap[child], moved))
			return;
		order->heap[i] = order->heap[child];
		order->heap[child] = moved;
	}
}

static int begin_merge(struct order *order, struct problem *ret_problem)
{
	order->heap = calloc(order->n, sizeof(struct source *));
	if (!order->heap)
		return scan_no_memory(ret_problem);
	for (size_t i = 0; i < order->n; i++) {
		int r = source_next(&order->sources[i], ret_problem);
		if (r < 0)
			return r;
		if (r > 0)
			order->heap[order->n_heads++] = &order->sources[i];
	}
	for (size_t i = order->n_heads; i-- > 0;)
		sink(order, i);
	return 0;
}

static int next_merged(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	if (order->is_used) {
		int r = source_next(order->heap[0], ret_problem);
		if (r < 0)
			return r;
		if (r == 0)
			order->heap[0] = order->heap[--order->n_heads];
		sink(order, 0);
	}
	order->is_used = order->n_heads > 0;
	if (!order->is_used)
		return 0;
	struct scan_entry *first = &order->heap[0]->head;
	size_t second = smaller_child(order, 0);
	if (second < order->n_heads && entry_is_file(first) &&
		entry_is_file(&order->heap[second]->head) &&
		strcmp(first->key, order->heap[second]->head.key) == 0)
		refuse_both(first, &order->heap[second]->head,
			"exclude one, or upload them below different prefixes");
	return hand_out(first, ret);
}

/* A file without a name, which SQLite makes when its cache is full, and which is gone with the
 * process. Nothing is kept, so nothing need be safe against a crash. Only the sorting of ORDER BY
 * is used: it writes and reads the disk in order, where an index would go back and forth. facts are
 * the entry as it is in memory, up to its id; the pointers in it are made anew when it is read. The
 * suffix is the end of relative, so that the place where it begins is kept. */
static const char create_sql[] =
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
	"PRAGMA temp_store = FILE; PRAGMA cache_size = -4096;"
	"CREATE TABLE files(key BLOB, source INTEGER, relative BLOB, suffix INTEGER, id TEXT,"
	" facts BLOB);"
	"BEGIN";
static const char insert_sql[] = "INSERT INTO files VALUES(?, ?, ?, ?, ?, ?)";
static const char sorted_sql[] = "SELECT * FROM files ORDER BY key, source, relative";
enum { KEY, SOURCE, RELATIVE, SUFFIX, CONTENT_ID, FACTS };
#define FACTS_BYTES offsetof(struct scan_entry, content_id)

static int sorting_failed(const struct order *order, int rc, struct problem *ret_problem)
{
	/* What ends every part of a scan has its own sentence. */
	const int end = (rc & 0xff) == SQLITE_INTERRUPT             ? -ECANCELED
			: (rc & 0xff) == SQLITE_NOMEM || !order->db ? -ENOMEM
								    : 0;
	if (open_cannot_go_on(end, ret_problem))
		return end;
	const int error = sqlite3_system_errno(order->db);
	return problem_error(ret_problem, -EIO,
		"the keys that --key makes cannot be sorted in a temporary file (%s%s%s); make "
		"room in /var/tmp, or name a folder with room in SQLITE_TMPDIR",
		sqlite3_errstr(rc), error ? ": " : "", error ? strerror(error) : "");
}

static int is_sorting_over(void *arg)
{
	return scan_is_cancelled(((const struct order *)arg)->options);
}

static int begin_sorting(struct order *order, struct problem *ret_problem)
{
	for (size_t i = 0; i < 2; i++) {
		struct row *row = &order->rows[i];
		row->key = row->relative = row->path = TEXT(PATH_BYTES_MAX);
	}
	int rc = sqlite3_open_v2("", &order->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!rc)
		rc = sqlite3_exec(order->db, create_sql, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_prepare_v2(order->db, insert_sql, -1, &order->insert, NULL);
	if (rc)
		return sorting_failed(order, rc, ret_problem);
	sqlite3_progress_handler(order->db, STEPS_BETWEEN_ASKING, is_sorting_over, order);
	return order->options->rotated
		       ? rotation_new(order->sources, order->n, &order->rotation, ret_problem)
		       : 0;
}

static const char *read_column(struct order *order, int column, struct text *ret)
{
	text_reset(ret);
	text_add_bytes(ret, sqlite3_column_blob(order->sorted, column),
		(size_t)sqlite3_column_bytes(order->sorted, column));
	return text_string(ret);
}

/* The next row of what is sorted: 1, 0 if there is none, or -errno with a sentence. */
static int read_row(struct order *order, struct row *row, struct problem *ret_problem)
{
	struct scan_entry *entry = &row->entry;
	const int rc = sqlite3_step(order->sorted);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? 0 : sorting_failed(order, rc, ret_problem);
	const void *facts = sqlite3_column_blob(order->sorted, FACTS);
	const char *id = (const char *)sqlite3_column_text(order->sorted, CONTENT_ID);
	if (!facts || !id)
		return scan_no_memory(ret_problem);
	*entry = (struct scan_entry){0};
	memcpy(entry, facts, FACTS_BYTES);
	memcpy(entry->content_id, id, strlen(id) + 1);
	entry->key = read_column(order, KEY, &row->key);
	entry->relative = read_column(order, RELATIVE, &row->relative);
	entry->suffix = entry->relative + sqlite3_column_int(order->sorted, SUFFIX);
	text_reset(&row->path);
	source_add_path(&order->sources[entry->source], entry->relative, &row->path);
	entry->path = text_string(&row->path);
	const bool is_whole = !row->key.error && !row->relative.error && !row->path.error;
	return is_whole ? 1 : scan_no_memory(ret_problem);
}

/* The next entry of all sources, in any order: 1 and whose head it is, 0 at the end. */
static int read_next(struct order *order, struct source **ret, struct problem *ret_problem)
{
	if (order->rotation) {
		int r = rotation_next(order->rotation, ret, ret_problem);
		return r > 0 ? source_name_head(*ret, ret_problem) : r;
	}
	while (order->at < order->n) {
		*ret = &order->sources[order->at];
		int r = source_next(*ret, ret_problem);
		if (r)
			return r;
		order->at++;
	}
	return 0;
}

/* Reads the sources to the end but for what has no key: 1 and that entry; 0 at the end, when the
 * first sorted row is read. What is left alone today would take the key tomorrow. */
static int sort_all(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	sqlite3_stmt *s = order->insert;
	struct source *source;
	int r, rc = SQLITE_OK;
	while (!rc && (r = read_next(order, &source, ret_problem)) > 0) {
		const struct scan_entry *head = &source->head;
		if (!entry_is_file(head) || !*head->key) {
			*ret = *head;
			return 1;
		}
		const size_t bytes = strlen(head->relative);
		sqlite3_bind_blob(s, KEY + 1, head->key, (int)strlen(head->key), SQLITE_STATIC);
		sqlite3_bind_int64(s, SOURCE + 1, (int64_t)head->source);
		sqlite3_bind_blob(s, RELATIVE + 1, head->relative, (int)bytes, SQLITE_STATIC);
		sqlite3_bind_int(s, SUFFIX + 1, (int)(bytes - strlen(head->suffix)));
		sqlite3_bind_text(s, CONTENT_ID + 1, head->content_id, -1, SQLITE_STATIC);
		sqlite3_bind_blob(s, FACTS + 1, head, (int)FACTS_BYTES, SQLITE_STATIC);
		sqlite3_step(s);
		rc = sqlite3_reset(s); /* tells also what the binding met */
	}
	if (!rc && r < 0)
		return r;
	if (!rc)
		rc = sqlite3_prepare_v2(order->db, sorted_sql, -1, &order->sorted, NULL);
	if (rc)
		return sorting_failed(order, rc, ret_problem);
	r = read_row(order, &order->rows[0], ret_problem);
	order->next = r > 0 ? &order->rows[0] : NULL;
	return r < 0 ? r : 0;
}

static int next_sorted(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	int r = order->sorted ? 0 : sort_all(order, ret, ret_problem);
	struct row *row = order->next, *after = &order->rows[row == &order->rows[0]];
	if (r || !row)
		return r;
	r = read_row(order, after, ret_problem);
	if (r < 0)
		return r;
	if (r > 0 && strcmp(row->entry.key, after->entry.key) == 0)
		refuse_both(&row->entry, &after->entry,
			"exclude one, or make --key distinguish them, for instance by {path} or "
			"{mtime:…}");
	order->next = r > 0 ? after : NULL;
	return hand_out(&row->entry, ret);
}

int order_new(struct source *sources, size_t n, struct order **ret, struct problem *ret_problem)
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

int order_next(struct order *order, struct scan_entry *ret, struct problem *ret_problem)
{
	return order->db ? next_sorted(order, ret, ret_problem)
			 : next_merged(order, ret, ret_problem);
}

void order_free(struct order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < 2; i++) {
		text_clear(&order->rows[i].key);
		text_clear(&order->rows[i].relative);
		text_clear(&order->rows[i].path);
	}
	free(order->heap);
	rotation_free(order->rotation);
	sqlite3_finalize(order->insert);
	sqlite3_finalize(order->sorted);
	sqlite3_close(order->db);
	free(order);
}
