/* S3's XML replies: whatever is accepted is within its bounds, and reads the same again when it is
 * written anew. */
#include "base/clock.h"
#include "base/text.h"
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
	uri_encode_path(arg, upload->key, strlen(upload->key));
	text_add(arg, "</Key><UploadId>");
	add_xml(arg, upload->upload_id);
	text_addf(arg, "</UploadId><Initiated>%s</Initiated></Upload>", initiated);
	return 0;
}

#define AS_TEXT TEXT(64U << 20)

/* One round of each kind of reply: reads xml, and writes what was read into ret. Whether it was
 * accepted. Roots of other names are, so that one text may be a reply of several kinds. */

static bool rewrite_create(const char *xml, size_t n, struct text *ret)
{
	char *id = NULL;
	if (s3_reply_read(&s3_reply_create, xml, n, &id) != 0)
		return false;
	ENSURE(*id);
	text_add(ret, "<InitiateMultipartUploadResult><UploadId>");
	add_xml(ret, id);
	text_add(ret, "</UploadId></InitiateMultipartUploadResult>");
	free(id);
	return true;
}

static bool rewrite_complete(const char *xml, size_t n, struct text *ret)
{
	struct s3_object object = {0};
	if (s3_reply_read(&s3_reply_complete, xml, n, &object) != 0)
		return false;
	text_add(ret, "<CompleteMultipartUploadResult><ETag>\"");
	add_xml(ret, object.etag);
	text_add(ret, "\"</ETag>");
	add_sum(ret, &object.sum);
	text_add(ret, "</CompleteMultipartUploadResult>");
	return true;
}

static bool rewrite_parts(const char *xml, size_t n, struct text *ret)
{
	struct text parts = AS_TEXT;
	struct s3_page page = {.part = add_part, .arg = &parts};
	const bool accepted = s3_reply_read(&s3_reply_parts, xml, n, &page) == 0;
	ENSURE(!accepted || page.next_part <= 10000);
	if (accepted)
		text_addf(ret,
			"<ListPartsResult>%s<IsTruncated>%s</IsTruncated><NextPartNumberMarker>%u"
			"</NextPartNumberMarker></ListPartsResult>",
			text_string(&parts), page.next_part ? "true" : "false", page.next_part);
	text_clear(&parts);
	return accepted;
}

static bool rewrite_uploads(const char *xml, size_t n, struct text *ret)
{
	struct text uploads = AS_TEXT;
	struct s3_page page = {.upload = add_upload, .arg = &uploads};
	const bool accepted = s3_reply_read(&s3_reply_uploads, xml, n, &page) == 0;
	if (accepted)
		text_addf(ret,
			"<ListMultipartUploadsResult><EncodingType>url</EncodingType>%s<IsTruncated>"
			"%s</IsTruncated></ListMultipartUploadsResult>",
			text_string(&uploads), page.has_more ? "true" : "false");
	text_clear(&uploads);
	return accepted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool (*const kinds[])(const char *xml, size_t n, struct text *ret) = {
		rewrite_create, rewrite_complete, rewrite_parts, rewrite_uploads};
	struct s3_abort_days rules = {"p/", 100001};
	if (s3_reply_read(&s3_reply_abort_days, (const char *)data, size, &rules) == 0)
		ENSURE(rules.days <= 100000);
	size_t tags = 0;
	if (s3_reply_read(&s3_reply_tags, (const char *)data, size, &tags) == 0)
		ENSURE(tags <= size);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct text first = AS_TEXT, second = AS_TEXT;
		if (kinds[i]((const char *)data, size, &first)) {
			ENSURE(kinds[i](first.data, first.len, &second));
			ENSURE(strcmp(first.data, second.data) == 0);
		}
		text_clear(&first);
		text_clear(&second);
	}
	return 0;
}
