/* S3's XML replies: whatever is accepted is within its bounds, and reads the same again when it is
 * written anew. */
#include "aws/sigv4.h"
#include "base/clock.h"
#include "fuzz.h"
#include "s3/s3_reply.h"
#include <inttypes.h>

static void add_xml(struct text *t, const char *s)
{
	for (; *s; s++)
		if (strchr("<>&\r", *s))
			text_addf(t, "&#%d;", *s);
		else
			text_add_char(t, *s);
}

static void add_sum(struct text *ret, const struct s3_sum *sum)
{
	if (!sum->text[0])
		return;
	ENSURE(sum->kind < CHECKSUMS && checksum_kinds[sum->kind].element);
	text_addf(ret, "<%s>", checksum_kinds[sum->kind].element);
	add_xml(ret, sum->text);
	text_addf(ret, "</%s>", checksum_kinds[sum->kind].element);
}

static int add_part(void *arg, const struct s3_part *part)
{
	ENSURE(part->part_number >= 1 && part->part_number <= 10000);
	text_addf(arg, "<Part><PartNumber>%u</PartNumber><Size>%" PRIu64 "</Size><ETag>\"",
		part->part_number, part->size);
	add_xml(arg, part->etag);
	text_add(arg, "\"</ETag>");
	add_sum(arg, &part->sum);
	text_add(arg, "</Part>");
	return 0;
}

static int add_upload(void *arg, const struct s3_upload *upload)
{
	char initiated[21];
	ENSURE(*upload->upload_id && upload->initiated_s >= 0);
	clock_format_iso(upload->initiated_s, initiated);
	text_add(arg, "<Upload><Key>");
	uri_encode(arg, upload->key, strlen(upload->key), true);
	text_add(arg, "</Key><UploadId>");
	add_xml(arg, upload->upload_id);
	text_addf(arg, "</UploadId><Initiated>%s</Initiated></Upload>", initiated);
	return 0;
}

#define AS_TEXT TEXT(64U << 20)

/* One round: reads xml, and writes what was read into ret. Whether it was accepted. */
static bool rewrite(const char *xml, size_t n, struct text *ret)
{
	char *id = NULL;
	unsigned next = 0;
	bool more = false;
	struct s3_object object = {0};
	struct text parts = AS_TEXT, uploads = AS_TEXT;
	int kinds = 0;
	if (s3_reply_create(xml, n, &id) == 0) {
		ENSURE(*id);
		text_add(ret, "<InitiateMultipartUploadResult><UploadId>");
		add_xml(ret, id);
		text_add(ret, "</UploadId></InitiateMultipartUploadResult>");
		kinds++;
	}
	if (s3_reply_complete(xml, n, &object) == 0) {
		text_add(ret, "<CompleteMultipartUploadResult><ETag>\"");
		add_xml(ret, object.etag);
		text_add(ret, "\"</ETag>");
		add_sum(ret, &object.sum);
		text_add(ret, "</CompleteMultipartUploadResult>");
		kinds++;
	}
	if (s3_reply_parts(xml, n, add_part, &parts, &next) == 0) {
		ENSURE(next <= 10000);
		text_addf(ret,
			"<ListPartsResult>%s<IsTruncated>%s</IsTruncated><NextPartNumberMarker>%u"
			"</NextPartNumberMarker></ListPartsResult>",
			text_string(&parts), next ? "true" : "false", next);
		kinds++;
	}
	if (s3_reply_uploads(xml, n, add_upload, &uploads, &more) == 0) {
		text_addf(ret,
			"<ListMultipartUploadsResult><EncodingType>url</EncodingType>%s<IsTruncated>"
			"%s</IsTruncated></ListMultipartUploadsResult>",
			text_string(&uploads), more ? "true" : "false");
		kinds++;
	}
	ENSURE(kinds <= 1);
	free(id);
	text_clear(&parts);
	text_clear(&uploads);
	return kinds;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned days = 100001;
	if (s3_reply_abort_days((const char *)data, size, "p/", &days) == 0)
		ENSURE(days <= 100000);
	struct text first = AS_TEXT, second = AS_TEXT;
	if (rewrite((const char *)data, size, &first)) {
		ENSURE(rewrite(first.data, first.len, &second));
		ENSURE(strcmp(first.data, second.data) == 0);
	}
	text_clear(&first);
	text_clear(&second);
	return 0;
}
