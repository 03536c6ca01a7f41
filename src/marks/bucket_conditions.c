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

bool conditions_recall(const struct bucket_row *row, struct s3 *s3, int64_t now_s)
{
	if (s3_is_aws(s3) || !row->honours || now_s < row->honours_at_s ||
		now_s - row->honours_at_s >= HOLDS_FOR_S ||
		strcmp(row->honours_server, s3_server(s3)) != 0)
		return false;
	for (unsigned i = 0; i < BUCKET_CONDITIONS; i++)
		if (row->honours & 1U << i)
			s3_learn(s3, abilities[i], true);
	return true;
}

bool conditions_note(struct bucket_row *row, const struct s3 *s3, bool recalled, int64_t now_s)
{
	unsigned honours = 0;
	if (s3_is_aws(s3))
		return false;
	for (unsigned i = 0; i < BUCKET_CONDITIONS; i++)
		if (s3_knows(s3, abilities[i]) == S3_YES)
			honours |= 1U << i;
	/* The conditions that were recalled were not seen again in this run. */
	if (recalled ? honours == row->honours : !honours && !row->honours)
		return false;
	row->honours_at_s = recalled ? row->honours_at_s : now_s;
	row->honours = honours;
	snprintf(row->honours_server, sizeof row->honours_server, "%s", s3_server(s3));
	return true;
}
