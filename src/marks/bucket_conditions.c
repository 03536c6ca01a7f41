#include "marks/bucket_conditions.h"
#include <stdio.h>
#include <string.h>

/* A server may be upgraded, or its name may lead to a different server. */
#define HOLDS_FOR_S (30 * 24 * 3600)

static const enum s3_ability abilities[BUCKET_CONDITIONS] = {
	[BUCKET_PUT_CONDITION] = S3_PUT_CONDITION,
	[BUCKET_COMPLETE_CONDITION] = S3_COMPLETE_CONDITION,
	[BUCKET_IF_MATCH] = S3_IF_MATCH,
};

void conditions_recall(const struct bucket_row *row, struct s3 *s3, int64_t now_s)
{
	if (s3_is_aws(s3) || !row->honours || now_s < row->honours_at_s ||
		now_s - row->honours_at_s >= HOLDS_FOR_S ||
		strcmp(row->honours_server, s3_server(s3)) != 0)
		return;
	for (unsigned i = 0; i < BUCKET_CONDITIONS; i++)
		if (row->honours & 1U << i)
			s3_learn(s3, abilities[i], true);
}

void conditions_note(struct bucket_row *row, const struct s3 *s3)
{
	row->honours = 0;
	for (unsigned i = 0; i < BUCKET_CONDITIONS; i++)
		if (s3_knows(s3, abilities[i]) == S3_YES)
			row->honours |= 1U << i;
	snprintf(row->honours_server, sizeof row->honours_server, "%s", s3_server(s3));
}
