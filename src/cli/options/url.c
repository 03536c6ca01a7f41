/* The one reader of s3://BUCKET[/KEY]. Every command that takes a URL comes here, and so do the
 * fuzzers. A bucket is checked by its name alone, an access point by its ARN; nobody is asked
 * whether it exists. */
#include "cli/options/url.h"
#include "aws/endpoint.h"
#include "base/quote.h"
#include "scan/key/key.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

static int refuse(struct problem *problem, const char *s, const char *why)
{
	return problem_error(problem, -EINVAL, "'%s': %s", quote(s).text, why);
}

bool url_is_s3(const char *s)
{
	return strncasecmp(s, "s3:", 3) == 0;
}

/* What is wrong with a bucket's name, or NULL. */
static const char *bucket_fault(const char *name, size_t n)
{
	struct in_addr address;
	char copy[BUCKET_MAX + 1];
	if (n < 3 || n > BUCKET_MAX)
		return "a bucket's name has 3 to 63 characters";
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") < n)
		return "a bucket's name has only lower-case letters, digits, dots and hyphens";
	if (strchr(".-", name[0]) || strchr(".-", name[n - 1]))
		return "a bucket's name begins and ends with a letter or a digit";
	memcpy(copy, name, n);
	copy[n] = 0;
	if (strstr(copy, ".."))
		return "a bucket's name has no two dots side by side";
	if (inet_pton(AF_INET, copy, &address) == 1)
		return "a bucket's name must not look like an IP address";
	return NULL;
}

/* The bytes of an ARN at the beginning of s: five fields, what it is of, and that one's name. */
static size_t arn_length(const char *s)
{
	size_t n = 0;
	for (int colons = 0; s[n] && colons < 5; n++)
		colons += s[n] == ':';
	n += strcspn(s + n, ":/");
	n += s[n] != '\0';
	return n + strcspn(s + n, "/");
}

int url_parse(const char *s, struct s3_url *ret, struct problem *ret_problem)
{
	if (strncmp(s, "s3://", 5) != 0)
		return refuse(
			ret_problem, s, "an S3 URL is written s3://BUCKET or s3://BUCKET/PREFIX");
	const char *bucket = s + 5;
	bool is_arn = strncmp(bucket, "arn:", 4) == 0;
	size_t n = is_arn ? arn_length(bucket) : strcspn(bucket, "/");
	const char *fault = !is_arn       ? bucket_fault(bucket, n)
			    : n > ARN_MAX ? "this is not the ARN of an access point"
					  : NULL;
	if (fault)
		return refuse(ret_problem, s, fault);
	memcpy(ret->bucket, bucket, n);
	ret->bucket[n] = 0;
	struct endpoint_arn arn;
	if (is_arn && endpoint_arn_parse(ret->bucket, &arn, ret_problem) < 0)
		return -EINVAL;
	const char *key = bucket[n] ? bucket + n + 1 : bucket + n;
	struct problem fault_of_key;
	if (*key && !key_valid(key, strlen(key), &fault_of_key))
		return refuse(ret_problem, s, fault_of_key.text);
	ret->key = key;
	return 0;
}
