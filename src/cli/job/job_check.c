#include "cli/job/job_check.h"
#include "base/quote.h"
#include "s3/s3_headers.h"
#include "scan/filter/filter.h"
#include <errno.h>
#include <stdlib.h>

struct job_check {
	struct filter *filter;
	struct s3_headers *headers;
};

int job_check_new(struct job_check **ret)
{
	struct job_check *check = calloc(1, sizeof *check);
	if (!check || filter_new(&check->filter) < 0 || s3_headers_new(&check->headers) < 0) {
		job_check_free(check);
		return -ENOMEM;
	}
	*ret = check;
	return 0;
}

void job_check_free(struct job_check *check)
{
	if (!check)
		return;
	filter_free(check->filter);
	s3_headers_free(check->headers);
	free(check);
}

int job_check_value(struct job_check *check, const struct option *option, const char *value,
	struct problem *ret_problem)
{
	if (option->type == OPTION_SETTING)
		return s3_headers_set(check->headers, option->name, value, ret_problem);
	if (option->type != OPTION_EXCLUDE && option->type != OPTION_INCLUDE)
		return 0;
	const int error = filter_add(check->filter, option->type == OPTION_INCLUDE, value);
	if (error == -EINVAL)
		problem_set(ret_problem, "%s: the pattern \"%s\" is empty or has an unclosed [",
			option->name, quote(value).text);
	return error;
}

int job_check_whole(const struct s3once_options *options, struct problem *ret_problem)
{
	struct s3once_options checked = *options;
	struct s3once_push *push;
	char sentence[PROBLEM_SENTENCE_MAX];
	checked.files_from =
		NULL; /* a list is read when its job begins; it may be standard input */
	const int error = s3once_push_new(&checked, &push, sentence, sizeof sentence);
	if (!error)
		s3once_push_free(push);
	else
		problem_set(ret_problem, "%s", error == -EINVAL ? sentence : "out of memory");
	return error;
}
