/* `s3once verify --batch-report`: the checksums that a job of S3 Batch Operations has computed. */
#pragma once
#include "audit/verify.h"
#include "cli/options/options.h"

/* Compares the files of the report with the marks. As verify_report(); an outcome other than OK
 * also if a file of the report cannot be read, is damaged, or has nothing of the bucket below the
 * prefix. */
enum outcome verify_with_report(const struct verify *verify, const struct option_settings *files,
	struct verify_end *ret, struct problem *ret_problem);
