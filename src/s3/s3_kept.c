/* Whether an object is there, and has the settings that it was stored with: a HEAD and what it
 * does not show. */
#include "s3/s3_kept.h"
#include "aws/xml_document.h"
#include "s3/s3_reply.h"
#include "s3/s3_request.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STANDARD "STANDARD"

/* How a reply to HEAD shows a setting. */
enum shown {
	AS_IT_IS,
	AT_ALL, /* servers write the value in ways of their own */
	BY_NUMBER,
};
static const struct {
	const char *setting, *header;
	enum shown shown;
} kinds[S3_KEPT_KINDS] = {
	[S3_KEPT_CLASS] = {"storage-class", "x-amz-storage-class", AS_IT_IS},
	[S3_KEPT_METADATA] = {"metadata", "x-amz-meta-", AT_ALL},
	[S3_KEPT_TAGS] = {"tag", "x-amz-tagging", BY_NUMBER},
	[S3_KEPT_TYPE] = {"content-type", "content-type", AS_IT_IS},
	[S3_KEPT_ENCODING] = {"content-encoding", "content-encoding", AS_IT_IS},
	[S3_KEPT_LANGUAGE] = {"content-language", "content-language", AS_IT_IS},
	[S3_KEPT_DISPOSITION] = {"content-disposition", "content-disposition", AT_ALL},
	[S3_KEPT_CACHE_CONTROL] = {"cache-control", "cache-control", AS_IT_IS},
	[S3_KEPT_EXPIRES] = {"expires", "expires", AT_ALL},
	[S3_KEPT_REDIRECT] = {"website-redirect", "x-amz-website-redirect-location", AT_ALL},
	[S3_KEPT_LOCK_MODE] = {"object-lock-mode", "x-amz-object-lock-mode", AS_IT_IS},
	[S3_KEPT_LOCK_UNTIL] = {"object-lock-retain-until-date",
		"x-amz-object-lock-retain-until-date", AT_ALL},
	[S3_KEPT_LOCK_HOLD] = {"object-lock-legal-hold", "x-amz-object-lock-legal-hold", AS_IT_IS},
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

static size_t n_tags(const struct s3_headers *headers)
{
	const struct call_header *all;
	const size_t n = s3_headers_of(headers, S3_HEADERS_STORE, &all);
	for (size_t i = 0; i < n; i++)
		if (kind_of(&all[i]) == S3_KEPT_TAGS)
			return tags_in(all[i].value);
	return 0;
}

static bool shows(const struct http_reply *reply, const struct call_header *asked)
{
	const char *told = http_reply_header(reply, asked->name);
	return told &&
	       (kinds[kind_of(asked)].shown != AS_IT_IS || strcasecmp(told, asked->value) == 0);
}

/* What the reply to HEAD tells of `asked`. */
static void read_head(const struct http_reply *reply, const struct s3_headers *headers,
	unsigned asked, struct s3_kept_look *ret)
{
	const struct call_header *all;
	const size_t n = s3_headers_of(headers, S3_HEADERS_STORE, &all);
	const char *tags = http_reply_header(reply, "x-amz-tagging-count");
	s3_copy_header(
		reply, kinds[S3_KEPT_CLASS].header, ret->storage_class, sizeof ret->storage_class);
	if (!ret->storage_class[0])
		strcpy(ret->storage_class, STANDARD);
	for (size_t i = 0; i < n; i++) {
		const enum s3_kept kind = kind_of(&all[i]);
		if (kind != S3_KEPT_KINDS && kinds[kind].shown != BY_NUMBER &&
			!shows(reply, &all[i]))
			ret->lacks |= asked & S3_KEPT_BIT(kind);
	}
	ret->unknown = tags ? 0 : asked & S3_KEPT_BIT(S3_KEPT_TAGS);
	if (tags && strtoull(tags, NULL, 10) < n_tags(headers))
		ret->lacks |= asked & S3_KEPT_BIT(S3_KEPT_TAGS);
}

int s3_reply_tags(const char *xml, size_t n, size_t *ret)
{
	xmlDoc *document;
	int error = xml_document_read(xml, n, &document);
	if (error)
		return error;
	size_t count = 0;
	const xmlNode *set = xml_child(xmlDocGetRootElement(document), "TagSet");
	for (const xmlNode *tag = set ? set->children : NULL; tag; tag = tag->next) {
		const xmlNode *key = xml_is(tag, "Tag") ? xml_child(tag, "Key") : NULL;
		count += key && key->children; /* one without a key stands for none */
	}
	error = set ? 0 : -EBADMSG;
	if (!error)
		*ret = count;
	xmlFreeDoc(document);
	return error;
}

static int read_tags(void *arg, const struct http_reply *reply)
{
	return s3_reply_tags(text_string(&reply->body), reply->body.len, arg);
}

static enum outcome get_tags(struct s3_conn *conn, const char *key,
	const struct call_limits *limits, size_t *ret, struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_GET_OBJECT_TAGGING, "GET", key, limits);
	s3_request_query(&request, "tagging", "");
	return s3_request_read(&request, read_tags, ret, ret_problem);
}

enum outcome s3_look_at_kept(struct s3_conn *conn, const struct s3_target *target, unsigned asked,
	const struct call_limits *limits, struct s3_kept_look *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	size_t tags = 0;
	*ret = (struct s3_kept_look){.unknown = asked};
	s3_request_begin(&request, conn, S3_HEAD_OBJECT, "HEAD", target->key, limits);
	s3_request_target(&request, target);
	enum outcome outcome = ret->head = s3_request_perform(&request, &reply, ret_problem);
	if (outcome == OUTCOME_OK)
		read_head(&reply, target->headers, asked, ret);
	http_reply_clear(&reply);
	if (outcome != OUTCOME_OK || !ret->unknown)
		return outcome;
	outcome = get_tags(conn, target->key, limits, &tags, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	ret->unknown = 0;
	if (tags < n_tags(target->headers))
		ret->lacks |= S3_KEPT_BIT(S3_KEPT_TAGS);
	return outcome;
}
