/* What a run looks at on this host: the scan of its sources and all that this needs, and the folder
 * that files are moved to. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include "scan/scan.h"
#include "store/state_folder.h"

/* What is looked at on this host. The main thread makes it before all others, and frees it after
 * them; the thread of the scan alone uses `scan`, but to open files. */
struct run_files {
	struct scan *scan;
	struct filter *filter;
	struct family_rules *families;     /* of key_template, and of rotated files */
	struct log_rows *log_rows;         /* of logs that grow; NULL: none do */
	struct identity_cache *identities; /* of contents; NULL: all are read */
	struct key_template *key_template; /* NULL: keys are relative paths */
	char **sources_of_marks;           /* "host:directory" of each source; NULL behind them */
	struct own_files own_files;
	int move_to_fd; /* of options.move_to; -1: there is none */
};

/* Opens the scan. *files has the filter, and nothing else yet; with an error it is to be closed,
 * too. is_over(arg) is asked while the scan looks for files. 0, -EINVAL with a sentence for options
 * that contradict each other, or another -errno with one. */
int run_files_open(struct run_files *files, const struct s3once_options *o,
	bool (*is_over)(void *arg), void *arg, struct problem *ret_problem);
/* Opens the folder of options.move_to, if there is one. False with a sentence. */
bool run_files_open_move_to(
	struct run_files *files, const struct s3once_options *o, struct problem *ret_problem);
void run_files_close(struct run_files *files);
