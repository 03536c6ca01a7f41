/* The scan of a run, which finds and opens its files. */
#pragma once
#include "scan/scan.h"
#include "store/state_folder.h"

struct run;

/* The scan of a run, all that the scan needs, and the folder that files are moved to. The main
 * thread makes this before all other threads begin, and frees it after they have ended. Only the
 * thread of the scan uses `scan`, except that any thread may open files by it. */
struct run_files {
	struct scan *scan;
	struct filter *filter;
	struct family_rules *families;     /* rules of the names of rotated files */
	struct log_rows *log_rows;         /* rows of growing logs; NULL: no log grows */
	struct identity_cache *identities; /* cache of content ids; NULL: all contents are read */
	struct key_template *key_template; /* NULL: keys are relative paths */
	char **sources_of_marks;           /* "host:directory" of each source; NULL at the end */
	struct own_files own_files;
	int move_to_fd; /* descriptor of options.move_to; -1: there is none */
};

/* Opens the scan and everything else that it needs. The caller has set run->files.filter before,
 * and closes run->files even after an error. Returns 0, -EINVAL with a sentence for options that
 * contradict each other, or another -errno with a sentence. */
int run_files_open(struct run *run, struct problem *ret_problem);
/* Opens the folder of options.move_to, if that is given. Returns false with a sentence. */
bool run_files_open_move_to(
	struct run_files *files, const struct s3once_options *o, struct problem *ret_problem);
void run_files_close(struct run_files *files);
