/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash map whose links live inside the elements (URMA API 0.9).
 *
 * Idea: an array of buckets, each a singly linked chain; elements carry their hash, the caller compares
 * keys. The array doubles when it holds more than two elements per bucket, so expected cost stays constant.
 * The caller serialises access; elements stay the caller's.
 */
#ifndef UB_HMAP_H
#define UB_HMAP_H

#include "ub_util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ub_hmap_node {
  struct ub_hmap_node* next;
  uint32_t hash;
};

struct ub_hmap_head {
  struct ub_hmap_node* next;
};

struct ub_hmap {
  uint32_t count;
  uint32_t mask; /* buckets - 1; buckets are a power of two */
  struct ub_hmap_head* bucket;
};

/** Makes an empty map for about `expected` elements. @return 0; -EINVAL: map NULL; -ENOMEM. */
static inline int ub_hmap_init(struct ub_hmap* map, uint32_t expected) {
  uint32_t buckets = 1;
  if (map == NULL) return -EINVAL;
  while (buckets < expected && buckets < 0x80000000U) buckets <<= 1;
  map->bucket = (struct ub_hmap_head*)calloc(buckets, sizeof(*map->bucket));
  if (map->bucket == NULL) return -ENOMEM;
  map->count = 0;
  map->mask = buckets - 1;
  return 0;
}

/** Frees the array of buckets; elements are left alone. */
static inline void ub_hmap_destroy(struct ub_hmap* map) {
  if (map == NULL) return;
  free(map->bucket);
  map->bucket = NULL;
  map->count = 0;
  map->mask = 0;
}

static inline uint32_t ub_hmap_count(const struct ub_hmap* map) { return map->count; }

/** Doubles the buckets. Without memory the map goes on as it is. */
static inline void ub_hmap_expand(struct ub_hmap* map) {
  uint32_t new_mask = map->mask * 2 + 1;
  uint32_t i;
  struct ub_hmap_head* bucket = (struct ub_hmap_head*)calloc((size_t)new_mask + 1, sizeof(*bucket));
  if (bucket == NULL) return;
  for (i = 0; i <= map->mask; i++) {
    struct ub_hmap_node* node = map->bucket[i].next;
    while (node != NULL) {
      struct ub_hmap_node* next = node->next;
      node->next = bucket[node->hash & new_mask].next;
      bucket[node->hash & new_mask].next = node;
      node = next;
    }
  }
  free(map->bucket);
  map->bucket = bucket;
  map->mask = new_mask;
}

/** Adds an element that is in no map. Equal hashes, even equal keys, are allowed. */
static inline void ub_hmap_insert(struct ub_hmap* map, struct ub_hmap_node* node, uint32_t hash) {
  if (map->count / 2 > map->mask && map->mask < 0x7fffffffU) ub_hmap_expand(map);
  node->hash = hash;
  node->next = map->bucket[hash & map->mask].next;
  map->bucket[hash & map->mask].next = node;
  map->count++;
}

/** Removes an element; does nothing if it is not there. */
static inline void ub_hmap_remove(struct ub_hmap* map, struct ub_hmap_node* node) {
  struct ub_hmap_node** link = &map->bucket[node->hash & map->mask].next;
  while (*link != NULL && *link != node) link = &(*link)->next;
  if (*link == NULL) return;
  *link = node->next;
  node->next = NULL;
  map->count--;
}

/** First of the elements with this hash, and the one after node with the same hash; NULL if there is none. */
static inline struct ub_hmap_node* ub_hmap_first_with_hash(const struct ub_hmap* map, uint32_t hash) {
  struct ub_hmap_node* node = map->bucket[hash & map->mask].next;
  while (node != NULL && node->hash != hash) node = node->next;
  return node;
}

static inline struct ub_hmap_node* ub_hmap_next_with_hash(const struct ub_hmap_node* node) {
  struct ub_hmap_node* next = node->next;
  while (next != NULL && next->hash != node->hash) next = next->next;
  return next;
}

/** First element of all and the one after node, in no particular order; NULL if there is none. */
static inline struct ub_hmap_node* ub_hmap_first_from(const struct ub_hmap* map, uint32_t start) {
  uint64_t i;
  for (i = start; i <= map->mask; i++) {
    if (map->bucket[i].next != NULL) return map->bucket[i].next;
  }
  return NULL;
}

static inline struct ub_hmap_node* ub_hmap_first(const struct ub_hmap* map) {
  return map->bucket == NULL ? NULL : ub_hmap_first_from(map, 0);
}

static inline struct ub_hmap_node* ub_hmap_next(const struct ub_hmap* map, const struct ub_hmap_node* node) {
  uint32_t bucket = node->hash & map->mask;
  if (node->next != NULL) return node->next;
  return bucket == map->mask ? NULL : ub_hmap_first_from(map, bucket + 1);
}

/* Struct that holds the link `member` at ptr, NULL for NULL. */
#define UB_HMAP_OBJ(ptr, object, member) \
  ((ptr) == NULL ? (__typeof__(object))NULL : OBJ_CONTAINING(ptr, object, member))

/* Loop over all elements, or those with a hash; `node` is a pointer to the struct with the link `member`. The
 * body must not remove the current element. */
#define UB_HMAP_FOR_EACH(node, member, map)                                    \
  for ((node) = UB_HMAP_OBJ(ub_hmap_first(map), node, member); (node) != NULL; \
       (node) = UB_HMAP_OBJ(ub_hmap_next(map, &(node)->member), node, member))

#define UB_HMAP_FOR_EACH_WITH_HASH(node, member, hash_value, map)                                    \
  for ((node) = UB_HMAP_OBJ(ub_hmap_first_with_hash(map, hash_value), node, member); (node) != NULL; \
       (node) = UB_HMAP_OBJ(ub_hmap_next_with_hash(&(node)->member), node, member))

/* Loop over all elements; the body may remove the current one. `next_node` is a second such pointer. */
#define UB_HMAP_FOR_EACH_SAFE(node, next_node, member, map)                                                     \
  for ((node) = UB_HMAP_OBJ(ub_hmap_first(map), node, member);                                                  \
       (node) != NULL && ((next_node) = UB_HMAP_OBJ(ub_hmap_next(map, &(node)->member), next_node, member), 1); \
       (node) = (next_node))

#ifdef __cplusplus
}
#endif

#endif /* UB_HMAP_H */
