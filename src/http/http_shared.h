/* What the connections of a process share: see http.h. For the files of this room. */
#pragma once
#include "http/http.h"
#include <curl/curl.h>
#include <uv.h>

struct http_shared {
	CURLSH *share;
	uv_mutex_t locks[CURL_LOCK_DATA_LAST];
	char *ca_bundle; /* or NULL */
	struct http_trust *trust;
	uint64_t connect_timeout_ms, stall_timeout_ns;
	size_t upload_buffer_bytes;
};
