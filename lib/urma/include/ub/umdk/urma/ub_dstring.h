/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows while it is written (URMA API 0.9).
 *
 * Idea: append only; the text is always NUL-terminated, and after a failed append it is unchanged. The caller
 * serialises access.
 */
#ifndef UB_DSTRING_H
#define UB_DSTRING_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ub_dstring {
  char* string;     /* NULL while nothing was written */
  size_t length;    /* without the terminating NUL */
  size_t allocated; /* bytes of memory */
};

#define UB_DSTRING_INITIALIZER \
  { NULL, 0, 0 }

/** Makes an empty text. */
static inline void ub_dstring_init(struct ub_dstring* ds) {
  ds->string = NULL;
  ds->length = 0;
  ds->allocated = 0;
}

/** Frees the memory; the text is empty and may be used again. */
static inline void ub_dstring_destroy(struct ub_dstring* ds) {
  free(ds->string);
  ub_dstring_init(ds);
}

/** Empties the text but keeps the memory. */
static inline void ub_dstring_clear(struct ub_dstring* ds) {
  ds->length = 0;
  if (ds->string != NULL) ds->string[0] = '\0';
}

/** Makes room for n more characters. @return 0; -ENOMEM. */
static inline int ub_dstring_reserve(struct ub_dstring* ds, size_t n) {
  size_t want = ds->length + n + 1;
  char* grown;
  if (want <= n) return -ENOMEM;
  if (want <= ds->allocated) return 0;
  if (want < ds->allocated * 2) want = ds->allocated * 2;
  if (want < 32) want = 32;
  grown = (char*)realloc(ds->string, want);
  if (grown == NULL) return -ENOMEM;
  ds->string = grown;
  ds->allocated = want;
  ds->string[ds->length] = '\0';
  return 0;
}

/** Appends n bytes. @return 0; -ENOMEM. */
static inline int ub_dstring_put_bytes(struct ub_dstring* ds, const void* bytes, size_t n) {
  if (ub_dstring_reserve(ds, n) != 0) return -ENOMEM;
  if (n != 0) memcpy(ds->string + ds->length, bytes, n);
  ds->length += n;
  ds->string[ds->length] = '\0';
  return 0;
}

/** Appends a text. @return 0; -ENOMEM. */
static inline int ub_dstring_put_cstr(struct ub_dstring* ds, const char* s) {
  return ub_dstring_put_bytes(ds, s, strlen(s));
}

/** Appends one character. @return 0; -ENOMEM. */
static inline int ub_dstring_put_char(struct ub_dstring* ds, char c) { return ub_dstring_put_bytes(ds, &c, 1); }

/** Appends as printf does. @return 0; -ENOMEM; -EINVAL: format error. */
__attribute__((format(printf, 2, 3))) static inline int ub_dstring_put_format(struct ub_dstring* ds, const char* format,
                                                                              ...) {
  va_list args;
  int n;
  va_start(args, format);
  n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n < 0) return -EINVAL;
  if (ub_dstring_reserve(ds, (size_t)n) != 0) return -ENOMEM;
  va_start(args, format);
  n = vsnprintf(ds->string + ds->length, ds->allocated - ds->length, format, args);
  va_end(args);
  if (n < 0) return -EINVAL;
  ds->length += (size_t)n;
  return 0;
}

/** The text; valid until the next call on ds. */
static inline const char* ub_dstring_cstr(const struct ub_dstring* ds) { return ds->string == NULL ? "" : ds->string; }

#ifdef __cplusplus
}
#endif

#endif /* UB_DSTRING_H */
