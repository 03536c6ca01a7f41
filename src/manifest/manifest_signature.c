/* Signs a manifest, and checks a signature. The run signs, and the audits check. Only Ed25519 is
 * used, by OpenSSL. A signature covers the bucket and the key of its manifest, so that one manifest
 * cannot stand for another. */
#include "manifest/manifest_signature.h"
#include "base/files.h"
#include <errno.h>
#include <inttypes.h>
#include <openssl/pem.h>
#include <string.h>

#define SIGNATURE_BYTES  64
#define SIGNATURE_BASE64 88
#define LAST_LINE        "signature: "

#define KEY_FILE_MAX_BYTES (64U << 10)

/* Reads a key in PEM. Returns NULL if the text holds no key of this half. */
static EVP_PKEY *read_pem(const struct text *text, enum key_half half)
{
	char passphrase[] = ""; /* set so that OpenSSL does not ask the terminal for one */
	BIO *bio = BIO_new_mem_buf(text_string(text), (int)text->len);
	EVP_PKEY *key = NULL;
	if (bio && half == KEY_PRIVATE)
		key = PEM_read_bio_PrivateKey(bio, NULL, NULL, passphrase);
	else if (bio)
		key = PEM_read_bio_PUBKEY(bio, NULL, NULL, passphrase);
	BIO_free(bio);
	return key;
}

/* Whether users other than the owner and its group may read or write the file. The mode of
 * /dev/null, the only file here that is not regular, protects nothing. */
static bool is_open_to_others(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_mode & S_IRWXO);
}

int signing_key_read(
	const char *path, enum key_half half, EVP_PKEY **ret, struct problem *ret_problem)
{
	const bool is_private = half == KEY_PRIVATE;
	struct text text = TEXT(KEY_FILE_MAX_BYTES);
	struct stat st;
	EVP_PKEY *key = NULL;
	int error = named_file_read(path, &text, &st);
	if (error)
		problem_set(ret_problem, "the key file %s cannot be opened: %s", quote(path).text,
			named_file_error(error));
	/* A reader of a private key can sign anything. */
	else if (is_private && is_open_to_others(&st))
		error = problem_error(ret_problem, -EPERM,
			"others may read or write the key file %s (mode %03o); run: chmod o-rwx %s",
			quote(path).text, (unsigned)st.st_mode & 0777, quote(path).text);
	else
		key = read_pem(&text, half);
	text_wipe(&text);
	if (error)
		return error;
	if (key && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519) {
		*ret = key;
		return 0;
	}
	EVP_PKEY_free(key);
	return problem_error(ret_problem, -EINVAL,
		is_private
			? "%s holds no private Ed25519 key in PEM without a passphrase; make one "
			  "with openssl genpkey -algorithm ed25519"
			: "%s holds no public Ed25519 key in PEM; openssl pkey -pubout makes it",
		quote(path).text);
}

/* Adds the lines that are signed: all lines of a signature object but the last. */
static void add_statement(struct text *t, const struct signed_manifest *manifest)
{
	char sha256[2 * sizeof manifest->sums->sha256 + 1];
	hex_encode(manifest->sums->sha256, sizeof manifest->sums->sha256, sha256);
	text_addf(t, "s3once manifest 1\nbucket: %s\nkey: ", manifest->bucket);
	text_add_escaped_string(t, manifest->key);
	text_addf(t, "\nsize: %" PRIu64 "\nsha256: %s\n", manifest->sums->bytes, sha256);
}

bool manifest_sign(EVP_PKEY *key, const struct signed_manifest *manifest, struct text *ret,
	struct problem *ret_problem)
{
	unsigned char signature[SIGNATURE_BYTES];
	size_t n = sizeof signature;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	add_statement(ret, manifest);
	const bool good = context && !ret->error &&
			  EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
			  EVP_DigestSign(context, signature, &n,
				  (const unsigned char *)text_string(ret), ret->len) == 1 &&
			  n == sizeof signature;
	EVP_MD_CTX_free(context);
	if (!good)
		return problem_error(
			ret_problem, false, "the manifest cannot be signed with this key");
	text_add(ret, LAST_LINE);
	text_add_base64(ret, signature, sizeof signature);
	text_add_char(ret, '\n');
	return !ret->error; /* false without a sentence: memory ran out */
}

/* Whether this is the signature of the statement by this key. */
static bool is_signed_by(EVP_PKEY *key, const struct text *statement, const char *base64)
{
	unsigned char signature[SIGNATURE_BASE64 / 4 * 3];
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const bool good =
		context && base64_decode(base64, signature) == SIGNATURE_BYTES &&
		EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
		EVP_DigestVerify(context, signature, SIGNATURE_BYTES,
			(const unsigned char *)text_string(statement), statement->len) == 1;
	EVP_MD_CTX_free(context);
	return good;
}

/* Finds the base64 of the signature in a signature object of n bytes. All other bytes of the object
 * have to be those that manifest_sign() writes around it. NULL: they are not. */
static const char *find_signature(const struct text *statement, const char *bytes, size_t n)
{
	const size_t before = statement->len + strlen(LAST_LINE);
	if (n != before + SIGNATURE_BASE64 + strlen("\n"))
		return NULL;
	const bool is_same_statement = memcmp(bytes, text_string(statement), statement->len) == 0;
	const bool has_last_line =
		memcmp(bytes + statement->len, LAST_LINE, strlen(LAST_LINE)) == 0 &&
		bytes[n - 1] == '\n';
	return is_same_statement && has_last_line ? bytes + before : NULL;
}

bool manifest_signature_check(EVP_PKEY *key, const struct signed_manifest *manifest,
	const char *bytes, size_t n, struct problem *ret_problem)
{
	struct text statement = TEXT(MANIFEST_SIGNATURE_MAX);
	char base64[SIGNATURE_BASE64 + 1] = "";
	add_statement(&statement, manifest);
	const char *found = statement.error ? NULL : find_signature(&statement, bytes, n);
	if (found)
		memcpy(base64, found, SIGNATURE_BASE64);
	const bool is_good = found && is_signed_by(key, &statement, base64);
	text_clear(&statement);
	if (!found)
		problem_set(ret_problem,
			"its signature is about other bytes, another key or another bucket: the "
			"manifest or its signature was changed");
	else if (!is_good)
		problem_set(ret_problem, "its signature is not by this key");
	return is_good;
}
