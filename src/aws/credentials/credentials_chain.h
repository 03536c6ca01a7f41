/* The chain, as credentials.c and its unit test see it. */
#pragma once
#include "aws/credentials/credentials_loader.h"
#include <stdatomic.h>
#include <uv.h>

/* What shows that a file was written. */
struct stamp {
	int64_t mtime_ns, size;
	uint64_t inode;
};

struct credentials_chain {
	uint64_t patience_ns;
	atomic_uint generation; /* written under the mutex */
	atomic_bool accepted;
	uv_thread_t keeper;
	/* The keeper's own, written while it loads. */
	struct credentials_loader loader;
	int provider;           /* that yielded the first ones, or -1 */
	struct stamp stamps[2]; /* of the profile's files at the last load */
	uv_mutex_t mutex;
	uv_cond_t changed; /* anything that is locked */
	struct {
		struct credentials current;
		bool loaded;     /* current is there */
		bool is_refused; /* and no server takes it */
		bool keeper_runs, stopping;
		bool wanted;            /* a load, now */
		unsigned begun, ended;  /* loads */
		uint64_t ended_ns;      /* clock_boot_ns() when the last one had */
		unsigned failures;      /* of loads, since the last good one */
		int error;              /* of the last load */
		struct problem problem; /* and its sentence */
		uint64_t next_ns;       /* clock_boot_ns() of the next load, UINT64_MAX: none */
		uint64_t paused_ns;     /* since when there are none that can be used, or 0 */
		bool said_late, said_paused;
	} locked;
};
