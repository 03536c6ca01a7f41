/* XML as AWS's services answer it: UTF-8, without a document type, without entities of its own.
 * What is made to be slow (an element with very many attributes, very many elements) is refused
 * before it costs more than a moment. */
#pragma once
#include <libxml/tree.h>
#include <stddef.h>

/* 0 and a document with a root element, free it with xmlFreeDoc; -EBADMSG, -ENOMEM. */
int xml_document_read(const char *xml, size_t n, xmlDoc **ret);
