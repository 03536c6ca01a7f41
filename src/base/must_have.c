/* Ends a command that has run out of memory. */
#include "base/must_have.h"
#include "base/log.h"
#include "s3once/push.h"
#include <unistd.h>

void *must_have(void *made)
{
	if (!made) {
		log_error("out of memory");
		_exit(S3ONCE_EXIT_SETUP);
	}
	return made;
}
