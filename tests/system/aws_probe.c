/* Runs single calls of s3/s3.h and dynamodb/dynamodb.h for test_aws_layer.py:
 *
 *   aws_probe s3 BUCKET COMMAND ARGUMENT... [then COMMAND ARGUMENT...]... [OPTION...]
 *   aws_probe dynamodb TABLE COMMAND ARGUMENT... [OPTION...]
 *
 * Where to and as whom comes from the environment. Prints one JSON object a call with the outcome,
 * the problem if there is one, and what the call yielded; exits 0 if the call was made at all. */
#include "aws_probe.h"
#include "aws/settings.h"
#include "base/clock.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void probe_die(const char *what)
{
	fprintf(stderr, "aws_probe: %s\n", what);
	exit(2);
}

const char *probe_argument(const struct probe *probe, int i)
{
	if (i >= probe->n_arguments)
		probe_die("an argument is missing");
	return probe->arguments[i];
}

void probe_set(struct probe *probe, const char *name, json_t *value)
{
	if (json_object_set_new(probe->result, name, value) < 0)
		probe_die("a result is not UTF-8, or memory ran out");
}

void probe_append(struct probe *probe, const char *name, json_t *value)
{
	json_t *list = json_object_get(probe->result, name);
	if (!list)
		probe_set(probe, name, list = json_array());
	if (json_array_append_new(list, value) < 0)
		probe_die("a result is not UTF-8, or memory ran out");
}

bool probe_wants_end(struct probe *probe, const char *list)
{
	return json_array_size(json_object_get(probe->result, list)) == probe->stop_after;
}

void probe_print(struct probe *probe, enum outcome outcome, const struct service *service)
{
	probe_set(probe, "outcome", json_string(outcome_name(outcome)));
	if (outcome != OUTCOME_OK)
		probe_set(probe, "problem",
			json_pack("{ss ss ss si}", "text", probe->problem.text, "code",
				probe->problem.code, "request_id", probe->problem.request_id,
				"status", probe->problem.status));
	unsigned long count;
	json_t *requests = json_object();
	for (size_t i = 0; service_kind(service, i, &count); i++)
		if (count)
			json_object_set_new(requests, service_kind(service, i, &count),
				json_integer((json_int_t)count));
	probe_set(probe, "requests", requests);
	json_dumpf(probe->result, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(probe->result);
}

/* NAME=VALUE is cut in two; a value of digits is a number. */
static enum value_type cut(char *term, const char **ret_value)
{
	char *equals = strchr(term, '=');
	if (!equals)
		probe_die("NAME=VALUE is wanted");
	*equals = '\0';
	*ret_value = equals + 1;
	size_t n = strlen(*ret_value);
	return n && strspn(*ret_value, "0123456789") == n ? VALUE_NUMBER : VALUE_STRING;
}

enum flag {
	IF_NONE_MATCH = 256,
	IF_MATCH,
	TABLE,
	CLAIM,
	MTIME,
	PART,
	STREAM,
	WRONG_DIGEST,
	TIMEOUT,
	REPEAT,
	STOP_AFTER,
	ABSENT,
	PRESENT,
	EQUALS,
	SET,
	REMOVE,
	KEYS,
	FROM,
	AFTER,
	TO,
	MOST,
	WEAK,
};

static const struct option options[] = {
	{"if-none-match", no_argument, NULL, IF_NONE_MATCH},
	{"if-match", required_argument, NULL, IF_MATCH},
	{"table", required_argument, NULL, TABLE},
	{"claim", required_argument, NULL, CLAIM},
	{"mtime", required_argument, NULL, MTIME},
	{"part", required_argument, NULL, PART},
	{"stream", no_argument, NULL, STREAM},
	{"wrong-digest", no_argument, NULL, WRONG_DIGEST},
	{"timeout", required_argument, NULL, TIMEOUT},
	{"repeat", required_argument, NULL, REPEAT},
	{"stop-after", required_argument, NULL, STOP_AFTER},
	{"absent", required_argument, NULL, ABSENT},
	{"present", required_argument, NULL, PRESENT},
	{"equals", required_argument, NULL, EQUALS},
	{"set", required_argument, NULL, SET},
	{"remove", required_argument, NULL, REMOVE},
	{"keys", required_argument, NULL, KEYS},
	{"from", required_argument, NULL, FROM},
	{"after", required_argument, NULL, AFTER},
	{"to", required_argument, NULL, TO},
	{"most", required_argument, NULL, MOST},
	{"weak", no_argument, NULL, WEAK},
	{0},
};

static void take_item_option(struct probe *probe, int option, char *value)
{
	if (probe->n_conditions == TERMS_MAX || probe->n_changes == TERMS_MAX)
		probe_die("too many terms");
	struct condition *condition = &probe->conditions[probe->n_conditions];
	struct change *change = &probe->changes[probe->n_changes];
	if (option == SET || option == REMOVE) {
		*change = (struct change){.name = value};
		if (option == SET)
			change->type = cut(value, &change->value);
		probe->n_changes++;
		return;
	}
	*condition = (struct condition){.name = value, .test = CONDITION_EQUALS};
	if (option == EQUALS)
		condition->type = cut(value, &condition->value);
	else
		condition->test = option == ABSENT ? CONDITION_ABSENT : CONDITION_PRESENT;
	probe->n_conditions++;
}

static void take_range_option(struct probe *probe, int option, char *value)
{
	char *comma = option == KEYS ? strchr(value, ',') : NULL;
	if (option == FROM || option == AFTER)
		probe->from = value;
	else if (option == TO)
		probe->to = value;
	if (option == AFTER)
		probe->after = true;
	if (option == MOST)
		probe->most = (unsigned)atoi(value);
	if (option == KEYS) {
		probe->table.pk_name = value;
		probe->table.sk_name = comma ? comma + 1 : NULL;
		if (comma)
			*comma = '\0';
	}
}

static void take_option(struct probe *probe, int option, char *value)
{
	switch (option) {
	case IF_NONE_MATCH:
		probe->condition.if_none_match = true;
		break;
	case IF_MATCH:
		probe->condition.if_match = value;
		break;
	case TABLE:
		snprintf(probe->meta.table_id, sizeof probe->meta.table_id, "%s", value);
		break;
	case CLAIM:
		snprintf(probe->meta.claim_id, sizeof probe->meta.claim_id, "%s", value);
		break;
	case MTIME:
		probe->meta.mtime_ns = atoll(value);
		break;
	case PART:
		probe->meta.part_bytes = strtoull(value, NULL, 10);
		break;
	case STREAM:
		probe->stream = true;
		break;
	case WRONG_DIGEST:
		probe->wrong_digest = true;
		break;
	case TIMEOUT:
		probe->limits.deadline_ns = clock_boot_ns() + strtoull(value, NULL, 10) * NS_PER_MS;
		break;
	case REPEAT:
		probe->repeat = (unsigned)atoi(value);
		break;
	case STOP_AFTER:
		probe->stop_after = (unsigned)atoi(value);
		break;
	case WEAK:
		probe->weak = true;
		break;
	case ABSENT:
	case PRESENT:
	case EQUALS:
	case SET:
	case REMOVE:
		take_item_option(probe, option, value);
		break;
	case KEYS:
	case FROM:
	case AFTER:
	case TO:
	case MOST:
		take_range_option(probe, option, value);
		break;
	default:
		probe_die("no such option");
	}
}

int main(int argc, char **argv)
{
	struct probe probe = {.repeat = 1, .table = {.pk_name = "pk", .sk_name = "sk"}};
	struct problem problem = {0};
	struct aws_settings *settings;
	struct http_shared *http;
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(&probe, option, optarg);
	char **words = argv + optind;
	if (argc - optind < 3)
		probe_die("SERVICE NAME COMMAND are wanted");
	probe.arguments = words + 3;
	probe.n_arguments = argc - optind - 3;
	if (aws_global_init() < 0)
		probe_die("cannot start");
	if (aws_settings_resolve(&(struct aws_options){.attempts = 3}, &settings, &problem) < 0)
		probe_die(problem.text);
	const struct http_options http_options = {.ca_bundle = settings->ca_bundle};
	if (http_shared_new(&http_options, &http) < 0)
		probe_die("out of memory");
	if (strcmp(words[0], "s3") == 0)
		probe_s3(&probe, settings, http, words);
	else
		probe_dynamodb(&probe, settings, http, words);
	http_shared_free(http);
	aws_settings_free(settings);
	return 0;
}
