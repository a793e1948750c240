// SPDX-License-Identifier: Apache-2.0
//
// What the reference sample and the reference performance test do, step by step, between two processes that talk over
// a stream (URMA API 0.9, 7, 9.3, 9.4). Both run the same code; one of them is the client.
//
//   flows --processes [part of a name]
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/conformance/world.h"

static int stream;  // to the other process
static bool client;

// What the tools call a mode: RS is RC with the order kept by the target, over a channel that jettys share.
struct kind {
  urma_transport_mode_t mode;
  urma_order_type_t order;
  bool share_tp;
};
static const struct kind rm = {URMA_TM_RM, URMA_DEF_ORDER, false};
static const struct kind rc = {URMA_TM_RC, URMA_DEF_ORDER, false};
static const struct kind rs = {URMA_TM_RC, URMA_OT, true};

static void tell(const void* data, size_t bytes) { need(write(stream, data, bytes) == (ssize_t)bytes, "telling"); }
static void hear(void* data, size_t bytes) { need(read(stream, data, bytes) == (ssize_t)bytes, "hearing"); }

static void meet(void) {
  char sign = 'x';
  tell(&sign, 1);
  hear(&sign, 1);
}

// ---- the sample -------------------------------------------------------------------------------------------

#define SAMPLE_BYTES (1ul << 30)
#define MESSAGE_BYTES 160
#define SAMPLE_RECEIVES 8

// What both tell each other.
struct __attribute__((packed)) card {
  urma_eid_t eid;
  uint32_t uasid;
  uint64_t va, len;
  uint32_t attr, token_id;
  urma_jetty_id_t jetty_id;
};

struct sample {
  bool events;
  struct kind kind;
  urma_context_t* context;
  urma_jfce_t* channel;
  struct queue q;
  char* memory;
  urma_target_seg_t *segment, *far;
  urma_target_jetty_t* target;
  struct card theirs;
};

// Depths and limits as the sample has them: a JFC as deep as may be, no receive JFC named, priority 15.
static void open_sample(struct sample* s) {
  urma_device_attr_t attr;
  s->context = open_nic();
  check_number("urma_query_device", urma_query_device(s->context->dev, &attr), URMA_SUCCESS);
  s->channel = urma_create_jfce(s->context);
  need(s->channel != NULL, "urma_create_jfce");
  urma_jfc_cfg_t jfc = {.depth = attr.dev_cap.max_jfc_depth, .jfce = s->channel};
  s->q.jfc = urma_create_jfc(s->context, &jfc);
  need(s->q.jfc != NULL, "urma_create_jfc");
  if (s->events) check_number("urma_rearm_jfc", urma_rearm_jfc(s->q.jfc, false), URMA_SUCCESS);
  const urma_transport_mode_t mode = s->kind.mode;
  urma_jfr_cfg_t jfr = {.depth = 256, .trans_mode = mode, .max_sge = 1, .jfc = s->q.jfc};
  jfr.flag.bs.order_type = (uint8_t)s->kind.order;
  jfr.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
  s->q.jfr = urma_create_jfr(s->context, &jfr);
  need(s->q.jfr != NULL, "urma_create_jfr");
  urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = 1};
  cfg.jfs_cfg = (urma_jfs_cfg_t){.depth = 256, .trans_mode = mode, .priority = 15, .max_sge = 1, .jfc = s->q.jfc};
  cfg.jfs_cfg.flag.bs.order_type = (uint8_t)s->kind.order;
  cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  cfg.shared.jfr = s->q.jfr;
  s->q.jetty = urma_create_jetty(s->context, &cfg);
  need(s->q.jetty != NULL, "urma_create_jetty");
  s->memory = mmap(NULL, SAMPLE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  need(s->memory != MAP_FAILED, "mmap");
  s->segment = register_memory(s->context, s->memory, SAMPLE_BYTES, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
}

static void exchange_cards(struct sample* s) {
  const urma_seg_t* seg = &s->segment->seg;
  struct card ours = {s->context->eid, s->context->uasid, seg->ubva.va,        seg->len,
                      seg->attr.value, seg->token_id,     s->q.jetty->jetty_id};
  tell(&ours, sizeof ours);
  hear(&s->theirs, sizeof s->theirs);
}

static void import_their_jetty(struct sample* s) {
  urma_rjetty_t jetty = {.jetty_id = s->theirs.jetty_id, .trans_mode = s->kind.mode, .type = URMA_JETTY};
  jetty.flag.bs.order_type = (uint8_t)s->kind.order;
  jetty.flag.bs.share_tp = s->kind.share_tp;
  urma_token_t token = {0};
  s->target = urma_import_jetty(s->context, &jetty, &token);
  need(s->target != NULL, "urma_import_jetty");
  if (s->kind.mode == URMA_TM_RC) check_number("bind", urma_bind_jetty(s->q.jetty, s->target), URMA_SUCCESS);
}

// The descriptor is rebuilt field by field, with our own EID in it.
static void import_their_segment(struct sample* s) {
  urma_seg_t seg = {.len = s->theirs.len, .token_id = s->theirs.token_id};
  seg.ubva.eid = s->theirs.eid;
  seg.ubva.uasid = s->theirs.uasid;
  seg.ubva.va = s->theirs.va;
  seg.attr.value = s->theirs.attr;
  s->far = import_segment(s->context, seg, GOOD_TOKEN);
}

static int next_record(struct sample* s, urma_cr_t* record) {
  if (!s->events) return wait_completion(&s->q, PATIENCE, record);
  urma_jfc_t* jfc = NULL;
  memset(record, 0xa5, sizeof *record);
  check_number("urma_wait_jfc", urma_wait_jfc(s->channel, 1, -1, &jfc), 1);
  check_true("names the queue", jfc == s->q.jfc);
  check_number("records behind the event", urma_poll_jfc(jfc, 1, record), 1);
  uint32_t one = 1;
  urma_ack_jfc(&jfc, &one, 1);
  check_number("urma_rearm_jfc", urma_rearm_jfc(jfc, false), URMA_SUCCESS);
  return record->status;
}

static void sample_step(struct sample* s, urma_opcode_t op, uint64_t here, uint64_t user_ctx) {
  struct request r = {.op = op, .to = s->target, .local = s->segment, .remote = s->far, .bytes = MESSAGE_BYTES};
  r.here = (uintptr_t)s->memory + here;
  r.there = s->theirs.va;
  r.user_ctx = user_ctx;
  check_number("post", post(&s->q, &r), URMA_SUCCESS);
}

static void post_sample_receive(struct sample* s, uint64_t offset) {
  urma_sge_t piece = {.addr = (uintptr_t)s->memory + offset, .len = MESSAGE_BYTES, .tseg = s->segment};
  urma_jfr_wr_t wr = {.src = {&piece, 1}, .user_ctx = offset}, *bad = NULL;
  check_number("urma_post_jetty_recv_wr", urma_post_jetty_recv_wr(s->q.jetty, &wr, &bad), URMA_SUCCESS);
}

static void sample_client(struct sample* s) {
  urma_cr_t record;
  char sign;
  exchange_cards(s);
  hear(&sign, 1);  // the server has imported us
  import_their_segment(s);
  import_their_jetty(s);
  strcpy(s->memory, "hello from the client");
  sample_step(s, URMA_OPC_WRITE, 0, 0);
  check_status("WRITE", next_record(s, &record), URMA_CR_SUCCESS);
  check_number("its user_ctx", (long long)record.user_ctx, 0);
  memset(s->memory, 0, MESSAGE_BYTES);
  sample_step(s, URMA_OPC_READ, 0, 1);
  check_status("READ", next_record(s, &record), URMA_CR_SUCCESS);
  check_number("its user_ctx", (long long)record.user_ctx, 1);
  check_true("what was written comes back", strcmp(s->memory, "hello from the client") == 0);
  post_sample_receive(s, MESSAGE_BYTES);
  strcpy(s->memory, "message from the client");
  sample_step(s, URMA_OPC_SEND, 0, 2);
  bool sent = false, received = false;
  for (int i = 0; i < 2; ++i) {
    check_status("SEND, or the answer", next_record(s, &record), URMA_CR_SUCCESS);
    if (record.flag.bs.s_r == 0) {
      check_number("user_ctx of the SEND", (long long)record.user_ctx, 2);
      sent = true;
    } else {
      check_number("user_ctx of the receive", (long long)record.user_ctx, MESSAGE_BYTES);
      received = true;
    }
  }
  check_true("both ended", sent && received);
  check_true("the answer", strcmp(s->memory + MESSAGE_BYTES, "answer of the server") == 0);
}

// Answers whom the record names; a send-side record must not look like a message.
static void sample_server(struct sample* s) {
  urma_cr_t record;
  char sign = 's';
  exchange_cards(s);
  import_their_jetty(s);
  tell(&sign, 1);
  rest_ms(100);  // the client's SEND is to meet an empty receive queue
  for (uint64_t i = 1; i <= SAMPLE_RECEIVES; ++i) post_sample_receive(s, i * 4096);
  check_status("message", next_record(s, &record), URMA_CR_SUCCESS);
  check_number("its opcode", (long long)record.opcode, URMA_CR_OPC_SEND);
  check_true("its sender's EID", memcmp(&record.remote_id.eid, &s->target->id.eid, sizeof(urma_eid_t)) == 0);
  check_number("its sender's uasid", record.remote_id.uasid, s->target->id.uasid);
  check_true("its text", strcmp(s->memory + record.user_ctx, "message from the client") == 0);
  strcpy(s->memory, "answer of the server");
  sample_step(s, URMA_OPC_SEND, 0, 5);
  check_status("answer", next_record(s, &record), URMA_CR_SUCCESS);
  check_true("its opcode is none of a message", (int)record.opcode != URMA_CR_OPC_SEND);
}

// In the sample's order: RC is not unbound before.
static void close_sample(struct sample* s) {
  check_number("urma_unimport_jetty", urma_unimport_jetty(s->target), URMA_SUCCESS);
  if (s->far != NULL) check_number("urma_unimport_seg", urma_unimport_seg(s->far), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(s->segment), URMA_SUCCESS);
  close_queue(&s->q);
  check_number("urma_delete_jfce", urma_delete_jfce(s->channel), URMA_SUCCESS);
  munmap(s->memory, SAMPLE_BYTES);
  check_number("urma_delete_context", urma_delete_context(s->context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
}

static void sample(struct kind kind, bool events) {
  struct sample s = {.kind = kind, .events = events};
  open_sample(&s);
  (client ? sample_client : sample_server)(&s);
  meet();
  close_sample(&s);
}

static void sample_rm(void) { sample(rm, false); }
static void sample_rc(void) { sample(rc, false); }
static void sample_rs(void) { sample(rs, false); }
static void sample_rm_events(void) { sample(rm, true); }
static void sample_rc_events(void) { sample(rc, true); }

// ---- the performance test ---------------------------------------------------------------------------------

#define PERF_BYTES (1u << 20)  // half of it is ours to send, half the peer's to write

// --async_import and --tp_aware.
enum way { AT_ONCE, ASYNCHRONOUS, BY_CHANNEL };

struct perf {
  struct kind kind;
  enum way way;
  urma_context_t* context;
  urma_token_id_t* token_id;
  char* memory;
  urma_target_seg_t *segment, *far;
  struct queue q;
  urma_target_jetty_t* target;
};

// What the calls describe travels as they gave it, behind its length.
static void tell_blob(const void* blob, uint32_t bytes) {
  check_number("bytes of a description", bytes, 48);
  tell(&bytes, sizeof bytes);
  tell(blob, bytes);
}

static void* hear_blob(void) {
  uint32_t bytes = 0;
  hear(&bytes, sizeof bytes);
  void* blob = calloc(1, bytes);
  hear(blob, bytes);
  return blob;
}

static void open_perf(struct perf* p) {
  p->context = open_nic();
  p->memory = memalign(4096, PERF_BYTES);
  memset(p->memory, 0, PERF_BYTES);
  p->token_id = urma_alloc_token_id(p->context);
  need(p->token_id != NULL, "urma_alloc_token_id");
  urma_seg_cfg_t cfg = {.va = (uintptr_t)p->memory, .len = PERF_BYTES, .token_id = p->token_id};
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  cfg.flag.bs.token_id_valid = 1;
  p->segment = urma_register_seg(p->context, &cfg);
  need(p->segment != NULL, "urma_register_seg");
  urma_seg_t* blob = NULL;
  uint32_t bytes = 0;
  check_number("urma_get_seg_ctx", urma_get_seg_ctx(p->segment, &blob, &bytes), URMA_SUCCESS);
  tell_blob(blob, bytes);
  urma_put_seg_ctx(blob);
  blob = hear_blob();
  p->far = import_segment(p->context, *blob, 0);
  urma_put_seg_ctx(blob);
}

static void connect_at_once(struct perf* p, urma_rjetty_t* theirs) {
  urma_token_t token = {0};
  p->target = urma_import_jetty(p->context, theirs, &token);
  need(p->target != NULL, "urma_import_jetty");
  if (p->kind.mode != URMA_TM_RC) return;
  check_number("bind", urma_bind_jetty(p->q.jetty, p->target), URMA_SUCCESS);
  check_number("bind again", urma_bind_jetty(p->q.jetty, p->target), URMA_SUCCESS);
}

static void take_result(urma_notifier_t* notifier, urma_notify_type_t type) {
  urma_notify_t result = {.status = URMA_FAIL};
  check_number("urma_wait_notify", urma_wait_notify(notifier, 1, &result, 10000), 1);
  check_number("its type", result.type, type);
  check_number("its status", result.status, URMA_SUCCESS);
  check_number("urma_ack_notify", urma_ack_notify(notifier->urma_ctx, 1, &result), URMA_SUCCESS);
}

static void connect_asynchronously(struct perf* p, const urma_rjetty_t* theirs) {
  urma_notifier_t* notifier = urma_create_notifier(p->context);
  need(notifier != NULL, "urma_create_notifier");
  urma_token_t token = {0};
  p->target = urma_import_jetty_async(notifier, theirs, &token, 1, 10000);
  need(p->target != NULL, "urma_import_jetty_async");
  take_result(notifier, URMA_IMPORT_JETTY_NOTIFY);
  if (p->kind.mode == URMA_TM_RC) {
    int status = urma_bind_jetty_async(notifier, p->q.jetty, p->target, 2, 10000);
    check_number("urma_bind_jetty_async", status, URMA_SUCCESS);
    take_result(notifier, URMA_BIND_JETTY_NOTIFY);
  }
  check_number("urma_delete_notifier", urma_delete_notifier(notifier), URMA_SUCCESS);
}

// Both tell each other their handle and first packet number.
static void connect_by_channel(struct perf* p, urma_rjetty_t* theirs) {
  struct {
    uint64_t handle;
    uint32_t psn;
  } __attribute__((packed)) own = {.psn = 7}, other;
  urma_get_tp_cfg_t query = {.flag.bs.rtp = 1, .trans_mode = p->kind.mode, .local_eid = p->context->eid};
  query.peer_eid = theirs->jetty_id.eid;
  urma_tp_info_t info = {0};
  uint32_t count = 1;
  check_number("urma_get_tp_list", urma_get_tp_list(p->context, &query, &count, &info), URMA_SUCCESS);
  check_number("handles", count, 1);
  own.handle = info.tp_handle;
  tell(&own, sizeof own);
  hear(&other, sizeof other);
  urma_active_tp_cfg_t channel = {.tp_handle = own.handle, .peer_tp_handle = other.handle};
  channel.tp_attr = (urma_active_tp_attr_t){.tx_psn = own.psn, .rx_psn = other.psn};
  urma_token_t token = {0};
  p->target = urma_import_jetty_ex(p->context, theirs, &token, &channel);
  need(p->target != NULL, "urma_import_jetty_ex");
  if (p->kind.mode != URMA_TM_RC) return;
  check_number("urma_bind_jetty_ex", urma_bind_jetty_ex(p->q.jetty, p->target, &channel), URMA_SUCCESS);
}

// Queues come and go while the segments stay.
static void open_queues(struct perf* p) {
  const struct kind kind = p->kind;
  struct queue_options options = {.mode = kind.mode, .order = kind.order, .depth = 128, .jfc_depth = 512};
  p->q = open_queue(p->context, options);
  urma_rjetty_t* blob = NULL;
  uint32_t bytes = 0;
  check_number("urma_get_rjetty", urma_get_rjetty(p->q.jetty, &blob, &bytes), URMA_SUCCESS);
  tell_blob(blob, bytes);
  urma_put_rjetty(blob);
  blob = hear_blob();
  blob->tp_type = URMA_RTP;
  blob->flag.bs.share_tp = kind.share_tp;
  if (p->way == AT_ONCE) connect_at_once(p, blob);
  if (p->way == ASYNCHRONOUS) connect_asynchronously(p, blob);
  if (p->way == BY_CHANNEL) connect_by_channel(p, blob);
  urma_put_rjetty(blob);
  int advised = kind.mode == URMA_TM_RM ? URMA_SUCCESS : URMA_EINVAL;
  check_number("urma_advise_jetty", urma_advise_jetty(p->q.jetty, p->target), advised);
  meet();
}

static void close_queues(struct perf* p) {
  const bool async = p->way == ASYNCHRONOUS;
  if (p->kind.mode == URMA_TM_RC) {
    check_number("deletion of a bound jetty", urma_delete_jetty(p->q.jetty), URMA_ENOPERM);
    check_number("unbind", (async ? urma_unbind_jetty_async : urma_unbind_jetty)(p->q.jetty), URMA_SUCCESS);
  }
  check_number("unimport", (async ? urma_unimport_jetty_async : urma_unimport_jetty)(p->target), URMA_SUCCESS);
  meet();
  close_queue(&p->q);
}

static void close_perf(struct perf* p) {
  meet();
  check_number("urma_unimport_seg", urma_unimport_seg(p->far), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(p->segment), URMA_SUCCESS);
  check_number("urma_free_token_id", urma_free_token_id(p->token_id), URMA_SUCCESS);
  free(p->memory);
  check_number("urma_delete_context", urma_delete_context(p->context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
}

static struct request perf_request(struct perf* p, urma_opcode_t op, uint32_t bytes) {
  struct request r = {.op = op, .to = p->target, .local = p->segment, .remote = p->far, .bytes = bytes};
  r.here = (uintptr_t)p->memory;
  r.there = p->far->seg.ubva.va + PERF_BYTES / 2;
  return r;
}

static bool all_are(const volatile char* at, uint32_t bytes, char value) {
  for (uint32_t i = 0; i < bytes; ++i) {
    if (at[i] != value) return false;
  }
  return true;
}

// Spins on the last byte without a call; when it is there, all of them are.
static void ping_pong(struct perf* p, uint32_t bytes, int rounds) {
  volatile char* in = p->memory + PERF_BYTES / 2;
  struct request w = perf_request(p, URMA_OPC_WRITE, bytes);
  memset((void*)in, 0, bytes);
  meet();
  for (int i = 1; i <= rounds; ++i) {
    const char value = (char)(i % 100 + 1);
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == client) {
        memset(p->memory, value, bytes);
        check_number("post", post(&p->q, &w), URMA_SUCCESS);
        check_status("WRITE", wait_completion(&p->q, PATIENCE, NULL), URMA_CR_SUCCESS);
        continue;
      }
      for (double end = now() + PATIENCE; in[bytes - 1] != value && now() < end;) sched_yield();
      check_true("all bytes are there with the last", all_are(in, bytes, value));
    }
  }
}

static void write_lat(struct kind kind) {
  static const uint32_t sizes[] = {1, 2, 8, 64, 1000, 4096, 4097, 65536, 200000};
  struct perf p = {.kind = kind};
  open_perf(&p);
  open_queues(&p);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) ping_pong(&p, sizes[i], sizes[i] > 10000 ? 10 : 50);
  close_queues(&p);
  close_perf(&p);
}

static void write_lat_rm(void) { write_lat(rm); }
static void write_lat_rc(void) { write_lat(rc); }

// As many requests as the queue is deep, a completion for every tenth.
static void hammer(struct perf* p, urma_opcode_t op, uint32_t bytes, uint64_t requests) {
  uint64_t posted = 0, done = 0;
  struct request r = perf_request(p, op, bytes);
  r.immediate = 1;
  double end = now() + 2 * PATIENCE;
  while (done < requests && now() < end) {
    for (; posted < requests && posted - done < 100; ++posted) {
      r.user_ctx = posted + 1;
      r.quiet = r.user_ctx % 10 != 0;
      check_number("post", post(&p->q, &r), URMA_SUCCESS);
    }
    urma_cr_t records[16];
    memset(records, 0xa5, sizeof records);
    int n = urma_poll_jfc(p->q.jfc, 16, records);
    for (int i = 0; i < n; ++i) {
      check_status("completion", records[i].status, URMA_CR_SUCCESS);
      check_number("user_ctx", (long long)records[i].user_ctx, (long long)(done += 10));
    }
  }
  check_number("requests done", (long long)done, (long long)requests);
}

// The target of one-sided requests makes no call: it waits in read().
static void blocked_target(void) {
  enum { kRequests = 2000 };
  struct perf p = {.kind = rm};
  char sign = 'd';
  open_perf(&p);
  open_queues(&p);
  if (client) {
    hammer(&p, URMA_OPC_WRITE, 4096, kRequests);
    hammer(&p, URMA_OPC_READ, 65536, kRequests / 10);
    struct request w = perf_request(&p, URMA_OPC_WRITE, 8);
    memset(p.memory, 0, 8);
    check_status("WRITE of 0", run(&p.q, &w), URMA_CR_SUCCESS);
    hammer(&p, URMA_OPC_FADD, 8, kRequests);
    tell(&sign, 1);
  } else {
    uint64_t sum = 0;
    hear(&sign, 1);
    memcpy(&sum, p.memory + PERF_BYTES / 2, 8);
    check_number("what was added", (long long)sum, kRequests);
  }
  close_queues(&p);
  close_perf(&p);
}

// SENDs that credits hold back: the receiver writes how many it took.
static void send_both_ways(struct perf* p, uint32_t messages) {
  enum { kWindow = 32 };
  uint64_t* credit = (uint64_t*)(void*)(p->memory + 4096);  // we tell
  volatile uint64_t* granted = (volatile uint64_t*)(void*)(p->memory + PERF_BYTES / 2 + 4096);
  uint32_t sent = 0, sends_done = 0, received = 0, posted = 0;
  *credit = 0, *granted = 0;
  for (; posted < 2 * kWindow && posted < messages; ++posted) {
    urma_recv(p->q.jfr, p->segment, (uintptr_t)p->memory + 8192, 64, posted);
  }
  meet();
  double end = now() + 2 * PATIENCE;
  while ((sends_done < messages || received < messages) && now() < end) {
    while (sent < messages && sent - sends_done < kWindow && sent < *granted + 2 * kWindow) {
      struct request s = perf_request(p, URMA_OPC_SEND, 64);
      s.user_ctx = sent++;
      check_number("post", post(&p->q, &s), URMA_SUCCESS);
    }
    urma_cr_t record;
    memset(&record, 0xa5, sizeof record);
    if (urma_poll_jfc(p->q.jfc, 1, &record) != 1) continue;
    check_status("completion", record.status, URMA_CR_SUCCESS);
    if (record.flag.bs.s_r == 0) {
      if ((record.user_ctx >> 63) == 0) check_number("user_ctx", (long long)record.user_ctx, sends_done++);
      continue;
    }
    ++received;
    if (posted < messages) urma_recv(p->q.jfr, p->segment, (uintptr_t)p->memory + 8192, 64, posted++);
    if (received % 16 == 0) {
      struct request w = perf_request(p, URMA_OPC_WRITE, 8);
      *credit = received;
      w.here += 4096, w.there += 4096;
      w.user_ctx = 1ull << 63 | received;
      check_number("post of a credit", post(&p->q, &w), URMA_SUCCESS);
    }
  }
  check_number("messages sent", sends_done, messages);
  check_number("messages received", received, messages);
  meet();
}

static void queues_made_anew(struct kind kind, enum way way) {
  struct perf p = {.kind = kind, .way = way};
  open_perf(&p);
  for (int round = 0; round < 5; ++round) {
    open_queues(&p);
    ping_pong(&p, 64, 10);
    meet();
    if (client) hammer(&p, URMA_OPC_READ, 4096, 100);
    meet();
    close_queues(&p);
  }
  close_perf(&p);
}

static void anew_rm(void) { queues_made_anew(rm, AT_ONCE); }
static void anew_rc(void) { queues_made_anew(rc, AT_ONCE); }
static void anew_rm_async(void) { queues_made_anew(rm, ASYNCHRONOUS); }
static void anew_rc_async(void) { queues_made_anew(rc, ASYNCHRONOUS); }
static void anew_rm_channel(void) { queues_made_anew(rm, BY_CHANNEL); }
static void anew_rs_channel(void) { queues_made_anew(rs, BY_CHANNEL); }

static void send_bw(void) {
  struct perf p = {.kind = rm};
  open_perf(&p);
  open_queues(&p);
  send_both_ways(&p, 1000);
  close_queues(&p);
  close_perf(&p);
}

// ---- the list ---------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  void (*run)(void);
} flows[] = {
    {"sample, RM", sample_rm},
    {"sample, RC", sample_rc},
    {"sample, RS", sample_rs},
    {"sample, RM, events", sample_rm_events},
    {"sample, RC, events", sample_rc_events},
    {"spinning on the last byte, RM", write_lat_rm},
    {"spinning on the last byte, RC", write_lat_rc},
    {"target blocked in read", blocked_target},
    {"SEND both ways with credits", send_bw},
    {"queues made anew, RM", anew_rm},
    {"queues made anew, RC", anew_rc},
    {"queues made anew, asynchronous, RM", anew_rm_async},
    {"queues made anew, asynchronous, RC", anew_rc_async},
    {"queues made anew, chosen channel, RM", anew_rm_channel},
    {"queues made anew, chosen channel, RS", anew_rs_channel},
};

static bool run_flow(uint32_t number) {
  begin_case(flows[number].name);
  flows[number].run();
  return end_case();
}

// The client says which; the server's failures are lines of its own, and count at its end.
static int serve(void) {
  stream = STDIN_FILENO;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int failed = 0;
  for (uint32_t number; read(stream, &number, sizeof number) == sizeof number;) {
    begin_case(flows[number].name);
    flows[number].run();
    failed += case_failed();
  }
  return failed != 0;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--peer") == 0) return serve();
  if (argc < 2 || strcmp(argv[1], "--processes") != 0) {
    fprintf(stderr, "usage: flows --processes [part of a name]\n");
    return 2;
  }
  alarm(150);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  client = true;
  pid_t peer = start_peer_process(&stream);
  int failed = 0;
  for (uint32_t i = 0; i < sizeof flows / sizeof *flows; ++i) {
    if (argc > 2 && strstr(flows[i].name, argv[2]) == NULL) continue;
    tell(&i, sizeof i);
    failed += !run_flow(i);
  }
  begin_case("end");
  close(stream);
  wait_for_process(peer);
  failed += !end_case();
  printf("%d failed\n", failed);
  return failed != 0;
}
