/* Reading a file: opening and hashing it (file_open.c), and comparing it with an object
 * (compare.c). All functions may block, in the thread of the worker. */
#pragma once
#include "upload/file/file.h"

/* Opens the file that currently has the name, plans its upload by its size, and chooses its
 * encoding. Discards the sums of the file that was open before. The input of a pipe is not opened
 * before it was read: fd stays -1. Returns NEXT, or the step to take instead. */
enum step file_open(struct worker *worker, struct file *file);
/* Gives the object's key the suffix of --compress, which is "" with --header Content-Encoding.
 * Returns NEXT, or the step to take instead if the key would be too long. */
enum step file_add_suffix(struct worker *worker, struct file *file);
/* Return the range of the whole file, and that of part `index` of this plan. `encoding` is the
 * range's encoding, or NULL. */
struct range file_whole_range(const struct file *file, const struct encoding *encoding);
struct range file_part_range(const struct file *file, const struct encoding *encoding,
	const struct plan *plan, unsigned index);
/* Computes the digests `kinds` of the body that a range of the opened file becomes. Returns 0,
 * -ESTALE if the file has changed, or another error of body_digest(). */
int file_digest(struct worker *worker, const struct file *file, unsigned kinds,
	const struct range *range, struct sums *ret);
/* Computes file->content_sums of the whole content if `encoding` is NULL, and otherwise
 * file->object_sums of its encoded form. They have at least these kinds then. Returns NEXT, or the
 * step to take instead. */
enum step file_compute_sums(
	struct worker *worker, struct file *file, const struct encoding *encoding, unsigned kinds);
/* Handles an error (-errno) of opening or reading the file. A file that has changed (-ESTALE) is
 * opened again, and the current step is repeated, or LOOK if the file was to replace an object.
 * Returns OVER if the run has ended the reading (-ECANCELED), or if no descriptor is left, which
 * ends the run. If another process holds a lease on the file, the file is retried later. After any
 * other error, it fails. */
enum step file_handle_read_error(struct worker *worker, struct file *file, int error);
/* Reads the file, and sets *ret to whether the object has its content, according to the server's
 * checksums. Returns NEXT, or the step to take instead. */
enum step file_compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
/* As file_compare(), but compares the object with the content on the disk, even if the file is sent
 * encoded. */
enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
