/* What is said of two files that would be one object. */
#pragma once
#include "base/problem.h"

struct collision {
	const char *key, *path, *other_path; /* raw bytes */
	const char *remedy;                  /* "exclude one, or …" */
};
/* Sets the sentence, in which all three names have room. */
void collision_tell(const struct collision *collision, struct problem *ret);
