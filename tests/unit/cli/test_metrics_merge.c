/* The metrics of several jobs as one text: each is described once. */
#include "../check.h"
#include "cli/push/metrics.h"
#include <string.h>

static const struct metric_kind a = {"a", "gauge", "The a."}, ab = {"ab", "counter", "The ab."},
				build = {"build", "gauge", "Its version."};

static void check_text(const struct metrics *metrics, const char *wanted)
{
	struct text got = TEXT(1000), small = TEXT(20);
	metrics_text(metrics, &got);
	CHECK_STRING(text_string(&got), wanted);
	CHECK_INT(got.error, 0);
	metrics_text(metrics, &small);
	CHECK(small.error || !*wanted);
	text_clear(&got);
	text_clear(&small);
}

int main(void)
{
	struct metrics one = {0}, other = {0};
	check_text(&one, "");
	metrics_add(&one, &a, "job=\"1\"", "", "%d", 1);
	metrics_add(&one, &build, "job=\"1\"", "v=\"x\"", "1");
	metrics_add(&other, &ab, "job=\"2\"", "", "%.1f", 0.5);
	metrics_add(&other, &ab, "job=\"3\"", "", "1");
	metrics_add(&other, &a, "job=\"2\"", "", "1");
	metrics_add_all(&one, &other);
	check_text(&one,
		"# HELP a The a.\n# TYPE a gauge\na{job=\"1\"} 1\na{job=\"2\"} 1\n"
		"# HELP build Its version.\n# TYPE build gauge\nbuild{job=\"1\",v=\"x\"} 1\n"
		"# HELP ab The ab.\n# TYPE ab counter\nab{job=\"2\"} 0.5\nab{job=\"3\"} 1\n");
	metrics_clear(&one);
	check_text(&one, "");
	/* Hundreds of jobs have room. A sample that does not is an error of the text. */
	char labels[10001] = "";
	struct text text = TEXT(2 * METRICS_ANSWER_BYTES_MAX);
	memset(labels, 'l', sizeof labels - 1);
	for (size_t bytes = 0; bytes < 4 * METRICS_BYTES_MAX; bytes += sizeof labels)
		metrics_add(&other, &a, labels, "", "1");
	metrics_text(&other, &text);
	CHECK_INT(text.error, 0);
	for (size_t bytes = 0; bytes < METRICS_ANSWER_BYTES_MAX; bytes += sizeof labels)
		metrics_add(&other, &a, labels, "", "1");
	metrics_text(&other, &text);
	CHECK(text.error);
	text_clear(&text);
	metrics_clear(&other);
	return check_result();
}
