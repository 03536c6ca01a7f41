/* Compares the completion report of a job that computed checksums with the marks. S3 is not asked.
 * It changes nothing. */
#pragma once
#include "audit/batch_report.h"
#include "audit/verify.h"

/* Of `verify`, the s3, the headers, `after` and the subset are not used. A done mark is SAME if the
 * report has a checksum of its object, of its version if both name one, that is the mark's. It is
 * an ERROR if the report has none that can be compared. A mark that was changed after the report
 * was made is UNFINISHED if they disagree. counts.listed is the number of rows. OK also if it was
 * stopped; then *ret is not complete. */
enum outcome verify_report(const struct verify *verify, struct batch_report *report,
	struct verify_end *ret, struct problem *ret_problem);
