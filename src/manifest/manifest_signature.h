/* Signatures of manifests: Ed25519 (RFC 8032) over a few lines of text. The signature object has
 * these lines, and then the signature, so that people and openssl can check it:
 *
 *   s3once manifest 1
 *   bucket: NAME
 *   key: KEY
 *   size: BYTES
 *   sha256: HEX
 *   signature: BASE64
 *
 * The signature covers all lines but the last. */
#pragma once
#include "base/checksum.h"
#include "base/problem.h"
#include "base/text.h"
#include <openssl/evp.h>
#include <stdbool.h>

#define MANIFEST_SIGNATURE_SUFFIX ".sig"
#define MANIFEST_SIGNATURE_MAX    4096 /* the most bytes of a signature object */

enum key_half { KEY_PRIVATE, KEY_PUBLIC };
/* Reads an Ed25519 key of a PEM file without a passphrase: a private key (PKCS #8) or a public key
 * (SubjectPublicKeyInfo). The caller gives it to EVP_PKEY_free(). Returns 0, or -errno with a
 * sentence that names the file. */
int signing_key_read(
	const char *path, enum key_half half, EVP_PKEY **ret, struct problem *ret_problem);

/* The properties of a manifest that are signed. All are borrowed. */
struct signed_manifest {
	const char *bucket, *key;
	const struct sums *sums; /* checksums of the object: its bytes and SHA-256 */
};
/* Signs a manifest, and adds the whole signature object to *ret. Returns false with a sentence if
 * the key cannot sign. If memory runs out, it returns false, and may set no sentence. */
bool manifest_sign(EVP_PKEY *key, const struct signed_manifest *manifest, struct text *ret,
	struct problem *ret_problem);
/* Returns whether the n bytes of a signature object are a signature of exactly this manifest by
 * this key. If not, *ret_problem says why. */
bool manifest_signature_check(EVP_PKEY *key, const struct signed_manifest *manifest,
	const char *bytes, size_t n, struct problem *ret_problem);
