/* What libraries need once, before the first thread begins. */
#include "aws/global.h"
#include "http/http.h"
#include <jansson.h>
#include <libxml/parser.h>

int aws_global_init(void)
{
	xmlInitParser();
	json_object_seed(0);
	return http_global_init();
}
