// SPDX-License-Identifier: Apache-2.0
//
// Two contexts of one process connect by asynchronous import and bind, and over channels that they chose; then bytes
// go both ways.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define BYTES 4096
#define PATIENCE_MS 10000

// One end: a context with a jetty, memory, and the way to the other end.
struct end {
  urma_context_t* context;
  urma_notifier_t* notifier;
  struct queue queue;
  urma_target_seg_t* memory;
  char* bytes;
  urma_target_jetty_t* other;
};

static struct end left, right;

static void open_end(struct end* e, urma_transport_mode_t mode) {
  struct queue_options options = {.mode = mode};
  e->context = open_nic();
  e->queue = open_queue(e->context, options);
  e->bytes = aligned_alloc(4096, 2 * BYTES);
  e->memory = register_memory(e->context, e->bytes, 2 * BYTES, URMA_ACCESS_LOCAL_ONLY);
  e->notifier = urma_create_notifier(e->context);
  need(e->notifier != NULL, "urma_create_notifier");
}

static void close_end(struct end* e) {
  if (e->notifier != NULL) check_number("urma_delete_notifier", urma_delete_notifier(e->notifier), URMA_SUCCESS);
  close_queue(&e->queue);
  check_number("urma_unregister_seg", urma_unregister_seg(e->memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(e->context), URMA_SUCCESS);
  free(e->bytes);
}

static urma_rjetty_t describe_end(struct end* e, urma_transport_mode_t mode) {
  urma_rjetty_t* own = NULL;
  uint32_t length = 0;
  need(urma_get_rjetty(e->queue.jetty, &own, &length) == URMA_SUCCESS, "urma_get_rjetty");
  urma_rjetty_t description = *own;
  urma_put_rjetty(own);
  description.tp_type = mode == URMA_TM_UM ? URMA_UTP : URMA_RTP;
  return description;
}

// The descriptor tells when a result is there.
static void take_result(struct end* e, urma_notify_type_t type, uint64_t user_ctx) {
  struct pollfd waits = {e->notifier->fd, POLLIN, 0};
  check_number("poll of the notifier", poll(&waits, 1, PATIENCE_MS), 1);
  urma_notify_t got = {.status = URMA_FAIL};
  check_number("urma_wait_notify", urma_wait_notify(e->notifier, 1, &got, 0), 1);
  check_number("type", got.type, type);
  check_number("status", got.status, URMA_SUCCESS);
  check_number("user_ctx", (long long)got.user_ctx, (long long)user_ctx);
  if (type == URMA_IMPORT_JETTY_NOTIFY) check_true("the target", got.tjetty == e->other);
  if (type == URMA_BIND_JETTY_NOTIFY) check_true("the jetty", got.jetty == e->queue.jetty);
  check_number("urma_ack_notify", urma_ack_notify(e->context, 1, &got), URMA_SUCCESS);
}

static void send_to(struct end* to, struct end* from, char letter) {
  memset(to->bytes, 0, BYTES);
  memset(from->bytes + BYTES, letter, BYTES);
  urma_sge_t piece = {.addr = (uintptr_t)to->bytes, .len = BYTES, .tseg = to->memory};
  urma_jfr_wr_t receive = {.src = {&piece, 1}}, *bad = NULL;
  check_number("urma_post_jetty_recv_wr", urma_post_jetty_recv_wr(to->queue.jetty, &receive, &bad), URMA_SUCCESS);
  struct request r = {.op = URMA_OPC_SEND, .to = from->other, .local = from->memory, .bytes = BYTES};
  r.here = (uintptr_t)from->bytes + BYTES;
  check_status("SEND", run(&from->queue, &r), URMA_CR_SUCCESS);
  check_status("its receive", wait_completion(&to->queue, 10, NULL), URMA_CR_SUCCESS);
  check_true("the bytes", memcmp(to->bytes, from->bytes + BYTES, BYTES) == 0);
}

static void import_async(struct end* e, struct end* other, urma_transport_mode_t mode) {
  urma_rjetty_t description = describe_end(other, mode);
  urma_token_t token = {0};
  e->other = urma_import_jetty_async(e->notifier, &description, &token, 17, PATIENCE_MS);
  need(e->other != NULL, "urma_import_jetty_async");
}

static void bind_async(struct end* e) {
  check_number("urma_bind_jetty_async", urma_bind_jetty_async(e->notifier, e->queue.jetty, e->other, 18, PATIENCE_MS),
               URMA_SUCCESS);
  take_result(e, URMA_BIND_JETTY_NOTIFY, 18);
  check_true("a number of the channel", urma_get_tpn(e->queue.jetty) >= 0);
}

// As urma_perftest --async_import does, the notifier gone before the traffic.
static void asynchronous(urma_transport_mode_t mode) {
  open_end(&left, mode);
  open_end(&right, mode);
  import_async(&left, &right, mode);
  import_async(&right, &left, mode);
  take_result(&left, URMA_IMPORT_JETTY_NOTIFY, 17);
  take_result(&right, URMA_IMPORT_JETTY_NOTIFY, 17);
  if (mode == URMA_TM_RC) {
    bind_async(&left);
    bind_async(&right);
  }
  struct end* ends[] = {&left, &right};
  for (int i = 0; i < 2; ++i) {
    check_number("urma_delete_notifier", urma_delete_notifier(ends[i]->notifier), URMA_SUCCESS);
    ends[i]->notifier = NULL;
  }
  send_to(&right, &left, 'a');
  send_to(&left, &right, 'b');
  for (int i = 0; i < 2; ++i) {
    if (mode == URMA_TM_RC) {
      check_number("urma_unbind_jetty_async", urma_unbind_jetty_async(ends[i]->queue.jetty), URMA_SUCCESS);
    }
    check_number("urma_unimport_jetty_async", urma_unimport_jetty_async(ends[i]->other), URMA_SUCCESS);
    close_end(ends[i]);
  }
}

// As urma_perftest --tp_aware does.
static void over_channel(struct end* e, struct end* other, urma_transport_mode_t mode) {
  urma_get_tp_cfg_t query = {.flag.bs.rtp = 1, .trans_mode = mode};
  query.local_eid = e->context->eid;
  query.peer_eid = other->context->eid;
  urma_tp_info_t info = {0};
  uint32_t count = 1;
  check_number("urma_get_tp_list", urma_get_tp_list(e->context, &query, &count, &info), URMA_SUCCESS);
  check_number("channels", count, 1);
  urma_active_tp_cfg_t channel = {.tp_handle = info.tp_handle};
  urma_rjetty_t description = describe_end(other, mode);
  urma_token_t token = {0};
  e->other = urma_import_jetty_ex(e->context, &description, &token, &channel);
  need(e->other != NULL, "urma_import_jetty_ex");
  if (mode != URMA_TM_RC) return;
  check_number("urma_bind_jetty_ex", urma_bind_jetty_ex(e->queue.jetty, e->other, &channel), URMA_SUCCESS);
}

static void chosen_channel(urma_transport_mode_t mode) {
  open_end(&left, mode);
  open_end(&right, mode);
  over_channel(&left, &right, mode);
  over_channel(&right, &left, mode);
  send_to(&right, &left, 'c');
  send_to(&left, &right, 'd');
  struct end* ends[] = {&left, &right};
  for (int i = 0; i < 2; ++i) {
    if (mode == URMA_TM_RC) {
      check_number("urma_unbind_jetty", urma_unbind_jetty(ends[i]->queue.jetty), URMA_SUCCESS);
    }
    check_number("urma_unimport_jetty", urma_unimport_jetty(ends[i]->other), URMA_SUCCESS);
    close_end(ends[i]);
  }
}

static int run_case(const char* name, void (*body)(urma_transport_mode_t), urma_transport_mode_t mode) {
  begin_case(name);
  body(mode);
  return !end_case();
}

int main(void) {
  alarm(60);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  int failed = 0;
  failed += run_case("asynchronous RM", asynchronous, URMA_TM_RM);
  failed += run_case("asynchronous RC", asynchronous, URMA_TM_RC);
  failed += run_case("chosen channel RM", chosen_channel, URMA_TM_RM);
  failed += run_case("chosen channel RC", chosen_channel, URMA_TM_RC);
  begin_case("tear-down");
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  return failed != 0;
}
