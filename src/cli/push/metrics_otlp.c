/* The metrics of a run as a request of OTLP/HTTP in JSON (opentelemetry-proto, ExportMetricsService
 * Request). They are those of metrics.c, whose samples are read here: a name, labels, a value. */
#include "base/clock.h"
#include "base/host_name.h"
#include "cli/json.h"
#include "cli/push/metrics.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_attribute(json_t *attributes, const char *key, const char *value)
{
	json_array_append_new(
		attributes, json_pack("{s:s, s:{s:s}}", "key", key, "value", "stringValue", value));
}

/* One line of samples, "name{key="value",key="value"} value". */
static json_t *read_point(const char *line, const char *now_ns)
{
	json_t *attributes = json_array();
	const char *at = strchr(line, '{') + 1;
	while (*at != '}') {
		struct text key = TEXT(METRICS_BYTES_MAX), value = TEXT(METRICS_BYTES_MAX);
		const size_t n = strcspn(at, "=");
		text_add_bytes(&key, at, n);
		for (at += n + 2; *at && *at != '"'; at++) {
			const bool is_escaped = *at == '\\' && at[1];
			at += is_escaped;
			text_add_char(&value, is_escaped && *at == 'n' ? '\n' : *at);
		}
		at += at[1] == ',' ? 2 : 1;
		/* A receiver that makes labels for Prometheus calls the service `job`. Prometheus
		 * itself gives ours this name when it has one of its own. */
		const bool is_job = strcmp(text_string(&key), "job") == 0;
		add_attribute(attributes, is_job ? "exported_job" : text_string(&key),
			text_string(&value));
		text_clear(&key);
		text_clear(&value);
	}
	return json_pack("{s:o, s:s, s:f}", "attributes", attributes, "timeUnixNano", now_ns,
		"asDouble", strtod(at + 1, NULL));
}

char *metrics_otlp(const struct metrics *metrics)
{
	char now_ns[24], host[HOST_NAME_BYTES];
	struct problem no_name;
	json_t *list = json_array(), *about = json_array();
	snprintf(now_ns, sizeof now_ns, "%lld", (long long)clock_wall_ns());
	for (size_t i = 0; i < metrics->n; i++) {
		const struct metric *metric = &metrics->all[i];
		json_t *points = json_array();
		const char *line = text_string(&metric->samples);
		for (; *line; line = strchr(line, '\n') + 1)
			json_array_append_new(points, read_point(line, now_ns));
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:{s:o}}", "name", metric->kind->name, "description",
				metric->kind->help, "gauge", "dataPoints", points));
	}
	add_attribute(about, "service.name", "s3once");
	add_attribute(about, "service.version", s3once_version());
	if (host_name_short(host, &no_name) == 0) {
		add_attribute(about, "service.instance.id", host);
		add_attribute(about, "host.name", host);
	}
	return json_line(json_pack("{s:[{s:{s:o}, s:[{s:{s:s}, s:o}]}]}", "resourceMetrics",
		"resource", "attributes", about, "scopeMetrics", "scope", "name", "s3once",
		"metrics", list));
}
