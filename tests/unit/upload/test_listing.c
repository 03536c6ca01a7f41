/* Which files the listing of the bucket is asked for, and what its pages say of them. */
#include "steps.h"
#include "upload/bucket/listing.h"

#define FILES_MAX 60

struct looking {
	struct steps steps;
	struct listing *listing;
	struct candidate *files[FILES_MAX];
	size_t n;
};

static bool begin(struct looking *looking, const struct script_step *script, size_t n)
{
	looking->n = 0;
	if (!steps_make(&looking->steps, "x", 1))
		return false;
	if (!steps_begin_run(&looking->steps, script, n))
		return false;
	return CHECK((looking->listing = listing_new(looking->steps.run)) != NULL);
}

/* A file with a content is a log that is known by it. */
static void add(struct looking *looking, const char *key, const char *content)
{
	struct scan_entry entry = {.key = key, .path = key, .relative = key, .suffix = ""};
	snprintf(entry.content_id, sizeof entry.content_id, "%s", content);
	looking->files[looking->n++] = feed_new_candidate(&entry);
}

/* Looks for all files, and checks the answers: a letter for each, '?' for UNLISTED, '-' for one
 * that has no object, otherwise the bits of its objects. */
static void finds(struct looking *looking, const char *want)
{
	char got[FILES_MAX + 1] = "";
	listing_look(looking->listing, looking->files, looking->n);
	for (size_t i = 0; i < looking->n; i++) {
		const struct candidate *file = looking->files[i];
		got[i] = file->in_bucket == BUCKET_UNLISTED ? '?'
			 : file->in_bucket != BUCKET_LISTED ? '!'
			 : file->listed_suffixes            ? (char)('0' + file->listed_suffixes)
							    : '-';
		free(looking->files[i]);
	}
	looking->n = 0;
	CHECK_STRING(got, want);
}

static void end(struct looking *looking)
{
	listing_free(looking->listing);
	looking->steps.file = NULL;
	steps_end(&looking->steps);
}

#define OBJECT(key) "<Contents><Key>" key "</Key><Size>1</Size></Contents>"
#define LISTING(more, objects)                                                                     \
	{                                                                                          \
		STEPS_REPLY("200", "",                                                             \
			"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>" more     \
			"</IsTruncated>" objects "</ListBucketResult>"),                           \
			.close = true                                                              \
	}
#define CONTENT "0123456789"

/* A file may have an object of its own key and, if it is a log, of its key with a suffix, which may
 * come behind those of files with greater keys. */
static void test_keys(void)
{
	const struct script_step step =
		LISTING("false", OBJECT("a") OBJECT("a-b") OBJECT("a.gz") OBJECT("c.gz") OBJECT("d")
					 OBJECT("d.zst"));
	struct looking looking;
	if (!begin(&looking, &step, 1))
		return;
	add(&looking, "a", CONTENT);
	add(&looking, "a-b", "");
	add(&looking, "b", "");
	add(&looking, "c", ""); /* its object is of another file: c.gz */
	add(&looking, "d", CONTENT);
	add(&looking, "e", CONTENT);
	char want[] = "01--0-";
	for (size_t i = 0; i <= FAMILY_SUFFIXES; i++) {
		const bool is_gz = strcmp(family_suffix(i), ".gz") == 0;
		const bool is_zst = strcmp(family_suffix(i), ".zst") == 0;
		want[0] += (char)((!i || is_gz) << i);
		want[4] += (char)((!i || is_zst) << i);
	}
	finds(&looking, want);
	steps_asked(&looking.steps, "GET /b?encoding-type=url&list-type=2&start-after=%60~\n");
	end(&looking);
}

/* With --compress, each file may have an object with a suffix. */
static void test_compressed_on_the_way(void)
{
	const struct script_step step = LISTING("false", OBJECT("a.zst"));
	struct looking looking = {.n = 0};
	if (!steps_make(&looking.steps, "x", 1))
		return;
	looking.steps.options.compress = "zstd";
	if (!steps_begin_run(&looking.steps, &step, 1))
		return;
	looking.listing = listing_new(looking.steps.run);
	add(&looking, "a", "");
	listing_look(looking.listing, looking.files, 1);
	CHECK(looking.files[0]->in_bucket == BUCKET_LISTED && looking.files[0]->listed_suffixes);
	free(looking.files[0]);
	steps_asked(&looking.steps, "GET /b?encoding-type=url&list-type=2&start-after=%60~\n");
	end(&looking);
}

/* A page has to answer for a dozen files; the first one comes for nothing. What lies between two
 * keys of a page is not there; what lies behind it is unknown. */
static void test_cost_of_pages(void)
{
	const struct script_step steps[] = {LISTING("true", OBJECT("b21") OBJECT("b30")),
		LISTING("true", OBJECT("b35") OBJECT("b40")), LISTING("false", OBJECT("b70"))};
	struct looking looking;
	char key[8];
	if (!begin(&looking, steps, 3))
		return;
	for (int i = 20; i < 40; i += 2) {
		snprintf(key, sizeof key, "b%d", i);
		add(&looking, key, "");
	}
	finds(&looking, "-----1????");
	for (int i = 20; i < 45; i++) {
		snprintf(key, sizeof key, "b%d", i);
		add(&looking, key, "");
	}
	finds(&looking, "---------------1----1----");
	steps_asked(&looking.steps, "GET /b?encoding-type=url&list-type=2&start-after=b2%2F~\n"
				    "GET /b?encoding-type=url&list-type=2&start-after=b2%2F~\n"
				    "GET /b?encoding-type=url&list-type=2&start-after=b40~\n");
	end(&looking);
}

/* A page says nothing of keys before the one that was passed on it, nor of those behind its end. */
static void test_keys_beside_a_page(void)
{
	const struct script_step steps[] = {LISTING("false", OBJECT("b~1")),
		LISTING("false", OBJECT("b")), LISTING("true", OBJECT("`~1") OBJECT("`~2"))};
	struct looking looking;
	if (!begin(&looking, steps, 3))
		return;
	add(&looking, "c", "");
	finds(&looking, "-");
	add(&looking, "b", "");
	finds(&looking, "1");
	add(&looking, "a", "");
	finds(&looking, "?");
	script_stop(&looking.steps.server);
	CHECK_INT(looking.steps.server.n_requests, 3);
	end(&looking);
}

/* A server that refuses a listing, or does not list in order, is not asked again. */
static void test_refused(void)
{
	static const struct script_step refusals[] = {
		{STEPS_REPLY("403", "", "<Error><Code>AccessDenied</Code></Error>"), .close = true},
		LISTING("false", OBJECT("b") OBJECT("a"))};
	for (unsigned i = 0; i < 2; i++) {
		struct looking looking;
		if (!begin(&looking, &refusals[i], 1))
			return;
		add(&looking, "a", "");
		finds(&looking, "?");
		for (unsigned k = 0; k < 40; k++)
			add(&looking, "a", "");
		finds(&looking, "????????????????????????????????????????");
		steps_asked(
			&looking.steps, "GET /b?encoding-type=url&list-type=2&start-after=%60~\n");
		end(&looking);
	}
}

/* The page begins a little before the key that is sought, below the prefix of the run. */
static void test_beginnings(void)
{
	static const struct {
		const char *prefix, *key, *asked;
	} rows[] = {
		{"p", "p/b",
			"GET /b?encoding-type=url&list-type=2&prefix=p%2F&start-after=p%2Fa~\n"},
		{"p", "p/!", "GET /b?encoding-type=url&list-type=2&prefix=p%2F&start-after=p%2F\n"},
		{"", "x\xc3\xa4", "GET /b?encoding-type=url&list-type=2&start-after=x\n"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step step = LISTING("false", "");
		struct looking looking = {.n = 0};
		if (!steps_make(&looking.steps, "x", 1))
			return;
		looking.steps.options.prefix = rows[i].prefix;
		if (!steps_begin_run(&looking.steps, &step, 1))
			return;
		looking.listing = listing_new(looking.steps.run);
		add(&looking, rows[i].key, "");
		finds(&looking, "-");
		steps_asked(&looking.steps, rows[i].asked);
		end(&looking);
	}
}

int main(void)
{
	test_keys();
	test_compressed_on_the_way();
	test_cost_of_pages();
	test_keys_beside_a_page();
	test_refused();
	test_beginnings();
	return check_result();
}
