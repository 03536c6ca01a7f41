#include "scan/content/content_id.h"
#include "base/checksum.h"
#include "base/text.h"

static int begin_digest(void *arg)
{
	return digest_restart(arg, DIGEST_SHA256);
}

static int add_to_digest(void *arg, const unsigned char *bytes, size_t n)
{
	digest_update(arg, bytes, n);
	return 0;
}

int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem)
{
	struct digest digest;
	struct sums sums;
	int r = digest_init(&digest, DIGEST_SHA256);
	if (r < 0)
		return r;
	const struct content_sink sink = {begin_digest, add_to_digest, &digest};
	r = content_read(content, &sink, ret_problem);
	digest_finish(&digest, &sums);
	if (r == 0)
		hex_encode(sums.sha256, sizeof sums.sha256, ret_id);
	digest_clear(&digest);
	return r;
}
