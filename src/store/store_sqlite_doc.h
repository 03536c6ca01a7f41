/* How an item is kept in its row: as the text of DynamoDB's JSON, without its keys. */
#pragma once
#include "dynamodb/dynamodb.h"

#define DOC_BYTES 400000 /* of one item at most, as DynamoDB's */

/* Decodes a row's doc into a zeroed item, with its keys. 0, -EBADMSG, -ENOMEM. */
int doc_decode(struct item_key key, const char *doc, struct item *ret);
/* The reverse, without the keys; the caller frees *ret_doc. -EMSGSIZE if it is longer than
 * DOC_BYTES, -EILSEQ if a string is not UTF-8, -ENOMEM. */
int doc_encode(const struct item *item, char **ret_doc);
/* The sentence and outcome for either's error. */
enum outcome doc_failure(struct item_key key, int r, struct problem *ret_problem);
