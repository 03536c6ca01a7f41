/* The hash FNV-1a of 64 bits (Fowler, Noll, Vo): fast, the same on all hosts, and easily forged. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define FNV_EMPTY 14695981039346656037ULL /* the hash of no bytes */

/* The hash of the bytes that `hash` is of, followed by these n. Thread-safe. */
uint64_t fnv_add(uint64_t hash, const void *bytes, size_t n);
