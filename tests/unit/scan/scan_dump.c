/* Prints or counts what a scan finds: scan_dump [-q] [-f] [-a KEY] [-k TEMPLATE] [-l LIST]
 * [-x PATTERN]... [-i PATTERN]... [-p PREFIX] SOURCE... For a look by hand and for measuring. */
#include "base/clock.h"
#include "base/text.h"
#include "scan/scan.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void print_entry(const struct scan_entry *entry)
{
	static const char *const kinds[] = {[SCAN_FILE] = "file",
		[SCAN_PROBLEM] = "problem",
		[SCAN_LINK] = "link",
		[SCAN_WAITS] = "waits",
		[SCAN_NOTICE] = "notice",
		[SCAN_SPECIAL] = "special",
		[SCAN_EXCLUDED] = "excluded"};
	struct text line = TEXT(1024 * 1024);
	text_addf(&line, "%s\t%llu\t", kinds[entry->kind], (unsigned long long)entry->size);
	text_add_escaped_string(&line, entry->key);
	text_add_char(&line, '\t');
	text_add_escaped_string(&line, entry->path);
	if (entry->kind == SCAN_PROBLEM)
		text_addf(&line, "\t%s", entry->problem.text);
	puts(text_string(&line));
	text_clear(&line);
}

static int dump(const struct scan_options *options, bool quiet)
{
	struct problem problem;
	struct scan *scan;
	size_t counts[SCAN_EXCLUDED + 1] = {0};
	uint64_t start_ns = clock_boot_ns();
	int r = scan_open(options, &scan, &problem);
	if (r < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 2;
	}
	struct scan_entry entry;
	while ((r = scan_next(scan, &entry, &problem)) > 0) {
		counts[entry.kind]++;
		if (!quiet)
			print_entry(&entry);
	}
	scan_close(scan);
	if (r < 0)
		fprintf(stderr, "%s\n", problem.text);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	fprintf(stderr, "%zu files, %zu problems, %zu links, %zu waiting; %.2f s, peak %ld KiB\n",
		counts[SCAN_FILE], counts[SCAN_PROBLEM], counts[SCAN_LINK], counts[SCAN_WAITS],
		(double)(clock_boot_ns() - start_ns) / 1e9, usage.ru_maxrss);
	return r < 0 || counts[SCAN_PROBLEM] ? 1 : 0;
}

static int read_template(
	const char *text, struct family_rules **ret_families, struct key_template **ret)
{
	struct problem problem;
	int r = family_rules_new(ret_families, &problem);
	const struct key_template_options options = {.text = text, .families = *ret_families};
	if (r == 0)
		r = key_template_new(&options, ret, &problem);
	if (r < 0)
		fprintf(stderr, "%s\n", problem.text);
	return r;
}

int main(int argc, char **argv)
{
	struct scan_options options = {.prefix = "", .now_wall_ns = clock_wall_ns()};
	bool quiet = false;
	struct family_rules *families = NULL;
	struct key_template *template = NULL;
	if (filter_new(&options.filter) < 0)
		return 2;
	for (int c; (c = getopt(argc, argv, "qfa:k:l:x:i:p:")) != -1;) {
		int r = 0;
		switch (c) {
		case 'q':
			quiet = true;
			break;
		case 'f':
			options.follow = true;
			break;
		case 'a':
			options.as = optarg;
			break;
		case 'k':
			r = read_template(optarg, &families, &template);
			break;
		case 'l':
			options.files_from = optarg;
			break;
		case 'p':
			options.prefix = optarg;
			break;
		case 'x':
		case 'i':
			r = filter_add(
				options.filter, c == 'i' ? FILTER_INCLUDE : FILTER_EXCLUDE, optarg);
			break;
		default:
			return 2;
		}
		if (r < 0)
			return 2;
	}
	options.sources = (const char *const *)(argv + optind);
	options.n_sources = (size_t)(argc - optind);
	options.key_template = template;
	int code = dump(&options, quiet);
	filter_free(options.filter);
	key_template_free(template);
	family_rules_free(families);
	return code;
}
