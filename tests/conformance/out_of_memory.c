// SPDX-License-Identifier: Apache-2.0
//
// An application that has used up its memory: calls answer with an error, the library's own thread goes on, and
// when there is memory again, everything works.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define MANY 100000
#define SKIPPED 77

static urma_context_t* context;
static char* bytes;
static urma_target_seg_t* memory;

struct block {
  struct block* next;
};
static struct block* blocks;

static void limit_address_space(rlim_t limit) {
  struct rlimit r = {limit, RLIM_INFINITY};
  need(setrlimit(RLIMIT_AS, &r) == 0, "setrlimit");
}

static void use_up_memory(void) {
  limit_address_space(1 << 20);  // less than there is: nothing new
  for (size_t size = 1 << 16; size >= sizeof(struct block); size /= 2) {
    for (struct block* b; (b = malloc(size)) != NULL;) {
      b->next = blocks;
      blocks = b;
    }
  }
}

static void give_back_memory(void) {
  limit_address_space(RLIM_INFINITY);
  while (blocks != NULL) {
    struct block* next = blocks->next;
    free(blocks);
    blocks = next;
  }
}

// Registers the same memory until that fails.
static void register_until_it_fails(void) {
  static urma_target_seg_t* segments[MANY];
  int n = 0;
  errno = 0;
  urma_seg_cfg_t cfg = {.va = (uint64_t)(uintptr_t)bytes, .len = 4096, .flag.bs.access = URMA_ACCESS_LOCAL_ONLY};
  while (n < MANY && (segments[n] = urma_register_seg(context, &cfg)) != NULL) ++n;
  if (n < MANY) check_number("errno of urma_register_seg", errno, ENOMEM);
  while (n > 0) check_number("urma_unregister_seg", urma_unregister_seg(segments[--n]), URMA_SUCCESS);
}

static void open_until_it_fails(void) {
  static urma_jfc_t* queues[MANY];
  int n = 0;
  errno = 0;
  urma_jfc_cfg_t cfg = {.depth = 64};
  while (n < MANY && (queues[n] = urma_create_jfc(context, &cfg)) != NULL) ++n;
  check_true("urma_create_jfc fails in the end", n < MANY);
  check_number("errno of urma_create_jfc", errno, ENOMEM);
  while (n > 0) check_number("urma_delete_jfc", urma_delete_jfc(queues[--n]), URMA_SUCCESS);
}

static void work(struct queue* q, urma_target_jetty_t* to) {
  struct request r = {.op = URMA_OPC_WRITE, .to = to, .local = memory, .remote = memory, .bytes = 8};
  r.here = (uint64_t)(uintptr_t)bytes;
  r.there = r.here + 4096;
  for (int i = 0; i < 100; ++i) check_status("WRITE", run(q, &r), URMA_CR_SUCCESS);
}

int main(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  puts("skipped: a sanitizer needs more address space than can be limited");
  return SKIPPED;
#endif
  alarm(60);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  context = open_nic();
  bytes = aligned_alloc(4096, 8192);
  memset(bytes, 0, 8192);
  memory = register_memory(context, bytes, 8192, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  struct queue_options options = {0};
  struct queue q = open_queue(context, options);
  urma_target_jetty_t* self = import_jetty(context, q.jetty->jetty_id, 0, URMA_TM_RM);

  int failed = 0;
  begin_case("without memory");
  use_up_memory();
  rest_ms(600);  // the library's thread wakes up by itself
  work(&q, self);
  register_until_it_fails();
  open_until_it_fails();
  give_back_memory();
  failed += !end_case();
  begin_case("with memory again");
  work(&q, self);
  failed += !end_case();

  begin_case("tear-down");
  check_number("urma_unimport_jetty", urma_unimport_jetty(self), URMA_SUCCESS);
  close_queue(&q);
  check_number("urma_unregister_seg", urma_unregister_seg(memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  free(bytes);
  return failed != 0;
}
