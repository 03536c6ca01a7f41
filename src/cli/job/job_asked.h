/* The option --job NAME of the commands that ask about what a job has uploaded: whose marks, which
 * services and which target, as the unit that runs the job finds them. */
#pragma once
#include "cli/job/job.h"

/* Zero it to start, and close its job in any case. It must not move while that is open. */
struct job_asked {
	const char *name; /* of --job; NULL: none was given, and the rest is unused */
	struct job job;
};

/* --job, for the fields of struct job_asked. */
extern const struct option job_asked_options[];

/* After options_parse() has found n operands. Without --job nothing happens. Else what `access`
 * leaves open becomes what the job says, and its target becomes the last operand, unless one of
 * them is an s3:// URL. There has to be room for one operand more, as there is in the argv that had
 * --job. Root is led to the marks of the systemd units, if the job keeps its marks on this host and
 * the units keep some.
 *
 * The job's environment is set where it is not set yet: by /etc/s3once/NAME.env, and by
 * NAME.credentials, as far as this user may read them. So call it before there are threads. What
 * S3ONCE_OPTIONS says is not looked at. Returns the number of operands, or -EINVAL with a sentence;
 * access and operands borrow from *asked. */
int job_asked_open(struct job_asked *asked, struct access *access, int n, char **operands,
	struct problem *ret_problem);

/* What the job says of an option that says how objects are stored; NULL: nothing. Borrowed. */
const char *job_asked_setting(const struct job_asked *asked, const char *option);
