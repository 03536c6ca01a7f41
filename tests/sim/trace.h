/* What becomes of marks, sessions and objects, as lines of JSON, so that tests/model/follow can
 * compare each step with the rules of the models. A line tells what was there, what is there now,
 * and what the request asked to be so before. */
#pragma once
#include "wire.h"
#include "world_s3.h"
#include <jansson.h>
#include <stdio.h>

/* To be called before a world begins. NULL: nothing is told. */
void trace_to(FILE *to);
/* As a witness of each server is told of it. */
void trace_item(const struct wire_request *request, const char *pk, const char *sk,
	const json_t *old, const json_t *now);
void trace_object(const struct wire_request *request, const struct s3_stored *now);
void trace_upload(void *arg, const struct s3_upload_step *step);
/* The bucket is deleted and made again. */
void trace_bucket_anew(void);
