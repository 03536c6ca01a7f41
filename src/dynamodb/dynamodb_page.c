#include "dynamodb/dynamodb_request.h"
#include <errno.h>
#include <string.h>

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* The bracket that opens the Items of a reply, or NULL. Nothing else in a reply reads like this: in
 * a string the quotes would be escaped, and an attribute of that name has an object. */
static const char *find_items(const char *reply)
{
	static const char name[] = "\"Items\"";
	const char *at = reply;
	while ((at = strstr(at, name))) {
		at = skip_space(at + strlen(name));
		if (*at != ':')
			continue;
		at = skip_space(at + 1);
		if (*at == '[')
			return at;
	}
	return NULL;
}

/* Hands out the items between the bracket at *at and the one that closes it, and moves *at there.
 */
static enum outcome visit_items(const struct text *reply, const struct call_limits *limits,
	const struct item_visit *visit, const char **at, struct problem *ret_problem)
{
	const char *next = skip_space(*at + 1);
	bool has_more = *next != ']';
	while (has_more) {
		struct item item = {0};
		size_t bytes = 0;
		const size_t left = reply->len - (size_t)(next - reply->data);
		const int error = item_read(next, left, limits, &item, &bytes);
		const enum outcome outcome = dynamodb_visit(visit, error, &item, ret_problem);
		if (outcome != OUTCOME_OK)
			return outcome;
		next = skip_space(next + bytes);
		has_more = *next == ',';
		if (has_more)
			next = skip_space(next + 1);
		else if (*next != ']')
			return dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	*at = next;
	return OUTCOME_OK;
}

/* Cuts the items out of the reply while they are handed out. */
static enum outcome take_items(struct text *reply, const struct call_limits *limits,
	const struct item_visit *visit, struct problem *ret_problem)
{
	const char *begin = find_items(text_string(reply)), *end = begin;
	if (!begin)
		return OUTCOME_OK;
	const enum outcome outcome = visit_items(reply, limits, visit, &end, ret_problem);
	if (outcome == OUTCOME_OK) {
		const size_t kept = (size_t)(begin - reply->data) + 1;
		const size_t left = reply->len - (size_t)(end - reply->data);
		memmove(reply->data + kept, end, left + 1);
		reply->len = kept + left;
	}
	return outcome;
}

enum outcome dynamodb_perform_page(struct dynamodb_conn *conn, enum dynamodb_kind kind,
	const struct call_limits *limits, const struct item_visit *visit, json_t **ret_reply,
	struct problem *ret_problem)
{
	struct http_reply reply = {0};
	enum outcome outcome = dynamodb_send(conn, kind, limits, &reply, ret_problem);
	*ret_reply = NULL;
	if (outcome == OUTCOME_OK)
		outcome = take_items(&reply.body, limits, visit, ret_problem);
	if (outcome == OUTCOME_OK) {
		*ret_reply = json_read(&reply.body, limits);
		if (!json_is_object(*ret_reply))
			outcome = dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	http_reply_clear(&reply);
	return outcome;
}
