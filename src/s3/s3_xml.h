/* What the readers of S3's XML replies share. For this folder only. */
#pragma once
#include "aws/xml_document.h"
#include "s3/s3.h"
#include <libxml/tree.h>

/* Reads a child's whole number, which is at most `most`. 0 or -EBADMSG. */
int s3_child_number(const xmlNode *parent, const char *name, uint64_t most, uint64_t *ret);
/* Copies the text, or makes it "" if it does not fit, since half a value would be a wrong one. */
void s3_set_text(char *ret, size_t size, const char *text);
/* Reads the checksum among the children. */
void s3_child_sum(const xmlNode *parent, struct s3_sum *ret);

/* What a reply is recognised by. `root` is the name of AWS's root element. A root of another name
 * has to have a child `child`. Servers differ in the names of their roots, and AWS's own libraries
 * do not read them. */
struct s3_shape {
	const char *root, *child;
};
/* Parses a reply. The caller frees *ret_document; *ret is its root. 0, -EBADMSG or -ENOMEM. */
int s3_read_root(const char *xml, size_t n, const struct s3_shape *shape, xmlDoc **ret_document,
	const xmlNode **ret);
