/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32-bit hashes for tables (URMA API 0.9).
 *
 * Idea: MurmurHash3 for x86, 32 bits: mix words with ub_hash_add, close with ub_hash_finish. Not for
 * secrets. Pure functions; the result for bytes depends on the byte order of the processor.
 */
#ifndef UB_HASH_H
#define UB_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Rotates left by 1 .. 31 bits. */
static inline uint32_t ub_hash_rot(uint32_t x, int k) { return (x << k) | (x >> (32 - k)); }

/** Mixes one word into a hash under construction. */
static inline uint32_t ub_hash_add(uint32_t hash, uint32_t data) {
  data *= 0xcc9e2d51U;
  data = ub_hash_rot(data, 15);
  data *= 0x1b873593U;
  hash ^= data;
  hash = ub_hash_rot(hash, 13);
  return hash * 5 + 0xe6546b64U;
}

/** Mixes two words, the lower one first. */
static inline uint32_t ub_hash_add64(uint32_t hash, uint64_t data) {
  return ub_hash_add(ub_hash_add(hash, (uint32_t)data), (uint32_t)(data >> 32));
}

/** Closes a hash; n_bytes is the amount of data mixed in. */
static inline uint32_t ub_hash_finish(uint32_t hash, uint32_t n_bytes) {
  hash ^= n_bytes;
  hash ^= hash >> 16;
  hash *= 0x85ebca6bU;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35U;
  hash ^= hash >> 16;
  return hash;
}

/** Hash of n bytes; basis 0 or any other start value. */
static inline uint32_t ub_hash_bytes(const void* p, size_t n, uint32_t basis) {
  const unsigned char* bytes = (const unsigned char*)p;
  uint32_t hash = basis;
  size_t i;
  for (i = 0; i + 4 <= n; i += 4) {
    uint32_t word;
    memcpy(&word, bytes + i, sizeof(word));
    hash = ub_hash_add(hash, word);
  }
  if (i < n) {
    /* The rest takes part without the last two steps of ub_hash_add. */
    uint32_t word = 0;
    memcpy(&word, bytes + i, n - i);
    word *= 0xcc9e2d51U;
    word = ub_hash_rot(word, 15);
    hash ^= word * 0x1b873593U;
  }
  return ub_hash_finish(hash, (uint32_t)n);
}

static inline uint32_t ub_hash_string(const char* s, uint32_t basis) { return ub_hash_bytes(s, strlen(s), basis); }

static inline uint32_t ub_hash_int(uint32_t x, uint32_t basis) { return ub_hash_finish(ub_hash_add(basis, x), 4); }

static inline uint32_t ub_hash_uint64(uint64_t x, uint32_t basis) { return ub_hash_finish(ub_hash_add64(basis, x), 8); }

static inline uint32_t ub_hash_2words(uint32_t x, uint32_t y) {
  return ub_hash_finish(ub_hash_add(ub_hash_add(x, 0), y), 8);
}

static inline uint32_t ub_hash_pointer(const void* p, uint32_t basis) {
  return ub_hash_uint64((uint64_t)(uintptr_t)p, basis);
}

#ifdef __cplusplus
}
#endif

#endif /* UB_HASH_H */
