/* Reads XML in the form of AWS's replies, which is UTF-8 without a document type and without
 * entities of its own. Documents that are made to be slow, with very many elements or attributes,
 * are refused before they cost more than a moment. Only elements and their text are kept: no
 * attributes, namespaces, comments or processing instructions, which could take many times the
 * memory of the reply. */
#pragma once
#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns 0 and a document with a root element, which the caller frees with xmlFreeDoc(); -EBADMSG
 * or -ENOMEM. */
int xml_document_read(const char *xml, size_t n, xmlDoc **ret);

/* Whether a node is an element of this name. */
bool xml_is(const xmlNode *node, const char *name);
/* The first child element of this name, or NULL; parent may be NULL. */
const xmlNode *xml_child(const xmlNode *parent, const char *name);
/* The text of that child, borrowed from the document. It is "" if there is no such child, or if the
 * child has more than text. */
const char *xml_child_text(const xmlNode *parent, const char *name);
