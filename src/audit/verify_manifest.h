/* Checks whether the objects of a manifest are in the bucket as it says. It changes nothing, and
 * does not read marks. */
#pragma once
#include "audit/verify.h"
#include "manifest/manifest_reader.h"

/* Of `verify`, the store, the space, the range and the id_object are not used; `by` is HEAD or
 * DOWNLOAD. An object of another bucket is an ERROR. OK also if it was stopped: then *ret is not
 * complete, and ret->after says nothing. LOCAL with *ret_is_damaged: the manifest is. */
enum outcome verify_manifest(const struct verify *verify, const char *bucket,
	struct manifest_reader *reader, struct verify_end *ret, bool *ret_is_damaged,
	struct problem *ret_problem);
