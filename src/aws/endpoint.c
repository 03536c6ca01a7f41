/* Where the requests of a service go: a URL that was given, the ARN of an access point, or what
 * region and settings lead to. Pure: no name is looked up. */
#include "aws/endpoint.h"
#include "aws/endpoint_partitions.h"
#include "aws/sigv4.h"
#include "base/quote.h"
#include "base/text.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_graphic(const char *s)
{
	while ((unsigned char)*s > ' ' && (unsigned char)*s < 0x7f)
		s++;
	return !*s;
}

static const char *why_not(CURLU *url, CURLUcode code)
{
	char *part = NULL;
	if (code == CURLUE_UNSUPPORTED_SCHEME || code == CURLUE_BAD_SCHEME)
		return "it must begin with http:// or https://";
	if (code)
		return "it is not a URL like https://HOST:PORT";
	const char *why = NULL;
	if (curl_url_get(url, CURLUPART_SCHEME, &part, 0) == CURLUE_OK &&
		strcmp(part, "http") != 0 && strcmp(part, "https") != 0)
		why = "it must begin with http:// or https://";
	curl_free(part);
	part = NULL;
	if (!why && curl_url_get(url, CURLUPART_HOST, &part, 0) == CURLUE_OK && !is_graphic(part))
		why = "its host has a character that is not allowed there"; /* %XX, which curl
									       decodes */
	curl_free(part);
	static const struct {
		CURLUPart part;
		const char *why;
	} unwanted[] = {
		{CURLUPART_USER, "it must not carry a user name"},
		{CURLUPART_PASSWORD, "it must not carry a password"},
		{CURLUPART_QUERY, "it must not carry a query"},
		{CURLUPART_FRAGMENT, "it must not carry a fragment"},
	};
	for (size_t i = 0; !why && i < sizeof unwanted / sizeof *unwanted; i++) {
		part = NULL;
		if (curl_url_get(url, unwanted[i].part, &part, 0) == CURLUE_OK)
			why = unwanted[i].why;
		curl_free(part);
	}
	return why;
}

/* A default port is left out, as it is in the Host header that is signed. 0, -ENOMEM, -EINVAL
 * without a host, or -EMSGSIZE. */
static int rebuild(CURLU *url, char **ret)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
	struct text text = TEXT(4096);
	int error = -EINVAL;
	if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
		curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] &&
		curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK) {
		for (char *c = host; *c; c++)
			*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
		text_addf(&text, "%s://%s", scheme, host);
		if (curl_url_get(url, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT) == CURLUE_OK)
			text_addf(&text, ":%s", port);
		text_add(&text, path);
		while (text.len && text.data[text.len - 1] == '/')
			text.data[--text.len] = '\0';
		error = text.error;
		if (!error && !(*ret = strdup(text_string(&text))))
			error = -ENOMEM;
	}
	text_clear(&text);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	return error;
}

int endpoint_parse_url(const char *url, char **ret, const char **ret_why)
{
	if (!is_graphic(url)) {
		*ret_why = "it has a character that is not allowed in a URL";
		return -EINVAL;
	}
	if (strstr(url, ":///")) { /* curl would take the path for the host */
		*ret_why = "it has no host";
		return -EINVAL;
	}
	CURLU *parsed = curl_url();
	if (!parsed)
		return -ENOMEM;
	CURLUcode code = curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
	const char *why = why_not(parsed, code);
	int error = why ? -EINVAL : rebuild(parsed, ret);
	curl_url_cleanup(parsed);
	if (error == -EINVAL)
		*ret_why = why ? why : "it has no host";
	if (error == -EMSGSIZE)
		*ret_why = "it is too long";
	return error == -EMSGSIZE ? -EINVAL : error;
}

/* What stands before the next separator, at most size - 1 bytes; false if it does not fit. Moves
 * *at beyond the separator, or to the end. */
static bool next_word(const char **at, const char *separators, char *ret, size_t size)
{
	size_t n = strcspn(*at, separators);
	if (n >= size)
		return false;
	memcpy(ret, *at, n);
	ret[n] = '\0';
	*at += n + ((*at)[n] != '\0');
	return true;
}

static bool is_label(const char *s)
{
	static const char alnum[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char allowed[sizeof alnum + 1];
	strcpy(allowed, alnum);
	strcat(allowed, "-");
	return *s && strchr(alnum, *s) && !s[strspn(s, allowed)];
}

static int refuse_arn(struct problem *problem, const char *s, const char *why)
{
	problem_set(problem, "%s: %s", quote(s).text, why);
	return -EINVAL;
}

static const char *fault_of(
	const char *service, const char *type, const char *rest, const struct endpoint_arn *arn)
{
	if (strcmp(service, "s3-outposts") == 0)
		return "S3 on Outposts is not supported: name a bucket or an access point of S3";
	if (strcmp(service, "s3") != 0 && !arn->is_lambda)
		return "only access points of S3 can be named by an ARN";
	if (strcmp(type, "accesspoint") != 0)
		return "only access points can be named by an ARN: name a bucket by its name alone";
	if (!arn->region[0])
		return "multi-region access points are not supported: name an access point of one "
		       "region";
	if (!is_label(arn->region) || !is_label(arn->account) || !is_label(arn->name) || *rest)
		return "an access point is named arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME";
	return NULL;
}

int endpoint_arn_parse(const char *s, struct endpoint_arn *ret, struct problem *ret_problem)
{
	char word[64], service[64], type[64];
	struct endpoint_arn arn = {0};
	const char *at = s;
	bool fits = next_word(&at, ":", word, sizeof word) && strcmp(word, "arn") == 0 &&
		    next_word(&at, ":", word, sizeof word) &&
		    next_word(&at, ":", service, sizeof service) &&
		    next_word(&at, ":", arn.region, sizeof arn.region) &&
		    next_word(&at, ":", arn.account, sizeof arn.account) &&
		    next_word(&at, ":/", type, sizeof type) &&
		    next_word(&at, ":/", arn.name, sizeof arn.name);
	if (!fits)
		return refuse_arn(ret_problem, s, "this is not the ARN of an access point");
	arn.is_lambda = strcmp(service, "s3-object-lambda") == 0;
	const char *fault = fault_of(service, type, at, &arn);
	if (fault)
		return refuse_arn(ret_problem, s, fault);
	*ret = arn;
	return 0;
}

static const struct partition *partition_of(const char *region)
{
	const struct partition *p = partitions;
	while (strncmp(region, p->region_prefix, strlen(p->region_prefix)) != 0)
		p++;
	return p;
}

const char *endpoint_partition(const char *region)
{
	return partition_of(region)->name;
}

#define LOWER_ALNUM "abcdefghijklmnopqrstuvwxyz0123456789"

static bool is_region(const char *s)
{
	size_t n = strlen(s);
	return n >= 1 && n <= REGION_MAX && !s[strspn(s, LOWER_ALNUM "-")] && s[0] != '-' &&
	       s[n - 1] != '-';
}

static bool is_ip_address(const char *s)
{
	struct in_addr v4;
	return s[0] == '[' || inet_pton(AF_INET, s, &v4) == 1;
}

/* The host of the endpoint is an address, which cannot have a subdomain. */
static bool is_numeric(const char *endpoint)
{
	const char *host = strstr(endpoint, "://") + 3;
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(host, ":/"), host);
	return is_ip_address(host) || is_ip_address(name);
}

/* Whether it can stand before a host. TLS certificates match no name with another dot. */
static bool is_host_name(const char *bucket, bool allows_dots)
{
	size_t n = strlen(bucket);
	if (n < 3 || n > 63 || bucket[strspn(bucket, LOWER_ALNUM "-.")] || is_ip_address(bucket))
		return false;
	for (const char *label = bucket; label; label = strchr(label, '.')) {
		label += *label == '.';
		n = strcspn(label, ".");
		if (n == 0 || label[0] == '-' || label[n - 1] == '-' || (label[n] && !allows_dots))
			return false;
	}
	return true;
}

static int refuse(struct problem *problem, const char *sentence)
{
	problem_set(problem, "%s", sentence);
	return -EINVAL;
}

/* "https://" and one or two words before the custom host, or before none. */
static void add_below_custom(struct text *url, const char *custom, const char *before)
{
	size_t scheme_bytes = (size_t)(strstr(custom, "://") + 3 - custom);
	text_add_bytes(url, custom, scheme_bytes);
	text_addf(url, "%s.%s", before, custom + scheme_bytes);
}

/* "s3-fips.dualstack.eu-west-1.amazonaws.com"; the region of all is not written. */
static void add_s3_host(
	struct text *url, const char *first, const char *region, const struct endpoint_terms *terms)
{
	bool is_global = strcmp(region, "aws-global") == 0;
	text_add(url, first);
	text_add(url, terms->fips ? "-fips" : terms->accelerate ? "-accelerate" : "");
	text_add(url, terms->s3_dualstack ? ".dualstack" : "");
	if (!terms->accelerate && (!is_global || terms->fips || terms->s3_dualstack))
		text_addf(url, ".%s", is_global ? "us-east-1" : region);
	text_addf(url, ".%s", partition_of(region)->suffix);
}

static int access_point(const struct endpoint_question *question, struct text *url,
	struct endpoint *ret, struct problem *ret_problem)
{
	const struct endpoint_terms *terms = &question->terms;
	struct endpoint_arn arn;
	if (endpoint_arn_parse(question->bucket, &arn, ret_problem) < 0)
		return -EINVAL;
	const char *partition = partition_of(question->region)->name;
	if (strcmp(partition, partition_of(arn.region)->name) != 0) {
		problem_set(ret_problem, "the access point is in another partition than %s: %s",
			quote(question->region).text, quote(question->bucket).text);
		return -EINVAL;
	}
	if (terms->keep_region && strcmp(arn.region, question->region) != 0)
		return refuse(ret_problem,
			"the access point is in another region, and s3_use_arn_region is false");
	if (terms->accelerate)
		return refuse(ret_problem, "access points have no S3 Transfer Acceleration");
	if (arn.is_lambda && terms->s3_dualstack && !question->custom)
		return refuse(ret_problem, "S3 Object Lambda has no dualstack endpoint");
	char name[sizeof arn.name + sizeof arn.account];
	snprintf(name, sizeof name, "%s-%s", arn.name, arn.account);
	if (question->custom && is_numeric(question->custom))
		return refuse(ret_problem,
			"an access point is a name below the endpoint's, and that is an address");
	if (question->custom) {
		add_below_custom(url, question->custom, name);
	} else {
		text_addf(url, "https://%s.", name);
		add_s3_host(url, arn.is_lambda ? "s3-object-lambda" : "s3-accesspoint", arn.region,
			terms);
	}
	strcpy(ret->region, arn.region);
	ret->signing_name = arn.is_lambda ? "s3-object-lambda" : "s3";
	return 0;
}

/* The buckets that are not where the others are. Source: their names' suffixes. */
static int check_suffix(const char *bucket, struct problem *ret_problem)
{
	static const struct {
		const char *suffix, *why;
	} rows[] = {
		{"--op-s3", "S3 on Outposts is not supported: its buckets are not in the region"},
		{"--x-s3", "directory buckets (S3 Express One Zone) are not supported: they need "
			   "sessions of their own"},
		{"--xa-s3", "access points of directory buckets (S3 Express One Zone) are not "
			    "supported: they need sessions of their own"},
	};
	size_t n = strlen(bucket);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t m = strlen(rows[i].suffix);
		if (n > m && strcmp(bucket + n - m, rows[i].suffix) == 0)
			return refuse(ret_problem, rows[i].why);
	}
	return 0;
}

static void add_path(struct text *url, const char *bucket)
{
	text_add_char(url, '/');
	uri_encode(url, bucket, strlen(bucket), 0);
}

static int custom_bucket(
	const struct endpoint_question *question, struct text *url, struct problem *ret_problem)
{
	const char *custom = question->custom, *bucket = question->bucket;
	if (question->terms.accelerate)
		return refuse(ret_problem,
			"S3 Transfer Acceleration is AWS's alone: it excludes an endpoint URL");
	bool wants_host = question->terms.style == STYLE_VIRTUAL && !is_numeric(custom);
	if (wants_host && is_host_name(bucket, strncmp(custom, "http://", 7) == 0)) {
		add_below_custom(url, custom, bucket);
	} else {
		text_add(url, custom);
		add_path(url, bucket);
	}
	return 0;
}

static int aws_bucket(
	const struct endpoint_question *question, struct text *url, struct problem *ret_problem)
{
	const struct endpoint_terms *terms = &question->terms;
	bool in_host = is_host_name(question->bucket, false) &&
		       (terms->style != STYLE_PATH || terms->accelerate);
	if (terms->accelerate && terms->fips)
		return refuse(ret_problem, "S3 Transfer Acceleration has no FIPS endpoint");
	if (terms->accelerate && !in_host)
		return refuse(ret_problem, "S3 Transfer Acceleration needs a bucket whose name is "
					   "a host name without dots");
	if (terms->accelerate && strcmp(partition_of(question->region)->name, "aws-cn") == 0)
		return refuse(ret_problem, "S3 Transfer Acceleration is not in China");
	text_add(url, "https://");
	if (in_host)
		text_addf(url, "%s.", question->bucket);
	add_s3_host(url, "s3", question->region, terms);
	if (!in_host)
		add_path(url, question->bucket);
	return 0;
}

static int s3_url(const struct endpoint_question *question, struct text *url, struct endpoint *ret,
	struct problem *ret_problem)
{
	const struct endpoint_terms *terms = &question->terms;
	if (strcmp(question->region, "aws-global") == 0)
		strcpy(ret->region, "us-east-1");
	if (terms->fips && !question->custom &&
		strcmp(partition_of(question->region)->name, "aws-cn") == 0)
		return refuse(ret_problem, "S3 has no FIPS endpoints in China");
	if (!question->bucket) {
		struct endpoint_terms plain = *terms;
		plain.accelerate = false;
		text_add(url, question->custom ? question->custom : "https://");
		if (!question->custom)
			add_s3_host(url, "s3", question->region, &plain);
		return 0;
	}
	if (strncmp(question->bucket, "arn:", 4) == 0)
		return access_point(question, url, ret, ret_problem);
	if (check_suffix(question->bucket, ret_problem) < 0)
		return -EINVAL;
	return (question->custom ? custom_bucket : aws_bucket)(question, url, ret_problem);
}

/* Source: "AWS STS Regional endpoints" (AWS SDKs and Tools Reference Guide). */
static bool shares_sts(const struct endpoint_question *question)
{
	const struct endpoint_terms *terms = &question->terms;
	if (strcmp(question->service, "sts") != 0 || terms->fips || terms->dualstack)
		return false;
	if (strcmp(question->region, "aws-global") == 0)
		return true;
	for (size_t i = 0; i < sizeof sts_global_regions / sizeof *sts_global_regions; i++)
		if (strcmp(sts_global_regions[i], question->region) == 0)
			return terms->sts_global;
	return false;
}

/* DynamoDB's own server for development is a region to AWS's tools. */
static int local_url(const struct endpoint_terms *terms, struct text *url, struct endpoint *ret,
	struct problem *ret_problem)
{
	if (terms->fips || terms->dualstack)
		return refuse(ret_problem,
			"DynamoDB in the region \"local\" has no FIPS and no dualstack endpoint");
	text_add(url, "http://localhost:8000");
	strcpy(ret->region, "us-east-1");
	return 0;
}

static int other_url(const struct endpoint_question *question, struct text *url,
	struct endpoint *ret, struct problem *ret_problem)
{
	const struct partition *partition = partition_of(question->region);
	const struct endpoint_terms *terms = &question->terms;
	if (question->custom) {
		text_add(url, question->custom);
	} else if (strcmp(question->service, "dynamodb") == 0 &&
		   strcmp(question->region, "local") == 0) {
		return local_url(terms, url, ret, ret_problem);
	} else if (shares_sts(question)) {
		text_add(url, "https://sts.amazonaws.com");
		strcpy(ret->region, "us-east-1");
	} else {
		/* In GovCloud the ordinary endpoints are FIPS endpoints. */
		bool is_named = terms->fips &&
				(terms->dualstack || strcmp(partition->name, "aws-us-gov") != 0);
		text_addf(url, "https://%s%s.%s.%s", question->service, is_named ? "-fips" : "",
			question->region,
			terms->dualstack ? partition->dualstack_suffix : partition->suffix);
	}
	return 0;
}

int endpoint_resolve(
	const struct endpoint_question *question, struct endpoint *ret, struct problem *ret_problem)
{
	struct endpoint found = {.signing_name = question->service};
	struct text url = TEXT(ENDPOINT_MAX);
	if (!is_region(question->region)) {
		problem_set(ret_problem, "%s is not a region: give one such as eu-west-1",
			quote(question->region).text);
		return -EINVAL;
	}
	strcpy(found.region, question->region);
	bool is_s3 = strcmp(question->service, "s3") == 0;
	int error = (is_s3 ? s3_url : other_url)(question, &url, &found, ret_problem);
	if (error == 0 && url.error) {
		problem_set(ret_problem, "the endpoint's URL is too long, or memory ran out");
		error = -EINVAL;
	}
	if (error == 0) {
		strcpy(found.url, text_string(&url));
		*ret = found;
	}
	text_clear(&url);
	return error;
}
