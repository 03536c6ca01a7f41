/* The first run over a table finds out whether marks can be written in batches. That takes ten
 * requests to the marks, and a thread of its own sends them while the run asks S3 about the bucket.
 */
#pragma once
#include "marks/setup.h"
#include <uv.h>

/* Zero has nothing to do. Moved by nobody between begin and end. */
struct batches_learner {
	bool is_at_work;
	uv_thread_t thread;
	struct store_conn *conn;
	struct call_limits limits;
	struct store_settings settings;
};

/* As settings_use_batches() through a connection of its own. What is known already, and where no
 * thread or connection is to be had, is done on return, through `conn`. */
void batches_learner_begin(struct batches_learner *learner, struct store_conn *conn,
	const struct call_limits *limits, const struct store_settings *settings);
/* Waits until it has ended. From then on marks leave in batches, where they can. Again: nothing. */
void batches_learner_end(struct batches_learner *learner);
