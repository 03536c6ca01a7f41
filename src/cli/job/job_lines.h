/* The lines of a job's file, read into its options. For job.c only. */
#pragma once
#include "cli/job/job.h"
#include "cli/job/job_check.h"

struct job_reading {
	/* What the command line says instead is still checked: push's table, with the fields of
	 * options that nobody looks at. */
	const struct command *overridden;
	struct job_check *check;
};

/* Tells an error of the file on stderr and counts it. Line 0: of the file as a whole. */
void job_tell(struct job *job, unsigned line, const char *sentence);
/* Sets what each line says, and tells what is wrong with it. */
void job_read_lines(struct job *job, const struct job_reading *reading);
/* Tells which options contradict each other, after the lines were read. */
void job_check_conflicts(struct job *job);
