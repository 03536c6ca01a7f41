/* Which files are encoded, and comparing them with objects that were. */
#pragma once
#include "upload/file/worker.h"

/* Sets file->encoding and the object's key: what is compressed already, or has a Content-Encoding
 * by a rule, is sent as it is. NEXT, or why not; with NEXT, *ret_error is 0, or -errno of reading
 * the file. */
enum step file_choose_encoding(struct worker *worker, struct file *file, int *ret_error);

/* As file_compare(), of an object that s3once made by compressing, as it says itself, or of one
 * whose file would be compressed. What the object was made with decides what is compared. */
enum step file_compare_encoded(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
