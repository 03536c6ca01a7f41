#include "s3/s3_xml.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int s3_child_number(const xmlNode *parent, const char *name, uint64_t most, uint64_t *ret)
{
	const char *text = xml_child_text(parent, name);
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || value > most)
		return -EBADMSG;
	*ret = value;
	return 0;
}

void s3_set_text(char *ret, size_t size, const char *text)
{
	if (snprintf(ret, size, "%s", text) >= (int)size)
		ret[0] = '\0';
}

void s3_child_sum(const xmlNode *parent, struct s3_sum *ret)
{
	*ret = (struct s3_sum){0};
	for (unsigned kind = 0; kind < CHECKSUMS && !ret->text[0]; kind++) {
		ret->kind = (enum checksum)kind;
		if (checksum_kinds[kind].element)
			s3_set_text(ret->text, sizeof ret->text,
				xml_child_text(parent, checksum_kinds[kind].element));
	}
}

static bool is_of_shape(const xmlNode *root, const struct s3_shape *shape)
{
	return xml_is(root, shape->root) ||
	       (!xml_is(root, "Error") && xml_child(root, shape->child));
}

int s3_read_root(const char *xml, size_t n, const struct s3_shape *shape, xmlDoc **ret_document,
	const xmlNode **ret)
{
	xmlDoc *document;
	int error = xml_document_read(xml, n, &document);
	if (error < 0)
		return error;
	const xmlNode *root = xmlDocGetRootElement(document);
	if (!is_of_shape(root, shape)) {
		xmlFreeDoc(document);
		return -EBADMSG;
	}
	*ret_document = document;
	*ret = root;
	return 0;
}
