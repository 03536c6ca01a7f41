#include "../check.h"
#include "aws/endpoint.h"
#include <errno.h>
#include <stdlib.h>

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
		{"http://[fe80::1%25eth0]:9000", NULL},
		{"http://h:99999", NULL},
		{"http://h:x", NULL},
		{"http://a b", NULL},
		{"http://h\n", NULL},
		{"http://\xc3\xa4", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *got = NULL;
		struct problem problem = {0};
		int error = endpoint_parse_url(rows[i].url, &got, &problem);
		bool right = CHECK_INT(error, rows[i].want ? 0 : -EINVAL) &&
			     CHECK_STRING(got, rows[i].want) &&
			     CHECK((problem.text[0] == 0) == (error == 0));
		if (!right)
			fprintf(stderr, "\tof %s\n", rows[i].url);
		free(got);
	}
}

/* The rest is compared with botocore, row by row: tests/system/test_endpoints.py. */
static void check_partitions(void)
{
	static const char *const rows[][2] = {
		{"us-east-1", "aws"},
		{"ap-south-1", "aws"},
		{"cn-north-1", "aws-cn"},
		{"us-gov-west-1", "aws-us-gov"},
		{"us-iso-east-1", "aws-iso"},
		{"us-isob-east-1", "aws-iso-b"},
		{"eu-isoe-west-1", "aws-iso-e"},
		{"us-isof-south-1", "aws-iso-f"},
		{"eusc-de-east-1", "aws-eusc"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK_STRING(endpoint_partition(rows[i][0]), rows[i][1]);
}

static void check_too_long(void)
{
	char url[900] = "http://h/";
	memset(url + strlen(url), 'x', sizeof url - strlen(url) - 1);
	struct endpoint_question question = {
		.service = "s3", .region = "eu-west-1", .custom = url, .bucket = "b"};
	struct endpoint endpoint;
	struct problem problem = {0};
	CHECK_INT(endpoint_resolve(&question, &endpoint, &problem), -EINVAL);
	CHECK(strstr(problem.text, "too long") != NULL);
}

int main(void)
{
	check_custom_urls();
	check_partitions();
	check_too_long();
	return check_result();
}
