#include "../check.h"
#include "cli/push/metrics.h"

static void check_merged(const char *const *texts, size_t n, const char *wanted)
{
	struct text got = TEXT(1000);
	metrics_merge(texts, n, &got);
	CHECK_STRING(text_string(&got), wanted);
	CHECK_INT(got.error, 0);
	text_clear(&got);
}

int main(void)
{
	static const char *const texts[] = {"",
		"# HELP a The a.\n# TYPE a gauge\na{job=\"1\"} 1\n"
		"# HELP build Its version.\n# TYPE build gauge\nbuild 1\n",
		"# HELP ab The ab.\n# TYPE ab gauge\nab{job=\"2\"} 1\nab{job=\"3\"} 1\n"
		"# HELP a The a.\n# TYPE a gauge\na{job=\"2\"} 1\n"
		"# HELP build Its version.\n# TYPE build gauge\nbuild 2\n"};
	check_merged(texts, 1, "");
	check_merged(texts, 2, texts[1]);
	check_merged(texts, 3,
		"# HELP a The a.\n# TYPE a gauge\na{job=\"1\"} 1\na{job=\"2\"} 1\n"
		"# HELP build Its version.\n# TYPE build gauge\nbuild 1\nbuild 2\n"
		"# HELP ab The ab.\n# TYPE ab gauge\nab{job=\"2\"} 1\nab{job=\"3\"} 1\n");
	struct text small = TEXT(20);
	metrics_merge(texts, 3, &small);
	CHECK(small.error);
	text_clear(&small);
	return 0;
}
