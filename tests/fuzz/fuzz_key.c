/* Keys: what may be a key comes back byte for byte from a request's path, from XML and from JSON.
 */
#include "base/text.h"
#include "fuzz.h"
#include "s3/s3_reply.h"
#include "scan/key/key.h"
#include "scan/scan.h"
#include "store/item_json.h"
#include <curl/curl.h>

static void through_path(const char *key, int n)
{
	struct text path = TEXT(3 * KEY_BYTES_MAX + 3);
	int bytes = 0;
	uri_encode_path(&path, key, (size_t)n);
	ENSURE(path.error == 0);
	const char *allowed =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/%";
	ENSURE(strspn(text_string(&path), allowed) == path.len);
	char *back = curl_easy_unescape(NULL, text_string(&path), (int)path.len, &bytes);
	ENSURE(back && bytes == n && memcmp(back, key, (size_t)n) == 0);
	curl_free(back);
	text_clear(&path);
}

static int is_key(void *arg, const struct s3_upload *upload)
{
	ENSURE(strcmp(upload->key, arg) == 0);
	return 0;
}

static void through_xml(char *key, size_t n, bool encoded)
{
	struct text xml = TEXT(64U << 10);
	struct s3_page page = {.upload = is_key, .arg = key, .has_more = true};
	text_addf(&xml, "<ListMultipartUploadsResult><EncodingType>%s</EncodingType><Upload><Key>",
		encoded ? "url" : "");
	if (encoded)
		uri_encode(&xml, key, n);
	else
		for (size_t i = 0; i < n; i++)
			text_addf(&xml, strchr("<>&\r", key[i]) ? "&#%d;" : "%c", key[i]);
	text_add(&xml, "</Key><UploadId>i</UploadId><Initiated>2026-01-01T00:00:00.000Z</Initiated>"
		       "</Upload></ListMultipartUploadsResult>");
	ENSURE(s3_reply_read(&s3_reply_uploads, xml.data, xml.len, &page) == 0 && !page.has_more);
	text_clear(&xml);
}

static void through_json(const char *key, size_t n)
{
	struct text text = TEXT(64U << 10);
	json_add_string(&text, key, n);
	json_t *json = json_loads(text_string(&text), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	ENSURE(json && json_string_length(json) == n);
	ENSURE(memcmp(json_string_value(json), key, n) == 0);
	json_decref(json);
	text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *key = fuzz_string(data, size);
	size_t n = strlen(key);
	struct problem problem = {0};
	struct text base = TEXT(size + 1);
	key_add_base(&base, key);
	ENSURE(base.error == 0 && strncmp(text_string(&base), key, n) == 0);
	ENSURE(n ? base.data[base.len - 1] == '/' : base.len == 0);
	if (key_valid(key, n, &problem)) {
		ENSURE(n >= 1 && n <= KEY_BYTES_MAX && utf8_valid(key, n));
		through_path(key, (int)n);
		through_xml(key, n, true);
		through_xml(key, n, false);
		through_json(key, n);
	} else {
		ENSURE(problem.text[0]);
	}
	text_clear(&base);
	free(key);
	return 0;
}
