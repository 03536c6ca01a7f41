/* Trees in a temporary directory, which is the working directory meanwhile, and what a scan of
 * them yields. */
#pragma once
#include "../check.h"
#include "base/text.h"
#include "scan/scan.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

static char tree_path[PATH_MAX];

static void tree_need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(99);
}

/* Makes an empty directory that every user may read, and enters it. */
UNUSED static void tree_begin(void)
{
	const char *parent = getenv("TMPDIR");
	snprintf(tree_path, sizeof tree_path, "%s/s3once-scan-XXXXXX", parent ? parent : "/tmp");
	tree_need(mkdtemp(tree_path) != NULL, "mkdtemp");
	tree_need(chmod(tree_path, 0755) == 0, "chmod");
	tree_need(chdir(tree_path) == 0, "chdir");
	char *real = realpath(".", NULL);
	tree_need(real && strlen(real) < sizeof tree_path, "realpath");
	strcpy(tree_path, real);
	free(real);
}

UNUSED static void tree_end(void)
{
	char program[] = "rm", flags[] = "-rf", dashes[] = "--";
	char *const argv[] = {program, flags, dashes, tree_path, NULL};
	char *const environment[] = {NULL};
	pid_t pid;
	int status;
	tree_need(chdir("/") == 0, "chdir");
	tree_need(posix_spawnp(&pid, "rm", NULL, NULL, argv, environment) == 0, "rm");
	tree_need(waitpid(pid, &status, 0) == pid && status == 0, "rm -rf");
}

/* Directories up to the last '/', modes as given whatever the umask. */
UNUSED static void make_parents(const char *path)
{
	char part[PATH_MAX];
	for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		tree_need(mkdir(part, 0755) == 0 || errno == EEXIST, part);
	}
}

UNUSED static void make_file(const char *path, const char *content)
{
	make_parents(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	tree_need(fd >= 0, path);
	tree_need(write(fd, content, strlen(content)) == (ssize_t)strlen(content), path);
	close(fd);
}

/* A NULL-terminated list of paths; one that ends in '/' is a directory. */
UNUSED static void make_tree(const char *const *paths)
{
	for (; *paths; paths++) {
		size_t len = strlen(*paths);
		if ((*paths)[len - 1] == '/')
			make_parents(*paths);
		else
			make_file(*paths, "content");
	}
}

UNUSED static void make_link(const char *target, const char *path)
{
	make_parents(path);
	tree_need(symlink(target, path) == 0, path);
}

/* Adds "kind key" of an entry, with ": problem" where there is one, and a newline. */
UNUSED static void add_entry(struct text *lines, const struct scan_entry *entry)
{
	static const char *const kinds[] = {
		"file", "problem", "link", "young", "notice", "special", "excluded"};
	text_addf(lines, "%s %s", kinds[entry->kind], entry->key);
	if (entry->kind == SCAN_PROBLEM)
		text_addf(lines, ": %s", entry->problem.text);
	text_add_char(lines, '\n');
}

/* All entries of the scan to its end, as add_entry writes them; text_clear it. Checks the order. */
UNUSED static struct text rest_of(struct scan *scan)
{
	struct text lines = TEXT(16 * 1024 * 1024);
	struct text last_key = TEXT(KEY_BYTES_MAX);
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	int r;
	while ((r = scan_next(scan, &entry, &problem)) > 0) {
		add_entry(&lines, &entry);
		if (entry.kind != SCAN_FILE)
			continue;
		CHECK(last_key.len == 0 || strcmp(text_string(&last_key), entry.key) < 0);
		CHECK(entry.relative[0] != '\0' && entry.ino != 0);
		text_reset(&last_key);
		text_add(&last_key, entry.key);
	}
	if (r < 0)
		text_addf(&lines, "error %d: %s\n", r, problem.text);
	CHECK_INT(lines.error, 0);
	text_clear(&last_key);
	return lines;
}

/* The whole stream, or "refused: sentence\n". */
UNUSED static struct text scan_all(const struct scan_options *options)
{
	struct scan *scan;
	struct problem problem = {.text = ""};
	const size_t descriptors = count_descriptors();
	int r = scan_open(options, &scan, &problem);
	if (r < 0) {
		struct text lines = TEXT(4096);
		text_addf(&lines, "refused %d: %s\n", r, problem.text);
		CHECK_INT(count_descriptors(), descriptors);
		return lines;
	}
	struct text lines = rest_of(scan);
	scan_close(scan);
	CHECK_INT(count_descriptors(), descriptors);
	return lines;
}

/* Checks the whole stream. */
UNUSED static bool scan_yields(const struct scan_options *options, const char *want)
{
	struct text got = scan_all(options);
	bool same = CHECK_STRING(text_string(&got), want);
	text_clear(&got);
	return same;
}

UNUSED static struct scan_options one_source(const char *const *source)
{
	return (struct scan_options){.sources = source, .n_sources = 1, .prefix = ""};
}

/* Runs the checks in a child process; its failures count here as one. */
UNUSED static void in_child(void (*checks)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	tree_need(pid >= 0, "fork");
	if (pid == 0) {
		check_done = check_failed = 0;
		checks();
		exit(check_result());
	}
	int status;
	tree_need(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK_INT(status, 0);
}

/* Root is never refused a file. */
UNUSED static void drop_privileges(void)
{
	if (geteuid() != 0)
		return;
	tree_need(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0, "setuid");
}
