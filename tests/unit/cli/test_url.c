#include "../check.h"
#include "cli/options/values.h"
#include <errno.h>
#include <stdlib.h>

static const struct {
	const char *url, *bucket, *key; /* bucket NULL: refused */
	const char *says;               /* in the sentence */
} rows[] = {
	{"s3://bucket", "bucket", "", NULL},
	{"s3://bucket/", "bucket", "", NULL},
	{"s3://bucket/p", "bucket", "p", NULL},
	{"s3://bucket/p/", "bucket", "p/", NULL},
	{"s3://bucket//p//", "bucket", "/p//", NULL},
	{"s3://bucket/a?b#c%20 d", "bucket", "a?b#c%20 d", NULL},
	{"s3://my.bucket-1/\xC3\xA4", "my.bucket-1", "\xC3\xA4", NULL},
	{"s3://abc", "abc", "", NULL},
	{"s3://a23456789012345678901234567890123456789012345678901234567890123",
		"a23456789012345678901234567890123456789012345678901234567890123", "", NULL},
	{"s3://a234567890123456789012345678901234567890123456789012345678901234", NULL, NULL,
		"3 to 63"},
	{"s3://ab", NULL, NULL, "3 to 63"},
	{"s3://", NULL, NULL, "3 to 63"},
	{"s3:///key", NULL, NULL, "3 to 63"},
	{"s3://Bucket", NULL, NULL, "lower-case"},
	{"s3://my_bucket", NULL, NULL, "lower-case"},
	{"s3://arn:aws:s3:us-west-2:123456789012:accesspoint/point",
		"arn:aws:s3:us-west-2:123456789012:accesspoint/point", "", NULL},
	{"s3://arn:aws:s3:us-west-2:123456789012:accesspoint/point/a/b",
		"arn:aws:s3:us-west-2:123456789012:accesspoint/point", "a/b", NULL},
	{"s3://arn:aws:s3:us-west-2:123456789012:accesspoint:point/a:b",
		"arn:aws:s3:us-west-2:123456789012:accesspoint:point", "a:b", NULL},
	{"s3://arn:aws:s3:::bucket", NULL, NULL, "bucket by its name alone"},
	{"s3://arn:aws:s3-outposts:us-west-2:1:outpost/op-1/accesspoint/p", NULL, NULL, "Outposts"},
	{"s3://arn:aws:s3::1:accesspoint/a.mrap", NULL, NULL, "multi-region"},
	{"s3://arn:", NULL, NULL, "ARN"},
	{"s3://arn:a:b:c:d:e", NULL, NULL, "ARN"},
	{"s3://-bucket", NULL, NULL, "begins and ends"},
	{"s3://bucket.", NULL, NULL, "begins and ends"},
	{"s3://my..bucket", NULL, NULL, "two dots"},
	{"s3://192.168.0.1", NULL, NULL, "IP address"},
	{"S3://bucket", NULL, NULL, "s3://BUCKET"},
	{"s3:/bucket", NULL, NULL, "s3://BUCKET"},
	{"s3:bucket", NULL, NULL, "s3://BUCKET"},
	{"bucket", NULL, NULL, "s3://BUCKET"},
	{"", NULL, NULL, "s3://BUCKET"},
	{"https://bucket.s3.amazonaws.com/", NULL, NULL, "s3://BUCKET"},
	{"s3://bucket/\xFF", NULL, NULL, "UTF-8"},
	{"s3://bucket/a\x01", NULL, NULL, "U+0001"},
};

static void check_row(size_t i)
{
	struct s3_url url = {0};
	struct problem problem = {0};
	int r = url_parse(rows[i].url, &url, &problem);
	bool ok = CHECK_INT(r, rows[i].bucket ? 0 : -EINVAL);
	if (rows[i].bucket) {
		ok = CHECK_STRING(url.bucket, rows[i].bucket) && ok;
		ok = CHECK_STRING(url.key, rows[i].key) && ok;
	} else {
		ok = CHECK(strstr(problem.text, rows[i].says)) && ok;
	}
	if (!ok)
		fprintf(stderr, "\turl '%s': %s\n", rows[i].url, problem.text);
}

static void check_long_key(void)
{
	enum { KEY = 1025 };
	char url[12 + KEY] = "s3://bucket/";
	struct s3_url parsed;
	struct problem problem;
	memset(url + 12, 'k', KEY - 1);
	CHECK_INT(url_parse(url, &parsed, &problem), 0);
	char longer[sizeof url + 1];
	snprintf(longer, sizeof longer, "%sk", url);
	CHECK_INT(url_parse(longer, &parsed, &problem), -EINVAL);
	CHECK(strstr(problem.text, "1025 bytes"));
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_row(i);
	check_long_key();
	CHECK(url_is_s3("s3://b") && url_is_s3("S3:b") && !url_is_s3("./s3:") && !url_is_s3(""));
	return check_result();
}
