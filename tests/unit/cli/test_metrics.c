/* Two runs of one job that end together. */
#include "../check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include "cli/push/metrics.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SUCCESS "s3once_last_success_timestamp_seconds{target=\"s3://b/p\"} "

static char folder[] = "/tmp/s3once-metrics-XXXXXX", path[64];
static uv_thread_t other;
static bool is_other_begun;
static struct wakeup is_other_written;

static void write_metrics(int exit_code)
{
	const struct push_options options = {
		.metrics_file = path, .run = {.bucket = "b", .prefix = "p"}};
	struct problem problem = {0};
	CHECK_INT(metrics_write(&options, NULL, NULL, exit_code, &problem), 0);
	CHECK_STRING(problem.text, "");
}

static void succeed(void *arg)
{
	write_metrics(S3ONCE_EXIT_OK);
	wakeup_send(&is_other_written);
}

/* Instead of libc's. When the failed run is about to replace the file, one that succeeded wants to.
 */
int rename(const char *from, const char *to)
{
	if (!is_other_begun) {
		is_other_begun = true;
		CHECK_INT(thread_start(&other, succeed, NULL), 0);
		wakeup_await(&is_other_written, clock_boot_ns() + 500 * NS_PER_MS, NULL, NULL);
	}
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static long long last_success(void)
{
	char text[1 << 16] = "";
	FILE *file = fopen(path, "r");
	CHECK(file && fread(text, 1, sizeof text - 1, file) && fclose(file) == 0);
	const char *at = strstr(text, SUCCESS);
	return CHECK(at != NULL) ? atoll(at + strlen(SUCCESS)) : -1;
}

int main(void)
{
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/s3once.prom", folder);
	FILE *file = fopen(path, "w");
	CHECK(file && fputs(SUCCESS "1000\n", file) >= 0 && fclose(file) == 0);
	wakeup_init(&is_other_written);
	const long long before = clock_wall_s();
	write_metrics(S3ONCE_EXIT_FILES);
	CHECK(is_other_begun);
	uv_thread_join(&other);
	CHECK(last_success() >= before);
	wakeup_clear(&is_other_written);
	unlink(path);
	CHECK_INT(rmdir(folder), 0);
	return check_result();
}
