// SPDX-License-Identifier: Apache-2.0
//
// Completion records, field by field, and the bytes that landed: every opcode, on a jetty in RM and RC and on a JFS
// that sends to a JFR, and the two of UM (URMA API 0.9, 6.3). Usage: see far.h.
#include <stdio.h>
#include <string.h>

#include "tests/conformance/far.h"

#define LENGTH 1000
#define HERE 4096      // offset of local bytes
#define THERE 8192     // offset of remote bytes
#define RECEIVE 65536  // offset of a receive
#define RECEIVE_BYTES 2000
#define NOTIFY 32768                   // offset of a notify word
#define IMMEDIATE 0xf1e2d3c4b5a69788u  // every byte another one, the highest bit set
#define POISON 0xa5a5a5a5a5a5a5a5u     // what a record holds before it is polled
#define SEED 5                         // of the bytes that travel
#define WORD 0xf0e1d2c3b4a59687u       // under an atomic
#define OPERAND 0x1122334455667788u

static uint64_t next_user_ctx(void) {
  static uint64_t number;
  return 0xfedcba9800000000u | ++number;
}

// ---- records ----------------------------------------------------------------------------------------------

static urma_jetty_id_t sender_id(const struct queue* q) { return q->jfs != NULL ? q->jfs->jfs_id : q->jetty->jetty_id; }

static void check_sent(const struct queue* q, const urma_cr_t* record, uint32_t length, uint64_t user_ctx) {
  check_status("status at the sender", record->status, URMA_CR_SUCCESS);
  check_number("user_ctx at the sender", (long long)record->user_ctx, (long long)user_ctx);
  check_number("opcode at the sender", (long long)record->opcode, 0xff);
  check_number("flags at the sender", record->flag.value, q->jfs != NULL ? 0 : 2);
  check_number("completion_len at the sender", record->completion_len, length);
  check_number("local_id at the sender", record->local_id, sender_id(q).id);
  const void* object = q->jfs != NULL ? (const void*)q->jfs : (const void*)q->jetty;
  check_true("user_data at the sender is the queue", record->user_data == (uintptr_t)object);
  check_true("tpn at the sender is filled", record->tpn != (uint32_t)POISON);
  check_true("imm_data at the sender is filled", record->imm_data != POISON);
  check_true("remote_id at the sender is filled", record->remote_id.id != (uint32_t)POISON);
}

static void check_received(const struct far_queue* far, const urma_cr_t* record, int opcode, uint32_t length,
                           uint64_t user_ctx) {
  check_status("status at the receiver", record->status, URMA_CR_SUCCESS);
  check_number("user_ctx at the receiver", (long long)record->user_ctx, (long long)user_ctx);
  check_number("opcode at the receiver", (long long)record->opcode, opcode);
  check_number("flags at the receiver", record->flag.value, far->options.simplex ? 1 : 3);
  check_number("completion_len at the receiver", record->completion_len, length);
  check_number("local_id at the receiver", record->local_id, far->receives.id);
  check_true("user_data at the receiver is the queue", record->user_data == far->object);
  check_true("tpn at the receiver is filled", record->tpn != (uint32_t)POISON);
}

static void check_from(const urma_cr_t* record, urma_jetty_id_t sender) {
  check_true("eid of the sender", memcmp(&record->remote_id.eid, &sender.eid, sizeof sender.eid) == 0);
  check_number("uasid of the sender", record->remote_id.uasid, sender.uasid);
  check_number("id of the sender", record->remote_id.id, sender.id);
}

static void run_one(struct queue* q, struct request* r, uint32_t length) {
  urma_cr_t record;
  r->user_ctx = next_user_ctx();
  check_number("post", post(q, r), URMA_SUCCESS);
  check_status("completion", wait_completion(q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_sent(q, &record, length, r->user_ctx);
}

// A receive is posted, the request runs, and the receive has completed with what is expected.
static urma_cr_t run_with_receive(struct pair* p, struct request* r, int opcode) {
  urma_cr_t record;
  uint64_t user_ctx = next_user_ctx();
  far_prepare(RECEIVE, RECEIVE_BYTES);
  far_receive(&p->far, RECEIVE, RECEIVE_BYTES, user_ctx);
  run_one(&p->q, r, r->bytes);
  check_status("the receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_received(&p->far, &record, opcode, r->bytes, user_ctx);
  check_from(&record, sender_id(&p->q));
  return record;
}

static struct request request(struct pair* p, urma_opcode_t op) {
  struct request r = request_to(&p->far, op, LENGTH);
  r.here = near_address(HERE);
  r.there = far_address(THERE);
  fill(stage.bytes + HERE, LENGTH, SEED);
  return r;
}

// ---- one-sided --------------------------------------------------------------------------------------------

static void write_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_WRITE);
  far_prepare(THERE, LENGTH);
  run_one(&p->q, &r, LENGTH);
  check_true("the bytes landed", far_landed(THERE, LENGTH, SEED));
}

static void write_imm_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_WRITE_IMM);
  r.immediate = IMMEDIATE;
  far_prepare(THERE, LENGTH);
  urma_cr_t record = run_with_receive(p, &r, URMA_CR_OPC_WRITE_WITH_IMM);
  check_number("imm_data", (long long)record.imm_data, (long long)IMMEDIATE);
  check_true("the bytes landed", far_landed(THERE, LENGTH, SEED));
  check_true("the receive's memory is untouched", far_holds(RECEIVE, RECEIVE_BYTES, CLEARED_SEED));
}

static void send_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_SEND);
  run_with_receive(p, &r, URMA_CR_OPC_SEND);
  check_true("the bytes landed", far_holds(RECEIVE, LENGTH, SEED));
  check_true("nothing landed before them", far_holds(RECEIVE - GUARD, GUARD, GUARD_SEED));
}

// Takes no receive: the one that waits is taken by the SEND behind it.
static void write_notify_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_WRITE_NOTIFY);
  r.immediate = IMMEDIATE;
  r.notify = far_address(NOTIFY);
  far_prepare(THERE, LENGTH);
  far_prepare(NOTIFY, 8);
  uint64_t user_ctx = next_user_ctx();
  far_receive(&p->far, RECEIVE, RECEIVE_BYTES, user_ctx);
  run_one(&p->q, &r, LENGTH);
  check_true("the bytes landed", far_landed(THERE, LENGTH, SEED));
  check_number("the notify word", (long long)far_word(NOTIFY), (long long)IMMEDIATE);
  check_true("nothing landed before the notify word", far_holds(NOTIFY - GUARD, GUARD, GUARD_SEED));
  check_true("nothing landed behind the notify word", far_holds(NOTIFY + 8, GUARD, GUARD_SEED));
  urma_cr_t record;
  struct request send = request(p, URMA_OPC_SEND);
  run_one(&p->q, &send, LENGTH);
  check_status("the receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_received(&p->far, &record, URMA_CR_OPC_SEND, LENGTH, user_ctx);
}

static void read_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_READ);
  far_fill(THERE, LENGTH, SEED + 1);
  prepare(HERE, LENGTH);
  run_one(&p->q, &r, LENGTH);
  check_true("the bytes landed", landed(HERE, LENGTH, SEED + 1));
}

// ---- atomics ----------------------------------------------------------------------------------------------

static uint64_t low(uint64_t word, uint32_t width) { return word & ~0ull >> (64 - 8 * width); }

typedef unsigned __int128 wide;

static wide result(urma_opcode_t op, wide old, wide operand, wide compare) {
  switch ((int)op) {
    case URMA_OPC_CAS:
      return old == compare ? operand : old;
    case URMA_OPC_SWAP:
      return operand;
    case URMA_OPC_FADD:
      return old + operand;
    case URMA_OPC_FSUB:
      return old - operand;
    case URMA_OPC_FAND:
      return old & operand;
    case URMA_OPC_FOR:
      return old | operand;
    default:
      return old ^ operand;
  }
}

static void run_atomic(struct pair* p, urma_opcode_t op, uint32_t width, uint64_t compare) {
  struct request r = request(p, op);
  uint64_t old = POISON, operand = low(OPERAND, width), rest = WORD - low(WORD, width);
  far_prepare(THERE, 8);
  far_set_word(THERE, WORD);
  memcpy(stage.bytes + HERE, &old, 8);
  r.bytes = width;
  r.immediate = operand;
  r.compare = low(compare, width);
  run_one(&p->q, &r, width);
  memcpy(&old, stage.bytes + HERE, 8);
  check_number("the old value, and nothing beside it", (long long)old,
               (long long)(POISON - low(POISON, width) + low(WORD, width)));
  uint64_t expected = rest | low((uint64_t)result(op, low(WORD, width), operand, r.compare), width);
  check_number("the new value, and nothing beside it", (long long)far_word(THERE), (long long)expected);
  check_true("nothing landed before it", far_holds(THERE - GUARD, GUARD, GUARD_SEED));
  check_true("nothing landed behind it", far_holds(THERE + 8, GUARD, GUARD_SEED));
}

static wide words(uint64_t low_word, uint64_t high_word) { return (wide)high_word << 64 | low_word; }

// Operands of 16 bytes are given by their addresses, and are taken when the request is posted.
static void run_wide_atomic(struct pair* p, urma_opcode_t op, bool matches) {
  struct request r = request(p, op);
  wide before = words(WORD, ~WORD), old = words(POISON, POISON);
  wide operand = words(OPERAND, ~OPERAND), compare = matches ? before : words(WORD, WORD);
  far_prepare(THERE, 16);
  far_set_word(THERE, WORD);
  far_set_word(THERE + 8, ~WORD);
  memcpy(stage.bytes + HERE, &old, 16);
  r.bytes = 16;
  r.immediate = (uintptr_t)&operand;
  r.compare = (uintptr_t)&compare;
  run_one(&p->q, &r, 16);
  memcpy(&old, stage.bytes + HERE, 16);
  check_true("the old value of 16 bytes", old == before);
  check_true("the new value of 16 bytes",
             words(far_word(THERE), far_word(THERE + 8)) == result(op, before, operand, compare));
  check_true("nothing landed before it", far_holds(THERE - GUARD, GUARD, GUARD_SEED));
  check_true("nothing landed behind it", far_holds(THERE + 16, GUARD, GUARD_SEED));
}

static bool has_wide_atomics(void) {
  urma_device_attr_t attr;
  check_number("urma_query_device", urma_query_device(stage.context->dev, &attr), URMA_SUCCESS);
  return attr.dev_cap.max_cas_size >= 16;
}

static void run_widths(struct pair* p, urma_opcode_t op) {
  for (uint32_t width = 1; width <= 8; width *= 2) run_atomic(p, op, width, 0);
  if (has_wide_atomics()) run_wide_atomic(p, op, false);
}

static void cas_body(struct pair* p) {
  run_widths(p, URMA_OPC_CAS);  // compares in vain
  for (uint32_t width = 1; width <= 8; width *= 2) run_atomic(p, URMA_OPC_CAS, width, WORD);
  if (has_wide_atomics()) run_wide_atomic(p, URMA_OPC_CAS, true);
}

static void swap_body(struct pair* p) { run_widths(p, URMA_OPC_SWAP); }
static void fadd_body(struct pair* p) { run_widths(p, URMA_OPC_FADD); }
static void fsub_body(struct pair* p) { run_widths(p, URMA_OPC_FSUB); }
static void fand_body(struct pair* p) { run_widths(p, URMA_OPC_FAND); }
static void for_body(struct pair* p) { run_widths(p, URMA_OPC_FOR); }
static void fxor_body(struct pair* p) { run_widths(p, URMA_OPC_FXOR); }

// ---- messages ---------------------------------------------------------------------------------------------

static void send_imm_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_SEND_IMM);
  r.immediate = IMMEDIATE;
  urma_cr_t record = run_with_receive(p, &r, URMA_CR_OPC_SEND_WITH_IMM);
  check_number("imm_data", (long long)record.imm_data, (long long)IMMEDIATE);
  check_true("the bytes landed", far_holds(RECEIVE, LENGTH, SEED));
}

static void send_invalidate_body(struct pair* p) {
  urma_target_seg_t* segment = far_register(THERE, LENGTH, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  struct request before = request(p, URMA_OPC_WRITE), r = request(p, URMA_OPC_SEND_INVALIDATE);
  before.remote = r.remote = segment;
  check_status("WRITE before", run(&p->q, &before), URMA_CR_SUCCESS);
  urma_cr_t record = run_with_receive(p, &r, URMA_CR_OPC_SEND_WITH_INV);
  check_number("invalid_token.token_id", record.invalid_token.token_id, segment->seg.token_id);
  check_number("invalid_token.token_value", record.invalid_token.token_value.token, GOOD_TOKEN);
  check_true("the bytes landed", far_holds(RECEIVE, LENGTH, SEED));
  check_status("WRITE afterwards", run(&p->q, &before), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

static void nop_body(struct pair* p) {
  struct request r = request(p, URMA_OPC_NOP);
  r.bytes = 0;
  run_one(&p->q, &r, 0);
}

// UM loses what it likes, and the sender is none the wiser: tried until one arrives.
static void run_unreliable(urma_opcode_t op, int opcode) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  struct request r = request(&p, op);
  uint64_t user_ctx = next_user_ctx();
  urma_cr_t record;
  r.immediate = IMMEDIATE;
  far_prepare(RECEIVE, RECEIVE_BYTES);
  far_receive(&p.far, RECEIVE, RECEIVE_BYTES, user_ctx);
  int status = NOTHING;
  for (int tries = 0; tries < 50 && status == NOTHING; ++tries) {
    run_one(&p.q, &r, LENGTH);
    status = far_take(&p.far, 0.2, &record);
  }
  check_status("the receive", status, URMA_CR_SUCCESS);
  check_received(&p.far, &record, opcode, LENGTH, user_ctx);
  if (op == URMA_OPC_SEND_IMM) check_number("imm_data", (long long)record.imm_data, (long long)IMMEDIATE);
  check_true("the bytes landed", far_holds(RECEIVE, LENGTH, SEED));
  close_pair(&p);
}

// ---- what belongs to no opcode ----------------------------------------------------------------------------

// flag.jetty and local_id of a receive tell what was addressed, not what sent.
static void run_mixed(bool jfs_sends) {
  struct pair p = {.q = open_queue(stage.context, (struct queue_options){.simplex = jfs_sends}),
                   .far = far_open((struct queue_options){.simplex = !jfs_sends})};
  send_body(&p);
  write_imm_body(&p);
  far_close(&p.far);
  close_queue(&p.q);
}

// Jettys that share a JFR: a record names the jetty that was addressed, and is in the JFC that this one chose.
static void shared_jfr(void) {
  enum { kJettys = 3 };
  struct queue q = open_queue(stage.context, (struct queue_options){0});
  struct far_queue far = far_open((struct queue_options){0});
  urma_jfc_cfg_t jfc_cfg = {.depth = 16};
  urma_jfc_t* own = urma_create_jfc(stage.context, &jfc_cfg);
  need(own != NULL, "urma_create_jfc");
  urma_jetty_t* jettys[kJettys] = {q.jetty};
  for (int i = 1; i < kJettys; ++i) {
    urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = 1, .jfs_cfg = q.jetty->jetty_cfg.jfs_cfg};
    cfg.shared.jfr = q.jfr;
    cfg.shared.jfc = i == 2 ? own : NULL;
    jettys[i] = urma_create_jetty(stage.context, &cfg);
    need(jettys[i] != NULL, "urma_create_jetty");
  }
  for (int round = 0; round < 3 * kJettys; ++round) {
    urma_jetty_t* to = jettys[round % kJettys];
    uint64_t user_ctx = next_user_ctx();
    urma_cr_t record;
    check_number("urma_recv", urma_recv(q.jfr, stage.memory, near_address(RECEIVE), 64, user_ctx), URMA_SUCCESS);
    far_send(&far, to->jetty_id, THERE, 8, false);
    check_status("receive", wait_on(to == jettys[2] ? own : q.jfc, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)user_ctx);
    check_number("flags", record.flag.value, 3);
    check_number("local_id", record.local_id, to->jetty_id.id);
    check_true("user_data is the jetty", record.user_data == (uintptr_t)to);
    check_from(&record, far.sends);
  }
  for (int i = 1; i < kJettys; ++i) check_number("urma_delete_jetty", urma_delete_jetty(jettys[i]), URMA_SUCCESS);
  check_number("urma_delete_jfc", urma_delete_jfc(own), URMA_SUCCESS);
  far_close(&far);
  close_queue(&q);
}

// One poll for many: oldest first, and nothing is written behind the last.
static void several_body(struct pair* p) {
  enum { kRequests = 8, kRoom = 64 };
  urma_cr_t records[kRoom];
  struct request r = request(p, URMA_OPC_WRITE);
  uint64_t first = 0;
  for (int i = 0; i < kRequests; ++i) {
    r.user_ctx = next_user_ctx();
    if (i == 0) first = r.user_ctx;
    check_number("post", post(&p->q, &r), URMA_SUCCESS);
  }
  check_number("poll with room for none", urma_poll_jfc(p->q.jfc, 0, records), 0);
  int taken = 0;
  for (double end = now() + PATIENCE; taken < kRequests && now() < end;) {
    memset(records + taken, 0xa5, sizeof records - (size_t)taken * sizeof *records);
    taken += urma_poll_jfc(p->q.jfc, kRoom - taken, records + taken);
  }
  check_number("completions", taken, kRequests);
  for (int i = 0; i < kRequests; ++i) check_sent(&p->q, &records[i], LENGTH, first + (uint64_t)i);
  const unsigned char* behind = (const unsigned char*)&records[kRequests];
  bool untouched = true;
  for (size_t i = 0; i < sizeof records - kRequests * sizeof *records; ++i) untouched &= behind[i] == 0xa5;
  check_true("records behind the last are untouched", untouched);
}

static void write_case(void) { for_each_variant(write_body); }
static void write_imm_case(void) { for_each_variant(write_imm_body); }
static void write_notify_case(void) { for_each_variant(write_notify_body); }
static void read_case(void) { for_each_variant(read_body); }
static void cas_case(void) { for_each_variant(cas_body); }
static void swap_case(void) { for_each_variant(swap_body); }
static void fadd_case(void) { for_each_variant(fadd_body); }
static void fsub_case(void) { for_each_variant(fsub_body); }
static void fand_case(void) { for_each_variant(fand_body); }
static void for_case(void) { for_each_variant(for_body); }
static void fxor_case(void) { for_each_variant(fxor_body); }
static void send_case(void) { for_each_variant(send_body); }
static void send_imm_case(void) { for_each_variant(send_imm_body); }
static void send_invalidate_case(void) { for_each_variant(send_invalidate_body); }
static void nop_case(void) { for_each_variant(nop_body); }
static void um_send_case(void) { run_unreliable(URMA_OPC_SEND, URMA_CR_OPC_SEND); }
static void um_send_imm_case(void) { run_unreliable(URMA_OPC_SEND_IMM, URMA_CR_OPC_SEND_WITH_IMM); }
static void jfs_to_jetty_case(void) { run_mixed(true); }
static void jetty_to_jfr_case(void) { run_mixed(false); }
static void several_case(void) { for_each_variant(several_body); }

static const struct test_case cases[] = {
    {"WRITE", write_case},
    {"WRITE_IMM", write_imm_case},
    {"WRITE_NOTIFY", write_notify_case},
    {"READ", read_case},
    {"CAS", cas_case},
    {"SWAP", swap_case},
    {"FADD", fadd_case},
    {"FSUB", fsub_case},
    {"FAND", fand_case},
    {"FOR", for_case},
    {"FXOR", fxor_case},
    {"SEND", send_case},
    {"SEND_IMM", send_imm_case},
    {"SEND_INVALIDATE", send_invalidate_case},
    {"NOP", nop_case},
    {"UM SEND", um_send_case},
    {"UM SEND_IMM", um_send_imm_case},
    {"from a JFS to a jetty", jfs_to_jetty_case},
    {"from a jetty to a JFR", jetty_to_jfr_case},
    {"shared JFR", shared_jfr},
    {"several records in one poll", several_case},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
