/* Keys made of prefix and path, and the rules for valid keys. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

/* Adds the part of a key before the relative path: the prefix byte for byte, then one '/' unless
 * the prefix is empty or ends in one. */
void key_add_base(struct text *key, const char *prefix);

/* Whether S3 and the mark store can hold these bytes as a key: UTF-8, 1 to KEY_BYTES_MAX bytes, and
 * only characters that XML 1.0 can carry (https://www.w3.org/TR/xml/#charsets), since keys come
 * back in XML. Else false and the sentence in ret_problem. */
bool key_valid(const char *key, size_t len, struct problem *ret_problem);

/* Sets the sentence about two files that have the same key. The key and the paths are raw bytes.
 * The sentence has room for all three, cut if they are long. The remedy is "exclude one, or …". */
void collision_explain(const char *key, const char *path, const char *other_path,
	const char *remedy, struct problem *ret);
