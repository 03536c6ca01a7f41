/* Prints each change of marks, sessions and objects as a line of JSON, so that tests/model/follow
 * can compare it with the rules of the models. A line has the state before, the state after, and
 * the condition of the request. */
#pragma once
#include "wire.h"
#include "world_s3.h"
#include <jansson.h>
#include <stdio.h>

/* Call it before a world begins. NULL: prints nothing. */
void trace_to(FILE *to);
/* Called by the witnesses of the servers. */
void trace_item(const struct wire_request *request, const char *pk, const char *sk,
	const json_t *old, const json_t *now);
void trace_object(const struct wire_request *request, const struct s3_stored *now);
void trace_upload(void *arg, const struct s3_upload_step *step);
/* Notes that the bucket was deleted and recreated. */
void trace_bucket_anew(void);
