/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small helpers shared by the library and its programs: macros, bits, text to number, huge pages
 * (URMA API 0.9).
 *
 * Idea: everything a header can do is inline or a macro and has no state; the rest is exported by the
 * library. Unless a comment says otherwise all functions may be called by any thread at any time, do not
 * block, and need no urma_init. Macros that programs like to define themselves (MAX, MIN, ...) give way to
 * theirs.
 */
#ifndef UB_UTIL_H
#define UB_UTIL_H

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Compiler ------------------------------------------------------------------------------------ */

#define UB_UNUSED __attribute__((unused))
#define UB_LIKELY(cond) __builtin_expect(!!(cond), 1)
#define UB_UNLIKELY(cond) __builtin_expect(!!(cond), 0)

/* Head of a function that runs when the library or program is loaded: UB_CONSTRUCTOR(f) { ... } */
#define UB_CONSTRUCTOR(f)                           \
  static void f(void) __attribute__((constructor)); \
  static void f(void)

/* "file:line" of the place of use, as string literal. */
#define UB_SOURCE_LOCATOR __FILE__ ":" UB_STRINGIZE(__LINE__)
#define UB_STRINGIZE(x) UB_STRINGIZE2(x)
#define UB_STRINGIZE2(x) #x

/* Ends the process if cond is false, also with NDEBUG. */
#define UB_ASSERT(cond)                                                             \
  do {                                                                              \
    if (UB_UNLIKELY(!(cond))) {                                                     \
      (void)fprintf(stderr, "%s: assertion %s failed\n", UB_SOURCE_LOCATOR, #cond); \
      ub_abort();                                                                   \
    }                                                                               \
  } while (0)

/* ---- Numbers. Arguments may be evaluated twice. -------------------------------------------------- */

#ifndef MAX
#define MAX(X, Y) ((X) > (Y) ? (X) : (Y))
#endif
#ifndef MIN
#define MIN(X, Y) ((X) < (Y) ? (X) : (Y))
#endif
#ifndef DIV_ROUND_UP
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#endif
#ifndef ROUND_UP
#define ROUND_UP(n, d) (DIV_ROUND_UP(n, d) * (d))
#endif
#ifndef ROUND_DOWN
#define ROUND_DOWN(n, d) ((n) / (d) * (d))
#endif
#ifndef IS_POW2
#define IS_POW2(n) ((n) != 0 && (((n) & ((n)-1)) == 0))
#endif
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

#ifndef BITS_PER_LONG
#define BITS_PER_LONG 64
#endif
#ifndef BITS_PER_BYTE
#define BITS_PER_BYTE 8
#endif
#ifndef BITS_PER_UINT32
#define BITS_PER_UINT32 32
#endif
#ifndef NANO_IN_SEC
#define NANO_IN_SEC 1000000000LL
#endif
#ifndef BITS_TO_LONGS
#define BITS_TO_LONGS(cnt) DIV_ROUND_UP(cnt, BITS_PER_LONG)
#endif

/* ---- Members and their structs. `object` is a pointer that is not followed. ---------------------- */

#define OBJ_OFFSETOF(object, member) offsetof(__typeof__(*(object)), member)
#define SIZEOF_FIELD(type, field) (sizeof(((type*)NULL)->field))
#define OFFSET_OF_FIELD_END(type, field) (offsetof(type, field) + SIZEOF_FIELD(type, field))

/* Struct `type` whose member `field` is at ptr. */
#define CONTAINER_OF_FIELD(ptr, type, field) ((type*)(void*)((char*)(ptr)-offsetof(type, field)))

/* The same, with the type taken from a pointer variable. */
#define OBJ_CONTAINING(ptr, object, member) \
  ((__typeof__(object))(void*)((char*)(ptr)-offsetof(__typeof__(*(object)), member)))

/* Points `object` to the struct whose `member` is at ptr. INIT_ also works on an uninitialised variable. */
#define ASSIGN_CONTAINER_PTR(object, ptr, member) ((object) = OBJ_CONTAINING(ptr, object, member), (void)0)
#define INIT_CONTAINER_PTR(object, ptr, member) ((object) = NULL, ASSIGN_CONTAINER_PTR(object, ptr, member))

/* ---- Inline helpers ------------------------------------------------------------------------------ */

/** Ends the process with SIGABRT after the output written so far. */
static inline void ub_abort(void) {
  (void)fflush(NULL);
  abort();
}

/** Number of bits set. */
static inline unsigned int ub_count_1bits(uint64_t x) { return (unsigned int)__builtin_popcountll(x); }

/** The lowest bit set, 0 for 0. */
static inline uint64_t ub_rightmost_1bit(uint64_t x) { return x & (~x + 1); }

/** Exactly one bit set? */
static inline bool ub_is_pow2(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }

/** Sets, clears and reads a bit of an array; not atomic. */
static inline void set_bit(unsigned long nr, unsigned long* addr) {
  addr[nr / BITS_PER_LONG] |= 1UL << (nr % BITS_PER_LONG);
}

static inline void clear_bit(unsigned long nr, unsigned long* addr) {
  addr[nr / BITS_PER_LONG] &= ~(1UL << (nr % BITS_PER_LONG));
}

static inline bool test_bit(unsigned long nr, const unsigned long* addr) {
  return ((addr[nr / BITS_PER_LONG] >> (nr % BITS_PER_LONG)) & 1UL) != 0;
}

/** Clears an array of nbits bits: the whole words that hold them. */
static inline void bitmap_zero(unsigned long nbits, unsigned long* addr) {
  if (nbits != 0) memset(addr, 0, (nbits - 1) / BITS_PER_LONG * sizeof(*addr) + sizeof(*addr));
}

/** Text for an errno value of either sign. Rules of strerror: the next call in any thread may overwrite it.
 */
static inline const char* ub_strerror(int err) { return strerror(err < 0 ? -err : err); }

/** Wall-clock time in nanoseconds since 1970, in steps of a microsecond. */
static inline uint64_t gethrtime_epoch(void) {
  struct timeval now;
  (void)gettimeofday(&now, NULL);
  return (uint64_t)now.tv_sec * (uint64_t)NANO_IN_SEC + (uint64_t)now.tv_usec * 1000U;
}

/* Row of a table that maps texts to numbers. */
struct str_int {
  char* s;
  int integer;
};

/** Number of a text in a table of n rows. @return 0; -EINVAL: argument NULL; -ENOENT: not found. */
static inline int get_int_from_string(const struct str_int* table, size_t n, const char* s, int* integer) {
  size_t i;
  if (table == NULL || s == NULL || integer == NULL) return -EINVAL;
  for (i = 0; i < n; i++) {
    if (strcmp(table[i].s, s) == 0) {
      *integer = table[i].integer;
      return 0;
    }
  }
  return -ENOENT;
}

/** First text of a number in a table of n rows. @return text of the table, NULL if not found. */
static inline const char* get_string_from_int(const struct str_int* table, size_t n, int integer) {
  size_t i;
  for (i = 0; table != NULL && i < n; i++) {
    if (table[i].integer == integer) return table[i].s;
  }
  return NULL;
}

/* ---- Bit search: array of unsigned long, size in bits. Result: bit number, or size if there is none.  */

/** First bit that is set, and first one not below offset. */
unsigned long ub_find_first_bit(const unsigned long* array, unsigned long size);
unsigned long ub_find_next_bit(const unsigned long* array, unsigned long size, unsigned long offset);

/** First bit that is clear, and first one not below offset. */
unsigned long ub_find_first_zero_bit(const unsigned long* array, unsigned long size);
unsigned long ub_find_next_zero_bit(const unsigned long* array, unsigned long size, unsigned long offset);

/* Head of a loop over the set bits; `bit` is an integer variable. */
#ifndef for_each_set_bit
#define for_each_set_bit(bit, addr, size) \
  for ((bit) = ub_find_first_bit((addr), (size)); (bit) < (size); (bit) = ub_find_next_bit((addr), (size), (bit) + 1))
#endif

/* ---- Text to number. 0, or: -EINVAL (argument NULL, not this kind of text), -ERANGE (number too large).  */

/** "true" or "false". The result is untouched on failure, likewise below. */
int ub_str_to_bool(const char* buf, bool* bool_res);

/** Unsigned number: decimal, hexadecimal with 0x, or octal with leading 0; nothing may follow, no minus sign.
 */
int ub_str_to_u8(const char* buf, uint8_t* u8);
int ub_str_to_u16(const char* buf, uint16_t* u16);
int ub_str_to_u32(const char* buf, uint32_t* u32);
int ub_str_to_u64(const char* buf, uint64_t* u64);

/** Signed number in the same notations. */
int ub_str_to_int(const char* buf, int* value);

/** Hexadecimal number of up to 16 digits, with or without 0x. */
int ub_hex_str_to_u64(const char* buf, uint64_t* u64);

/**
 * Value of n hexadecimal digits.
 *
 * @param ok receives whether all were digits; may be NULL. @return value, UINT64_MAX if not ok.
 */
uint64_t hexits_value(const char* s, size_t n, bool* ok);

/** Is the text a number that ub_str_to_u64 could read, apart from its size? */
bool is_valid_digit(const char* buf);

/* ---- Files --------------------------------------------------------------------------------------- */

/**
 * Writes a text into an existing file with one system call, as sysfs wants it. May block in the kernel.
 *
 * @return 0; negative errno of open or write; -EIO: only a part was accepted; -EINVAL: argument NULL.
 */
int safe_write_value_to_file(const char* path, const char* value);

/**
 * Reads the number in the first line of a sysfs file. May block in the kernel.
 *
 * @return 0; negative errno of open or read; -EINVAL: argument NULL or no number; -ERANGE: number too large.
 */
int ub_parse_sysfs_val(const char* path, uint64_t* value);

/* ---- Memory -------------------------------------------------------------------------------------- */

/**
 * memset and memcpy that check the size of the target, without an upper limit for the size.
 *
 * @return 0; EINVAL: pointer NULL; ERANGE: count > dest_max (nothing is written); memcpy: EINVAL also for
 *         overlapping blocks.
 */
int memset_s_large_buf(void* dest, size_t dest_max, int c, size_t count);
int memcpy_s_large_buf(void* dest, size_t dest_max, const void* src, size_t count);

typedef enum urma_huge_page_size {
  UB_HUGE_PAGE_SIZE_2MB,
  UB_HUGE_PAGE_SIZE_1GB,
  UB_HUGE_PAGE_SIZE_ANY /* default size of the system */
} urma_huge_page_size_t;

/**
 * Allocates zeroed memory in huge pages. May block in the kernel.
 *
 * @param size bytes, rounded up to whole pages. @param hint wished address, NULL: any.
 * @return start for ub_hugefree; NULL: errno EINVAL (size 0 or page size unknown) or ENOMEM (no huge pages
 *         left).
 */
void* ub_hugemalloc(size_t size, urma_huge_page_size_t page_size, void* hint);

/**
 * Releases memory of ub_hugemalloc.
 *
 * @param size as given to ub_hugemalloc. @return 0; -1: errno EINVAL, not such memory.
 */
int ub_hugefree(void* buf, size_t size);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* UB_UTIL_H */
