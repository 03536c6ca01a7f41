/* The results of a command with --json, compared event by event. */
#pragma once
#include "../check.h"
#include "cli/output.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char results_path[] = "/tmp/test_results.XXXXXX";

/* Begins an output whose results go to a file, with which end_results() compares them. */
static inline void begin_results(struct output *output)
{
	CHECK_INT(truncate(results_path, 0), 0);
	output_init(output,
		&(struct output_options){.log_file = results_path, .logs_results_alone = true});
}

/* Checks that the results are one event for each of these texts, which is the event without its
 * time and the members before. */
static inline void end_results(struct output *output, const char *const *want, size_t n)
{
	char line[4000] = "";
	CHECK_INT(output_finish(output), 0);
	FILE *file = fopen(results_path, "r");
	for (size_t i = 0; file && i < n; i++) {
		const char *event = fgets(line, sizeof line, file) ? strstr(line, "Z\",") : NULL;
		line[strcspn(line, "\n")] = 0;
		CHECK_STRING(event ? event + 3 : line, want[i]);
	}
	CHECK(file && !fgets(line, sizeof line, file));
	if (file)
		fclose(file);
}
