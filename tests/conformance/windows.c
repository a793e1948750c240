// SPDX-License-Identifier: Apache-2.0
//
// Remote memory at addresses of one's own (softub_map): cached and uncached windows, on each path. Usage: see far.h.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <softub_aperture.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/far.h"

#define PAGE 4096u
#define OFFSET (16 * PAGE)  // of windows in the peer's memory
#define BYTES (64 * PAGE)
#define SEED 11
#define THREADS 3

// ---- ways and paths ---------------------------------------------------------------------------------------

static softub_path_t path;
static softub_way_t way = SOFTUB_WAY_CACHED;

static char* map(uint64_t bytes, uint64_t cache, softub_policy_t policy, uint32_t flags) {
  softub_map_options_t options = {.offset = OFFSET, .bytes = bytes, .way = way, .policy = policy, .path = path};
  options.cache_bytes = cache, options.flags = flags;
  char* window = softub_map(stage.far, &options);
  need(window != NULL, "softub_map");
  return window;
}

static void unmap(char* window) { check_number("unmap", softub_unmap(window), URMA_SUCCESS); }

// What was written is with the peer.
static void flush(char* window, uint64_t bytes) {
  check_number("flush", softub_sync(window, bytes, SOFTUB_FLUSH), URMA_CR_SUCCESS);
}

static void for_each_way(void (*body)(void)) {
  const softub_path_t paths[] = {best_path(), SOFTUB_PATH_QUEUE};
  for (int w = 0; w < 2; ++w) {
    for (int p = paths[0] == SOFTUB_PATH_QUEUE ? 1 : 0; p < 2; ++p) {
      way = w == 0 ? SOFTUB_WAY_CACHED : SOFTUB_WAY_UNCACHED;
      path = paths[p];
      char variant[40];
      snprintf(variant, sizeof variant, "%s, %s", w == 0 ? "cached" : "uncached", path_name(path));
      in_variant(variant);
      body();
    }
  }
  in_variant(NULL);
}

static void for_cached(void (*body)(void)) {
  way = SOFTUB_WAY_CACHED;
  path = best_path();
  body();
}

// ---- bytes ------------------------------------------------------------------------------------------------

// Words at random places, against a model; the cache holds an eighth of it.
static void integrity_body(void) {
  const uint64_t bytes = way == SOFTUB_WAY_CACHED ? BYTES : 2 * PAGE;
  const int least = way == SOFTUB_WAY_CACHED ? 4000 : 1500;
  const int rounds = path == SOFTUB_PATH_LANE && way == SOFTUB_WAY_CACHED ? 20000 : least;
  far_fill(OFFSET, bytes, SEED);
  char* model = malloc(bytes);
  need(model != NULL, "memory");
  fill(model, bytes, SEED);
  char* window = map(bytes, BYTES / 8, SOFTUB_WRITE_BACK, 0);
  uint32_t random = SEED;
  for (int i = 0; i < rounds && !case_failed(); ++i) {
    const uint64_t at = next_random(&random) % (bytes / 8) * 8, value = next_random(&random);
    if (next_random(&random) % 2 == 0) {
      *(volatile uint64_t*)(window + at) = value;
      memcpy(model + at, &value, 8);
    } else {
      const uint64_t got = *(volatile uint64_t*)(window + at);
      check_true("a word", memcmp(&got, model + at, 8) == 0);
    }
  }
  unmap(window);
  softub_aperture_t* handle = softub_open(stage.far, NULL);
  char* all = malloc(bytes);
  need(handle != NULL && all != NULL, "a handle and memory");
  for (uint64_t at = 0; at < bytes; at += PAGE) softub_load(handle, OFFSET + at, all + at, PAGE);
  check_true("the peer's memory", memcmp(all, model, bytes) == 0);
  softub_close(handle);
  free(all);
  free(model);
}

// Two windows write different bytes of one page.
static void two_windows_body(void) {
  far_fill(OFFSET, PAGE, SEED);
  char *one = map(PAGE, 0, SOFTUB_WRITE_BACK, 0), *two = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  for (int i = 0; i < 200; ++i) {
    ((volatile char*)one)[i * 2] = (char)i;
    ((volatile char*)two)[i * 2 + 1] = (char)(i + 100);
  }
  flush(one, PAGE);
  flush(two, PAGE);
  unmap(one);
  unmap(two);
  char* window = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  bool good = true;
  for (int i = 0; i < 200; ++i) good &= window[i * 2] == (char)i && window[i * 2 + 1] == (char)(i + 100);
  check_true("no byte was lost", good);
  unmap(window);
}

// What one has flushed, the other one sees once it has dropped its page.
static void visibility_body(void) {
  char* window = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  volatile uint64_t* word = (volatile uint64_t*)(window + 64);
  far_set_word(OFFSET + 64, 7);
  check_true("what the peer wrote", *word == 7);
  far_set_word(OFFSET + 64, 8);
  check_number("invalidate", softub_sync(window, PAGE, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
  check_true("what it wrote later", *word == 8);
  *word = 9;
  flush(window, PAGE);
  check_true("what we wrote", far_word(OFFSET + 64) == 9);
  unmap(window);
}

// ---- cached -----------------------------------------------------------------------------------------------

static void write_through_body(void) {
  char* window = map(4 * PAGE, 0, SOFTUB_WRITE_THROUGH, 0);
  far_set_word(OFFSET + PAGE, 1);
  *(volatile uint64_t*)(window + PAGE) = 0x77;
  const double end = now() + PATIENCE;
  while (far_word(OFFSET + PAGE) != 0x77 && now() < end) rest_ms(1);
  check_true("it arrives by itself", far_word(OFFSET + PAGE) == 0x77);
  unmap(window);
}

static void owning_body(void) {
  char* window = map(4 * PAGE, 0, SOFTUB_WRITE_BACK, 0);
  volatile uint64_t* word = (volatile uint64_t*)window;
  far_set_word(OFFSET, 1);
  check_true("as it was", *word == 1);
  far_set_word(OFFSET, 2);
  check_number("to write", softub_own(window, PAGE, SOFTUB_OWN_WRITE), URMA_CR_SUCCESS);
  check_true("gaining drops what is old", *word == 2);
  *word = 3;
  check_number("to read", softub_own(window, PAGE, SOFTUB_OWN_READ), URMA_CR_SUCCESS);
  check_true("losing the right to write sends", far_word(OFFSET) == 3);
  check_number("no such right", softub_own(window, PAGE, (softub_owned_t)-1), URMA_CR_LOC_OPERATION_ERR);
  check_number("not at all", softub_own(window, PAGE, SOFTUB_OWN_NONE), URMA_CR_SUCCESS);
  far_set_word(OFFSET, 4);
  check_true("losing the right to read drops", *word == 4);
  unmap(window);
}

static void system_calls_body(void) {
  char* window = map(4 * PAGE, 0, SOFTUB_WRITE_BACK, 0);
  const int file = open("/dev/zero", O_RDONLY), sink = open("/dev/null", O_WRONLY);
  need(file >= 0 && sink >= 0, "/dev/zero and /dev/null");
  far_fill(OFFSET, 2 * PAGE, SEED);
  check_true("EFAULT before", read(file, window + PAGE, 100) < 0 && errno == EFAULT);
  check_number("writable", softub_sync(window + PAGE, 100, SOFTUB_WRITABLE), URMA_CR_SUCCESS);
  check_true("read", read(file, window + PAGE, 100) == 100);
  flush(window, 4 * PAGE);
  check_true("what it read is with the peer", far_word(OFFSET + PAGE) == 0);
  close(file);
  close(sink);
  unmap(window);
}

static void counts_body(void) {
  char* window = map(BYTES, BYTES / 4, SOFTUB_WRITE_BACK, 0);
  for (uint64_t at = 0; at < BYTES; at += PAGE) ((volatile char*)window)[at] += 1;
  softub_window_counts_t counts;
  check_number("counts", softub_get_window_counts(window, &counts), URMA_SUCCESS);
  check_true("faults", counts.missing_faults + counts.prefetched_pages >= BYTES / PAGE);
  check_true("evictions", counts.evicted_pages >= BYTES / PAGE / 2);
  check_true("times", counts.missing_p50_ns != 0 && counts.missing_p99_ns >= counts.missing_p50_ns);
  check_number("of no window", softub_get_window_counts(&counts, &counts), URMA_EINVAL);
  unmap(window);
}

// ---- uncached ---------------------------------------------------------------------------------------------

static void* count_up(void* word) {
  for (int i = 0; i < 50; ++i) __atomic_fetch_add((uint64_t*)word, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void atomics_body(void) {
  if (way != SOFTUB_WAY_UNCACHED) return;
  char* window = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  uint64_t* word = (uint64_t*)(window + 128);
  *(volatile uint64_t*)word = 0;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) need(pthread_create(&threads[i], NULL, count_up, word) == 0, "a thread");
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  check_true("each was executed once", *(volatile uint64_t*)word == THREADS * 50);
  check_true("and the peer sees it", far_word(OFFSET + 128) == THREADS * 50);
  unmap(window);
}

// ---- failures ---------------------------------------------------------------------------------------------

static softub_fault_t last_fault;
static int handler_calls;
static sigjmp_buf after_fault;

static bool remember(const softub_fault_t* fault, void* context) {
  check_true("the context", context == &last_fault);
  last_fault = *fault;
  ++handler_calls;
  return false;
}

// Installed before the first window: what a window does not serve comes here.
static void leave(int signal) {
  (void)signal;
  siglongjmp(after_fault, 1);
}

static void install_handler(void) {
  struct sigaction action = {.sa_handler = leave};
  need(sigaction(SIGBUS, &action, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
}

// An access fails, after the program's handler was asked. Which cause was it told?
static int cause_of_fault(char* at, bool is_write) {
  handler_calls = 0;
  if (sigsetjmp(after_fault, 1) == 0) {
    if (is_write) *(volatile char*)at = 1;
    if (!is_write) (void)*(volatile char*)at;
    check_true("an access that must fail", false);
    return NOTHING;
  }
  check_number("calls of the handler", handler_calls, 1);
  check_true("address", last_fault.address == at);
  return (int)last_fault.cause;
}

static void expect_fault(char* at, bool is_write, int cause) {
  check_number("cause", cause_of_fault(at, is_write), cause);
}

static void faults_body(void) {
  urma_target_seg_t* seg = far_register(OFFSET, 4 * PAGE, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  const softub_map_options_t options = {.way = way, .path = path};
  char *window = softub_map(seg, &options), *other = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  need(window != NULL, "softub_map");
  check_number("handler", softub_on_fault(window, remember, &last_fault), URMA_SUCCESS);
  ((volatile char*)window)[5] = 5;
  check_number("drop", softub_sync(window, 4 * PAGE, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
  check_number("another token", far_set_segment_token(seg, GOOD_TOKEN + 1, GOOD_TOKEN + 1), URMA_SUCCESS);
  expect_fault(window + 5, false, URMA_CR_REM_ACCESS_ABORT_ERR);
  expect_fault(window + PAGE, true, URMA_CR_REM_ACCESS_ABORT_ERR);
  ((volatile char*)other)[3] = 3;
  check_true("other windows go on", other[3] == 3);
  check_number("the token again", far_set_segment_token(seg, GOOD_TOKEN, GOOD_TOKEN), URMA_SUCCESS);
  check_true("and so does this one", window[5] == 5);
  unmap(window);
  unmap(other);
  far_unregister(seg);
}

static void read_only_body(void) {
  char* window = map(PAGE, 0, SOFTUB_WRITE_BACK, SOFTUB_MAP_READ_ONLY);
  check_number("handler", softub_on_fault(window, remember, &last_fault), URMA_SUCCESS);
  far_set_word(OFFSET, 0x42);
  check_true("a read", *(volatile uint64_t*)window == 0x42);
  expect_fault(window + 9, true, URMA_CR_LOC_ACCESS_ERR);
  check_true("nothing was written", far_word(OFFSET) == 0x42);
  unmap(window);
}

static void no_segment_body(void) {
  char* window = map(2 * PAGE, 0, SOFTUB_WRITE_BACK, 0);
  urma_seg_cfg_t cfg = {.va = (uint64_t)(uintptr_t)window + 2 * PAGE - 1, .len = 1};
  cfg.flag.bs.access = URMA_ACCESS_READ;
  errno = 0;
  check_true("its last byte", urma_register_seg(stage.context, &cfg) == NULL && errno == EINVAL);
  cfg.va = (uint64_t)(uintptr_t)window - 1, cfg.len = 2;
  errno = 0;
  check_true("its first byte", urma_register_seg(stage.context, &cfg) == NULL && errno == EINVAL);
  unmap(window);
}

// What leads to the memory of one that is gone fails for good; the memory of its successor is reached by a new import.
static void killed_body(void) {
  char *window = map(4 * PAGE, 0, SOFTUB_WRITE_BACK, 0), *clean = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  check_number("handler", softub_on_fault(window, remember, &last_fault), URMA_SUCCESS);
  ((volatile char*)window)[5] = 5;
  urma_target_seg_t* former = NULL;
  far_kill();
  const bool cached = way == SOFTUB_WAY_CACHED;
  for (int turn = 0; turn < 2; ++turn) {
    check_owner_gone("a read", cause_of_fault(window + PAGE, false));
    check_owner_gone("a write", cause_of_fault(window + 2 * PAGE, true));
    if (cached) check_true("a page that is there", ((volatile char*)window)[5] == 5);
    if (cached) check_owner_gone("flush", softub_sync(window, PAGE, SOFTUB_FLUSH));
    if (turn == 0) former = far_start_again();
  }
  check_number("unmap of what cannot be written back", softub_unmap(window), cached ? URMA_FAIL : URMA_SUCCESS);
  unmap(clean);
  check_true("nothing reaches the successor", far_word(OFFSET) == 0);
  check_number("urma_unimport_seg", urma_unimport_seg(former), URMA_SUCCESS);
}

static void fork_body(void) {
  char* window = map(PAGE, 0, SOFTUB_WRITE_BACK, 0);
  ((volatile char*)window)[0] = 5;
  const pid_t child = fork();
  if (child == 0) {
    if (sigsetjmp(after_fault, 1) != 0) _exit(0);
    ((volatile char*)window)[0] = 1;
    _exit(1);
  }
  int status = 1;
  need(waitpid(child, &status, 0) == child, "waitpid");
  check_true("a child has no window", status == 0);
  check_true("the parent has it", window[0] == 5);
  unmap(window);
}

static void bad_options(void) {
  softub_map_options_t options = {.offset = 1};
  check_true("NULL", softub_map(NULL, NULL) == NULL && errno == EINVAL);
  check_true("our own", softub_map(stage.memory, NULL) == NULL && errno == EINVAL);
  check_true("offset", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.offset = PAGE, .bytes = UINT64_MAX};
  check_true("beyond the segment", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.way = (softub_way_t)7};
  check_true("way", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.way = (softub_way_t)-1};
  check_true("a negative way", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.policy = (softub_policy_t)-1};
  check_true("a negative policy", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.path = (softub_path_t)-1};
  check_true("a negative path", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.way = SOFTUB_WAY_UNCACHED, .flags = SOFTUB_MAP_OWNED};
  check_true("owned, uncached", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.flags = 64};
  check_true("flags", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.cache_bytes = UINT64_MAX};
  check_true("cache", softub_map(stage.far, &options) == NULL && errno == EINVAL);
  char byte;
  check_number("unmap of no window", softub_unmap(&byte), URMA_EINVAL);
  check_number("sync of no window", softub_sync(&byte, 1, SOFTUB_FLUSH), URMA_CR_LOC_LEN_ERR);
  check_number("own of no window", softub_own(&byte, 1, SOFTUB_OWN_READ), URMA_CR_LOC_LEN_ERR);
  check_number("handler of no window", softub_on_fault(&byte, remember, NULL), URMA_EINVAL);
}

static void integrity(void) { for_each_way(integrity_body); }
static void two_windows(void) { for_each_way(two_windows_body); }
static void visibility(void) { for_each_way(visibility_body); }
static void atomics(void) { for_each_way(atomics_body); }
static void no_segment(void) { for_each_way(no_segment_body); }
static void forks(void) { for_each_way(fork_body); }
static void faults(void) { for_each_way(faults_body); }
static void killed(void) { for_each_way(killed_body); }
static void read_only(void) { for_each_way(read_only_body); }
static void write_through(void) { for_cached(write_through_body); }
static void owning(void) { for_cached(owning_body); }
static void system_calls(void) { for_cached(system_calls_body); }
static void counts(void) { for_cached(counts_body); }

static const struct test_case cases[] = {
    {"bytes are right", integrity},
    {"two windows on a page", two_windows},
    {"what others see", visibility},
    {"atomics", atomics},
    {"write-through", write_through},
    {"ownership", owning},
    {"system calls", system_calls},
    {"counts", counts},
    {"faults that cannot be served", faults},
    {"read-only", read_only},
    {"no segment is of a window", no_segment},
    {"fork", forks},
    {"bad arguments", bad_options},
    {"the owner is killed, and another comes", killed},
    {"its bytes are right", integrity},
    {"what others see of it", visibility},
    {"atomics of its bytes", atomics},
};

int main(int argc, char** argv) {
  install_handler();
  return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
