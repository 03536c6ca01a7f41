#include "upload/bucket/bucket_evidence.h"
#include <stdio.h>
#include <string.h>

bool is_answered(enum outcome outcome, const struct problem *problem)
{
	switch (outcome) {
	case OUTCOME_OK:
	case OUTCOME_ABSENT:
	case OUTCOME_DENIED:
	case OUTCOME_INVALID:
	case OUTCOME_UNSUPPORTED:
		return true;
	case OUTCOME_LOST:
	case OUTCOME_TRANSIENT:
		return problem->status != 0;
	default:
		return false;
	}
}

bool bucket_look_at(struct run *run, struct s3_conn *conn, const struct uploaded *object,
	const struct call_limits *limits, enum evidence *ret, struct problem *ret_problem)
{
	const struct s3_target target = {.key = object->key};
	struct s3_object now = {0};
	enum outcome o = s3_head_object(conn, &target, limits, &now, ret_problem);
	if (!is_answered(o, ret_problem))
		return false;
	*ret = EVIDENCE_NONE;
	/* With other content somebody else wrote it since, which says nothing. */
	if (o == OUTCOME_OK && ((*object->etag && strcmp(now.etag, object->etag) == 0) ||
				       strcmp(now.meta.table, run->space.settings.table_id) == 0))
		*ret = EVIDENCE_THERE;
	else if (o == OUTCOME_ABSENT)
		*ret = EVIDENCE_GONE;
	return true;
}

void bucket_saw_object(struct run *run, const char *key, const char *etag)
{
	uv_mutex_lock(&run->locked.mutex);
	snprintf(run->locked.last_key, sizeof run->locked.last_key, "%s", key);
	snprintf(run->locked.last_etag, sizeof run->locked.last_etag, "%s", etag);
	uv_mutex_unlock(&run->locked.mutex);
}
