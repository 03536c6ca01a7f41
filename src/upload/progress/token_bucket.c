#include "upload/progress/token_bucket.h"
#include "base/clock.h"

#define PIECE_LEAST (2U << 10)
#define PIECE_MOST  (256U << 10)

uint64_t token_bucket_take(uint64_t *free_ns, uint64_t now_ns, uint64_t bytes, uint64_t rate)
{
	const uint64_t earliest_ns =
		now_ns > TOKEN_BUCKET_BURST_NS ? now_ns - TOKEN_BUCKET_BURST_NS : 0;
	const uint64_t ahead_ns = *free_ns > now_ns ? *free_ns - now_ns : 0;
	if (ahead_ns && ahead_ns <= TOKEN_BUCKET_AHEAD_NS)
		return ahead_ns;
	const uint64_t from_ns = ahead_ns || *free_ns < earliest_ns ? earliest_ns : *free_ns;
	*free_ns = from_ns + bytes * NS_PER_S / rate;
	return 0;
}

uint64_t token_bucket_piece(uint64_t rate)
{
	const uint64_t piece = rate / 50;
	return piece < PIECE_LEAST ? PIECE_LEAST : piece > PIECE_MOST ? PIECE_MOST : piece;
}
