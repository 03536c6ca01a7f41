#include "upload/progress/transfer.h"

void share_has(struct share *share, uint64_t bytes)
{
	atomic_fetch_add(&share->bytes, bytes);
	report_under_way(share->report, (int64_t)bytes);
	queue_moved(share->queue, bytes);
}

void share_end(struct share *share)
{
	if (share->report)
		report_under_way(share->report, -(int64_t)atomic_exchange(&share->bytes, 0));
}

/* How much of the content has moved with so many bytes of the body. */
static uint64_t content_of(const struct transfer *transfer)
{
	if (transfer->content_bytes == transfer->whole_bytes)
		return transfer->bytes;
	if (transfer->bytes >= transfer->whole_bytes)
		return transfer->content_bytes;
	return (uint64_t)((double)transfer->content_bytes * (double)transfer->bytes /
			  (double)transfer->whole_bytes);
}

void transfer_moved(struct transfer *transfer, uint64_t bytes)
{
	struct share *share = transfer->share;
	if (!share)
		return;
	transfer->bytes += bytes;
	const uint64_t more = content_of(transfer) - transfer->share_bytes;
	transfer->share_bytes += more;
	atomic_fetch_add(&share->bytes, more);
	report_sent(share->report, bytes);
	report_moved(share->report, (int64_t)more);
	if (transfer->is_large)
		queue_moved(share->queue, bytes);
}

void transfer_undo(struct transfer *transfer)
{
	struct share *share = transfer->share;
	if (!share || !transfer->bytes)
		return;
	if (transfer->is_large && transfer->bytes < transfer->whole_bytes)
		queue_cut(share->queue);
	atomic_fetch_sub(&share->bytes, transfer->share_bytes);
	report_moved(share->report, -(int64_t)transfer->share_bytes);
	transfer->bytes = transfer->share_bytes = 0;
}
