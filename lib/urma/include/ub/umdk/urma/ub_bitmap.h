/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bitmap of a fixed number of bits (URMA API 0.9).
 *
 * Idea: hands out small numbers: a set bit is a number in use. The caller serialises access.
 */
#ifndef UB_BITMAP_H
#define UB_BITMAP_H

#include "ub_util.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ub_bitmap {
  unsigned long* bits;
  unsigned long size; /* in bits */
} ub_bitmap_t;

/** Makes a bitmap of `size` clear bits. @return bitmap for ub_bitmap_free; NULL: size 0 or out of memory. */
static inline ub_bitmap_t* ub_bitmap_alloc(unsigned long size) {
  ub_bitmap_t* bitmap;
  if (size == 0) return NULL;
  bitmap = (ub_bitmap_t*)calloc(1, sizeof(*bitmap));
  if (bitmap == NULL) return NULL;
  bitmap->bits = (unsigned long*)calloc(size / BITS_PER_LONG + 1, sizeof(unsigned long));
  if (bitmap->bits == NULL) {
    free(bitmap);
    return NULL;
  }
  bitmap->size = size;
  return bitmap;
}

/** Releases a bitmap; NULL is allowed. */
static inline void ub_bitmap_free(ub_bitmap_t* bitmap) {
  if (bitmap == NULL) return;
  free(bitmap->bits);
  free(bitmap);
}

/** Sets the lowest clear bit. @return 0; -ENOSPC: all are set. */
static inline int ub_bitmap_alloc_idx(ub_bitmap_t* bitmap, unsigned long* idx) {
  unsigned long bit = ub_find_first_zero_bit(bitmap->bits, bitmap->size);
  if (bit >= bitmap->size) return -ENOSPC;
  set_bit(bit, bitmap->bits);
  *idx = bit;
  return 0;
}

/** Sets a given bit. @return 0; -EINVAL: no such bit; -EEXIST: already set. */
static inline int ub_bitmap_use_idx(ub_bitmap_t* bitmap, unsigned long idx) {
  if (idx >= bitmap->size) return -EINVAL;
  if (test_bit(idx, bitmap->bits)) return -EEXIST;
  set_bit(idx, bitmap->bits);
  return 0;
}

/** Clears a given bit. @return 0; -EINVAL: no such bit; -ENOENT: not set. */
static inline int ub_bitmap_free_idx(ub_bitmap_t* bitmap, unsigned long idx) {
  if (idx >= bitmap->size) return -EINVAL;
  if (!test_bit(idx, bitmap->bits)) return -ENOENT;
  clear_bit(idx, bitmap->bits);
  return 0;
}

/** Is a given bit set? */
static inline bool ub_bitmap_is_set(const ub_bitmap_t* bitmap, unsigned long idx) {
  return idx < bitmap->size && test_bit(idx, bitmap->bits);
}

#ifdef __cplusplus
}
#endif

#endif /* UB_BITMAP_H */
