#include "upload/body/gzip_maker.h"
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <string.h>

struct isal {
	struct isal_zstream stream;
	unsigned char buffer[]; /* of buffer_bytes() */
};

static uint32_t buffer_bytes(int level)
{
	static const uint32_t bytes[GZIP_ISAL_LEVELS + 1] = {
		0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};
	return bytes[level];
}

static size_t state_bytes(int level)
{
	return sizeof(struct isal) + buffer_bytes(level);
}

static int begin_member(void *state, int level)
{
	struct isal *isal = state;
	memset(isal, 0, state_bytes(level));
	isal_deflate_init(&isal->stream);
	isal->stream.level = (uint32_t)level;
	isal->stream.level_buf = isal->buffer;
	isal->stream.level_buf_size = buffer_bytes(level);
	isal->stream.gzip_flag = IGZIP_GZIP;
	return 0;
}

static void clear_nothing(void *state)
{
}

static long deflate_piece(
	void *state, const struct gzip_buffers *b, size_t *ret_used, bool *ret_has_ended)
{
	struct isal_zstream *stream = &((struct isal *)state)->stream;
	stream->next_in = b->in;
	stream->avail_in = (uint32_t)b->in_bytes;
	stream->next_out = b->out;
	stream->avail_out = (uint32_t)b->out_bytes;
	stream->end_of_stream = b->is_last;
	if (isal_deflate(stream) != COMP_OK)
		return -ENOMEM; /* all else is right by construction */
	*ret_used = b->in_bytes - stream->avail_in;
	*ret_has_ended = stream->internal_state.state == ZSTATE_END;
	return (long)(b->out_bytes - stream->avail_out);
}

const struct gzip_maker gzip_isal = {
	"isal", state_bytes, begin_member, clear_nothing, begin_member, deflate_piece};
