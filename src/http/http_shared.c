#include "http/http_shared.h"
#include "base/clock.h"
#include "http/http_trust.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static bool is_curl_ready;

static void make_curl_ready(void)
{
	signal(SIGPIPE, SIG_IGN); /* NOSIGNAL makes curl leave it to us */
	is_curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

int http_global_init(void)
{
	static uv_once_t once = UV_ONCE_INIT;
	uv_once(&once, make_curl_ready);
	return is_curl_ready ? 0 : -ENOTSUP;
}

static void lock(CURL *curl, curl_lock_data data, curl_lock_access access, void *arg)
{
	uv_mutex_lock(&((struct http_shared *)arg)->locks[data]);
}

static void unlock(CURL *curl, curl_lock_data data, void *arg)
{
	uv_mutex_unlock(&((struct http_shared *)arg)->locks[data]);
}

int http_shared_new(const struct http_options *options, struct http_shared **ret)
{
	struct http_shared *shared = calloc(1, sizeof *shared);
	if (!shared)
		return -ENOMEM;
	for (size_t i = 0; i < CURL_LOCK_DATA_LAST; i++)
		uv_mutex_init(&shared->locks[i]);
	uint64_t stall_ms = options->stall_timeout_ms;
	shared->connect_timeout_ms =
		options->connect_timeout_ms ? options->connect_timeout_ms : 10000;
	shared->stall_timeout_ns = (stall_ms ? stall_ms : 30000) * NS_PER_MS;
	shared->upload_buffer_bytes =
		options->upload_buffer_bytes ? options->upload_buffer_bytes : 64U << 10;
	shared->share = curl_share_init();
	if (options->ca_bundle)
		shared->ca_bundle = strdup(options->ca_bundle);
	if (!shared->share || (options->ca_bundle && !shared->ca_bundle) ||
		http_trust_new(options->ca_bundle, &shared->trust)) {
		http_shared_free(shared);
		return -ENOMEM;
	}
	curl_share_setopt(shared->share, CURLSHOPT_LOCKFUNC, lock);
	curl_share_setopt(shared->share, CURLSHOPT_UNLOCKFUNC, unlock);
	curl_share_setopt(shared->share, CURLSHOPT_USERDATA, shared);
	curl_share_setopt(shared->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
	curl_share_setopt(shared->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	*ret = shared;
	return 0;
}

void http_shared_free(struct http_shared *shared)
{
	if (!shared)
		return;
	curl_share_cleanup(shared->share);
	for (size_t i = 0; i < CURL_LOCK_DATA_LAST; i++)
		uv_mutex_destroy(&shared->locks[i]);
	http_trust_free(shared->trust);
	free(shared->ca_bundle);
	free(shared);
}
