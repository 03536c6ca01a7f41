/* The implementation of include/s3once/push.h: one run, and the loop of the main thread around
 * it. */
#pragma once
#include "base/pool.h"
#include "upload/queue/level.h"
#include "upload/run.h"

/* Threads of the user that are reserved for the scan, the marks, heartbeats and the like. */
#define PUSH_SPARE_THREADS 8

struct s3once_push {
	struct run run;
	struct store_conn *conn;     /* connection to the marks, for the main thread only */
	bool is_set_up;              /* push_set_up() has succeeded */
	bool has_marks;              /* the store of conn is open and set up */
	bool reported_lifted;        /* it was reported that the limit of bandwidth is lifted */
	struct problem scan_problem; /* the reason why run.files.scan is NULL */
	struct s3once_counts counts; /* final, after the run */
	/* The loop of push_loop(). Its handles are closed when the last thread has ended. */
	uv_loop_t loop;
	uv_async_t ended;
	uv_timer_t progress, tick;
	struct pool pool;         /* the scan, then the workers */
	struct level level;       /* limit of workers */
	struct large_level large; /* limit of those that send large bodies */
	unsigned idle_ticks;      /* consecutive calls of on_tick() without a task under way */
	/* The figures when the windows (level.h) of the two levels began. */
	struct window_start {
		/* clock_boot_ns(), the CPU time of the process, and its time of waiting for
		 * bandwidth. */
		uint64_t ns, cpu_ns, waited_ns;
		uint64_t replies[WIRES], wire_ns[WIRES]; /* service_wire() */
		unsigned throttlings;                    /* service_cuts() */
		struct queue_figures queue;
	} window_start;
	struct large_window_start {
		uint64_t ns;    /* clock_boot_ns() */
		uint64_t moved; /* bytes of large bodies */
		unsigned cuts;  /* large bodies whose connection was cut */
	} large_window_start;
	unsigned peak_workers;        /* highest limit of workers so far */
	uint64_t bytes_before_worker; /* resident memory before the first worker */
};

/* Opens everything that a run needs: the queue, S3, the marks, the folder of options.move_to, the
 * session and the manifest, in this order. Returns false if the run ends, for a reason that was
 * reported. Main thread. */
bool push_set_up(struct s3once_push *push);
/* Runs the scan and the workers from beginning to end, on threads of their own. Returns false if
 * they could not be started. Main thread. */
bool push_loop(struct s3once_push *push);
/* Returns the exit status of an ended run, which follows from the reason of its end and its
 * counters; a failure of the manifest is not included. Reports the reason unless it was reported.
 * Main thread. */
enum s3once_exit push_exit_status(struct s3once_push *push);
