#include "marks/open_upload.h"
#include <stdlib.h>

void open_upload_clear(struct open_upload *upload)
{
	free(upload->id);
	*upload = (struct open_upload){0};
}

void open_upload_move(struct open_upload *to, struct open_upload *from)
{
	open_upload_clear(to);
	*to = *from;
	*from = (struct open_upload){0};
}
