/* The objects of the store in S3: their names, and one request that reads or puts one. */
#include "base/text.h"
#include "store/item_json.h"
#include "store/s3_store.h"
#include <errno.h>
#include <string.h>

/* Adds a part of an object's key. */
static void add_escaped(struct text *name, const char *part)
{
	const bool has_dot = *part == '.';
	text_add(name, has_dot ? "%2E" : "");
	uri_encode(name, part + has_dot, strlen(part + has_dot));
}

enum outcome s3_store_name(const struct s3_store *store, struct item_key key,
	struct object_name *ret, struct problem *ret_problem)
{
	struct text name = TEXT(sizeof ret->text - 1);
	text_add(&name, store->prefix);
	add_escaped(&name, key.pk);
	text_add_char(&name, '/');
	add_escaped(&name, key.sk);
	const int error = name.error;
	if (!error)
		memcpy(ret->text, name.data, name.len + 1);
	text_clear(&name);
	if (error == -ENOMEM)
		return outcome_no_memory(ret_problem);
	return !error ? OUTCOME_OK
		      : outcome_error(ret_problem, OUTCOME_INVALID,
				"%s: the key of its object in s3://%s would have more than %d "
				"bytes: choose a shorter name, or a shorter prefix",
				quote(key.sk).text, store->bucket, KEY_BYTES_MAX);
}

void s3_store_row_clear(struct s3_store_row *row)
{
	item_clear(&row->item);
}

/* Whether a reply without content has an end that a client notices: a proxy may take the length
 * out, and close the connection too early. */
static bool is_surely_empty(const struct http_reply *reply)
{
	return http_reply_header(reply, "content-length") ||
	       http_reply_header(reply, "transfer-encoding");
}

enum outcome s3_store_read(struct s3_store_conn *conn, struct item_key key,
	const struct call_limits *limits, struct s3_store_row *ret, struct problem *ret_problem)
{
	struct object_name name;
	struct http_reply reply = {0};
	const char *bucket = conn->s3_store->bucket;
	enum outcome o = s3_store_name(conn->s3_store, key, &name, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	const struct s3_target target = {.key = name.text};
	o = s3_get_small(
		conn->s3, &target, S3_STORE_MAX_BYTES, limits, &reply, ret->etag, ret_problem);
	int error = 0;
	if (o == OUTCOME_OK && !reply.body.len && !is_surely_empty(&reply))
		o = outcome_error(ret_problem, OUTCOME_LOST,
			"the reply to GetObject has neither content nor a Content-Length: a proxy "
			"on the way takes it out: let it pass replies on as they are, or go around "
			"it (NO_PROXY)");
	const bool has_item =
		o == OUTCOME_OK && reply.body.len; /* an empty object is a removed one */
	if (has_item)
		error = item_from_doc(key, reply.body.data, &ret->item);
	ret->is_there = has_item && !error;
	http_reply_clear(&reply);
	if (o == OUTCOME_ABSENT)
		return OUTCOME_OK;
	if (o == OUTCOME_DENIED)
		problem_prefix(ret_problem,
			"reading %s is denied, and without s3:ListBucket S3 says so of an object "
			"that is not there, too: allow s3:GetObject and s3:ListBucket",
			quote(name.text).text);
	if (error == -ENOMEM)
		return outcome_no_memory(ret_problem);
	return !error ? o
		      : outcome_error(ret_problem, OUTCOME_SETUP,
				"the object s3://%s/%s is not one of these locks: if nobody holds "
				"this lock, delete the object",
				bucket, quote(name.text).text);
}

enum outcome s3_store_put(struct s3_store_conn *conn, const char *name,
	struct s3_condition condition, const struct call_limits *limits, struct s3_object *ret,
	struct problem *ret_problem)
{
	struct s3 *s3 = conn->s3_store->s3;
	const enum checksum checksum = s3_checksum(s3);
	const struct http_body body = {.memory = text_string(&conn->body), .bytes = conn->body.len};
	struct sums sums;
	if (digest_bytes(s3_wanted_digests(s3, checksum), body.memory, body.bytes, &sums))
		return outcome_no_memory(ret_problem);
	const struct s3_put put = {.target = {.key = name, .content_type = "application/json"},
		.body = &body,
		.sums = &sums,
		.checksum = checksum,
		.condition = condition,
		.limits = limits ? *limits : no_limits};
	const enum outcome o = s3_put_object(conn->s3, &put, ret, ret_problem);
	/* A captive portal also answers 200, but without an etag. */
	if (o == OUTCOME_OK && !*ret->etag)
		return outcome_error(ret_problem, OUTCOME_LOST,
			"the reply to PutObject has no etag, so it is not what S3 answers: check the "
			"endpoint");
	return o;
}

/* Reads a digit of add_escaped(); -1 if it is none. */
static int hex_digit(char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

int s3_store_add_key(const char *name, struct text *ret)
{
	struct text key = TEXT(KEY_BYTES_MAX), escaped = TEXT(KEY_BYTES_MAX);
	for (const char *at = name; *at;) {
		const int high = *at == '%' ? hex_digit(at[1]) : -1;
		const int low = high >= 0 ? hex_digit(at[2]) : -1;
		const bool is_escape = low >= 0; /* %XX */
		text_add_char(&key, is_escape ? (char)(high * 16 + low) : *at);
		at += is_escape ? 3 : 1;
	}
	add_escaped(&escaped, text_string(&key));
	/* A name that add_escaped() cannot have written belongs to an object of another program. */
	if (key.error == -ENOMEM || escaped.error == -ENOMEM)
		ret->error = -ENOMEM;
	else if (*name && strcmp(text_string(&escaped), name) == 0)
		text_add_bytes(ret, text_string(&key), key.len + 1);
	text_clear(&key);
	text_clear(&escaped);
	return ret->error;
}
