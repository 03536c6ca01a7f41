/* The endpoint of a service: a URL from the settings, the ARN of an access point, or the result of
 * region and settings. Pure: no name is resolved. */
#include "aws/endpoint.h"
#include "aws/endpoint_partitions.h"
#include "base/text.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL_MAX_BYTES 4096
#define LOWER_ALNUM   "abcdefghijklmnopqrstuvwxyz0123456789"

bool is_graphic(const char *s)
{
	while ((unsigned char)*s > ' ' && (unsigned char)*s < 0x7f)
		s++;
	return !*s;
}

/* The parts that a URL must not have. */
static const struct {
	CURLUPart part;
	const char *why;
} unwanted[] = {
	{CURLUPART_USER, "it must not carry a user name"},
	{CURLUPART_PASSWORD, "it must not carry a password"},
	{CURLUPART_QUERY, "it must not carry a query"},
	{CURLUPART_FRAGMENT, "it must not carry a fragment"},
	/* The signed Host header has no zone, and without it the address cannot be reached. */
	{CURLUPART_ZONEID, "it must not carry an IPv6 zone: give a host name, or an address "
			   "that is not link-local"},
};

#define NO_HOST "it has no host"
#define NO_HTTP "it must begin with http:// or https://"

/* Returns the fault of the parts of a URL, or NULL. */
static const char *fault_of_parts(CURLU *parsed)
{
	char *scheme = NULL, *host = NULL;
	const char *fault = NULL;
	const bool is_http = !curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) &&
			     (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
	if (curl_url_get(parsed, CURLUPART_HOST, &host, 0) || !host[0])
		fault = NO_HOST;
	else if (!is_http)
		fault = NO_HTTP;
	else if (!is_graphic(host)) /* %XX, which curl decodes */
		fault = "its host has a character that is not allowed there";
	for (size_t i = 0; !fault && i < sizeof unwanted / sizeof *unwanted; i++) {
		char *part = NULL;
		if (curl_url_get(parsed, unwanted[i].part, &part, 0) == CURLUE_OK)
			fault = unwanted[i].why;
		curl_free(part);
	}
	curl_free(scheme);
	curl_free(host);
	return fault;
}

/* Returns the fault of a URL that curl has parsed with this result, or NULL. If curl has refused
 * the URL, `parsed` has no parts, and the URL's text and curl's result show the fault. */
static const char *fault_of_url(const char *url, CURLU *parsed, CURLUcode result)
{
	if (!is_graphic(url))
		return "it has a character that is not allowed in a URL";
	if (strstr(url, ":///")) /* curl would take the path for the host */
		return NO_HOST;
	if (result == CURLUE_UNSUPPORTED_SCHEME || result == CURLUE_BAD_SCHEME)
		return NO_HTTP;
	if (result)
		return "it is not a URL like https://HOST:PORT";
	return fault_of_parts(parsed);
}

/* Writes the host in lower case, and removes slashes at the end. Returns the length of the URL. */
static size_t normalise_url(char *url)
{
	size_t n = strlen(url);
	for (char *c = strstr(url, "://") + 3; *c && *c != '/'; c++)
		*c = (*c >= 'A' && *c <= 'Z') ? (char)(*c - 'A' + 'a') : *c;
	while (url[n - 1] == '/')
		url[--n] = '\0';
	return n;
}

int endpoint_parse_url(const char *url, char **ret, struct problem *ret_problem)
{
	CURLU *parsed = curl_url();
	char *whole = NULL, *copy = NULL;
	if (!parsed)
		return -ENOMEM;
	const CURLUcode result = curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
	const char *fault = fault_of_url(url, parsed, result);
	/* The default port is left out, as in the Host header that is signed. */
	/* If the URL has no fault, curl and strdup() fail only when memory runs out, and `copy` is
	 * NULL then. */
	if (!fault &&
		curl_url_get(parsed, CURLUPART_URL, &whole, CURLU_NO_DEFAULT_PORT) == CURLUE_OK)
		copy = strdup(whole);
	if (copy && normalise_url(copy) > URL_MAX_BYTES)
		fault = "it is too long";
	curl_free(whole);
	curl_url_cleanup(parsed);
	if (fault) {
		free(copy);
		return problem_error(ret_problem, -EINVAL, "the endpoint URL %s cannot be used: %s",
			quote_url(url).text, fault);
	}
	*ret = copy;
	return copy ? 0 : -ENOMEM;
}

/* Whether s can be one part of a host name. */
static bool is_label(const char *s)
{
	return *s && *s != '-' && !s[strspn(s, LOWER_ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")];
}

int endpoint_arn_parse(const char *s, struct endpoint_arn *ret, struct problem *ret_problem)
{
	enum { ARN, PARTITION, SERVICE, REGION, ACCOUNT, TYPE, NAME, WORDS };
	char words[WORDS][64] = {""};
	const char *rest = s, *why = NULL;
	bool fits = true;
	for (size_t i = 0; i < WORDS && fits; i++) {
		/* A slash may end the type. A name with a slash has an eighth word after it, which
		 * stays in `rest`. */
		const size_t n = strcspn(rest, i < TYPE ? ":" : ":/");
		fits = n < sizeof words[i];
		memcpy(words[i], rest, fits ? n : 0);
		rest += rest[n] ? n + 1 : n; /* after the separator, if there is one */
	}
	const char *service = words[SERVICE], *region = words[REGION], *account = words[ACCOUNT];
	const char *name = words[NAME];
	const bool is_lambda = strcmp(service, "s3-object-lambda") == 0;
	const bool has_more_words = *rest != '\0';
	if (!fits || strcmp(words[ARN], "arn") != 0)
		why = "this is not the ARN of an access point";
	else if (strcmp(service, "s3-outposts") == 0)
		why = "S3 on Outposts is not supported: name a bucket or an access point of S3";
	else if (strcmp(service, "s3") != 0 && !is_lambda)
		why = "only access points of S3 can be named by an ARN";
	else if (strcmp(words[TYPE], "accesspoint") != 0)
		why = "only access points can be named by an ARN: name a bucket by its name alone";
	else if (!*region)
		why = "multi-region access points are not supported: name a regional one";
	else if (!is_label(region) || !is_label(account) || !is_label(name) || has_more_words)
		why = "an access point is named arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME";
	if (why)
		return problem_error(ret_problem, -EINVAL, "%s: %s", quote(s).text, why);
	strcpy(ret->region, region);
	strcpy(ret->account, account);
	strcpy(ret->name, name);
	ret->is_lambda = is_lambda;
	return 0;
}

static const struct partition *partition_of(const char *region)
{
	const struct partition *p = partitions; /* the last row's prefix is "" */
	while (strncmp(region, p->region_prefix, strlen(p->region_prefix)) != 0)
		p++;
	return p;
}

const char *endpoint_partition(const char *region)
{
	return partition_of(region)->name;
}

/* Whether s is an IPv4 address, or begins as an IPv6 address in brackets. */
static bool is_ip_address(const char *s)
{
	struct in_addr v4;
	return s[0] == '[' || inet_pton(AF_INET, s, &v4) == 1;
}

/* Whether the host of the endpoint is an IP address, which cannot have a subdomain. */
static bool has_ip_address(const char *endpoint)
{
	const char *host = strstr(endpoint, "://") + 3;
	char name[64]; /* without the port; cut if it is too long for an address anyway */
	snprintf(name, sizeof name, "%.*s", (int)strcspn(host, ":/"), host);
	return is_ip_address(name);
}

/* Whether the bucket can be the first part of a host name. allows_dots is false with TLS, whose
 * wildcard certificates match no name with another dot. */
static bool is_host_name(const char *bucket, bool allows_dots)
{
	const size_t bytes = strlen(bucket);
	const bool has_other_characters = bucket[strspn(bucket, LOWER_ALNUM "-.")] != '\0';
	if (bytes < 3 || bytes > 63 || has_other_characters || is_ip_address(bucket))
		return false;
	for (const char *label = bucket;;) {
		const size_t n = strcspn(label, ".");
		if (n == 0 || label[0] == '-' || label[n - 1] == '-')
			return false;
		if (!label[n]) /* that was the last label */
			return true;
		if (!allows_dots)
			return false;
		label += n + 1; /* after the dot */
	}
}

/* Writes the custom URL with `before` and a dot in front of its host. */
static void add_below_custom(struct text *url, const char *custom, const char *before)
{
	size_t scheme_bytes = (size_t)(strstr(custom, "://") + 3 - custom);
	text_add_bytes(url, custom, scheme_bytes);
	text_addf(url, "%s.%s", before, custom + scheme_bytes);
}

/* Writes a host such as "s3-fips.dualstack.eu-west-1.amazonaws.com". "aws-global" is written as
 * us-east-1 with FIPS or dualstack, otherwise omitted. S3 Transfer Acceleration has no region. */
static void add_s3_host(
	struct text *url, const char *first, const char *region, const struct endpoint_terms *terms)
{
	const bool is_global = strcmp(region, "aws-global") == 0;
	const bool omits_region =
		terms->accelerate || (is_global && !terms->fips && !terms->s3_dualstack);
	text_add(url, first);
	text_add(url, terms->fips ? "-fips" : terms->accelerate ? "-accelerate" : "");
	text_add(url, terms->s3_dualstack ? ".dualstack" : "");
	if (!omits_region)
		text_addf(url, ".%s", is_global ? "us-east-1" : region);
	text_addf(url, ".%s", partition_of(region)->suffix);
}

/* Writes the URL of an access point, and sets the region and the name to sign for, which its ARN
 * determines. This function and bucket_url(), s3_url() and other_url() return NULL, or the fault of
 * the question. */
static const char *access_point_url(const struct endpoint_question *question,
	const struct endpoint_arn *arn, struct text *url, struct endpoint *ret)
{
	const struct endpoint_terms *terms = &question->terms;
	char name[sizeof arn->name + sizeof arn->account];
	if (terms->keep_region && strcmp(arn->region, question->region) != 0)
		return "the access point is in another region, and s3_use_arn_region is false";
	if (terms->accelerate)
		return "access points have no S3 Transfer Acceleration";
	if (arn->is_lambda && terms->s3_dualstack && !question->custom)
		return "S3 Object Lambda has no dualstack endpoint";
	if (question->custom && has_ip_address(question->custom))
		return "an access point is a name below the endpoint's, and that is an address";
	snprintf(name, sizeof name, "%s-%s", arn->name, arn->account);
	if (question->custom) {
		add_below_custom(url, question->custom, name);
	} else {
		text_addf(url, "https://%s.", name);
		add_s3_host(url, arn->is_lambda ? "s3-object-lambda" : "s3-accesspoint",
			arn->region, terms);
	}
	strcpy(ret->region, arn->region);
	ret->signing_name = arn->is_lambda ? "s3-object-lambda" : "s3";
	return NULL;
}

/* Returns why a bucket of this name is not at S3's ordinary endpoints, or NULL if it is there. The
 * suffix of its name shows it. */
static const char *unsupported_kind_of_bucket(const char *bucket)
{
	static const struct {
		const char *suffix, *why;
	} kinds[] = {
		{"--op-s3", "S3 on Outposts is not supported: its buckets are not in the region"},
		{"--x-s3", "directory buckets (S3 Express One Zone) are not supported"},
		{"--xa-s3", "access points of directory buckets (S3 Express One Zone) are not "
			    "supported: they need sessions of their own"},
	};
	const size_t n = strlen(bucket);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const size_t suffix_bytes = strlen(kinds[i].suffix);
		if (n > suffix_bytes && strcmp(bucket + n - suffix_bytes, kinds[i].suffix) == 0)
			return kinds[i].why;
	}
	return NULL;
}

/* Writes the URL of a bucket that is given by its name, or by an access point's alias. */
static const char *bucket_url(const struct endpoint_question *question, struct text *url)
{
	const struct endpoint_terms *terms = &question->terms;
	const char *bucket = question->bucket, *custom = question->custom;
	const char *unsupported = unsupported_kind_of_bucket(bucket);
	if (unsupported)
		return unsupported;
	/* Whether the bucket goes into the host name or into the path. At a custom endpoint it goes
	 * into the host only if the style asks for it. At AWS it goes there unless the style
	 * forbids it, which S3 Transfer Acceleration overrides. */
	const bool wants_host = custom ? terms->style == STYLE_VIRTUAL && !has_ip_address(custom)
				       : terms->style != STYLE_PATH || terms->accelerate;
	const bool allows_dots = custom && strncmp(custom, "http://", 7) == 0;
	const bool in_host = wants_host && is_host_name(bucket, allows_dots);
	if (terms->accelerate && custom)
		return "S3 Transfer Acceleration is AWS's alone: it excludes an endpoint URL";
	if (terms->accelerate && terms->fips)
		return "S3 Transfer Acceleration has no FIPS endpoint";
	if (terms->accelerate && !in_host)
		return "S3 Transfer Acceleration needs a bucket named as a host without dots";
	if (terms->accelerate && strcmp(endpoint_partition(question->region), "aws-cn") == 0)
		return "S3 Transfer Acceleration is not in China";
	if (custom && in_host) {
		add_below_custom(url, custom, bucket);
	} else if (custom) {
		text_add(url, custom);
	} else {
		text_addf(url, "https://%s%s", in_host ? bucket : "", in_host ? "." : "");
		add_s3_host(url, "s3", question->region, terms);
	}
	if (!in_host) {
		text_add(url, "/");
		uri_encode(url, bucket, strlen(bucket));
	}
	return NULL;
}

/* Writes the URL of S3, or of the question's bucket, and sets the region and name to sign for where
 * they differ from the question. `arn` is the bucket's ARN, or NULL if the bucket is given by its
 * name. */
static const char *s3_url(const struct endpoint_question *question, const struct endpoint_arn *arn,
	struct text *url, struct endpoint *ret)
{
	struct endpoint_terms terms = question->terms;
	/* "aws-global" occurs in names of hosts, but no request is signed for it. */
	if (strcmp(question->region, "aws-global") == 0)
		strcpy(ret->region, "us-east-1");
	if (terms.fips && !question->custom &&
		strcmp(endpoint_partition(question->region), "aws-cn") == 0)
		return "S3 has no FIPS endpoints in China";
	if (question->bucket)
		return arn ? access_point_url(question, arn, url, ret) : bucket_url(question, url);
	terms.accelerate = false; /* only requests about a bucket can be accelerated */
	text_add(url, question->custom ? question->custom : "https://");
	if (!question->custom)
		add_s3_host(url, "s3", question->region, &terms);
	return NULL;
}

/* Whether requests go to the one global endpoint of STS. Source: "AWS STS Regional endpoints" (AWS
 * SDKs and Tools Reference Guide). */
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

/* Writes the URL of a service other than S3. An endpoint that is not in the question's region also
 * sets the region to sign for. */
static const char *other_url(
	const struct endpoint_question *question, struct text *url, struct endpoint *ret)
{
	const struct partition *partition = partition_of(question->region);
	const struct endpoint_terms *terms = &question->terms;
	/* AWS's tools treat DynamoDB local, the server for development, as a region. */
	const bool is_local = strcmp(question->service, "dynamodb") == 0 &&
			      strcmp(question->region, "local") == 0;
	if (question->custom) {
		text_add(url, question->custom);
	} else if (is_local) {
		if (terms->fips || terms->dualstack)
			return "DynamoDB in the region \"local\" has no FIPS and no dualstack "
			       "endpoint";
		text_add(url, "http://localhost:8000");
		strcpy(ret->region, "us-east-1");
	} else if (shares_sts(question)) {
		text_add(url, "https://sts.amazonaws.com");
		strcpy(ret->region, "us-east-1");
	} else {
		/* In GovCloud the ordinary endpoints are FIPS endpoints, and have no "-fips" in
		 * their names. */
		bool says_fips = terms->fips &&
				 (terms->dualstack || strcmp(partition->name, "aws-us-gov") != 0);
		text_addf(url, "https://%s%s.%s.%s", question->service, says_fips ? "-fips" : "",
			question->region,
			terms->dualstack ? partition->dualstack_suffix : partition->suffix);
	}
	return NULL;
}

/* Whether s can be the name of a region. */
static bool is_region(const char *s)
{
	const size_t n = strlen(s);
	const bool has_other_characters = s[strspn(s, LOWER_ALNUM "-")] != '\0';
	if (n < 1 || n > REGION_MAX || has_other_characters)
		return false;
	return s[0] != '-' && s[n - 1] != '-';
}

int endpoint_resolve(
	const struct endpoint_question *question, struct endpoint *ret, struct problem *ret_problem)
{
	const char *region = question->region, *bucket = question->bucket;
	const bool is_s3 = strcmp(question->service, "s3") == 0;
	const bool is_arn = is_s3 && bucket && strncmp(bucket, "arn:", 4) == 0;
	struct endpoint_arn arn = {0}; /* set if is_arn */
	struct text url = TEXT(ENDPOINT_MAX);
	if (!is_region(region))
		return problem_error(ret_problem, -EINVAL,
			"%s is not a region: give one such as eu-west-1", quote(region).text);
	if (is_arn && endpoint_arn_parse(bucket, &arn, ret_problem) < 0)
		return -EINVAL;
	if (is_arn && strcmp(endpoint_partition(region), endpoint_partition(arn.region)) != 0)
		return problem_error(ret_problem, -EINVAL,
			"the access point is in another partition than %s: %s", quote(region).text,
			quote(bucket).text);
	*ret = (struct endpoint){.signing_name = question->service};
	strcpy(ret->region, region);
	const char *why = is_s3 ? s3_url(question, is_arn ? &arn : NULL, &url, ret)
				: other_url(question, &url, ret);
	if (!why && url.error)
		why = "the endpoint's URL is too long, or memory ran out";
	if (why)
		problem_set(ret_problem, "%s", why);
	else
		strcpy(ret->url, text_string(&url));
	text_clear(&url);
	return why ? -EINVAL : 0;
}
