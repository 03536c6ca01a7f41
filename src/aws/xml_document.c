#include "aws/xml_document.h"
#include <errno.h>
#include <libxml/parser.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* AWS has no document types: who sends one wants entities expanded. */
static void refuse_document_type(
	void *context, const xmlChar *name, const xmlChar *external_id, const xmlChar *system_id)
{
	xmlStopParser(context);
}

int xml_document_read(const char *xml, size_t n, xmlDoc **ret)
{
	while (n && (*xml == ' ' || *xml == '\t' || *xml == '\r' || *xml == '\n')) {
		xml++;
		n--;
	}
	if (n == 0 || n > INT_MAX)
		return -EBADMSG;
	xmlParserCtxt *parser = xmlNewParserCtxt();
	if (!parser)
		return -ENOMEM;
	parser->sax->internalSubset = refuse_document_type;
	xmlDoc *document = xmlCtxtReadMemory(parser, xml, (int)n, NULL, NULL,
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA |
			XML_PARSE_COMPACT);
	int error = parser->errNo == XML_ERR_NO_MEMORY ? -ENOMEM : -EBADMSG;
	bool whole = document && parser->wellFormed && xmlDocGetRootElement(document);
	xmlFreeParserCtxt(parser);
	if (!whole) {
		xmlFreeDoc(document);
		return error;
	}
	*ret = document;
	return 0;
}
