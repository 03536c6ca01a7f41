/* Parses XML documents of a service with libxml2, without network access, without entities, and
 * within libxml2's own limits. */
#include "aws/xml_document.h"
#include <errno.h>
#include <libxml/parser.h>
#include <libxml/SAX2.h>
#include <limits.h>
#include <string.h>

/* An element of AWS has two attributes at most, and a document of AWS has some 15,000 elements at
 * most. libxml2 compares each attribute of an element with all its others, and keeps 120 bytes of
 * each element. */
#define ATTRIBUTES_MAX 64
#define ELEMENTS_MAX   100000

static const char blanks[] = {' ', '\t', '\r', '\n'};

/* Whether no element has more than ATTRIBUTES_MAX attributes. Each '=' before a quote counts as an
 * attribute, also in the text between two tags, which hardly ever has so many of them. */
static bool has_few_attributes(const char *xml, size_t n)
{
	unsigned attributes = 0;
	for (size_t i = 0; i < n; i++) {
		if (xml[i] == '<')
			attributes = 0;
		if (xml[i] != '=')
			continue;
		size_t next = i + 1; /* the first character after the '=' that is not white space */
		while (next < n && memchr(blanks, xml[next], sizeof blanks))
			next++;
		const bool is_quote = next < n && (xml[next] == '"' || xml[next] == '\'');
		if (is_quote && ++attributes > ATTRIBUTES_MAX)
			return false;
	}
	return true;
}

/* Handles the start of an element as libxml2 does, but keeps its local name alone, and stops the
 * parser after ELEMENTS_MAX elements. libxml2 would also keep each attribute, of which nothing here
 * is read: 200 bytes of memory for five in the document. */
static void start_element(void *context, const xmlChar *name, const xmlChar *prefix,
	const xmlChar *uri, int n_namespaces, const xmlChar **namespaces, int n_attributes,
	int n_defaulted, const xmlChar **attributes)
{
	xmlParserCtxt *parser = context;
	size_t *n_elements = parser->_private;
	if (++*n_elements > ELEMENTS_MAX)
		xmlStopParser(parser);
	else
		xmlSAX2StartElementNs(context, name, NULL, NULL, 0, NULL, 0, 0, NULL);
}

/* Stops the parser at a document type. AWS sends none, and its only use would be entities. */
static void refuse_document_type(
	void *context, const xmlChar *name, const xmlChar *external_id, const xmlChar *system_id)
{
	xmlStopParser(context);
}

int xml_document_read(const char *xml, size_t n, xmlDoc **ret)
{
	size_t n_elements = 0;
	/* libxml2 does not accept white space before the XML declaration. */
	for (; n && memchr(blanks, *xml, sizeof blanks); n--)
		xml++;
	if (n == 0 || n > INT_MAX || !has_few_attributes(xml, n))
		return -EBADMSG;
	xmlParserCtxt *parser = xmlNewParserCtxt();
	if (!parser)
		return -ENOMEM;
	parser->sax->internalSubset = refuse_document_type;
	parser->sax->startElementNs = start_element;
	/* Without these functions, comments and processing instructions are skipped. libxml2 would
	 * keep each, in 120 bytes of memory for five in the document. */
	parser->sax->comment = NULL;
	parser->sax->processingInstruction = NULL;
	parser->_private = &n_elements;
	xmlDoc *document = xmlCtxtReadMemory(parser, xml, (int)n, NULL, "UTF-8",
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA |
			XML_PARSE_COMPACT);
	int error = parser->errNo == XML_ERR_NO_MEMORY ? -ENOMEM : -EBADMSG;
	/* libxml2 may return the part that it has parsed before an error. */
	bool is_whole = document && parser->wellFormed && n_elements <= ELEMENTS_MAX &&
			xmlDocGetRootElement(document);
	xmlFreeParserCtxt(parser);
	if (is_whole)
		*ret = document;
	else
		xmlFreeDoc(document);
	return is_whole ? 0 : error;
}

bool xml_is(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

const xmlNode *xml_child(const xmlNode *parent, const char *name)
{
	const xmlNode *node = parent ? parent->children : NULL;
	while (node && !xml_is(node, name))
		node = node->next;
	return node;
}

const char *xml_child_text(const xmlNode *parent, const char *name)
{
	const xmlNode *found = xml_child(parent, name);
	const xmlNode *text = found ? found->children : NULL;
	const bool is_plain = text && text->type == XML_TEXT_NODE && !text->next;
	return is_plain ? (const char *)text->content : "";
}
