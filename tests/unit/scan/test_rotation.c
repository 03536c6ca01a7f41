/* Logs that are rotated at any moment while a scan that takes live logs is under way. */
#include "base/clock.h"
#include "base/files.h"
#include "scan/key/key_template.h"
#include "scan/rotated/log_rows.h"
#include "tree.h"

static const char *const t_source[] = {"t"};
static const char old_lines[] = "a line that was there before\n";

/* The event at one of the moments at which the scan checks whether to stop. */
static struct {
	unsigned at, moment;
	void (*happens)(void);
} rotation;

static bool rotates(void *arg)
{
	(void)arg;
	if (++rotation.at == rotation.moment)
		rotation.happens();
	return false;
}

static void create(void)
{
	tree_need(rename("t/z.log", "t/z.log.1") == 0, "rename");
	make_file("t/z.log", "new\n");
}

static void copytruncate(void)
{
	make_file("t/z.log.1", old_lines);
	make_file("t/z.log", "new\n");
}

/* Whether the scan hands out a log with this content, or names one that it leaves to a later scan.
 * With `ret_id` it sets that to the content's id. */
static bool finds(const struct scan_options *options, const char *id, char *ret_id)
{
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	bool ret = false;
	tree_need(scan_open(options, &scan, &problem) == 0, problem.text);
	int r;
	while ((r = scan_next(scan, &entry, &problem)) > 0) {
		const bool is_z = strncmp(path_name(entry.path), "z.log", 5) == 0;
		if (is_z && ret_id)
			memcpy(ret_id, entry.content_id, sizeof entry.content_id);
		ret |= is_z && (entry.kind == SCAN_WAITS || entry.kind == SCAN_PROBLEM ||
				       (id && strcmp(entry.content_id, id) == 0));
	}
	CHECK_INT(r, 0);
	scan_close(scan);
	return ret;
}

static void begin(void)
{
	tree_begin();
	make_file("t/a.log", "of another log\n");
	make_file("t/z.log", old_lines);
}

static void test_at_any_moment(struct scan_options *options, void (*happens)(void))
{
	char id[sizeof((struct scan_entry *)0)->content_id] = "";
	begin();
	rotation.at = rotation.moment = 0;
	finds(options, NULL, id);
	CHECK(*id != '\0');
	tree_end();
	const unsigned moments = rotation.at;
	CHECK(moments > 4);
	rotation.happens = happens;
	for (unsigned moment = 1; moment <= moments; moment++) {
		begin();
		rotation.at = 0;
		rotation.moment = moment;
		if (!CHECK(finds(options, id, NULL)))
			printf("at moment %u of %u\n", moment, moments);
		tree_end();
	}
}

/* The contents that scans have handed out, each once. */
struct contents {
	char ids[8][sizeof((struct scan_entry *)0)->content_id];
	unsigned n;
};

static void collect(const struct scan_options *options, unsigned moment, struct contents *ret)
{
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	int r;
	rotation.at = 0;
	rotation.moment = moment;
	tree_need(scan_open(options, &scan, &problem) == 0, problem.text);
	while ((r = scan_next(scan, &entry, &problem)) > 0) {
		unsigned i = 0;
		if (strncmp(path_name(entry.path), "z.log", 5) != 0 || entry.kind != SCAN_FILE)
			continue;
		while (i < ret->n && strcmp(ret->ids[i], entry.content_id) != 0)
			i++;
		if (i == ret->n && ret->n < sizeof ret->ids / sizeof *ret->ids)
			memcpy(ret->ids[ret->n++], entry.content_id, sizeof entry.content_id);
	}
	CHECK_INT(r, 0);
	scan_close(scan);
}

static const char grown_lines[] = "a line that was there before\nand another\n";

static void copytruncate_grown(void)
{
	make_file("t/z.log.1", grown_lines);
	make_file("t/z.log", "new\n");
}

static bool has(const struct contents *contents, const char *id)
{
	for (unsigned i = 0; i < contents->n; i++)
		if (strcmp(contents->ids[i], id) == 0)
			return true;
	return false;
}

/* Scans a log, lets it grow, scans it again while it is copied and emptied at a moment (0: never),
 * and scans it once more. */
static void scan_thrice(struct scan_options *options, unsigned moment, struct contents *ret)
{
	struct log_rows *rows;
	struct problem problem;
	begin();
	tree_need(log_rows_new(NULL, "s", false, 0, &rows, &problem) == 0, problem.text);
	options->log_rows = rows;
	options->takes_open_logs = false;
	*ret = (struct contents){.n = 0};
	collect(options, 0, ret);
	make_file("t/a.log", "of another log\nthat grows, and is read first\n");
	make_file("t/z.log", grown_lines);
	collect(options, moment, ret);
	const unsigned moments = rotation.at;
	collect(options, 0, ret);
	rotation.at = moments;
	options->log_rows = NULL;
	options->takes_open_logs = true;
	log_rows_free(rows);
	tree_end();
}

/* The log is known again in its copy, whenever that was made. What it had before, what it has got
 * since, and what is new in the emptied file are handed out, and nothing else is. */
static void test_rows_at_any_moment(struct scan_options *options)
{
	struct contents calm, found;
	rotation.happens = copytruncate_grown;
	scan_thrice(options, 0, &calm);
	if (!CHECK_INT(calm.n, 2))
		return;
	rotation.at = 2;
	for (unsigned moment = 1; moment < rotation.at; moment++) {
		scan_thrice(options, moment, &found);
		if (!CHECK_INT(found.n, 3) || !CHECK(has(&found, calm.ids[0])) ||
			!CHECK(has(&found, calm.ids[1])))
			printf("at moment %u of %u\n", moment, rotation.at);
	}
}

int main(void)
{
	struct family_rules *families;
	struct key_template *template;
	struct problem problem;
	tree_need(family_rules_new(&families, &problem) == 0, "families");
	const struct key_template_options how = {.text = "{name}-{id}", .families = families};
	tree_need(key_template_new(&how, &template, &problem) == 0, "template");
	struct scan_options options = one_source(t_source);
	options.rotated = families;
	options.takes_open_logs = true;
	options.key_template = template;
	options.abandon = rotates;
	test_at_any_moment(&options, create);
	test_at_any_moment(&options, copytruncate);
	test_rows_at_any_moment(&options);
	/* A log copied a moment ago is too young. */
	options.min_age_ms = 3600 * 1000;
	options.now_wall_ns = clock_wall_ns();
	test_at_any_moment(&options, copytruncate);
	key_template_free(template);
	family_rules_free(families);
	return check_result();
}
