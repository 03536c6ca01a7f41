/* Prints what endpoint_resolve makes of each line of standard input, for test_endpoints.py:
 *
 *   SERVICE <tab> REGION <tab> CUSTOM-URL <tab> BUCKET <tab> STYLE <tab> WORD,WORD,…
 *
 * CUSTOM-URL and BUCKET may be empty; STYLE is auto, virtual or path; a WORD is fips, dualstack,
 * accelerate, keep-region or sts-global. The answer is URL <tab> REGION <tab> SIGNING-NAME, or
 * error <tab> SENTENCE. */
#include "aws/endpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 6

static const char *filled(const char *s)
{
	return *s ? s : NULL;
}

static bool has(const char *words, const char *word)
{
	const char *at = strstr(words, word);
	return at && (at == words || at[-1] == ',');
}

static void answer(char *fields[FIELDS])
{
	char *custom = NULL;
	const char *words = fields[5];
	struct endpoint endpoint;
	struct problem problem = {0};
	if (*fields[2] && endpoint_parse_url(fields[2], &custom, &problem) < 0) {
		printf("error\t%s\n", problem.text);
		return;
	}
	const struct endpoint_question question = {
		.service = fields[0],
		.region = fields[1],
		.custom = custom,
		.bucket = filled(fields[3]),
		.terms =
			{
				.style = strcmp(fields[4], "path") == 0      ? STYLE_PATH
					 : strcmp(fields[4], "virtual") == 0 ? STYLE_VIRTUAL
									     : STYLE_AUTO,
				.fips = has(words, "fips"),
				.dualstack = has(words, "dualstack"),
				.s3_dualstack = has(words, "dualstack"),
				.accelerate = has(words, "accelerate"),
				.keep_region = has(words, "keep-region"),
				.sts_global = has(words, "sts-global"),
			},
	};
	if (endpoint_resolve(&question, &endpoint, &problem) < 0)
		printf("error\t%s\n", problem.text);
	else
		printf("%s\t%s\t%s\n", endpoint.url, endpoint.region, endpoint.signing_name);
	free(custom);
}

int main(void)
{
	char line[2048];
	while (fgets(line, sizeof line, stdin)) {
		char *fields[FIELDS] = {0}, *rest = line;
		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < FIELDS; i++)
			fields[i] = strsep(&rest, "\t");
		if (!fields[FIELDS - 1] || rest)
			return 2;
		answer(fields);
	}
	return 0;
}
