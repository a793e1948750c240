// SPDX-License-Identifier: Apache-2.0
//
// Remote memory by loads and stores (softub_aperture.h): bytes, order, failures, on each path that leads there; what
// forks and ends do to handles. Usage: see far.h.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <softub_aperture.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/far.h"

#define THERE 8192
#define BYTES 65536
#define SEED 9
#define THREADS 3
#define ROUNDS 60

// ---- paths ------------------------------------------------------------------------------------------------

static softub_cache_t cache_of_handles;

static softub_aperture_t* open_handle(urma_target_seg_t* seg, softub_path_t path) {
  const softub_aperture_options_t options = {.path = path, .cache = cache_of_handles};
  softub_aperture_t* handle = softub_open(seg, &options);
  need(handle != NULL, "softub_open");
  check_number("path", handle->path, cache_of_handles == SOFTUB_CACHE_NONE ? path : SOFTUB_PATH_CACHED);
  return handle;
}

// Runs a body with the best path that leads to the peer's memory, and with a queue.
static void for_each_path(void (*body)(softub_path_t path)) {
  const softub_path_t best = best_path();
  if (best != SOFTUB_PATH_QUEUE) {
    in_variant(path_name(best));
    body(best);
  }
  in_variant(path_name(SOFTUB_PATH_QUEUE));
  body(SOFTUB_PATH_QUEUE);
  in_variant(NULL);
}

// The same with each kind of line cache.
static void for_each_cache(void (*body)(softub_path_t path)) {
  const softub_path_t paths[] = {best_path(), SOFTUB_PATH_QUEUE};
  for (int i = 0; i < 2; ++i) {
    for (int k = paths[0] == SOFTUB_PATH_QUEUE ? 1 : 0; k < 2; ++k) {
      char variant[40];
      snprintf(variant, sizeof variant, "%s, %s", path_name(paths[k]), i == 0 ? "write-back" : "write-through");
      in_variant(variant);
      cache_of_handles = i == 0 ? SOFTUB_CACHE_WRITE_BACK : SOFTUB_CACHE_WRITE_THROUGH;
      body(paths[k]);
      cache_of_handles = SOFTUB_CACHE_NONE;
    }
  }
  in_variant(NULL);
}

// ---- bytes ------------------------------------------------------------------------------------------------

// Loads and stores of all lengths at all places, and a model of what the memory must hold.
static void integrity_body(softub_path_t path) {
  softub_aperture_t* handle = open_handle(stage.far, path);
  char *model = malloc(BYTES), *bytes = malloc(8192);
  uint32_t random = SEED;
  far_fill(THERE, BYTES, SEED);
  need(model != NULL && bytes != NULL, "memory");
  check_number("load of all", softub_load(handle, THERE, model, 8192), URMA_CR_SUCCESS);
  fill(bytes, 8192, SEED);
  check_true("what the peer wrote", memcmp(model, bytes, 8192) == 0);
  memset(model, 0, BYTES);
  for (uint32_t at = 0; at < BYTES; at += 8192) {
    check_number("store", softub_store(handle, THERE + at, model + at, 8192), URMA_CR_SUCCESS);
  }
  for (int i = 0; i < 1000 && !case_failed(); ++i) {
    const uint32_t longest = next_random(&random) % 4 == 0 ? 8192 : 64;
    const uint32_t length = 1 + next_random(&random) % longest;
    const uint32_t at = next_random(&random) % (BYTES - length + 1);
    // What is asked for ahead must be as new as the stores of this handle, whenever it is used.
    for (uint32_t k = next_random(&random) % 3; k != 0; --k) {
      const uint32_t near = at + next_random(&random) % 256;
      check_number("prefetch", softub_prefetch(handle, THERE + (near < BYTES ? near : 0)), URMA_CR_SUCCESS);
    }
    if (next_random(&random) % 2 == 0) {
      for (uint32_t k = 0; k < length; ++k) bytes[k] = (char)next_random(&random);
      check_number("store", softub_store(handle, THERE + at, bytes, length), URMA_CR_SUCCESS);
      memcpy(model + at, bytes, length);
    } else {
      check_number("load", softub_load(handle, THERE + at, bytes, length), URMA_CR_SUCCESS);
      check_true("loaded bytes", memcmp(bytes, model + at, length) == 0);
    }
  }
  check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
  softub_close(handle);
  free(model);
  free(bytes);
}

static void beside_body(softub_path_t path) {
  softub_aperture_t* handle = open_handle(stage.far, path);
  char bytes[300];
  for (uint32_t length = 1; length <= sizeof bytes; length += length < 70 ? 1 : 57) {
    for (uint32_t shift = 0; shift < 64; shift += 13) {
      far_prepare(THERE + shift, length);
      fill(bytes, length, SEED);
      check_number("store", softub_store(handle, THERE + shift, bytes, length), URMA_CR_SUCCESS);
      check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
      check_true("only these bytes changed", far_landed(THERE + shift, length, SEED));
    }
  }
  softub_close(handle);
}

static void many_body(softub_path_t path) {
  enum { LINES = 150 };
  softub_aperture_t* handle = open_handle(stage.far, path);
  static uint64_t at[LINES];
  static char lines[LINES][64];
  char expected[64];
  uint32_t random = SEED;
  far_fill(0, BYTES, SEED);
  static char all[BYTES];
  fill(all, BYTES, SEED);
  for (int i = 0; i < LINES; ++i) at[i] = next_random(&random) % (BYTES - 64);
  check_number("load_many", softub_load_many(handle, at, LINES, lines), URMA_CR_SUCCESS);
  for (int i = 0; i < LINES; ++i) {
    memcpy(expected, all + at[i], 64);
    check_true("a line", memcmp(lines[i], expected, 64) == 0);
  }
  check_number("no lines", softub_load_many(handle, at, 0, lines), URMA_CR_SUCCESS);
  softub_close(handle);
}

// Used in the order in which they were asked for, in another one, and not at all.
static void ahead_body(softub_path_t path) {
  softub_aperture_t* handle = open_handle(stage.far, path);
  uint32_t random = SEED;
  uint64_t at[80];
  far_fill(0, BYTES, SEED);
  static char all[BYTES];
  fill(all, BYTES, SEED);
  for (int round = 0; round < 200 && !case_failed(); ++round) {
    const uint32_t asked = 1 + next_random(&random) % 80;  // more than are kept, too
    for (uint32_t i = 0; i < asked; ++i) {
      at[i] = next_random(&random) % (BYTES - 8);
      check_number("prefetch", softub_prefetch(handle, at[i]), URMA_CR_SUCCESS);
    }
    const uint32_t used = next_random(&random) % (asked + 1), first = next_random(&random) % asked;
    for (uint32_t i = 0; i < used; ++i) {
      const uint64_t place = at[round % 2 == 0 ? i : (first + i * 7) % asked];
      uint64_t word = 0;
      check_number("load", softub_load(handle, place, &word, 8), URMA_CR_SUCCESS);
      check_true("a word", memcmp(&word, all + place, 8) == 0);
    }
  }
  check_number("beyond the segment", softub_prefetch(handle, UINT64_MAX), URMA_CR_REM_ACCESS_ABORT_ERR);
  softub_close(handle);  // with lines that nobody used
}

// A line that was asked for is not newer than that, but what may have taken a lock drops it.
static void ahead_order_body(softub_path_t path) {
  softub_aperture_t *handle = open_handle(stage.far, path), *other = open_handle(stage.far, path);
  for (uint64_t turn = 1; turn <= 20 && !case_failed(); ++turn) {
    uint64_t word = 0;
    check_number("prefetch", softub_prefetch(handle, THERE + 64), URMA_CR_SUCCESS);
    check_number("store", softub_store(other, THERE + 64, &turn, 8), URMA_CR_SUCCESS);
    check_number("fence", softub_fence(other), URMA_CR_SUCCESS);
    if (turn % 2 == 0) {
      check_number("atomic", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE + 256, 8, 1, 0, NULL), URMA_CR_SUCCESS);
    } else {
      check_number("invalidate", softub_sync_cache(handle, 0, SOFTUB_TO_THE_END, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
    }
    check_number("load", softub_load(handle, THERE + 64, &word, 8), URMA_CR_SUCCESS);
    check_true("the word that the other one stored", word == turn);
  }
  softub_close(handle);
  softub_close(other);
}

// ---- atomics ----------------------------------------------------------------------------------------------

static uint64_t atomic(softub_aperture_t* handle, softub_atomic_op_t op, uint64_t operand, uint64_t compare) {
  uint64_t old = 0;
  check_number("atomic", softub_atomic(handle, op, THERE, 8, operand, compare, &old), URMA_CR_SUCCESS);
  return old;
}

static void atomics_body(softub_path_t path) {
  softub_aperture_t* handle = open_handle(stage.far, path);
  const uint64_t start = 0x0123456789abcdefu;
  check_number("store", softub_store(handle, THERE, &start, 8), URMA_CR_SUCCESS);
  check_true("CAS that fits", atomic(handle, SOFTUB_ATOMIC_COMPARE_SWAP, 10, start) == start);
  check_true("CAS that does not", atomic(handle, SOFTUB_ATOMIC_COMPARE_SWAP, 11, start) == 10);
  check_true("ADD", atomic(handle, SOFTUB_ATOMIC_ADD, 5, 0) == 10);
  check_true("SUB", atomic(handle, SOFTUB_ATOMIC_SUB, 1, 0) == 15);
  check_true("OR", atomic(handle, SOFTUB_ATOMIC_OR, 0x100, 0) == 14);
  check_true("AND", atomic(handle, SOFTUB_ATOMIC_AND, 0x10f, 0) == 0x10e);
  check_true("XOR", atomic(handle, SOFTUB_ATOMIC_XOR, 0xff, 0) == 0x10e);
  check_true("SWAP", atomic(handle, SOFTUB_ATOMIC_SWAP, 77, 0) == 0x1f1);
  check_number("4 bytes", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE, 4, 1, 0, NULL), URMA_CR_SUCCESS);
  check_true("the result", far_word(THERE) == 78);
  check_number("width 2", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE, 2, 1, 0, NULL),
               URMA_CR_UNSUPPORTED_OPCODE_ERR);
  check_number("width 0", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE, 0, 1, 0, NULL),
               URMA_CR_UNSUPPORTED_OPCODE_ERR);
  check_number("a great width", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE, 8193, 1, 0, NULL),
               URMA_CR_UNSUPPORTED_OPCODE_ERR);
  check_number("8 bytes, not aligned", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE + 4, 8, 1, 0, NULL),
               URMA_CR_REM_UNSUPPORTED_REQ_ERR);
  check_number("4 bytes, not aligned", softub_atomic(handle, SOFTUB_ATOMIC_ADD, THERE + 2, 4, 1, 0, NULL),
               URMA_CR_REM_UNSUPPORTED_REQ_ERR);
  check_number("no operation", softub_atomic(handle, (softub_atomic_op_t)0, THERE, 8, 1, 0, NULL),
               URMA_CR_UNSUPPORTED_OPCODE_ERR);
  softub_close(handle);
}

// ---- order ------------------------------------------------------------------------------------------------

// What is written by one way is seen by all others once it is over.
static void order_body(softub_path_t path) {
  softub_aperture_t *one = open_handle(stage.far, path), *two = softub_dup(one);
  need(two != NULL, "softub_dup");
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  uint64_t word = 0;
  for (uint64_t i = 1; i <= 60 && !case_failed(); ++i) {
    check_number("store", softub_store(one, THERE, &i, 8), URMA_CR_SUCCESS);
    check_number("load", softub_load(one, THERE, &word, 8), URMA_CR_SUCCESS);
    check_true("a load sees the store of its own handle", word == i);
    check_number("fence", softub_fence(one), URMA_CR_SUCCESS);
    check_number("load", softub_load(two, THERE, &word, 8), URMA_CR_SUCCESS);
    check_true("a load sees a fenced store of another handle", word == i);

    struct request r = request_to(&p.far, URMA_OPC_READ, 8);
    r.there = far_address(THERE);
    check_status("READ", run(&p.q, &r), URMA_CR_SUCCESS);
    check_true("a READ sees a fenced store", memcmp(stage.bytes, &i, 8) == 0);

    word = i + 1000;
    memcpy(stage.bytes, &word, 8);
    r = request_to(&p.far, URMA_OPC_WRITE, 8);
    r.there = far_address(THERE);
    check_status("WRITE", run(&p.q, &r), URMA_CR_SUCCESS);
    check_number("load", softub_load(two, THERE, &word, 8), URMA_CR_SUCCESS);
    check_true("a load sees a WRITE that has completed", word == i + 1000);
  }
  far_set_word(THERE, 4711);
  check_number("load", softub_load(one, THERE, &word, 8), URMA_CR_SUCCESS);
  check_true("a load sees what the owner wrote", word == 4711);
  close_pair(&p);
  softub_close(one);
  softub_close(two);
}

struct worker {
  softub_aperture_t* handle;
  uint32_t number;
  bool good;
};

// Each thread has a word of its own in every line.
static void* work(void* what) {
  struct worker* w = what;
  w->good = true;
  for (uint64_t round = 1; round <= ROUNDS && w->good; ++round) {
    for (uint32_t line = 0; line < 16; ++line) {
      const uint64_t at = THERE + line * 64 + w->number * 8, value = round << 8 | line;
      uint64_t word = 0;
      w->good &= softub_store(w->handle, at, &value, 8) == URMA_CR_SUCCESS;
      w->good &= softub_load(w->handle, at, &word, 8) == URMA_CR_SUCCESS && word == value;
    }
    uint64_t old;
    w->good &= softub_atomic(w->handle, SOFTUB_ATOMIC_ADD, THERE + 4096, 8, 1, 0, &old) == URMA_CR_SUCCESS;
  }
  w->good &= softub_fence(w->handle) == URMA_CR_SUCCESS;
  return NULL;
}

static void threads_body(softub_path_t path) {
  struct worker workers[THREADS];
  pthread_t threads[THREADS];
  far_set_word(THERE + 4096, 0);
  for (uint32_t i = 0; i < THREADS; ++i) workers[i] = (struct worker){open_handle(stage.far, path), i, false};
  for (uint32_t i = 0; i < THREADS; ++i) need(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "a thread");
  for (uint32_t i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    check_true("what a thread loaded", workers[i].good);
    softub_close(workers[i].handle);
  }
  check_true("each atomic was executed once", far_word(THERE + 4096) == THREADS * ROUNDS);
}

// ---- line caches ------------------------------------------------------------------------------------------

static uint64_t load_word(softub_aperture_t* handle, uint64_t at) {
  uint64_t word = 0;
  check_number("load", softub_load(handle, at, &word, 8), URMA_CR_SUCCESS);
  return word;
}

static void store_word(softub_aperture_t* handle, uint64_t at, uint64_t word) {
  check_number("store", softub_store(handle, at, &word, 8), URMA_CR_SUCCESS);
}

static void fence(softub_aperture_t* handle) { check_number("fence", softub_fence(handle), URMA_CR_SUCCESS); }

static void invalidate(softub_aperture_t* handle) {
  check_number("invalidate", softub_sync_cache(handle, 0, SOFTUB_TO_THE_END, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
}

// What a cached handle and an uncached one see of each other's stores.
static void cached_order_body(softub_path_t path) {
  const softub_cache_t cache = cache_of_handles;
  softub_aperture_t* cached = open_handle(stage.far, path);
  cache_of_handles = SOFTUB_CACHE_NONE;
  softub_aperture_t* plain = open_handle(stage.far, path);
  cache_of_handles = cache;
  far_set_word(THERE, 0);
  far_set_word(THERE + 8, 0);
  for (uint64_t i = 1; i <= 40 && !case_failed(); ++i) {
    const uint64_t before = load_word(cached, THERE);
    store_word(plain, THERE, i);
    fence(plain);
    check_true("a cached line stays as it was", load_word(cached, THERE) == before);
    invalidate(cached);
    check_true("after an invalidation it is what was fenced", load_word(cached, THERE) == i);

    store_word(cached, THERE + 8, i);
    check_true("a load sees the store of its own handle", load_word(cached, THERE + 8) == i);
    if (cache == SOFTUB_CACHE_WRITE_BACK) check_true("others do not yet", load_word(plain, THERE + 8) == i - 1);
    store_word(plain, THERE, i + 1000);
    fence(plain);
    fence(cached);
    check_true("others see it after a fence", load_word(plain, THERE + 8) == i);
    check_true("what they stored beside it stays", load_word(plain, THERE) == i + 1000);
  }
  softub_cache_counts_t counts = {0};
  check_number("counts", softub_get_cache_counts(cached, &counts), URMA_SUCCESS);
  check_true("40 hits at least, and 40 misses", counts.hits >= 40 && counts.misses >= 40);
  check_number("counts of no cache", softub_get_cache_counts(plain, &counts), URMA_EINVAL);
  check_number("nothing to invalidate", softub_sync_cache(plain, 0, 8, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
  softub_close(cached);
  softub_close(plain);
}

// Data first, a fence, then the flag: whoever invalidates and sees the flag sees the data. Both have a cache.
static void message_body(softub_path_t path) {
  softub_aperture_t *writer = open_handle(stage.far, path), *reader = open_handle(stage.far, path);
  far_set_word(THERE, 0);
  for (uint64_t i = 1; i <= 40 && !case_failed(); ++i) {
    store_word(writer, THERE + 640, i);
    fence(writer);
    store_word(writer, THERE, i);
    if (i % 2 == 0) fence(writer);
    invalidate(reader);
    const uint64_t flag = load_word(reader, THERE);
    check_true("no flag before its data", load_word(reader, THERE + 640) >= flag);
    if (i % 2 == 0) check_true("the flag was fenced", flag == i);
  }
  softub_close(writer);
  softub_close(reader);
}

// ---- failures ---------------------------------------------------------------------------------------------

static void expect_refusal(softub_aperture_t* handle, uint64_t at, uint32_t bytes) {
  char buffer[256] = {0};
  check_number("load", softub_load(handle, at, buffer, bytes), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("no store failed", softub_fence(handle), URMA_CR_SUCCESS);
  urma_cr_status_t status = softub_store(handle, at, buffer, bytes);
  if (status == URMA_CR_SUCCESS) status = softub_fence(handle);
  check_number("store", status, URMA_CR_REM_ACCESS_ABORT_ERR);
}

static void expect_works(softub_aperture_t* handle, uint64_t at) {
  uint64_t word = 0x5151;
  check_number("store", softub_store(handle, at, &word, 8), URMA_CR_SUCCESS);
  word = 0;
  check_number("load", softub_load(handle, at, &word, 8), URMA_CR_SUCCESS);
  check_true("the word", word == 0x5151);
  check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
}

static void range_body(softub_path_t path) {
  urma_target_seg_t* seg = far_register(THERE + 10, 1000, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  softub_aperture_t* handle = open_handle(seg, path);
  char buffer[8200];
  expect_works(handle, 992);
  expect_refusal(handle, 993, 8);
  expect_refusal(handle, 1000, 1);
  expect_refusal(handle, UINT64_MAX, 8);
  expect_refusal(handle, UINT64_MAX - 100, 200);
  check_number("0 bytes", softub_load(handle, 0, buffer, 0), URMA_CR_LOC_LEN_ERR);
  check_number("too many bytes", softub_load(handle, 0, buffer, 8193), URMA_CR_LOC_LEN_ERR);
  check_number("too many bytes", softub_store(handle, 0, buffer, 8193), URMA_CR_LOC_LEN_ERR);
  far_prepare(THERE + 10, 1000);
  fill(buffer, 1000, SEED);
  check_number("a store of all of it", softub_store(handle, 0, buffer, 1000), URMA_CR_SUCCESS);
  check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
  check_true("nothing beside it", far_landed(THERE + 10, 1000, SEED));
  softub_close(handle);
  far_unregister(seg);
}

static void access_body(softub_path_t path) {
  urma_target_seg_t* seg = far_register(THERE, 4096, URMA_ACCESS_READ, GOOD_TOKEN);
  softub_aperture_t* handle = open_handle(seg, path);
  uint64_t word = 0;
  far_set_word(THERE, 99);
  check_number("load", softub_load(handle, 0, &word, 8), URMA_CR_SUCCESS);
  check_number("store", softub_store(handle, 0, &word, 8), URMA_CR_SUCCESS);
  check_number("fence", softub_fence(handle), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("the error is told once", softub_fence(handle), URMA_CR_SUCCESS);
  check_number("atomic", softub_atomic(handle, SOFTUB_ATOMIC_ADD, 0, 8, 1, 0, NULL), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_true("nothing was written", far_word(THERE) == 99);
  softub_close(handle);
  far_unregister(seg);
}

static void token_body(softub_path_t path) {
  urma_target_seg_t* seg = far_register(THERE, 4096, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  softub_aperture_t* handle = open_handle(seg, path);
  expect_works(handle, 0);
  check_number("a new token", far_set_segment_token(seg, GOOD_TOKEN + 1, GOOD_TOKEN), URMA_SUCCESS);
  expect_works(handle, 0);
  check_number("the former one no more", far_set_segment_token(seg, GOOD_TOKEN + 1, GOOD_TOKEN + 1), URMA_SUCCESS);
  expect_refusal(handle, 0, 8);
  softub_close(handle);
  far_unregister(seg);
}

static void unregistered_body(softub_path_t path) {
  softub_aperture_t* other = open_handle(stage.far, path);
  urma_target_seg_t* seg = far_register(THERE, 4096, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  softub_aperture_t* handle = open_handle(seg, path);
  expect_works(handle, 0);
  softub_close(handle);
  check_number("unregister", far_unregister(seg), URMA_SUCCESS);
  expect_works(other, THERE);
  softub_close(other);
}

// What leads to the memory of one that is gone fails for good; the memory of its successor is reached by a new import.
static void killed(void) {
  const softub_path_t paths[] = {best_path(), SOFTUB_PATH_QUEUE};
  softub_aperture_t* handles[2];
  uint64_t word = SEED;
  for (int i = 0; i < 2; ++i) expect_works(handles[i] = open_handle(stage.far, paths[i]), THERE);
  far_kill();
  for (int i = 0; i < 2; ++i) check_owner_gone("load", softub_load(handles[i], THERE, &word, 8));
  urma_target_seg_t* former = far_start_again();
  for (int i = 0; i < 2; ++i) {
    check_owner_gone("load again", softub_load(handles[i], THERE, &word, 8));
    const urma_cr_status_t stored = softub_store(handles[i], THERE, &word, 8);
    check_owner_gone("store", stored != URMA_CR_SUCCESS ? stored : softub_fence(handles[i]));
    softub_close(handles[i]);
  }
  check_true("nothing reaches the successor", far_word(THERE) == 0);
  check_number("urma_unimport_seg", urma_unimport_seg(former), URMA_SUCCESS);
}

static void bad_open(void) {
  check_true("NULL", softub_open(NULL, NULL) == NULL && errno == EINVAL);
  check_true("a segment of our own", softub_open(stage.memory, NULL) == NULL && errno == EINVAL);
  const softub_aperture_options_t options = {.path = (softub_path_t)9};
  check_true("another path", softub_open(stage.far, &options) == NULL && errno == EINVAL);
  const softub_aperture_options_t cache = {.cache = (softub_cache_t)3};
  check_true("another cache", softub_open(stage.far, &cache) == NULL && errno == EINVAL);
  const softub_aperture_options_t negative_path = {.path = (softub_path_t)-1};
  check_true("a negative path", softub_open(stage.far, &negative_path) == NULL && errno == EINVAL);
  const softub_aperture_options_t negative_cache = {.cache = (softub_cache_t)-1};
  check_true("a negative cache", softub_open(stage.far, &negative_cache) == NULL && errno == EINVAL);
  softub_aperture_t* handle = softub_open(stage.far, NULL);
  need(handle != NULL, "softub_open");
  check_number("sync without a cache", softub_sync_cache(handle, 0, SOFTUB_TO_THE_END, SOFTUB_FLUSH), URMA_CR_SUCCESS);
  check_number("unknown flags", softub_sync_cache(handle, 0, 64, 128), URMA_CR_LOC_OPERATION_ERR);
  check_number("beyond the segment", softub_sync_cache(handle, UINT64_MAX, 1, SOFTUB_FLUSH), URMA_CR_LOC_LEN_ERR);
  softub_close(handle);
  check_true("dup of nothing", softub_dup(NULL) == NULL && errno == EINVAL);
  softub_cost_t cost;
  check_number("cost of nothing", softub_get_cost(NULL, &cost), URMA_EINVAL);
  softub_close(NULL);
  for (softub_path_t path = SOFTUB_PATH_LANE; path <= SOFTUB_PATH_FRAMES; ++path) {
    if (path == SOFTUB_PATH_QUEUE || path == best_path()) continue;
    const softub_aperture_options_t options = {.path = path};
    const int wanted = path == SOFTUB_PATH_LANE || path == SOFTUB_PATH_FRAMES ? EHOSTUNREACH : EINVAL;
    check_true("a path that does not lead there", softub_open(stage.far, &options) == NULL && errno == wanted);
  }
}

static void cost_body(softub_path_t path) {
  softub_aperture_t* handle = open_handle(stage.far, path);
  softub_cost_t cost = {0};
  check_number("cost", softub_get_cost(handle, &cost), URMA_SUCCESS);
  check_number("path of the cost", cost.path, path);
  check_true("a load takes time", cost.load_ns != 0);
  softub_close(handle);
}

// The child's calls find no path; the parent's handle works on.
static void fork_body(softub_path_t path) {
  softub_aperture_t* handle = open_handle(stage.far, path);
  expect_works(handle, THERE);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t word = 0;
    const bool good = softub_load(handle, THERE, &word, 8) == URMA_CR_LOC_OPERATION_ERR &&
                      softub_store(handle, THERE, &word, 8) == URMA_CR_LOC_OPERATION_ERR &&
                      softub_fence(handle) == URMA_CR_LOC_OPERATION_ERR && softub_dup(handle) == NULL;
    softub_close(handle);
    _exit(good ? 0 : 1);
  }
  int status = 1;
  need(waitpid(child, &status, 0) == child, "waitpid");
  check_true("calls of the child fail", status == 0);
  expect_works(handle, THERE);
  softub_close(handle);
}

// A program has so many lanes, or handles whose packets are frames of their own. The next handle takes a queue.
enum { MOST_HANDLES = 256 };

static void more_than_there_are(void) {
  const softub_path_t best = best_path();
  if (best == SOFTUB_PATH_QUEUE) return;
  static softub_aperture_t* handles[MOST_HANDLES + 1];
  for (int i = 0; i <= MOST_HANDLES; ++i) {
    handles[i] = softub_open(stage.far, NULL);
    need(handles[i] != NULL, "softub_open");
    check_number("path", handles[i]->path, i < MOST_HANDLES ? best : SOFTUB_PATH_QUEUE);
  }
  const softub_aperture_options_t only_best = {.path = best};
  errno = 0;
  check_true("one more is refused", softub_open(stage.far, &only_best) == NULL && errno == EHOSTUNREACH);
  for (int i = 0; i <= MOST_HANDLES; ++i) expect_works(handles[i], THERE);
  softub_close(handles[0]);
  // The NIC at the other end notices that in its own time.
  for (int tries = 0; tries < 300 && (handles[0] = softub_open(stage.far, &only_best)) == NULL; ++tries) usleep(10000);
  need(handles[0] != NULL, "a handle in the place of one that is closed");
  expect_works(handles[0], THERE);
  for (int i = 0; i <= MOST_HANDLES; ++i) softub_close(handles[i]);
}

// ---- calls that are left by a jump ------------------------------------------------------------------------

static sigjmp_buf after_fault;

static void leave(int signal) { siglongjmp(after_fault, signal); }

enum { MOST_LINES = 40 };

// Each kind of call, with a buffer that cannot be accessed.
static void call_with(softub_aperture_t* handle, int kind, char* nowhere) {
  static const uint32_t sizes[] = {8, 64, 4096};
  static uint64_t at[MOST_LINES];
  for (int i = 0; i < MOST_LINES; ++i) at[i] = 4096 + 64u * (unsigned)i;
  const uint32_t bytes = sizes[kind % 3];
  if (kind < 3) {
    softub_load(handle, 4096, nowhere, bytes);
  } else if (kind < 6) {
    softub_store(handle, 4096, nowhere, bytes);
  } else {
    softub_load_many(handle, at, kind == 6 ? MOST_LINES : 1, nowhere);
  }
}

static void expect_whole(softub_aperture_t* handle, uint32_t seed) {
  static char expected[BYTES], got[8192];
  fill(expected, BYTES, seed);
  for (uint64_t at = 0; at < BYTES; at += sizeof got) {
    memset(got, 0, sizeof got);
    check_number("load", softub_load(handle, at, got, sizeof got), URMA_CR_SUCCESS);
    check_true("bytes", memcmp(got, expected + at, sizeof got) == 0);
    check_number("a line", softub_load(handle, at + 64, got, 64), URMA_CR_SUCCESS);
    check_true("its bytes", memcmp(got, expected + at + 64, 64) == 0);
  }
}

// A store comes next and is waited for: it is there, and nothing comes late into the buffer of the call that was left.
static void expect_fence(softub_aperture_t* handle, uint64_t word, bool fence_first, char* nowhere) {
  need(mprotect(nowhere, BYTES, PROT_READ | PROT_WRITE) == 0, "mprotect");
  memset(nowhere, 0x77, 8192);
  if (fence_first) check_number("a fence alone", softub_fence(handle), URMA_CR_SUCCESS);
  check_number("store", softub_store(handle, BYTES, &word, 8), URMA_CR_SUCCESS);
  check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
  check_true("the peer has it", far_word(BYTES) == word);
  for (int i = 0; i < 8192; ++i) check_true("the buffer", nowhere[i] == 0x77);
  need(mprotect(nowhere, BYTES, PROT_NONE) == 0, "mprotect");
}

static void left_body(softub_path_t path) {
  const struct sigaction ours = {.sa_handler = leave};
  struct sigaction before;
  sigaction(SIGSEGV, &ours, &before);
  softub_aperture_t* handle = open_handle(stage.far, path);
  char* nowhere = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(nowhere != MAP_FAILED, "mmap");
  far_fill(0, BYTES, SEED);
  for (volatile int turn = 0; turn < 24; ++turn) {
    if (sigsetjmp(after_fault, 1) == 0) {
      call_with(handle, turn % 8, nowhere);
      check_true("the buffer cannot be accessed", false);
    }
    if (turn < 16) expect_fence(handle, SEED + (uint64_t)turn, turn < 8, nowhere);
    expect_whole(handle, SEED);
    check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
  }
  munmap(nowhere, BYTES);
  softub_close(handle);
  sigaction(SIGSEGV, &before, NULL);
}

// ---- after the library ------------------------------------------------------------------------------------

static softub_aperture_t* left_over;

// One with a queue would keep the context from being deleted.
static void leave_one(void) {
  if (best_path() != SOFTUB_PATH_QUEUE) left_over = open_handle(stage.far, best_path());
}

static void after_the_end(void) {
  if (left_over == NULL) return;
  check_true("open", softub_open(stage.far, NULL) == NULL && errno == ENODEV);
  softub_close(left_over);
}

static void integrity(void) { for_each_path(integrity_body); }
static void beside(void) { for_each_path(beside_body); }
static void many(void) { for_each_path(many_body); }
static void ahead(void) {
  for_each_path(ahead_body);
  for_each_cache(ahead_body);
  for_each_path(ahead_order_body);
}
static void atomics(void) { for_each_path(atomics_body); }
static void order(void) { for_each_path(order_body); }
static void threads(void) { for_each_path(threads_body); }
static void range(void) { for_each_path(range_body); }
static void access_rights(void) { for_each_path(access_body); }
static void token(void) { for_each_path(token_body); }
static void unregistered(void) { for_each_path(unregistered_body); }
static void cost(void) { for_each_path(cost_body); }
static void forks(void) { for_each_path(fork_body); }
static void left(void) { for_each_path(left_body); }

static void cached_bytes(void) {
  for_each_cache(integrity_body);
  for_each_cache(beside_body);
  for_each_cache(many_body);
  for_each_cache(threads_body);
}
static void cached_order(void) {
  for_each_cache(cached_order_body);
  for_each_cache(message_body);
  for_each_cache(atomics_body);
}
static void cached_failures(void) {
  for_each_cache(range_body);
  for_each_cache(access_body);
  for_each_cache(unregistered_body);
  for_each_cache(cost_body);
  for_each_cache(fork_body);
}

static const struct test_case cases[] = {
    {"bytes are right", integrity},
    {"no byte beside a store", beside},
    {"many lines at once", many},
    {"lines that are asked for ahead", ahead},
    {"atomics", atomics},
    {"what a load sees", order},
    {"threads with handles of their own", threads},
    {"range", range},
    {"access that was not granted", access_rights},
    {"a new token", token},
    {"unregistered by the peer", unregistered},
    {"a line cache: bytes", cached_bytes},
    {"a line cache: what is seen, and when", cached_order},
    {"a line cache: failures", cached_failures},
    {"bad arguments", bad_open},
    {"cost", cost},
    {"fork", forks},
    {"more handles than there are", more_than_there_are},
    {"calls that are left by a jump", left},
    {"the owner is killed, and another comes", killed},
    {"its bytes are right", integrity},
    {"atomics of its bytes", atomics},
    {"what a load of it sees", order},
    {"a line cache of its bytes", cached_order},
    {"a handle that is left open", leave_one},
};
static const struct test_case finale = {"after urma_uninit", after_the_end};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, &finale); }
