// SPDX-License-Identifier: Apache-2.0
//
// A thread that is cancelled inside a data call leaves the library as any other moment would: the next caller gets in,
// and an event is either taken or still there. Usage: cancelled --loopback | --processes.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define ROUNDS 150
#define BATCH 8
#define OURS 1000  // user_ctx of the requests that must succeed; that of the others is smaller

static struct remote* peer;
static struct queue queue;
static urma_jfce_t* channel;
static urma_target_seg_t* memory;
static char* bytes;

static struct request write_of(uint64_t user_ctx) {
  return (struct request){.op = URMA_OPC_WRITE,
                          .to = peer->work,
                          .local = memory,
                          .remote = peer->all,
                          .here = (uint64_t)(uintptr_t)bytes,
                          .there = peer->offer.all.ubva.va,
                          .bytes = 8,
                          .user_ctx = user_ctx};
}

static void* post_and_poll(void* unused) {
  (void)unused;
  urma_cr_t records[BATCH];
  for (uint64_t n = 0;; ++n) {
    const struct request r = write_of(n % OURS);
    post(&queue, &r);  // a full queue refuses it
    for (int i = 0; i < 20; ++i) {
      if (urma_poll_jfc(queue.jfc, BATCH, records) < 0) abort();
    }
    pthread_testcancel();
  }
}

// Posts until there is room, and waits until that request is completed.
static void work(uint64_t user_ctx) {
  const struct request r = write_of(user_ctx);
  urma_cr_t record;
  const double end = now() + PATIENCE;
  while (post(&queue, &r) != URMA_SUCCESS && now() < end) urma_poll_jfc(queue.jfc, 1, &record);
  int status;
  do status = wait_on(queue.jfc, PATIENCE, &record);
  while (status != NOTHING && record.user_ctx != user_ctx);
  check_status("a request after the cancelled thread", status, URMA_CR_SUCCESS);
}

static bool cancelled_posting_and_polling(void) {
  begin_case("cancelled while it posts and polls");
  urma_context_t* context = queue.jfc->urma_ctx;
  for (int round = 0; round < ROUNDS && !case_failed(); ++round) {
    pthread_t thread;
    need(pthread_create(&thread, NULL, post_and_poll, NULL) == 0, "pthread_create");
    usleep((useconds_t)(500 + round * 37 % 2000));
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    urma_jfc_cfg_t cfg = {.depth = 16};
    urma_jfc_t* another = urma_create_jfc(context, &cfg);
    check_true("urma_create_jfc", another != NULL);
    if (another != NULL) check_number("urma_delete_jfc", urma_delete_jfc(another), URMA_SUCCESS);
    work(OURS + (uint64_t)round);
  }
  return end_case();
}

static void* post_while_cancelled(void* unused) {
  (void)unused;
  pthread_cancel(pthread_self());
  const struct request r = write_of(0);
  post(&queue, &r);
  pthread_testcancel();
  return NULL;
}

// Whoever posts rings who sleeps, and the next one relies on it: a ring that is lost costs seconds, until who sleeps
// wakes for another reason.
static bool cancelled_ringing(void) {
  begin_case("cancelled while it rings");
  const double end = now() + PATIENCE;
  for (int round = 0; round < 5 && !case_failed(); ++round) {
    rest_ms(60);  // whoever drives for us sleeps by now
    pthread_t thread;
    need(pthread_create(&thread, NULL, post_while_cancelled, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    work(OURS + (uint64_t)round);
  }
  check_true("done in time", now() < end);
  return end_case();
}

static atomic_int taken;

static void* take_while_cancelled(void* unused) {
  (void)unused;
  urma_jfc_t* jfc;
  pthread_cancel(pthread_self());
  atomic_store(&taken, urma_wait_jfc(channel, 1, 1000, &jfc));
  return NULL;
}

static void acknowledge(urma_jfc_t* jfc) {
  uint32_t one = 1;
  urma_ack_jfc(&jfc, &one, 1);
}

static bool cancelled_taking_an_event(void) {
  begin_case("cancelled with an event there");
  check_number("urma_rearm_jfc", urma_rearm_jfc(queue.jfc, false), URMA_SUCCESS);
  const struct request r = write_of(OURS);
  check_status("WRITE", run(&queue, &r), URMA_CR_SUCCESS);
  pthread_t thread;
  need(pthread_create(&thread, NULL, take_while_cancelled, NULL) == 0, "pthread_create");
  pthread_join(thread, NULL);
  urma_jfc_t* jfc;
  const int here = urma_wait_jfc(channel, 1, 0, &jfc);
  check_number("events taken, by the cancelled thread or after it", atomic_load(&taken) + here, 1);
  acknowledge(queue.jfc);  // whoever took it: or the JFC could not be deleted
  return end_case();
}

// No event is taken unseen: from where urma_wait_jfc returns until it is acknowledged nothing can be cancelled.
static void* arm_and_wait(void* unused) {
  (void)unused;
  urma_cr_t records[BATCH];
  urma_jfc_t* jfc;
  for (uint64_t n = 0;; ++n) {
    if (urma_rearm_jfc(queue.jfc, false) != URMA_SUCCESS) abort();
    const struct request r = write_of(n % OURS);
    post(&queue, &r);
    if (urma_wait_jfc(channel, 1, 20, &jfc) > 0) acknowledge(jfc);
    if (urma_poll_jfc(queue.jfc, BATCH, records) < 0) abort();
  }
}

static bool cancelled_arming_and_waiting(void) {
  begin_case("cancelled while it arms and waits");
  for (int round = 0; round < ROUNDS && !case_failed(); ++round) {
    pthread_t thread;
    need(pthread_create(&thread, NULL, arm_and_wait, NULL) == 0, "pthread_create");
    usleep((useconds_t)(500 + round * 37 % 2000));
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    work(OURS + (uint64_t)round);
    urma_jfc_t* jfc;
    check_number("urma_rearm_jfc", urma_rearm_jfc(queue.jfc, false), URMA_SUCCESS);
    while (urma_wait_jfc(channel, 1, 0, &jfc) > 0) acknowledge(jfc);
  }
  return end_case();
}

static atomic_bool polled_enough;

// Nothing here is a cancellation point but what the library may call.
static void* poll_only(void* unused) {
  (void)unused;
  urma_cr_t records[BATCH];
  while (!atomic_load(&polled_enough)) {
    if (urma_poll_jfc(queue.jfc, BATCH, records) < 0) abort();
  }
  return NULL;
}

// Links to the dead are taken down by whoever drives.
static bool cancelled_while_a_peer_dies(urma_context_t* context) {
  begin_case("cancelled while a peer dies");
  struct remote* doomed = start_peer(context, false);
  struct request r = write_of(OURS);
  r.to = doomed->work;
  r.remote = doomed->all;
  r.there = doomed->offer.all.ubva.va;
  check_status("WRITE", run(&queue, &r), URMA_CR_SUCCESS);
  pthread_t thread;
  need(pthread_create(&thread, NULL, poll_only, NULL) == 0, "pthread_create");
  rest_ms(20);
  pthread_cancel(thread);
  kill(doomed->pid, SIGKILL);
  rest_ms(200);
  bury_peer(doomed);
  atomic_store(&polled_enough, true);
  pthread_join(thread, NULL);
  work(OURS);
  return end_case();
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--peer") == 0) return serve_orders(0);
  const bool loopback = argc > 1 && strcmp(argv[1], "--loopback") == 0;
  alarm(100);
  urma_context_t* context = open_nic();
  bytes = aligned_alloc(4096, 4096);
  memset(bytes, 0, 4096);
  memory = register_memory(context, bytes, 4096, URMA_ACCESS_LOCAL_ONLY);
  peer = start_peer(context, loopback);
  channel = urma_create_jfce(context);
  need(channel != NULL, "urma_create_jfce");
  queue = open_queue(context, (struct queue_options){.channel = channel});

  int failed = 0;
  failed += !cancelled_posting_and_polling();
  failed += !cancelled_ringing();
  failed += !cancelled_taking_an_event();
  failed += !cancelled_arming_and_waiting();
  if (!loopback) failed += !cancelled_while_a_peer_dies(context);
  begin_case("tear-down");
  close_queue(&queue);
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(memory), URMA_SUCCESS);
  stop_peer(peer);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  free(bytes);
  return failed != 0;
}
