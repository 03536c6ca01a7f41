/* s3:// URLs and endpoints: what is accepted can be written anew and is accepted again. */
#include "aws/endpoint.h"
#include "cli/options/values.h"
#include "fuzz.h"
#include "scan/key/key.h"
#include <errno.h>

static void read_s3(const char *s)
{
	struct s3_url url, again;
	struct problem problem = {0};
	char *written;
	if (url_parse(s, &url, &problem) < 0) {
		ENSURE(problem.text[0] && memchr(problem.text, 0, sizeof problem.text));
		return;
	}
	ENSURE(url_is_s3(s));
	ENSURE(!*url.key || key_valid(url.key, strlen(url.key), &problem));
	ENSURE(asprintf(&written, "s3://%s/%s", url.bucket, url.key) > 0);
	ENSURE(url_parse(written, &again, &problem) == 0);
	ENSURE(strcmp(url.bucket, again.bucket) == 0 && strcmp(url.key, again.key) == 0);
	free(written);
	struct endpoint_question question = {
		.service = "s3", .region = "eu-west-1", .bucket = url.bucket};
	struct endpoint endpoint;
	if (endpoint_resolve(&question, &endpoint, &problem) == 0)
		ENSURE(strstr(endpoint.url, url.bucket) || strncmp(url.bucket, "arn:", 4) == 0);
}

static void read_endpoint(const char *s)
{
	char *url = NULL, *again = NULL;
	struct problem problem = {0};
	int error = endpoint_parse_url(s, &url, &problem);
	if (error) {
		ENSURE(error == -EINVAL && problem.text[0] && !url);
		return;
	}
	const char *host = url + (strncmp(url, "https://", 8) == 0 ? 8 : 7);
	ENSURE(host > url + 7 || strncmp(url, "http://", 7) == 0);
	ENSURE(*host && *host != '/' && strcspn(host, "@") >= strcspn(host, "/"));
	ENSURE(!strpbrk(host, " \r\n\t?#"));
	ENSURE(url[strlen(url) - 1] != '/');
	ENSURE(endpoint_parse_url(url, &again, &problem) == 0 && strcmp(url, again) == 0);
	free(url);
	free(again);
}

static void read_region(const char *s)
{
	struct endpoint_question question = {.service = "sts", .region = s};
	struct endpoint endpoint = {0};
	struct problem problem = {0};
	char *again = NULL;
	ENSURE(endpoint_partition(s));
	if (endpoint_resolve(&question, &endpoint, &problem) < 0) {
		ENSURE(problem.text[0] && !endpoint.url[0]);
		return;
	}
	ENSURE(endpoint_parse_url(endpoint.url, &again, &problem) == 0);
	ENSURE(strcmp(endpoint.url, again) == 0 && strcmp(endpoint.region, s) == 0);
	ENSURE(strncmp(endpoint.url + strlen("https://sts."), s, strlen(s)) == 0);
	free(again);
}

/* Any bytes as a bucket: a sentence, or a URL that is one. */
static void read_bucket(const char *s)
{
	for (int style = STYLE_AUTO; style <= STYLE_PATH; style++) {
		struct endpoint_question question = {.service = "s3",
			.region = "eu-west-1",
			.bucket = s,
			.terms.style = (enum endpoint_style)style};
		struct endpoint endpoint;
		struct problem problem = {0};
		if (endpoint_resolve(&question, &endpoint, &problem) == 0)
			ENSURE(strncmp(endpoint.url, "https://", 8) == 0 &&
				!strpbrk(endpoint.url, " \r\n\t?#@"));
		else
			ENSURE(problem.text[0]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	read_s3(s);
	read_endpoint(s);
	read_region(s);
	read_bucket(s);
	free(s);
	return 0;
}
