#include "../check.h"
#include "aws/endpoint.h"
#include <errno.h>
#include <stdlib.h>

static void check_aws_urls(void)
{
	static const struct {
		const char *service, *region, *url, *partition;
	} rows[] = {
		{"s3", "us-east-1", "https://s3.us-east-1.amazonaws.com", "aws"},
		{"s3", "eu-west-3", "https://s3.eu-west-3.amazonaws.com", "aws"},
		{"dynamodb", "ap-south-1", "https://dynamodb.ap-south-1.amazonaws.com", "aws"},
		{"s3", "cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn", "aws-cn"},
		{"dynamodb", "cn-northwest-1", "https://dynamodb.cn-northwest-1.amazonaws.com.cn",
			"aws-cn"},
		{"s3", "us-gov-west-1", "https://s3.us-gov-west-1.amazonaws.com", "aws-us-gov"},
		{"s3", "us-iso-east-1", "https://s3.us-iso-east-1.c2s.ic.gov", "aws-iso"},
		{"s3", "us-isob-east-1", "https://s3.us-isob-east-1.sc2s.sgov.gov", "aws-iso-b"},
	};
	char url[256];
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		CHECK_INT(endpoint_aws_url(rows[i].service, rows[i].region, url, sizeof(url)), 0);
		CHECK_STRING(url, rows[i].url);
		CHECK_STRING(endpoint_partition(rows[i].region), rows[i].partition);
	}
	static const char *const bad[] = {"", "eu west", "EU-WEST-1", "a.b", "evil.example/", "-x",
		"x-", "\xc3\xa4", "a@b", "a:1"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_INT(endpoint_aws_url("s3", bad[i], url, sizeof(url)), -EINVAL);
	CHECK_INT(endpoint_aws_url("s3", "us-east-1", url, 20), -ENAMETOOLONG);
}

static void check_custom_urls(void)
{
	static const struct {
		const char *url, *want;
	} rows[] = {
		{"http://127.0.0.1:9000", "http://127.0.0.1:9000"},
		{"http://127.0.0.1:9000/", "http://127.0.0.1:9000"},
		{"HTTPS://S3.Example.COM:443//", "https://s3.example.com"},
		{"http://h:80/base/path/", "http://h/base/path"},
		{"https://h:80", "https://h:80"},
		{"http://[::1]:8080", "http://[::1]:8080"},
		{"ftp://h", NULL},
		{"file:///etc/passwd", NULL},
		{"gopher://h", NULL},
		{"localhost:9000", NULL},
		{"//h", NULL},
		{"", NULL},
		{"http://", NULL},
		{"http:///path", NULL},
		{"http://user@h", NULL},
		{"http://user:secret@h", NULL},
		{"http://h?x=1", NULL},
		{"http://h#x", NULL},
		{"http://h:99999", NULL},
		{"http://h:x", NULL},
		{"http://a b", NULL},
		{"http://h\n", NULL},
		{"http://\xc3\xa4", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *got = NULL;
		const char *why = NULL;
		int error = endpoint_parse_url(rows[i].url, &got, &why);
		bool right = CHECK_INT(error, rows[i].want ? 0 : -EINVAL) &&
			     CHECK_STRING(got, rows[i].want) &&
			     CHECK((why == NULL) == (error == 0));
		if (!right)
			fprintf(stderr, "\tof %s\n", rows[i].url);
		free(got);
	}
}

static void check_styles(void)
{
	static const struct {
		const char *endpoint, *bucket;
		bool path_style, in_host;
	} rows[] = {
		{"https://s3.us-east-1.amazonaws.com", "logs", false, true},
		{"https://s3.us-east-1.amazonaws.com", "logs", true, false},
		{"https://s3.us-east-1.amazonaws.com", "my.logs", false, false},
		{"http://s3.example.com", "my.logs", false, true},
		{"https://s3.us-east-1.amazonaws.com", "Logs", false, false},
		{"https://s3.us-east-1.amazonaws.com", "lo_gs", false, false},
		{"https://s3.us-east-1.amazonaws.com", "lo", false, false},
		{"https://s3.us-east-1.amazonaws.com", "-logs", false, false},
		{"http://s3.example.com", "a..b", false, false},
		{"http://s3.example.com", "a.-b", false, false},
		{"http://s3.example.com", "10.0.0.1", false, false},
		{"http://127.0.0.1:9000", "logs", false, false},
		{"http://[::1]:9000", "logs", false, false},
		{"http://localhost:9000", "logs", false, true},
		{"https://s3.us-east-1.amazonaws.com",
			"0123456789012345678901234567890123456789012345678901234567890123", false,
			false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!CHECK_INT(endpoint_bucket_in_host(
				       rows[i].endpoint, rows[i].bucket, rows[i].path_style),
			    rows[i].in_host))
			fprintf(stderr, "\tof %s at %s\n", rows[i].bucket, rows[i].endpoint);
}

int main(void)
{
	check_aws_urls();
	check_custom_urls();
	check_styles();
	return check_result();
}
