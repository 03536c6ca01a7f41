/* s3:// URLs and endpoints: what is accepted can be written anew and is accepted again. */
#include "aws/endpoint.h"
#include "cli/url.h"
#include "fuzz.h"
#include "scan/key.h"
#include <errno.h>

static void read_s3(const char *s)
{
	struct s3_url url, again;
	struct problem problem = {0};
	char *written;
	if (url_parse(s, &url, &problem) < 0) {
		ENSURE(problem.text[0] && memchr(problem.text, 0, sizeof(problem.text)));
		return;
	}
	ENSURE(url_is_s3(s));
	ENSURE(!*url.key || key_valid(url.key, strlen(url.key), &problem));
	ENSURE(asprintf(&written, "s3://%s/%s", url.bucket, url.key) > 0);
	ENSURE(url_parse(written, &again, &problem) == 0);
	ENSURE(strcmp(url.bucket, again.bucket) == 0 && strcmp(url.key, again.key) == 0);
	bool in_host =
		endpoint_bucket_in_host("https://s3.eu-west-1.amazonaws.com", url.bucket, false);
	ENSURE(!in_host || !strchr(url.bucket, '.'));
	ENSURE(!endpoint_bucket_in_host("https://127.0.0.1:9", url.bucket, false));
	free(written);
}

static void read_endpoint(const char *s)
{
	char *url = NULL, *again = NULL;
	const char *why = NULL;
	int error = endpoint_parse_url(s, &url, &why);
	if (error) {
		ENSURE(error == -EINVAL && why && !url);
		return;
	}
	const char *host = url + (strncmp(url, "https://", 8) == 0 ? 8 : 7);
	ENSURE(host > url + 7 || strncmp(url, "http://", 7) == 0);
	ENSURE(*host && *host != '/' && strcspn(host, "@") >= strcspn(host, "/"));
	ENSURE(!strpbrk(host, " \r\n\t?#"));
	ENSURE(url[strlen(url) - 1] != '/');
	ENSURE(endpoint_parse_url(url, &again, &why) == 0 && strcmp(url, again) == 0);
	free(url);
	free(again);
}

static void read_region(const char *s)
{
	char url[256], small[32];
	ENSURE(endpoint_partition(s));
	if (endpoint_aws_url("s3", s, url, sizeof(url)) < 0)
		return;
	char *again = NULL;
	const char *why = NULL;
	ENSURE(endpoint_parse_url(url, &again, &why) == 0 && strcmp(url, again) == 0);
	ENSURE(strncmp(url + strlen("https://s3."), s, strlen(s)) == 0);
	int error = endpoint_aws_url("s3", s, small, sizeof(small));
	ENSURE(error == (strlen(url) < sizeof(small) ? 0 : -ENAMETOOLONG));
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = fuzz_string(data, size);
	read_s3(s);
	read_endpoint(s);
	read_region(s);
	free(s);
	return 0;
}
