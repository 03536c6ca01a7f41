/* s3once_push_stop() from another thread, at any moment of a run that ends by itself: nobody is
 * told through a handle that is closed. */
#include "../check.h"
#include "s3once/push.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS 50

struct stopper {
	struct s3once_push *push;
	atomic_bool begun, is_over;
};

static void on_event(void *arg, const struct s3once_event *event)
{
	struct stopper *self = arg;
	if (event->type == S3ONCE_EVENT_START)
		atomic_store(&self->begun, true);
}

static void *stop_again_and_again(void *arg)
{
	struct stopper *self = arg;
	while (!atomic_load(&self->is_over))
		if (atomic_load(&self->begun))
			s3once_push_stop(self->push);
	return NULL;
}

static void test_stopped_while_it_ends(void)
{
	char folder[] = "/tmp/push_stop.XXXXXX", marks[64], database[64], tree[64];
	CHECK(mkdtemp(folder) != NULL);
	snprintf(marks, sizeof marks, "sqlite:%s/db", folder);
	snprintf(database, sizeof database, "%s/db", folder);
	snprintf(tree, sizeof tree, "%s/tree", folder);
	CHECK_INT(mkdir(tree, 0700), 0);
	const char *const sources[] = {tree};
	struct stopper stopper;
	const struct s3once_options options = {.sources = sources,
		.n_sources = 1,
		.bucket = "bucket",
		.endpoint_url = "http://127.0.0.1:9", /* an empty folder needs no server */
		.region = "us-east-1",
		.concurrency = 2,
		.marks = marks,
		.callback = on_event,
		.callback_arg = &stopper};
	for (int i = 0; i < RUNS; i++) {
		memset(&stopper, 0, sizeof stopper);
		pthread_t thread;
		char text[256];
		CHECK_INT(s3once_push_new(&options, &stopper.push, text, sizeof text), 0);
		CHECK_INT(pthread_create(&thread, NULL, stop_again_and_again, &stopper), 0);
		const enum s3once_exit ended = s3once_push_run(stopper.push);
		CHECK(ended == S3ONCE_EXIT_STOPPED || ended == S3ONCE_EXIT_OK);
		atomic_store(&stopper.is_over, true);
		pthread_join(thread, NULL);
		s3once_push_free(stopper.push);
	}
	unlink(database);
	rmdir(tree);
	rmdir(folder);
}

int main(void)
{
	setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "example", 1);
	test_stopped_while_it_ends();
	return check_result();
}
