/* Whether an object is there, and has the settings that it was stored with: a HEAD and what it
 * does not show. */
#include "s3/s3_kept.h"
#include "s3/s3_reply.h"
#include "s3/s3_request.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STANDARD "STANDARD"

/* In which header the reply to HEAD shows a setting, and whether as it was sent: servers write some
 * values in ways of their own. Of tags it shows the number, in another header. */
static const struct {
	const char *setting, *header;
	bool is_as_sent;
} kinds[S3_KEPT_KINDS] = {
	[S3_KEPT_CLASS] = {"storage-class", "x-amz-storage-class", true},
	[S3_KEPT_METADATA] = {"metadata", "x-amz-meta-", false},
	[S3_KEPT_TAGS] = {"tag", "x-amz-tagging", false},
	[S3_KEPT_TYPE] = {"content-type", "content-type", true},
	[S3_KEPT_ENCODING] = {"content-encoding", "content-encoding", true},
	[S3_KEPT_LANGUAGE] = {"content-language", "content-language", true},
	[S3_KEPT_DISPOSITION] = {"content-disposition", "content-disposition", false},
	[S3_KEPT_CACHE_CONTROL] = {"cache-control", "cache-control", true},
	[S3_KEPT_EXPIRES] = {"expires", "expires", false},
	[S3_KEPT_REDIRECT] = {"website-redirect", "x-amz-website-redirect-location", false},
	[S3_KEPT_LOCK_MODE] = {"object-lock-mode", "x-amz-object-lock-mode", true},
	[S3_KEPT_LOCK_UNTIL] = {"object-lock-retain-until-date",
		"x-amz-object-lock-retain-until-date", false},
	[S3_KEPT_LOCK_HOLD] = {"object-lock-legal-hold", "x-amz-object-lock-legal-hold", true},
};

const char *s3_kept_setting(enum s3_kept kind)
{
	return kinds[kind].setting;
}

/* Of which kind a header of the settings is; S3_KEPT_KINDS: of none that is looked at. */
static enum s3_kept kind_of(const struct call_header *header)
{
	const char *meta = kinds[S3_KEPT_METADATA].header;
	if (strncmp(header->name, meta, strlen(meta)) == 0)
		return S3_KEPT_METADATA;
	for (unsigned kind = 0; kind < S3_KEPT_KINDS; kind++)
		if (strcmp(header->name, kinds[kind].header) == 0)
			return kind == S3_KEPT_CLASS && strcmp(header->value, STANDARD) == 0
				       ? S3_KEPT_KINDS
				       : (enum s3_kept)kind;
	return S3_KEPT_KINDS;
}

unsigned s3_kept_asked(const struct s3_headers *headers)
{
	const struct call_header *all;
	const size_t n = s3_headers_of(headers, S3_HEADERS_STORE, &all);
	unsigned asked = 0;
	for (size_t i = 0; i < n; i++)
		if (kind_of(&all[i]) != S3_KEPT_KINDS)
			asked |= S3_KEPT_BIT(kind_of(&all[i]));
	return asked;
}

/* "a=1&b=2": the names and values are encoded. */
static size_t tags_in(const char *tagging)
{
	size_t n = 1;
	for (; *tagging; tagging++)
		n += *tagging == '&';
	return n;
}

static int read_tags(void *arg, const struct http_reply *reply)
{
	return s3_reply_tags(text_string(&reply->body), reply->body.len, arg);
}

enum outcome s3_look_at_kept(struct s3_conn *conn, const struct s3_target *target, unsigned asked,
	const struct call_limits *limits, struct s3_kept_look *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	const struct call_header *all;
	const size_t n = s3_headers_of(target->headers, S3_HEADERS_STORE, &all);
	size_t tags = 0, tags_asked = 0;
	*ret = (struct s3_kept_look){.unknown = asked};
	s3_request_begin(&request, conn, S3_HEAD_OBJECT, "HEAD", target->key, limits);
	s3_request_target(&request, target);
	enum outcome outcome = ret->head = s3_request_perform(&request, &reply, ret_problem);
	if (outcome != OUTCOME_OK) {
		http_reply_clear(&reply);
		return outcome;
	}
	s3_copy_header(
		&reply, kinds[S3_KEPT_CLASS].header, ret->storage_class, sizeof ret->storage_class);
	if (!ret->storage_class[0])
		strcpy(ret->storage_class, STANDARD);
	for (size_t i = 0; i < n; i++) {
		const enum s3_kept kind = kind_of(&all[i]);
		if (kind == S3_KEPT_TAGS)
			tags_asked = tags_in(all[i].value);
		if (kind == S3_KEPT_KINDS || kind == S3_KEPT_TAGS)
			continue;
		const char *told = http_reply_header(&reply, all[i].name);
		if (!told || (kinds[kind].is_as_sent && strcasecmp(told, all[i].value) != 0))
			ret->lacks |= asked & S3_KEPT_BIT(kind);
	}
	const char *count = http_reply_header(&reply, "x-amz-tagging-count");
	ret->unknown = count ? 0 : asked & S3_KEPT_BIT(S3_KEPT_TAGS);
	if (count)
		tags = strtoull(count, NULL, 10);
	http_reply_clear(&reply);
	if (ret->unknown) {
		s3_request_begin(&request, conn, S3_GET_OBJECT_TAGGING, "GET", target->key, limits);
		s3_request_query(&request, "tagging", "");
		outcome = s3_request_read(&request, read_tags, &tags, ret_problem);
	}
	if (outcome != OUTCOME_OK)
		return outcome;
	ret->unknown = 0;
	if (tags < tags_asked)
		ret->lacks |= asked & S3_KEPT_BIT(S3_KEPT_TAGS);
	return outcome;
}
