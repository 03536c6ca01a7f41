/* XML as AWS's services answer it: UTF-8, without a document type, without entities of its own.
 * What is made to be slow (an element with very many attributes, very many elements) is refused
 * before it costs more than a moment. */
#pragma once
#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>

/* 0 and a document with a root element, free it with xmlFreeDoc; -EBADMSG, -ENOMEM. */
int xml_document_read(const char *xml, size_t n, xmlDoc **ret);

/* Whether a node is an element of this name. */
bool xml_is(const xmlNode *node, const char *name);
/* The first child element of this name, or NULL; parent may be NULL. */
const xmlNode *xml_child(const xmlNode *parent, const char *name);
/* The text of that child; "" if there is none, or if it is more than text. Borrowed from the
 * document. */
const char *xml_child_text(const xmlNode *parent, const char *name);
