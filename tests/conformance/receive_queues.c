// SPDX-License-Identifier: Apache-2.0
//
// Receive queues at their edges: set to ERROR with receives posted and after, and low water.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define PIECES 5  // of a receive: more than one slot of the queue
#define PIECE_BYTES 16

static urma_context_t* context;
static char* bytes;
static urma_target_seg_t* memory;
static struct queue receiver, sender;
static urma_target_jetty_t* target;

static void post_receive(uint64_t user_ctx) {
  urma_sge_t pieces[PIECES];
  memset(pieces, 0, sizeof pieces);
  for (int i = 0; i < PIECES; ++i) {
    pieces[i].addr = (uint64_t)(uintptr_t)bytes + (uint64_t)i * PIECE_BYTES;
    pieces[i].len = PIECE_BYTES;
    pieces[i].tseg = memory;
  }
  urma_jfr_wr_t wr, *bad = NULL;
  memset(&wr, 0, sizeof wr);
  wr.src.sge = pieces;
  wr.src.num_sge = PIECES;
  wr.user_ctx = user_ctx;
  check_number("urma_post_jfr_wr", urma_post_jfr_wr(receiver.jfr, &wr, &bad), URMA_SUCCESS);
}

static void send_one(void) {
  struct request r;
  memset(&r, 0, sizeof r);
  r.op = URMA_OPC_SEND;
  r.to = target;
  r.local = memory;
  r.here = (uint64_t)(uintptr_t)bytes + 4096;
  r.bytes = 8;
  check_status("SEND", run(&sender, &r), URMA_CR_SUCCESS);
  check_status("its receive", wait_completion(&receiver, 2, NULL), URMA_CR_SUCCESS);
}

static void set_state(urma_jfr_state_t state) {
  urma_jfr_attr_t attr;
  memset(&attr, 0, sizeof attr);
  attr.mask = JFR_STATE;
  attr.state = state;
  check_number("urma_modify_jfr", urma_modify_jfr(receiver.jfr, &attr), URMA_SUCCESS);
}

static void check_flushed(uint64_t user_ctx) {
  urma_cr_t record;
  memset(&record, 0, sizeof record);
  check_status("receive", wait_completion(&receiver, 2, &record), URMA_CR_WR_FLUSH_ERR);
  check_number("its user_ctx", (long long)record.user_ctx, (long long)user_ctx);
}

static void check_silence(void) { check_status("one more", wait_completion(&receiver, 0.05, NULL), NOTHING); }

static void posted_before_and_after_error(void) {
  for (uint64_t i = 0; i < 4; ++i) post_receive(100 + i);
  send_one();
  set_state(URMA_JFR_STATE_ERROR);
  for (uint64_t i = 1; i < 4; ++i) check_flushed(100 + i);
  check_silence();
  post_receive(200);
  check_flushed(200);
  check_silence();
  set_state(URMA_JFR_STATE_READY);
  post_receive(300);
  send_one();
  check_silence();
}

static bool limit_reached(void) {
  struct pollfd waits = {context->async_fd, POLLIN, 0};
  if (poll(&waits, 1, 100) != 1) return false;
  urma_async_event_t event;
  memset(&event, 0, sizeof event);
  if (urma_get_async_event(context, &event) != URMA_SUCCESS) return false;
  check_number("event", event.event_type, URMA_EVENT_JFR_LIMIT);
  check_true("of our queue", event.element.jfr == receiver.jfr);
  urma_ack_async_event(&event);
  return true;
}

static void low_water(void) {
  for (uint64_t i = 0; i < 4; ++i) post_receive(i);
  urma_jfr_attr_t attr;
  memset(&attr, 0, sizeof attr);
  attr.mask = JFR_RX_THRESHOLD;
  attr.rx_threshold = 3;
  check_number("urma_modify_jfr", urma_modify_jfr(receiver.jfr, &attr), URMA_SUCCESS);
  send_one();
  check_true("event with 3 of 3 left", !limit_reached());
  send_one();
  check_true("event with 2 of 3 left", limit_reached());
  send_one();
  check_true("a second event", !limit_reached());
  send_one();
}

int main(void) {
  alarm(60);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  context = open_nic();
  bytes = aligned_alloc(4096, 8192);
  memset(bytes, 0, 8192);
  memory = register_memory(context, bytes, 8192, URMA_ACCESS_LOCAL_ONLY);
  struct queue_options options = {.max_receive_sge = PIECES};
  receiver = open_queue(context, options);
  sender = open_queue(context, options);
  target = import_jetty(context, receiver.jetty->jetty_id, 0, URMA_TM_RM);

  int failed = 0;
  begin_case("posted before and after ERROR");
  posted_before_and_after_error();
  failed += !end_case();
  begin_case("low water");
  low_water();
  failed += !end_case();

  begin_case("tear-down");
  check_number("urma_unimport_jetty", urma_unimport_jetty(target), URMA_SUCCESS);
  close_queue(&sender);
  close_queue(&receiver);
  check_number("urma_unregister_seg", urma_unregister_seg(memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  free(bytes);
  return failed != 0;
}
