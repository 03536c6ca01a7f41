/* `s3once version` prints the source and the libraries of the build, and the libraries at run time.
 * It is for reports of errors, so it needs neither marks nor services, and gets the versions from
 * the libraries themselves. */
#include "cli/commands.h"
#include "cli/version_commit.h"
#include <bzlib.h>
#include <curl/curl.h>
#include <libxml/parser.h>
#include <lz4.h>
#include <lzma.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <zlib.h>
#include <zstd.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#define VERSION_CHARS 32

#ifdef HAVE_ISAL
#define WITH_ISAL true
#else
#define WITH_ISAL false
#endif

/* The version of a library's headers when this program was built (NULL: they do not say), and of
 * the library that it runs with now. */
struct library {
	const char *name, *built, *running;
};

static void print_as_json(struct output *output, const struct library *libraries, size_t n)
{
	json_t *object = json_object();
	for (size_t i = 0; i < n; i++)
		json_object_set_new(object, libraries[i].name,
			json_pack("{s:s?, s:s}", "built", libraries[i].built, "running",
				libraries[i].running));
	json_print(output, json_set(json_event("version"), BYTES("version", s3once_version()),
				   BYTES("commit", VERSION_COMMIT), BYTES("compiler", COMPILER),
				   BOOLEAN("isal", WITH_ISAL), NODE("libraries", object)));
}

static void print_for_people(struct output *output, const struct library *libraries, size_t n)
{
	output_resultf(output, "s3once %s, commit %s, built by %s, %s isa-l", s3once_version(),
		VERSION_COMMIT, COMPILER, WITH_ISAL ? "with" : "without");
	for (size_t i = 0; i < n; i++)
		output_resultf(output, "%-13s built with %-12s running with %s", libraries[i].name,
			libraries[i].built ? libraries[i].built : "unknown", libraries[i].running);
}

static void print_versions(struct command_frame *frame)
{
	const unsigned long xml = strtoul(xmlParserVersion, NULL, 10); /* 20914 is 2.9.14 */
	const char *bzip2 = BZ2_bzlibVersion(); /* with its date: "1.0.8, 13-Jul-2019" */
	char xml_text[VERSION_CHARS], bzip2_text[VERSION_CHARS], mhd_text[VERSION_CHARS];
	char uv_text[VERSION_CHARS];
	snprintf(uv_text, VERSION_CHARS, "%d.%d.%d", UV_VERSION_MAJOR, UV_VERSION_MINOR,
		UV_VERSION_PATCH);
	snprintf(xml_text, VERSION_CHARS, "%lu.%lu.%lu", xml / 10000, xml / 100 % 100, xml % 100);
	snprintf(bzip2_text, VERSION_CHARS, "%.*s", (int)strcspn(bzip2, ","), bzip2);
	snprintf(mhd_text, VERSION_CHARS, "%x.%x.%x", MHD_VERSION >> 24, MHD_VERSION >> 16 & 0xff,
		MHD_VERSION >> 8 & 0xff); /* 0x00097500 is 0.9.75 */
	const struct library list[] = {
		{"libcurl", LIBCURL_VERSION, curl_version_info(CURLVERSION_NOW)->version},
		{"openssl", OPENSSL_FULL_VERSION_STR, OpenSSL_version(OPENSSL_FULL_VERSION_STRING)},
		{"libxml2", LIBXML_DOTTED_VERSION, xml_text},
		{"libuv", uv_text, uv_version_string()},
		{"jansson", JANSSON_VERSION, jansson_version_str()},
		{"sqlite", SQLITE_VERSION, sqlite3_libversion()},
		{"zlib", ZLIB_VERSION, zlibVersion()},
		{"bzip2", NULL, bzip2_text},
		{"liblzma", LZMA_VERSION_STRING, lzma_version_string()},
		{"libzstd", ZSTD_VERSION_STRING, ZSTD_versionString()},
		{"lz4", LZ4_VERSION_STRING, LZ4_versionString()},
		{"libmicrohttpd", mhd_text, MHD_get_version()},
	};
	const size_t n = sizeof list / sizeof *list;
	if (frame->json)
		print_as_json(&frame->output, list, n);
	else
		print_for_people(&frame->output, list, n);
}

static const struct command version_command = {
	.name = "version",
	.operands = "",
	.about = "Prints the versions of the program and of its libraries.\n",
	.shares = SHARES_JSON,
	.examples = "  s3once version\n"
		    "  s3once version --json\n",
};

int version_main(int argc, char **argv)
{
	struct command_frame frame = {.command = &version_command};
	if (frame_begin(&frame, argc, argv)) {
		print_versions(&frame);
		frame.code = S3ONCE_EXIT_OK;
	}
	return frame_end(&frame);
}
