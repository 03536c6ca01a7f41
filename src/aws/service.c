/* A service at an endpoint and the connections to it: the state that all calls learn and share,
 * such as its region, its clock, its pace and the quota of retries. call.c performs the calls. */
#include "aws/service.h"
#include "base/clock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int service_new(
	const struct service_options *options, struct service **ret, struct problem *ret_problem)
{
	const struct aws_settings *settings = options->settings;
	struct service *service = calloc(1, sizeof *service);
	if (!service)
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	bool is_s3 = options->is_s3,
	     is_aws = is_s3 ? settings->s3_is_aws : settings->dynamodb_is_aws;
	const char *url = is_s3 ? settings->s3_endpoint : settings->dynamodb_endpoint;
	service->options = *options;
	service->question = (struct endpoint_question){.service = is_s3 ? "s3" : "dynamodb",
		.region = settings->region,
		.custom = is_aws ? NULL : url,
		.bucket = options->bucket,
		.terms = settings->terms};
	int error = endpoint_resolve(&service->question, &service->locked.endpoint, ret_problem);
	if (error < 0) {
		free(service);
		return error;
	}
	atomic_init(&service->quota, RETRY_TOKENS);
	atomic_init(&service->server_at_boot_ms, NO_TIME);
	atomic_init(&service->latest_at_boot_ms, NO_TIME);
	uv_mutex_init(&service->mutex);
	uv_cond_init(&service->pace.room);
	uv_mutex_init(&service->pace.mutex);
	service->pace.locked.limit = PACE_FREE;
	*ret = service;
	return 0;
}

void service_free(struct service *service)
{
	if (!service)
		return;
	while (service->locked.idle) {
		struct service_conn *conn = service->locked.idle;
		service->locked.idle = conn->next;
		service_conn_free(conn);
	}
	uv_mutex_destroy(&service->mutex);
	uv_cond_destroy(&service->pace.room);
	uv_mutex_destroy(&service->pace.mutex);
	free(service);
}

const char *service_kind(const struct service *service, size_t i, unsigned long *ret_count)
{
	/* NULL ends the names, so none before i may be NULL. */
	for (size_t j = 0; j <= i; j++)
		if (j == CALL_KINDS_MAX || !service->options.kinds[j])
			return NULL;
	*ret_count = atomic_load(&service->counts[i]);
	return service->options.kinds[i];
}

void service_wire(const struct service *service, uint64_t *ret_replies, uint64_t *ret_ns)
{
	*ret_replies = atomic_load(&service->replies);
	*ret_ns = atomic_load(&service->wire_ns);
}

unsigned service_cuts(const struct service *service)
{
	return atomic_load(&service->pace.cuts);
}

/* Returns the time now, in whole seconds since 1970, of a clock that showed at_boot_ms when
 * clock_boot_ns() was 0. For NO_TIME, returns our wall clock. */
static int64_t time_now_s(int64_t at_boot_ms)
{
	if (at_boot_ms == NO_TIME)
		return clock_wall_s();
	return (at_boot_ms + (int64_t)(clock_boot_ns() / NS_PER_MS)) / 1000;
}

int64_t service_time_s(const struct service *service)
{
	return time_now_s(atomic_load(&service->server_at_boot_ms));
}

int64_t service_clock_ahead_s(const struct service *service)
{
	const int64_t ahead_s = clock_wall_s() - service_time_s(service);
	return llabs(ahead_s) < CLOCK_WARN_S ? 0 : ahead_s;
}

int64_t service_latest_time_s(const struct service *service)
{
	/* time_now_s() has rounded down. */
	return time_now_s(atomic_load(&service->latest_at_boot_ms)) + 1;
}

/* The server has set the Date between the sending of the request and now, and has dropped the
 * fraction of its second. */
void service_saw_date(struct service *service, int64_t date_s, uint64_t sent_ns)
{
	const int64_t now_ms = (int64_t)(clock_boot_ns() / NS_PER_MS);
	const int64_t sent_ms = (int64_t)(sent_ns / NS_PER_MS);
	atomic_store(&service->server_at_boot_ms, date_s * 1000 - now_ms);
	atomic_store(&service->latest_at_boot_ms, (date_s + 1) * 1000 - sent_ms);
}

void service_region(struct service *service, char *ret, size_t size)
{
	uv_mutex_lock(&service->mutex);
	snprintf(ret, size, "%s", service->locked.endpoint.region);
	uv_mutex_unlock(&service->mutex);
}

int service_learn_region(struct service *service, const char *region)
{
	struct endpoint_question question = service->question;
	struct endpoint endpoint;
	question.region = region;
	/* The endpoint of an access point keeps the region that its ARN names. */
	if (endpoint_resolve(&question, &endpoint, NULL) < 0 ||
		strcmp(endpoint.region, region) != 0)
		return -EINVAL;
	uv_mutex_lock(&service->mutex);
	service->locked.endpoint = endpoint;
	uv_mutex_unlock(&service->mutex);
	return 0;
}

int service_conn_new(struct service *service, struct service_conn **ret)
{
	struct service_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return -ENOMEM;
	int error = http_new(service->options.http, &conn->http);
	if (error) {
		free(conn);
		return error;
	}
	conn->service = service;
	conn->signer = signer_new();
	*ret = conn;
	return 0;
}

void service_conn_free(struct service_conn *conn)
{
	if (!conn)
		return;
	http_free(conn->http);
	signer_wipe(&conn->signer);
	free(conn);
}

int service_conn_borrow(struct service *service, struct service_conn **ret)
{
	/* The first one in the list is the one returned last. */
	uv_mutex_lock(&service->mutex);
	*ret = service->locked.idle;
	if (*ret)
		service->locked.idle = (*ret)->next;
	uv_mutex_unlock(&service->mutex);
	return *ret ? 0 : service_conn_new(service, ret);
}

void service_conn_give_back(struct service_conn *conn)
{
	struct service *service = conn->service;
	uv_mutex_lock(&service->mutex);
	conn->next = service->locked.idle;
	service->locked.idle = conn;
	uv_mutex_unlock(&service->mutex);
}

enum outcome service_conn_refresh(
	struct service_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	struct service *service = conn->service;
	struct credentials_chain *chain = service->options.settings->credentials;
	struct credentials *mine = &conn->signer.credentials;
	uv_mutex_lock(&service->mutex);
	conn->signer.endpoint = service->locked.endpoint;
	uv_mutex_unlock(&service->mutex);
	const bool has_copy = mine->access_key[0] != '\0';
	const bool is_in_force = credentials_generation(chain) == conn->credentials_generation;
	const bool has_expired = mine->expires_s && clock_wall_s() >= mine->expires_s;
	if (has_copy && is_in_force && !has_expired)
		return OUTCOME_OK;
	credentials_wipe(mine);
	int error =
		credentials_get(chain, limits, mine, &conn->credentials_generation, ret_problem);
	switch (error) {
	case 0:
		return OUTCOME_OK;
	case -ECANCELED:
		return OUTCOME_ABANDONED;
	case -ENOMEM:
		return OUTCOME_LOCAL;
	default:
		return OUTCOME_SETUP;
	}
}
