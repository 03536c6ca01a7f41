/* A bucket, "b", whose server is a script. */
#pragma once
#include "../script_aws.h"
#include "s3/s3.h"

struct script_s3 {
	struct script_aws aws;
	struct s3 *s3;
	struct s3_conn *conn;
};

/* Opens the bucket. Its server was started by script_aws_start() or script_aws_reply(). */
static inline bool script_s3_open(struct script_s3 *f)
{
	return CHECK_INT(s3_open(&f->aws.settings, f->aws.http, "b", &f->s3, NULL), 0) &&
	       CHECK_INT(s3_conn_new(f->s3, &f->conn), 0);
}

static inline void script_s3_end(struct script_s3 *f)
{
	s3_conn_free(f->conn);
	s3_close(f->s3);
	script_aws_end(&f->aws);
}
