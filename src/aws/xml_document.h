/* XML as AWS's services answer it: without a document type, without entities of its own. */
#pragma once
#include <libxml/tree.h>
#include <stddef.h>

/* 0 and a document with a root element, free it with xmlFreeDoc; -EBADMSG, -ENOMEM. */
int xml_document_read(const char *xml, size_t n, xmlDoc **ret);
