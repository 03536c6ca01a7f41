/* The words of aws, rclone, rsync, s5cmd and s3cmd that s3once does not have, with an answer for
 * each. No answer names an option that removes anything. */
#include "cli/other_tools.h"

#define NEVER_DELETES "s3once never deletes in S3"

const struct option_elsewhere other_tools_options[] = {
	{"delete", NEVER_DELETES},
	{NULL},
};
