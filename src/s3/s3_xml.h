/* Reading S3's XML: what the readers of replies share. For this folder only. */
#pragma once
#include "aws/xml_document.h"
#include "s3/s3.h"
#include <libxml/tree.h>

/* A child's whole number, at most `most`; 0 or -EBADMSG. */
int s3_child_number(const xmlNode *parent, const char *name, uint64_t most, uint64_t *ret);
/* A copy; empty if it does not fit: half a value would be a wrong one. */
void s3_set_text(char *ret, size_t size, const char *text);
/* The checksum among the children. */
void s3_child_sum(const xmlNode *parent, struct s3_sum *ret);

/* What a reply is known by: the name of AWS's root element, and of a child that one of another name
 * must have: servers differ in the names of their roots, and AWS's own libraries do not read them.
 */
struct s3_shape {
	const char *root, *child;
};
/* The document, the caller's, and its root. 0, -EBADMSG or -ENOMEM. */
int s3_read_root(const char *xml, size_t n, const struct s3_shape *shape, xmlDoc **ret_document,
	const xmlNode **ret);
