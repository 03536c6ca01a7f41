/* `s3once proven`: files and folders that may be erased are told from those that may not. All is in
 * S3 only if each file that is found there is: a file without a key is not, whatever it waits for.
 */
#include "base/clock.h"
#include "steps.h"
#include "upload/file/worker.h"

#define CONTENT "123456789"
#define SHOWN                                                                                      \
	STEPS_REPLY("200",                                                                         \
		"Content-Length: 9\r\nETag: \"e\"\r\nx-amz-checksum-crc32c: 4waSgw==\r\n", "")
#define ABSENT STEPS_REPLY("404", "", "")
#define FAULT  STEPS_REPLY("500", "", "")

/* The content of the folder besides the file k, which is done. */
enum beside {
	NOTHING,
	CHANGE,        /* k itself is written to, while S3 is asked */
	NEW,           /* a file without a mark */
	NEW_BELOW,     /* the same, in a folder */
	NEW_NEAR,      /* the same, in a folder whose name begins like that of an empty one */
	YOUNG,         /* the same, and it is younger than the least age */
	YOUNG_NO_KEY,  /* the same, and its key has the content's id */
	LARGE,         /* a file that is larger than the most */
	LARGE_NO_KEY,  /* the same, and its key has the content's id */
	LIVE,          /* a log that is written to, and a rotated one */
	LIVE_PIECE,    /* a log that is uploaded in pieces */
	COMPRESSING,   /* a rotated log, half compressed */
	LINK,          /* a symbolic link */
	PIPE,          /* a named pipe */
	EXCLUDED,      /* two files that the filter leaves out, one in a folder */
	NO_TARGET,     /* a link to nothing, where links are followed */
	NEW_NO_TARGET, /* the same, before a file without a mark */
	NO_TARGET_NEW, /* the same, behind it */
};

static const struct {
	enum beside beside;
	bool without_k;
	const char *reply;    /* about k, once the bucket is shown; NULL: SHOWN */
	const char *files[3]; /* in the folder; "" is the folder itself */
	enum s3once_exit exit;
	unsigned proven, unproven, failed, links;
	const char *says;
	unsigned specials, excluded;
} rows[] = {
	/* All of a folder. */
	{NOTHING, false, NULL, {""}, S3ONCE_EXIT_OK, 1, 0, 0, 0, ""},
	{NOTHING, false, ABSENT, {""}, S3ONCE_EXIT_FILES, 0, 1, 0, 0, "does not hold its object"},
	{NOTHING, false, FAULT, {""}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, ""},
	{CHANGE, false, NULL, {""}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "it changed while it was read"},
	{NEW, false, NULL, {""}, S3ONCE_EXIT_FILES, 1, 1, 0, 0, "no upload of it is marked"},
	{NEW_BELOW, false, NULL, {""}, S3ONCE_EXIT_FILES, 1, 1, 0, 0, "no upload of it is marked"},
	{YOUNG, false, NULL, {""}, S3ONCE_EXIT_FILES, 1, 1, 0, 0, "no upload of it is marked"},
	{LARGE, false, NULL, {""}, S3ONCE_EXIT_FILES, 1, 1, 0, 0, "no upload of it is marked"},
	/* Without a key, there is no mark to ask. */
	{YOUNG_NO_KEY, true, NULL, {""}, S3ONCE_EXIT_FILES, 0, 1, 0, 0, "younger than --min-age"},
	{LARGE_NO_KEY, true, NULL, {""}, S3ONCE_EXIT_FILES, 0, 1, 0, 0, "larger than --max-size"},
	{LIVE, true, NULL, {""}, S3ONCE_EXIT_FILES, 0, 2, 0, 0, ""},
	{COMPRESSING, true, NULL, {""}, S3ONCE_EXIT_FILES, 0, 2, 0, 0, ""},
	{LIVE_PIECE, true, NULL, {""}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "in pieces"},
	/* Push skips these, and they alone are no folder that push has uploaded. */
	{LINK, false, NULL, {""}, S3ONCE_EXIT_OK, 1, 0, 0, 1, ""},
	{PIPE, false, NULL, {""}, S3ONCE_EXIT_OK, 1, 0, 0, 0, "is a named pipe", 1},
	{NOTHING, true, NULL, {""}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "there is no file in it"},
	{LINK, true, NULL, {""}, S3ONCE_EXIT_SETUP, 0, 0, 1, 1, "there is no file in it"},
	{PIPE, true, NULL, {""}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "there is no file in it", 1},
	/* The filter has left these out of the upload, too, and a removal would lose them. */
	{EXCLUDED, false, NULL, {""}, S3ONCE_EXIT_SETUP, 1, 0, 0, 0, "", 0, 2},
	{EXCLUDED, true, NULL, {""}, S3ONCE_EXIT_SETUP, 0, 0, 0, 0, "", 0, 2},
	{EXCLUDED, false, NULL, {"d"}, S3ONCE_EXIT_SETUP, 0, 0, 0, 0, "", 0, 1},
	{EXCLUDED, false, NULL, {"k"}, S3ONCE_EXIT_OK, 1, 0, 0, 0, ""},
	{EXCLUDED, false, NULL, {"x"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "--exclude or --include"},
	/* A file whose state is unknown is worse than one that is not done, in either order. */
	{NO_TARGET, false, NULL, {""}, S3ONCE_EXIT_SETUP, 1, 0, 1, 0, "does not exist"},
	{NEW_NO_TARGET, false, NULL, {""}, S3ONCE_EXIT_SETUP, 1, 1, 1, 0, ""},
	{NO_TARGET_NEW, false, NULL, {""}, S3ONCE_EXIT_SETUP, 1, 1, 1, 0, ""},
	/* Some of it. */
	{NEW_BELOW, false, NULL, {"k"}, S3ONCE_EXIT_OK, 1, 0, 0, 0, ""},
	{NEW_BELOW, false, NULL, {"d"}, S3ONCE_EXIT_FILES, 0, 1, 0, 0, "no upload of it is marked"},
	{NEW, false, NULL, {"empty"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "there is no file in it"},
	{NEW_NEAR, false, NULL, {"empty"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "there is no file in it"},
	{NEW_BELOW, false, NULL, {"k", "d"}, S3ONCE_EXIT_FILES, 1, 1, 0, 0, ""},
	{NEW, false, NULL, {"x", "k"}, S3ONCE_EXIT_FILES, 1, 1, 0, 0, ""},
	{NEW, false, NULL, {"x", "none", "k"}, S3ONCE_EXIT_SETUP, 1, 1, 1, 0, ""},
	{NEW, false, NULL, {"none", "x", "k"}, S3ONCE_EXIT_SETUP, 1, 1, 1, 0, ""},
	/* A file that is named has to be one. */
	{YOUNG, true, NULL, {"x"}, S3ONCE_EXIT_FILES, 0, 1, 0, 0, "no upload of it is marked"},
	{YOUNG_NO_KEY, true, NULL, {"x"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "has no key"},
	{LARGE_NO_KEY, true, NULL, {"x"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "has no key"},
	{LINK, false, NULL, {"x"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "is not a regular file"},
	{PIPE, false, NULL, {"x"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, ""},
	{NEW, false, NULL, {"none"}, S3ONCE_EXIT_SETUP, 0, 0, 1, 0, "does not exist"},
};

static void make(const struct steps *steps, const char *name, bool is_young)
{
	char path[120];
	snprintf(path, sizeof path, "%s/%s", steps->tree, name);
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(fd, "a line\n", 7), 7);
	if (!is_young)
		CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}), 0);
	close(fd);
}

static void make_folder(const struct steps *steps, const char *name)
{
	char path[120];
	snprintf(path, sizeof path, "%s/%s", steps->tree, name);
	CHECK_INT(mkdir(path, 0700), 0);
}

static void make_link(const struct steps *steps, const char *name, const char *target)
{
	char path[120];
	snprintf(path, sizeof path, "%s/%s", steps->tree, name);
	CHECK_INT(symlink(target, path), 0);
}

static void make_beside(struct steps *steps, enum beside beside)
{
	struct s3once_options *o = &steps->options;
	const bool has_id = beside == YOUNG_NO_KEY || beside == LARGE_NO_KEY;
	const bool is_young = beside == YOUNG || beside == YOUNG_NO_KEY;
	const bool is_large = beside == LARGE || beside == LARGE_NO_KEY;
	char path[120];
	o->key_template = has_id ? "{id}-{name}" : NULL;
	o->min_age_ms = is_young ? 3600 * 1000 : 0;
	o->max_bytes = is_large ? 1 : 0;
	o->rotated = beside == LIVE || beside == LIVE_PIECE || beside == COMPRESSING;
	o->live = beside == LIVE_PIECE;
	o->follow = beside == NO_TARGET || beside == NEW_NO_TARGET || beside == NO_TARGET_NEW;
	if (beside == EXCLUDED) {
		static const struct s3once_rule rules[] = {
			{S3ONCE_RULE_EXCLUDE, "d/"}, {S3ONCE_RULE_EXCLUDE, "x"}};
		o->rules = rules;
		o->n_rules = 2;
	}
	make_folder(steps, "empty");
	if (beside == NEW || beside == EXCLUDED || is_young || is_large)
		make(steps, "x", is_young);
	if (beside == NEW_BELOW || beside == EXCLUDED) {
		make_folder(steps, "d");
		make(steps, "d/x", false);
	}
	if (beside == NEW_NEAR) {
		make_folder(steps, "empty2");
		make(steps, "empty2/x", false);
	}
	if (o->rotated)
		make(steps, beside == COMPRESSING ? "app.log.1" : "app.log", true);
	if (beside == LIVE)
		make(steps, "app.log.1", false);
	if (beside == COMPRESSING)
		make(steps, "app.log.1.gz", true);
	if (beside == LINK)
		make_link(steps, "x", "k");
	if (o->follow)
		make_link(steps, "m", "nowhere");
	if (beside == NEW_NO_TARGET)
		make(steps, "a", false);
	if (beside == NO_TARGET_NEW)
		make(steps, "x", false);
	snprintf(path, sizeof path, "%s/x", steps->tree);
	if (beside == PIPE)
		CHECK_INT(mkfifo(path, 0600), 0);
}

/* A run marks k done. Then its push is freed. */
static bool mark_k(struct steps *steps, const struct script_step *script, size_t n)
{
	struct mark seen;
	const struct version version = {.size = 9,
		.mtime_ns = 1000 * (int64_t)NS_PER_S,
		.etag = "e",
		.sum = "crc32c:4waSgw=="};
	if (!steps_begin(steps, script, n))
		return false;
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	CHECK_INT(steps_claim(steps), STEP_NEXT);
	CHECK_INT(
		mark_done(&ref, &steps->file->claim, &version, ref.source, &seen, &steps->problem),
		OUTCOME_OK);
	file_free(steps->file);
	worker_free(steps->worker);
	session_close(steps->run->session, steps->push->conn);
	steps->run->session = NULL;
	s3once_push_free(steps->push);
	memset(steps->events, 0, sizeof steps->events);
	return true;
}

static void test_row(size_t i)
{
	const struct script_step script[] = {
		{SHOWN, .close = true}, {rows[i].reply ? rows[i].reply : SHOWN, .close = true}};
	struct steps steps;
	char text[400], paths[3][120];
	const char *files[3];
	size_t n = 0;
	if (!steps_make(&steps, CONTENT, 9) || !mark_k(&steps, script, 2))
		return;
	if (rows[i].without_k)
		CHECK_INT(unlink(steps.path), 0);
	make_beside(&steps, rows[i].beside);
	if (rows[i].beside == CHANGE) {
		steps.server.steps[1].meanwhile = steps_append;
		steps.server.steps[1].arg = steps.path;
	}
	for (; n < 3 && rows[i].files[n]; n++) {
		const char *name = rows[i].files[n];
		snprintf(paths[n], sizeof *paths, "%s%s%s", steps.tree, *name ? "/" : "", name);
		files[n] = paths[n];
	}
	*steps.said = '\0';
	steps.options.dry_run = steps.options.report_skipped = 1;
	if (!CHECK_INT(s3once_push_new(&steps.options, &steps.push, text, sizeof text), 0)) {
		fprintf(stderr, "\trow %zu: %s\n", i, text);
		return;
	}
	bool good = CHECK_INT(s3once_push_prove(steps.push, files, n), rows[i].exit);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_PROVEN], rows[i].proven);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_UNPROVEN], rows[i].unproven);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], rows[i].failed);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_LINK], rows[i].links);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_SPECIAL], rows[i].specials);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_EXCLUDED], rows[i].excluded);
	good &= steps_say(&steps, rows[i].says);
	if (!good)
		fprintf(stderr, "\trow %zu: %s\n", i, steps.said);
	s3once_push_free(steps.push);
	script_clear(&steps.server);
	snprintf(text, sizeof text, "rm -r %s", steps.folder);
	CHECK_INT(system(text), 0);
}

static char said_of[800]; /* a line for each event about a file: type, path below the tree, key */

static void note_place(void *arg, const struct s3once_event *event)
{
	const struct steps *steps = arg;
	static const char *const names[] = {[S3ONCE_EVENT_UNPROVEN] = "unproven",
		[S3ONCE_EVENT_FAILED] = "failed",
		[S3ONCE_EVENT_LINK] = "link",
		[S3ONCE_EVENT_SPECIAL] = "special",
		[S3ONCE_EVENT_EXCLUDED] = "excluded",
		[S3ONCE_EVENT_SUMMARY] = NULL};
	const size_t n = strlen(said_of), tree = strlen(steps->tree);
	if (names[event->type] && CHECK(strncmp(event->path, steps->tree, tree) == 0))
		snprintf(said_of + n, sizeof said_of - n, "%s %s %s\n", names[event->type],
			event->path + tree, event->key);
}

/* Each file is named by its path, and by the key that a push would give it, if there is one. */
static void test_names(void)
{
	static const struct s3once_rule rule[] = {{S3ONCE_RULE_EXCLUDE, "x"}};
	struct steps steps;
	char text[400];
	const char *files[] = {steps.tree};
	if (!steps_make(&steps, CONTENT, 9))
		return;
	snprintf(text, sizeof text,
		"cd %s && { mkdir d; cp k d/k; ln -s k l; mkfifo pipe; cp k x; "
		"cp k $(printf 'bad\\377'); }",
		steps.tree);
	CHECK_INT(system(text), 0);
	steps.options.prefix = "p";
	steps.options.report_skipped = 1;
	steps.options.concurrency = 1;
	steps.options.rules = rule;
	steps.options.n_rules = 1;
	steps.options.callback = note_place;
	if (!script_start(&steps.server, NULL, 0))
		return;
	steps.options.endpoint_url = steps.server.url;
	said_of[0] = '\0';
	CHECK_INT(s3once_push_new(&steps.options, &steps.push, text, sizeof text), 0);
	CHECK_INT(s3once_push_prove(steps.push, files, 1), S3ONCE_EXIT_SETUP);
	static const char *const lines[] = {"unproven /k p/k\n", "unproven /d/k p/d/k\n",
		"link /l \n", "special /pipe \n", "excluded /x \n", "failed /bad\377 p/bad\377\n"};
	size_t bytes = 0;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		CHECK(strstr(said_of, lines[i]) != NULL);
		bytes += strlen(lines[i]);
	}
	if (!CHECK_INT(strlen(said_of), bytes))
		fprintf(stderr, "%s", said_of);
	s3once_push_free(steps.push);
	script_stop(&steps.server);
	script_clear(&steps.server);
	snprintf(text, sizeof text, "rm -r %s", steps.folder);
	CHECK_INT(system(text), 0);
}

/* Stops the run at the link, behind which the scan has not been yet. */
static void stop_at_link(void *arg, const struct s3once_event *event)
{
	const struct steps *steps = arg;
	if (event->type == S3ONCE_EVENT_LINK)
		s3once_push_stop(steps->push);
	steps_note(arg, event);
}

/* A run that is stopped has not looked at all files of the folder. So what it has seen is not
 * enough, although each file of that is done. */
static void test_stopped(void)
{
	const struct script_step script[] = {{SHOWN, .close = true}, {SHOWN, .close = true}};
	struct steps steps;
	char text[400];
	const char *files[] = {steps.tree};
	if (!steps_make(&steps, CONTENT, 9) || !mark_k(&steps, script, 2))
		return;
	make_link(&steps, "l", "k");
	make_folder(&steps, "la"); /* the scan asks whether it goes on when it leaves a folder */
	make(&steps, "m", false);  /* it has no mark */
	steps.options.dry_run = steps.options.report_skipped = 1;
	steps.options.callback = stop_at_link;
	CHECK_INT(s3once_push_new(&steps.options, &steps.push, text, sizeof text), 0);
	CHECK_INT(s3once_push_prove(steps.push, files, 1), S3ONCE_EXIT_SETUP);
	CHECK_INT(steps.events[S3ONCE_EVENT_LINK], 1);
	CHECK_INT(steps.events[S3ONCE_EVENT_UNPROVEN], 0);
	s3once_push_free(steps.push);
	script_clear(&steps.server);
	snprintf(text, sizeof text, "rm -r %s", steps.folder);
	CHECK_INT(system(text), 0);
}

int main(void)
{
	test_names();
	test_stopped();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(i);
	return check_result();
}
