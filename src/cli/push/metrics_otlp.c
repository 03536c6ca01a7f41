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

/* Reads `key="value"` and adds it. Returns what is behind it, or NULL if there is no room. */
static const char *read_label(const char *at, json_t *attributes)
{
	struct text key = TEXT(METRICS_BYTES_MAX), value = TEXT(METRICS_BYTES_MAX);
	const size_t n = strcspn(at, "=");
	text_add_bytes(&key, at, n);
	for (at += n + 2; *at && *at != '"'; at++) {
		const bool is_escaped = *at == '\\' && at[1];
		at += is_escaped;
		text_add_char(&value, is_escaped && *at == 'n' ? '\n' : *at);
	}
	/* A receiver that makes labels for Prometheus calls the service `job`. Prometheus itself
	 * gives ours this name when it has one of its own. */
	const bool is_job = strcmp(text_string(&key), "job") == 0;
	add_attribute(attributes, is_job ? "exported_job" : text_string(&key), text_string(&value));
	const bool has_room = !key.error && !value.error;
	text_clear(&key);
	text_clear(&value);
	return has_room ? at + 1 : NULL;
}

/* One line of samples, "name{labels} value". */
static json_t *read_point(const char *line, const char *now_ns)
{
	json_t *attributes = json_array();
	const char *at = strchr(line, '{') + 1;
	while (at && *at != '}') {
		at = read_label(at, attributes);
		at += at && *at == ',';
	}
	return json_pack("{s:o, s:s, s:f}", "attributes", attributes, "timeUnixNano", now_ns,
		"asDouble", at ? strtod(at + 1, NULL) : 0.0);
}

static json_t *read_metric(const struct metric *metric, const char *now_ns)
{
	json_t *points = json_array();
	for (const char *line = text_string(&metric->samples); *line; line = strchr(line, '\n') + 1)
		json_array_append_new(points, read_point(line, now_ns));
	return json_pack("{s:s, s:s, s:{s:o}}", "name", metric->kind->name, "description",
		metric->kind->help, "gauge", "dataPoints", points);
}

char *metrics_otlp(const struct metrics *metrics)
{
	char now_ns[24], host[HOST_NAME_BYTES];
	struct problem no_name;
	json_t *list = json_array(), *about = json_array();
	snprintf(now_ns, sizeof now_ns, "%lld", (long long)clock_wall_ns());
	for (size_t i = 0; i < metrics->n; i++)
		json_array_append_new(list, read_metric(&metrics->all[i], now_ns));
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
