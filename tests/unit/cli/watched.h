/* A job of `s3once watch` from the text of its file, for tests of its passes. */
#pragma once
#include "../check.h"
#include "cli/watch/watched_job.h"
#include <stdlib.h>

/* Writes the file of the job, and opens it for the service. The test ends if that fails. */
static inline struct watched *watched_open(
	const char *conf, const char *text, const struct watched_service *service)
{
	static char self[] = "watch";
	char *const argv[] = {self, NULL};
	struct watched *watched = NULL;
	FILE *stream = fopen(conf, "w");
	CHECK(stream && fputs(text, stream) >= 0);
	if (stream)
		fclose(stream);
	if (!CHECK_INT(watched_new(conf, 1, argv, service, &watched), 0))
		exit(check_result());
	return watched;
}
