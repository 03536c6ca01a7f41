#include "cli/audit/verify_with_report.h"
#include "audit/verify_report.h"
#include "base/quote.h"

static enum outcome compare_report(const struct verify *verify, struct batch_report *report,
	struct verify_end *ret, struct problem *ret_problem)
{
	if (batch_report_rows(report))
		return verify_report(verify, report, ret, ret_problem);
	problem_set(ret_problem, "the report has nothing of s3://%s/%s: check it and the target",
		quote(verify->space->bucket).text, quote(verify->range.prefix).text);
	return OUTCOME_LOCAL;
}

enum outcome verify_with_report(const struct verify *verify, const struct option_settings *files,
	struct verify_end *ret, struct problem *ret_problem)
{
	struct batch_report *report;
	if (batch_report_new(verify->space->bucket, verify->range.prefix, &report, ret_problem) < 0)
		return OUTCOME_LOCAL;
	int error = 0;
	for (size_t i = 0; i < files->n && !error; i++)
		error = batch_report_add(report, files->settings[i].value, ret_problem);
	const enum outcome o =
		error ? OUTCOME_LOCAL : compare_report(verify, report, ret, ret_problem);
	batch_report_free(report);
	return o;
}
