/* What is behind include/s3once/push.h: one run, and the loop of the main thread around it. */
#pragma once
#include "s3once/push.h"
#include "upload/run.h"
#include <pthread.h>
#include <uv.h>

struct s3once_push {
	struct run run;
	struct store_conn *conn; /* the main thread's */
	size_t buffer_bytes;
	bool whole; /* the scan came to its end */
	bool set_up;
	struct problem scan_problem; /* why there is no run.scan */
	struct s3once_counts counts; /* final, after the run */
	/* The loop of s3once_push_run; the handles are closed when the last work has ended. */
	uv_loop_t loop;
	uv_async_t stopped, ended;
	uv_timer_t progress, grace;
	pthread_t *threads; /* the scan's and the workers' */
	unsigned n_threads;
	atomic_uint n_works; /* of them, still running */
	atomic_bool looping;
	atomic_uint stopping; /* calls of s3once_push_stop() under way */
};

/* Opens what a run needs: services, marks, session, in this order. False: told, the run ends. Main
 * thread. */
bool push_set_up(struct s3once_push *push);
/* Scan and workers from beginning to end, on threads of their own. False: they could not all be
 * started. Main thread. */
bool push_loop(struct s3once_push *push);
