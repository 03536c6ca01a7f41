/* Runs over a folder of logs, each of which checks all that the scan finds. What a run keeps for
 * the next one stays beside the folder. */
#pragma once
#include "base/clock.h"
#include "scan/content/identity_cache.h"
#include "scan/rotated/log_rows.h"
#include "tree.h"

#define LINES_MAX 20

static struct family_rules *families;
static struct key_template *template;
static const char *const t_source[] = {"t"};
static struct scan_options options; /* of the next run */
static int64_t today;               /* its day */
/* It keeps the rows of logs that grow; it keeps the ids of contents by the identities of files. */
static bool has_rows, has_identities;

/* Adds "NAME@OFFSET=CONTENT" of a file or piece, '$' for each newline; '(…)' behind the name is the
 * reason of any other entry. '+' is before a new piece, and '?' before a whole file that may grow.
 */
static void add_found(struct scan *scan, const struct scan_entry *entry, struct text *line)
{
	static const char *const waits[S3ONCE_WAITS] = {"", "young", "live", "no line",
		"compressing", "copy", "unfinished", "changed", "family"};
	char content[100000];
	struct file_state state;
	struct problem why = {.text = ""};
	if (entry->kind == SCAN_NOTICE || entry->kind == SCAN_PROBLEM) {
		text_addf(line, "%s: %s", entry->kind == SCAN_NOTICE ? "notice" : entry->relative,
			entry->problem.text);
		return;
	}
	if (entry->kind != SCAN_FILE) {
		text_addf(line, "%s (%s)", entry->relative, waits[entry->wait]);
		return;
	}
	text_addf(line, "%s%s",
		entry->is_new                         ? "+"
		: entry->may_grow && !entry->is_piece ? "?"
						      : "",
		entry->relative);
	char key_end[20] = ""; /* that of a piece behind the first one */
	if (entry->is_piece)
		text_addf(line, "@%d", (int)entry->offset);
	if (entry->is_piece && entry->offset)
		snprintf(key_end, sizeof key_end, "~%d", (int)entry->offset);
	CHECK_STRING(entry->key + strcspn(entry->key, "~"), key_end);
	const int fd = entry->is_piece
			       ? scan_open_piece(scan, entry, &state, &why)
			       : scan_open_file(scan, entry->source, entry->relative, &state);
	if (fd < 0) {
		text_addf(line, " (%s: %s)", strerror(-fd), why.text);
		return;
	}
	const ssize_t n = pread(fd, content, sizeof content - 1, 0);
	close(fd);
	CHECK_INT(n, (int64_t)entry->size);
	content[n < 0 ? 0 : n] = '\0';
	for (char *c = content; (c = strchr(c, '\n'));)
		*c = '$';
	const bool is_packed = *entry->suffix || *content == 0x1f;
	text_addf(line, "=%.40s", is_packed ? "(packed)" : content);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Opens what the run before has kept. */
static void begin_run(void)
{
	struct problem problem = {.text = ""};
	sqlite3 *db;
	options.log_rows = NULL;
	options.identities = NULL;
	if (has_rows) {
		tree_need(sqlite3_open("rows.db", &db) == 0, "rows.db");
		sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
		tree_need(log_rows_new(db, "b/p", options.read_only, today * 86400,
				  &options.log_rows, &problem) == 0,
			problem.text);
	}
	if (has_identities)
		tree_need(identity_cache_open("identities.db", today * 86400, &options.identities,
				  &problem) == 0,
			problem.text);
}

static void end_run(void)
{
	log_rows_free(options.log_rows);
	identity_cache_close(options.identities);
}

/* Makes a run, and checks what it finds: entries in the order of their text, with '|' between.
 * NULL: anything. */
UNUSED static bool run_finds(const char *want)
{
	char *lines[LINES_MAX];
	size_t n = 0;
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	struct text got = TEXT(10000);
	const size_t descriptors = count_descriptors();
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	int r;
	while ((r = scan_next(scan, &entry, &problem)) > 0 && n < LINES_MAX) {
		struct text line = TEXT(4096);
		add_found(scan, &entry, &line);
		lines[n++] = strdup(text_string(&line));
		text_clear(&line);
	}
	CHECK_INT(r, 0);
	scan_close(scan);
	end_run();
	CHECK_INT(count_descriptors(), descriptors);
	qsort(lines, n, sizeof *lines, compare_lines);
	for (size_t i = 0; i < n; i++) {
		text_addf(&got, "%s%s", i ? " | " : "", lines[i]);
		free(lines[i]);
	}
	const bool same = !want || CHECK_STRING(text_string(&got), want);
	text_clear(&got);
	return same;
}

/* Runs a command of the shell in the folder of the logs. */
UNUSED static void sh(const char *command)
{
	char line[400];
	snprintf(line, sizeof line, "cd t && %s", command);
	tree_need(system(line) == 0, command); // NOLINT(cert-env33-c): fixed commands
}

/* Begins a test with an empty folder, and nothing that is kept. */
static void begin(void)
{
	tree_begin();
	make_parents("t/");
	options = one_source(t_source);
	options.rotated = families;
	options.key_template = template;
	today = 100;
}

/* Makes what all tests of the program use. */
static void runs_begin(void)
{
	struct problem problem;
	tree_need(family_rules_new(&families, &problem) == 0, "families");
	const struct key_template_options how = {.text = "{name}-{id}", .families = families};
	tree_need(key_template_new(&how, &template, &problem) == 0, "template");
}

static void runs_end(void)
{
	key_template_free(template);
	family_rules_free(families);
}
