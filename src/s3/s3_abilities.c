/* What this server is known to do, learned from its replies. */
#include "s3/s3_request.h"
#include <stdio.h>

enum s3_known s3_knows(const struct s3 *s3, enum s3_ability ability)
{
	return (enum s3_known)atomic_load_explicit(&s3->known[ability], memory_order_relaxed);
}

void s3_learn(struct s3 *s3, enum s3_ability ability, bool yes)
{
	atomic_store_explicit(&s3->known[ability], yes ? S3_YES : S3_NO, memory_order_relaxed);
}

const char *s3_server(const struct s3 *s3)
{
	return atomic_load(&s3->server_is) == S3_SERVER_KNOWN ? s3->server : "";
}

void s3_note_server(struct s3 *s3, const struct http_reply *reply)
{
	int unknown = S3_SERVER_UNKNOWN;
	if (!reply->status ||
		!atomic_compare_exchange_strong(&s3->server_is, &unknown, S3_SERVER_BEING_NOTED))
		return;
	const char *name = http_reply_header(reply, "server");
	snprintf(s3->server, sizeof s3->server, "%s", name ? name : "");
	for (char *c = s3->server; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?'; /* a mark store takes only text */
	atomic_store(&s3->server_is, S3_SERVER_KNOWN);
}

void s3_learn_refusal(struct s3 *s3, enum s3_ability ability, const struct s3_condition *condition,
	enum outcome outcome, int status)
{
	if (condition->if_none_match && outcome == OUTCOME_UNSUPPORTED && status == 501)
		s3_learn(s3, ability, false);
}
