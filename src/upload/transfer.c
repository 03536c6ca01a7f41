#include "upload/transfer.h"

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

void transfer_moved(struct transfer *transfer, uint64_t bytes)
{
	struct share *share = transfer->share;
	if (!share)
		return;
	transfer->bytes += bytes;
	atomic_fetch_add(&share->bytes, bytes);
	report_sent(share->report, bytes);
	report_under_way(share->report, (int64_t)bytes);
	if (transfer->is_bulk)
		queue_moved(share->queue, bytes);
}

void transfer_undo(struct transfer *transfer)
{
	struct share *share = transfer->share;
	if (!share || !transfer->bytes)
		return;
	if (transfer->is_bulk && transfer->bytes < transfer->whole_bytes)
		queue_cut(share->queue);
	atomic_fetch_sub(&share->bytes, transfer->bytes);
	report_under_way(share->report, -(int64_t)transfer->bytes);
	transfer->bytes = 0;
}
