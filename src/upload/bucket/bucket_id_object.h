/* The object that --bucket-id-object names. Its metadata has a random id, by which this bucket is
 * told from every other one. It is the witness of the bucket as long as it is there, which no
 * lifecycle rule ends, since it is written anew before it is a day old. */
#pragma once
#include "marks/bucket_shown.h"

/* Takes the id of the object under `key` into the row, and makes the object if there is none. False
 * with a sentence: that cannot be done, or the object is somebody else's. */
bool bucket_id_object_take(struct s3 *s3, const struct bucket_asking *asking, const char *key,
	struct bucket_row *row, struct problem *ret_problem);
/* Writes the row's object again with its id if it is `age_s` old. What fails is a warning. */
void bucket_id_object_refresh(struct s3 *s3, const struct bucket_asking *asking,
	const struct bucket_row *row, int64_t age_s);
