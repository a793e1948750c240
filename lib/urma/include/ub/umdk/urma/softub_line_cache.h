/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inline part of cached handles (softub_aperture.h): lines of remote memory that the program keeps. What is not
 * found here goes out of line. Programs include softub_aperture.h and use its calls; nothing here is for them.
 *
 * 64 sets of four lines. A tag is the address of a line, in the remote address space; its low six bits, which the
 * address leaves free, are the epoch in which the line came, and whether the line is partial. Lines of former epochs
 * are not found, so one addition drops all lines.
 */
#ifndef SOFTUB_LINE_CACHE_H
#define SOFTUB_LINE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTUB_CACHE_LINE 64u
#define SOFTUB_CACHE_SETS 64u
#define SOFTUB_CACHE_WAYS 4u
#define SOFTUB_CACHE_PARTIAL 1u   /* in a tag: no byte of the line is known but those that are dirty */
#define SOFTUB_CACHE_EPOCH 2u     /* in a tag: from one epoch to the next; the first one */
#define SOFTUB_CACHE_EPOCHS 0x3eu /* in a tag: the bits of the epoch, which are also the last one */

/* One line of the CPU's cache. */
typedef struct softub_cache_set {
  uint64_t tags[SOFTUB_CACHE_WAYS];  /* 0: no line */
  uint64_t dirty[SOFTUB_CACHE_WAYS]; /* bit i: byte i was stored and not sent yet */
} __attribute__((aligned(64))) softub_cache_set_t;

typedef struct softub_line_cache {
  uint64_t epoch;
  uint64_t hits;     /* of the inline calls */
  bool keeps_stores; /* write-back */
  bool has_dirty;    /* some line may be dirty */
  softub_cache_set_t sets[SOFTUB_CACHE_SETS];
  uint8_t lines[SOFTUB_CACHE_SETS][SOFTUB_CACHE_WAYS][SOFTUB_CACHE_LINE];
} softub_line_cache_t;

static inline uint32_t softub_cache_set_of(uint64_t address) {
  return (uint32_t)(address / SOFTUB_CACHE_LINE % SOFTUB_CACHE_SETS);
}

/* The tag of a whole line. */
static inline uint64_t softub_cache_tag(const softub_line_cache_t* cache, uint64_t address) {
  return address - address % SOFTUB_CACHE_LINE + cache->epoch;
}

/* Has the line this tag, or one that differs from it in the bits of `but` alone? */
static inline bool softub_cache_is(const softub_cache_set_t* set, uint32_t way, uint64_t tag, uint64_t but) {
  return (set->tags[way] ^ tag) <= but;
}

/* Which line of a set it is, if it is there. Without branches, because nobody foretells in which of four places. */
static inline uint32_t softub_cache_way(const softub_cache_set_t* set, uint64_t tag, uint64_t but) {
  return 1u * softub_cache_is(set, 1, tag, but) + 2u * softub_cache_is(set, 2, tag, but) +
         3u * softub_cache_is(set, 3, tag, but);
}

/* The bytes at an address, for a load; null: their line is not there. */
static inline const uint8_t* softub_cache_get(softub_line_cache_t* cache, uint64_t address) {
  const uint32_t set = softub_cache_set_of(address);
  const uint64_t tag = softub_cache_tag(cache, address);
  const uint32_t way = softub_cache_way(&cache->sets[set], tag, 0);
  if (__builtin_expect(!softub_cache_is(&cache->sets[set], way, tag, 0), 0)) return NULL;
  ++cache->hits;
  return cache->lines[set][way] + address % SOFTUB_CACHE_LINE;
}

/*
 * Stores so many bytes at an address, in one line. False: their line is not there. They are dirty once they are all here:
 * a fault of `from` may end the call in the middle.
 */
static inline __attribute__((always_inline)) bool softub_cache_put(softub_line_cache_t* cache, uint64_t address,
                                                                   const void* from, uint32_t bytes) {
  const uint32_t set = softub_cache_set_of(address), offset = (uint32_t)(address % SOFTUB_CACHE_LINE);
  const uint64_t tag = softub_cache_tag(cache, address);
  const uint32_t way = softub_cache_way(&cache->sets[set], tag, SOFTUB_CACHE_PARTIAL);
  if (__builtin_expect(!softub_cache_is(&cache->sets[set], way, tag, SOFTUB_CACHE_PARTIAL), 0)) return false;
  memcpy(cache->lines[set][way] + offset, from, bytes);
  __asm__ volatile("" : : : "memory");
  cache->sets[set].dirty[way] |= ~(uint64_t)0 >> (SOFTUB_CACHE_LINE - bytes) << offset;
  cache->has_dirty = true;
  ++cache->hits;
  return true;
}

#ifdef __cplusplus
}
#endif

#endif /* SOFTUB_LINE_CACHE_H */
