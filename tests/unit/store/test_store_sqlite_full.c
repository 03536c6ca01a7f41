/* A full file system: whoever was in the failed group is told, nothing of it is applied, and with
 * room again the store goes on. On a tmpfs of its own, which takes root: skipped without. */
#include "sqlite_scratch.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#define THREADS 8
#define SKIPPED 77

static bool mount_small(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", scratch, "tmpfs", 0, "size=512k,mode=0700") == 0 &&
	       chdir(scratch) == 0;
}

struct writer {
	struct store *store;
	unsigned index, written;
	enum outcome last;
	struct problem problem;
};

/* Until it fails. */
static void *write_on(void *arg)
{
	struct writer *writer = arg;
	struct opened opened = {.store = writer->store};
	char sk[300];

	writer->last = OUTCOME_OK;
	if (store_conn_new(opened.store, &opened.conn) < 0)
		return NULL;
	while (writer->last == OUTCOME_OK && writer->written < 100000) {
		snprintf(sk, sizeof sk, "%u/%0200u", writer->index, writer->written);
		writer->last = put_one(&opened, "p", sk);
		writer->written += writer->last == OUTCOME_OK;
	}
	writer->problem = opened.problem;
	store_conn_free(opened.conn);
	return NULL;
}

static void check_writer(struct opened *opened, struct writer *writer)
{
	char sk[300];

	CHECK_INT(writer->last, OUTCOME_SETUP);
	CHECK(strstr(writer->problem.text, "marks.db"));
	CHECK(strstr(writer->problem.text, "file system is full"));
	for (unsigned i = 0; i <= writer->written; i++) {
		snprintf(sk, sizeof sk, "%u/%0200u", writer->index, i);
		CHECK_INT(get_one(opened, "p", sk),
			i < writer->written ? OUTCOME_OK : OUTCOME_ABSENT);
	}
}

static void fill_up(struct opened *opened)
{
	struct writer writers[THREADS] = {0};
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){.store = opened->store, .index = i};
		CHECK(pthread_create(&threads[i], NULL, write_on, &writers[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		check_writer(opened, &writers[i]);
}

int main(void)
{
	struct opened opened;

	scratch_make();
	if (!mount_small()) {
		scratch_remove();
		return SKIPPED;
	}
	int ballast = open("ballast", O_CREAT | O_WRONLY, 0600);
	CHECK(ballast >= 0 && posix_fallocate(ballast, 0, 100000) == 0);
	if (CHECK_INT(open_at("marks.db", &opened), 0)) {
		fill_up(&opened);
		CHECK(ftruncate(ballast, 0) == 0);
		CHECK_INT(put_one(&opened, "p", "with room again"), OUTCOME_OK);
		close_it(&opened);
	}
	close(ballast);
	CHECK(chdir("/") == 0 && umount(scratch) == 0);
	scratch_remove();
	return check_result();
}
