#include "aws/endpoint_arn.h"
#include "base/quote.h"
#include <errno.h>
#include <string.h>

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

static int refuse(struct problem *problem, const char *s, const char *why)
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
		return refuse(ret_problem, s, "this is not the ARN of an access point");
	arn.is_lambda = strcmp(service, "s3-object-lambda") == 0;
	const char *fault = fault_of(service, type, at, &arn);
	if (fault)
		return refuse(ret_problem, s, fault);
	*ret = arn;
	return 0;
}
