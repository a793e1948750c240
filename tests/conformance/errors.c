// SPDX-License-Identifier: Apache-2.0
//
// Faults and the status that each ends with, at both sides (URMA API 0.9, 6.3), on a jetty in RM and RC and on a JFS.
// After each fault the queue that had it works on. Usage: see far.h.
#include <string.h>

#include "tests/conformance/far.h"

#define THERE 8192
#define BYTES 4096
#define SEED 7

// Runs a request that fails; its record says what a send-side record must. It need not ask for a completion.
static void check_failure(struct pair* p, const char* what, struct request r, int expected) {
  urma_cr_t record;
  r.user_ctx = 0x8000000000000001u;
  r.quiet = true;
  check_number(what, post(&p->q, &r), URMA_SUCCESS);
  check_status(what, wait_completion(&p->q, PATIENCE, &record), expected);
  check_true("user_ctx of the record", record.user_ctx == r.user_ctx);
  check_number("opcode of the record", (long long)record.opcode, 0xff);
  check_number("flags of the record", record.flag.value, p->q.jfs != NULL ? 0 : 2);
  check_number("local_id of the record", record.local_id,
               p->q.jfs != NULL ? p->q.jfs->jfs_id.id : p->q.jetty->jetty_id.id);
}

static void check_queue_works(struct pair* p) {
  struct request r = request_to(&p->far, URMA_OPC_WRITE, 64);
  r.there = far_address(THERE + 100000);
  fill(stage.bytes, 64, SEED);
  far_prepare(THERE + 100000, 64);
  check_status("a WRITE on the same queue afterwards", run(&p->q, &r), URMA_CR_SUCCESS);
  check_true("it landed", far_landed(THERE + 100000, 64, SEED));
}

static const struct {
  const char* name;
  urma_opcode_t op;
  uint32_t bytes;
} one_sided[] = {
    {"WRITE", URMA_OPC_WRITE, 100},
    {"WRITE of several packets", URMA_OPC_WRITE, 20000},
    {"WRITE_NOTIFY", URMA_OPC_WRITE_NOTIFY, 100},
    {"READ", URMA_OPC_READ, 100},
    {"READ of several packets", URMA_OPC_READ, 20000},
    {"CAS", URMA_OPC_CAS, 8},
    {"SWAP", URMA_OPC_SWAP, 8},
    {"FADD", URMA_OPC_FADD, 8},
    {"FSUB", URMA_OPC_FSUB, 8},
    {"FAND", URMA_OPC_FAND, 8},
    {"FOR", URMA_OPC_FOR, 8},
    {"FXOR", URMA_OPC_FXOR, 4},
};
#define ONE_SIDED (sizeof one_sided / sizeof *one_sided)

static bool is_read(urma_opcode_t op) { return op == URMA_OPC_READ; }
static bool is_write(urma_opcode_t op) { return op == URMA_OPC_WRITE || op == URMA_OPC_WRITE_NOTIFY; }

static struct request request_at(struct pair* p, size_t number, urma_target_seg_t* remote, uint64_t address) {
  struct request r = request_to(&p->far, one_sided[number].op, one_sided[number].bytes);
  r.remote = remote;
  r.there = address;
  r.notify = address;
  r.immediate = 1;
  return r;
}

// ---- the peer's memory ------------------------------------------------------------------------------------

static void token_body(struct pair* p) {
  const uint32_t everything = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  urma_target_seg_t* segment = far_register(THERE, 32768, everything, GOOD_TOKEN ^ 1);
  far_prepare(THERE, BYTES);
  for (size_t i = 0; i < ONE_SIDED; ++i) {
    check_failure(p, one_sided[i].name, request_at(p, i, segment, far_address(THERE)), URMA_CR_REM_ACCESS_ABORT_ERR);
  }
  check_true("nothing landed", far_landed(THERE, BYTES, CLEARED_SEED));
  check_queue_works(p);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

static void notify_token_body(struct pair* p) {
  urma_target_seg_t* segment = far_register(THERE, 4096, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN ^ 1);
  struct request r = request_to(&p->far, URMA_OPC_WRITE_NOTIFY, 64);
  urma_sge_t here, there[2];
  urma_jfs_wr_t wr = build(&r, &here, there), *bad = NULL;
  there[1] = (urma_sge_t){.addr = far_address(THERE), .len = 8, .tseg = segment};
  far_prepare(THERE, 8);
  check_number("post", post_list(&p->q, &wr, &bad), URMA_SUCCESS);
  check_status("completion", wait_completion(&p->q, PATIENCE, NULL), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_true("no notify word landed", far_landed(THERE, 8, CLEARED_SEED));
  check_queue_works(p);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

static void range_body(struct pair* p) {
  const uint32_t everything = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  urma_target_seg_t* segment = far_register(THERE, 32768, everything, GOOD_TOKEN);
  const uint64_t start = segment->seg.ubva.va, end = start + segment->seg.len;
  far_prepare(THERE, 32768);
  for (size_t i = 0; i < ONE_SIDED; ++i) {
    uint32_t bytes = one_sided[i].bytes;
    const uint64_t across = end - bytes + (bytes == 8 || bytes == 4 ? bytes : 1);
    check_failure(p, one_sided[i].name, request_at(p, i, segment, across), URMA_CR_REM_ACCESS_ABORT_ERR);
    check_failure(p, one_sided[i].name, request_at(p, i, segment, start - 8), URMA_CR_REM_ACCESS_ABORT_ERR);
    check_failure(p, one_sided[i].name, request_at(p, i, segment, -8ul), URMA_CR_REM_ACCESS_ABORT_ERR);
  }
  check_true("nothing landed beside the segment",
             far_holds(THERE - GUARD, GUARD, GUARD_SEED) && far_holds(THERE + 32768, GUARD, GUARD_SEED));
  check_queue_works(p);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

static void run_access(struct pair* p, uint32_t access) {
  urma_target_seg_t* segment = far_register(THERE, 32768, access, GOOD_TOKEN);
  for (size_t i = 0; i < ONE_SIDED; ++i) {
    urma_opcode_t op = one_sided[i].op;
    bool allowed = is_read(op)    ? (access & URMA_ACCESS_READ) != 0
                   : is_write(op) ? (access & URMA_ACCESS_WRITE) != 0
                                  : (access & URMA_ACCESS_ATOMIC) != 0;
    struct request r = request_at(p, i, segment, far_address(THERE));
    if (allowed) {
      check_status(one_sided[i].name, run(&p->q, &r), URMA_CR_SUCCESS);
    } else {
      far_prepare(THERE, BYTES);
      check_failure(p, one_sided[i].name, r, URMA_CR_REM_ACCESS_ABORT_ERR);
      check_true("nothing landed", far_landed(THERE, BYTES, CLEARED_SEED));
    }
  }
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

static void access_body(struct pair* p) {
  run_access(p, 0);
  run_access(p, URMA_ACCESS_LOCAL_ONLY);
  run_access(p, URMA_ACCESS_READ);
  run_access(p, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  run_access(p, URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC);
  check_queue_works(p);
}

static void unregistered_body(struct pair* p) {
  urma_target_seg_t* segment = far_register(THERE, 32768, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  urma_target_seg_t* again = import_segment(stage.context, segment->seg, GOOD_TOKEN);
  check_status("WRITE before",
               run(&p->q, &(struct request){.op = URMA_OPC_WRITE,
                                            .to = p->far.target,
                                            .local = stage.memory,
                                            .remote = again,
                                            .here = near_address(0),
                                            .there = far_address(THERE),
                                            .bytes = 8}),
               URMA_CR_SUCCESS);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
  for (size_t i = 0; i < ONE_SIDED; ++i) {
    check_failure(p, one_sided[i].name, request_at(p, i, again, far_address(THERE)), URMA_CR_REM_ACCESS_ABORT_ERR);
  }
  check_queue_works(p);
  check_number("urma_unimport_seg", urma_unimport_seg(again), URMA_SUCCESS);
}

// A WRITE_IMM that may not write: its receive is taken and says so, or stays; either way it is not a success.
static void imm_without_access_body(struct pair* p) {
  urma_target_seg_t* segment = far_register(THERE, 4096, URMA_ACCESS_READ, GOOD_TOKEN);
  far_receive(&p->far, THERE + 65536, 64, 1);
  struct request r = request_to(&p->far, URMA_OPC_WRITE_IMM, 64);
  r.remote = segment;
  r.there = far_address(THERE);
  far_prepare(THERE, 64);
  check_failure(p, "WRITE_IMM", r, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_true("nothing landed", far_landed(THERE, 64, CLEARED_SEED));
  far_receive(&p->far, THERE + 65536, 64, 2);
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  check_status("SEND afterwards", run(&p->q, &s), URMA_CR_SUCCESS);
  urma_cr_t record;
  int status = far_take(&p->far, PATIENCE, &record);
  if (status != URMA_CR_SUCCESS) {
    check_number("user_ctx of the receive that failed", (long long)record.user_ctx, 1);
    check_status("receive of the SEND", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  }
  check_number("opcode of the receive", (long long)record.opcode, URMA_CR_OPC_SEND);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

// ---- our memory -------------------------------------------------------------------------------------------

static void local_body(struct pair* p) {
  static char small[256];
  urma_target_seg_t* segment = register_memory(stage.context, small + 64, 128, URMA_ACCESS_LOCAL_ONLY);
  memset(small, 0x21, sizeof small);
  for (size_t i = 0; i < ONE_SIDED; ++i) {
    struct request r = request_at(p, i, stage.far, far_address(THERE));
    r.local = segment;
    r.here = (uintptr_t)small + 64 + 128 - 3;
    check_failure(p, one_sided[i].name, r, URMA_CR_LOC_ACCESS_ERR);
    r.here = (uintptr_t)small + 60;
    check_failure(p, one_sided[i].name, r, URMA_CR_LOC_ACCESS_ERR);
  }
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  s.local = segment;
  s.here = (uintptr_t)small;
  far_receive(&p->far, THERE, 64, 5);
  check_failure(p, "SEND", s, URMA_CR_LOC_ACCESS_ERR);
  bool untouched = true;
  for (size_t i = 0; i < sizeof small; ++i) untouched &= small[i] == 0x21;
  check_true("our memory is untouched", untouched);
  s.here = (uintptr_t)small + 64;
  check_status("SEND from inside", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_queue_works(p);
  check_number("urma_unregister_seg", urma_unregister_seg(segment), URMA_SUCCESS);
}

// ---- messages ---------------------------------------------------------------------------------------------

static void check_len_error(struct pair* p, uint64_t user_ctx) {
  urma_cr_t record;
  check_status("the receive", far_take(&p->far, PATIENCE, &record), URMA_CR_LOC_LEN_ERR);
  check_number("its user_ctx", (long long)record.user_ctx, (long long)user_ctx);
  check_number("its flags", record.flag.value, p->far.options.simplex ? 1 : 3);
  check_number("its local_id", record.local_id, p->far.receives.id);
}

static void too_short_body(struct pair* p) {
  static const uint32_t room[] = {0, 16, 16, 5000, 4096}, message[] = {1, 17, 100000, 100000, 4097};
  for (uint64_t i = 0; i < sizeof room / sizeof *room; ++i) {
    struct request s = request_to(&p->far, i % 2 == 0 ? URMA_OPC_SEND : URMA_OPC_SEND_IMM, message[i]);
    urma_cr_t record;
    far_prepare(THERE, room[i]);
    far_receive(&p->far, THERE, room[i], i);
    check_number("post", post(&p->q, &s), URMA_SUCCESS);
    int status = wait_completion(&p->q, PATIENCE, &record);
    // The contract leaves the choice.
    if (status != URMA_CR_REM_RESP_LEN_ERR) check_status("SEND", status, URMA_CR_REM_OPERATION_ERR);
    check_len_error(p, i);
    check_true("nothing landed behind the receive", far_holds(THERE + room[i], GUARD, GUARD_SEED));
  }
  far_receive(&p->far, THERE, 17, 9);
  struct request s = request_to(&p->far, URMA_OPC_SEND, 17);
  check_status("SEND that fits", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
}

static void jetty_token_body(struct pair* p) {
  static const uint32_t tokens[] = {JETTY_TOKEN ^ 1, 0};
  far_receive(&p->far, THERE, 64, 1);
  for (int i = 0; i < 2; ++i) {
    struct far_queue wrong = p->far;
    wrong.options.token = tokens[i];
    urma_target_jetty_t* target = far_import(&wrong);
    struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
    s.to = target;
    check_failure(p, "SEND with a wrong token or none", s, URMA_CR_REM_ACCESS_ABORT_ERR);
    check_number("unimporting", far_unimport(&p->far, target), URMA_SUCCESS);
  }
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  check_status("SEND with the right token", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
}

// ---- a token takes the place of another -------------------------------------------------------------------

#define NEW_TOKEN 0x2e77e77eu

static struct request write_to(struct pair* p, urma_target_seg_t* segment) {
  struct request r = request_to(&p->far, URMA_OPC_WRITE, 64);
  r.remote = segment;
  r.there = far_address(THERE);
  return r;
}

static void new_segment_token_body(struct pair* p) {
  urma_target_seg_t* old = far_register(THERE, 4096, URMA_ACCESS_READ | URMA_ACCESS_WRITE, GOOD_TOKEN);
  urma_target_seg_t* new = import_segment(stage.context, old->seg, NEW_TOKEN);
  struct request with_old = write_to(p, old), with_new = write_to(p, new);
  check_failure(p, "the new one too early", with_new, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("both", far_set_segment_token(old, NEW_TOKEN, GOOD_TOKEN), URMA_SUCCESS);
  check_status("with the former one", run(&p->q, &with_old), URMA_CR_SUCCESS);
  check_status("with the new one", run(&p->q, &with_new), URMA_CR_SUCCESS);
  check_number("the new one alone", far_set_segment_token(old, NEW_TOKEN, NEW_TOKEN), URMA_SUCCESS);
  check_failure(p, "the former one too late", with_old, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_status("with the new one", run(&p->q, &with_new), URMA_CR_SUCCESS);
  check_number("unimporting", urma_unimport_seg(new), URMA_SUCCESS);
  check_number("the peer unregisters", far_unregister(old), URMA_SUCCESS);
}

static void exclusive_body(struct pair* p) {
  urma_target_seg_t* segment =
      far_register(THERE, 4096, URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC, GOOD_TOKEN);
  struct request write = write_to(p, segment), read = write, add = write;
  read.op = URMA_OPC_READ;
  add.op = URMA_OPC_FADD;
  add.bytes = 8;
  check_number("the peer makes it exclusive", far_set_exclusive(segment, true), URMA_SUCCESS);
  check_failure(p, "WRITE that is not marked", write, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_failure(p, "READ that is not marked", read, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_failure(p, "FADD that is not marked", add, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("marking", set_exclusive(stage.context, segment, true), URMA_SUCCESS);
  check_status("WRITE that is marked", run(&p->q, &write), URMA_CR_SUCCESS);
  check_status("READ that is marked", run(&p->q, &read), URMA_CR_SUCCESS);
  check_status("FADD that is marked", run(&p->q, &add), URMA_CR_SUCCESS);
  check_number("the peer makes it open", far_set_exclusive(segment, false), URMA_SUCCESS);
  check_status("WRITE that is marked", run(&p->q, &write), URMA_CR_SUCCESS);
  check_number("not marking", set_exclusive(stage.context, segment, false), URMA_SUCCESS);
  check_status("WRITE that is not marked", run(&p->q, &write), URMA_CR_SUCCESS);
  check_number("the peer unregisters", far_unregister(segment), URMA_SUCCESS);
}

static void check_send(struct pair* p, const char* what, urma_target_jetty_t* to) {
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  s.to = to;
  far_receive(&p->far, THERE, 64, 1);
  check_status(what, run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
}

static void new_jetty_token_body(struct pair* p) {
  struct far_queue changed = p->far;
  changed.options.token = NEW_TOKEN;
  urma_target_jetty_t* new = far_import(&changed);
  struct request with_old = request_to(&p->far, URMA_OPC_SEND, 8), with_new = with_old;
  with_new.to = new;
  check_failure(p, "the new one too early", with_new, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("both", far_set_queue_token(&p->far, NEW_TOKEN, JETTY_TOKEN), URMA_SUCCESS);
  check_send(p, "with the former one", p->far.target);
  check_send(p, "with the new one", new);
  check_number("the new one alone", far_set_queue_token(&p->far, NEW_TOKEN, NEW_TOKEN), URMA_SUCCESS);
  check_failure(p, "the former one too late", with_old, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_send(p, "with the new one", new);
  check_number("unimporting", far_unimport(&p->far, new), URMA_SUCCESS);
}

static void rnr_body(struct pair* p) {
  static const urma_opcode_t ops[] = {URMA_OPC_SEND, URMA_OPC_SEND_IMM, URMA_OPC_WRITE_IMM};
  for (int i = 0; i < 3; ++i) {
    struct request r = request_to(&p->far, ops[i], 8);
    check_failure(p, "without receive", r, URMA_CR_RNR_RETRY_CNT_EXC_ERR);
    far_receive(&p->far, THERE, 64, 1);
    check_status("with a receive", run(&p->q, &r), URMA_CR_SUCCESS);
    check_status("it", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
  }
  check_queue_works(p);
}

// ---- what is not there ------------------------------------------------------------------------------------

static void deleted_body(struct pair* p) {
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  far_receive(&p->far, THERE, 64, 1);
  check_status("SEND before", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_number("the peer deletes it", far_delete(&p->far), URMA_SUCCESS);
  check_failure(p, "SEND", s, URMA_CR_REM_ACCESS_ABORT_ERR);
  s.bytes = 100000;
  check_failure(p, "SEND of several packets", s, URMA_CR_REM_ACCESS_ABORT_ERR);
}

static void unknown_queue(void) {
  struct queue q = open_queue(stage.context, (struct queue_options){0});
  struct pair p = {.q = q, .far = far_open((struct queue_options){0})};
  urma_jetty_id_t id = p.far.receives;
  id.id = 0xfffff;
  urma_target_jetty_t* nobody = import_jetty(stage.context, id, 0, URMA_TM_RM);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  s.to = nobody;
  check_failure(&p, "SEND to nobody", s, URMA_CR_REM_ACCESS_ABORT_ERR);
  check_queue_works(&p);
  check_number("urma_unimport_jetty", urma_unimport_jetty(nobody), URMA_SUCCESS);
  close_pair(&p);
}

static void unbound(void) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_RC}, (struct queue_options){0});
  struct request w = request_to(&p.far, URMA_OPC_WRITE, 8);
  check_status("WRITE", run(&p.q, &w), URMA_CR_SUCCESS);
  check_number("urma_unbind_jetty", urma_unbind_jetty(p.q.jetty), URMA_SUCCESS);
  check_true("remote_jetty is forgotten", p.q.jetty->remote_jetty == NULL);
  check_number("urma_unbind_jetty again", urma_unbind_jetty(p.q.jetty), URMA_EINVAL);
  check_true("a WRITE of the unbound jetty is refused", post(&p.q, &w) != URMA_SUCCESS);
  w.to = p.far.target;
  check_true("also if it names a target", post(&p.q, &w) != URMA_SUCCESS);
  check_number("urma_bind_jetty", urma_bind_jetty(p.q.jetty, p.far.target), URMA_SUCCESS);
  check_queue_works(&p);
  close_pair(&p);
}

// The peer has not bound: it accepts whoever bound to it, and later binds.
static void bound_by_us_only(void) {
  struct pair p = {.q = open_queue(stage.context, (struct queue_options){.mode = URMA_TM_RC}),
                   .far = far_open((struct queue_options){.mode = URMA_TM_RC})};
  check_number("urma_bind_jetty", urma_bind_jetty(p.q.jetty, p.far.target), URMA_SUCCESS);
  far_receive(&p.far, THERE, 64, 1);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  check_status("SEND", run(&p.q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p.far, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_queue_works(&p);
  check_number("the peer binds", far_bind(&p.far, p.q.jetty->jetty_id), URMA_SUCCESS);
  far_receive(&p.far, THERE, 64, 2);
  check_status("SEND", run(&p.q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p.far, PATIENCE, NULL), URMA_CR_SUCCESS);
  close_pair(&p);
}

// UM carries nothing but SEND, no longer than a packet.
static void unreliable(void) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  for (size_t i = 0; i < ONE_SIDED; ++i) {
    struct request r = request_at(&p, i, stage.far, far_address(THERE));
    check_number(one_sided[i].name, post(&p.q, &r), URMA_EINVAL);
  }
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  s.bytes = 8193;
  check_number("SEND longer than any packet", post(&p.q, &s), URMA_EINVAL);
  s.bytes = 8;
  s.to = NULL;
  check_number("SEND without target", post(&p.q, &s), URMA_EINVAL);
  close_pair(&p);
}

// What has no target of its mode, or one of another mode.
static void wrong_target(void) {
  struct pair rm = open_pair((struct queue_options){0}, (struct queue_options){0});
  struct pair um = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  struct request s = request_to(&rm.far, URMA_OPC_SEND, 8);
  check_number("RM to a target of UM", (s.to = um.far.target, post(&rm.q, &s)), URMA_EINVAL);
  check_number("UM to a target of RM", (s.to = rm.far.target, post(&um.q, &s)), URMA_EINVAL);
  check_number("RM without target", (s.to = NULL, post(&rm.q, &s)), URMA_EINVAL);
  check_number("urma_bind_jetty in RM", urma_bind_jetty(rm.q.jetty, rm.far.target), URMA_ENOPERM);
  check_queue_works(&rm);
  close_pair(&rm);
  close_pair(&um);
}

static void token_case(void) { for_each_variant(token_body); }
static void notify_token_case(void) { for_each_variant(notify_token_body); }
static void range_case(void) { for_each_variant(range_body); }
static void access_case(void) { for_each_variant(access_body); }
static void unregistered_case(void) { for_each_variant(unregistered_body); }
static void imm_without_access(void) { for_each_variant(imm_without_access_body); }
static void local_case(void) { for_each_variant(local_body); }
static void too_short_case(void) { for_each_variant(too_short_body); }
static void deleted_case(void) { for_each_variant(deleted_body); }

static void with_jetty_token(void (*body)(struct pair*)) {
  struct queue_options options = {.token = JETTY_TOKEN};
  struct pair p = open_pair((struct queue_options){0}, options);
  body(&p);
  close_pair(&p);
  p = open_pair((struct queue_options){.simplex = true}, options);
  body(&p);
  close_pair(&p);
}

static void jetty_token_case(void) { with_jetty_token(jetty_token_body); }
static void new_segment_token_case(void) { for_each_variant(new_segment_token_body); }
static void exclusive_case(void) { for_each_variant(exclusive_body); }
static void new_jetty_token_case(void) { with_jetty_token(new_jetty_token_body); }

static void rnr_case(void) {
  for (int retries = -1; retries <= 3; ++retries) {
    if (retries == 0) continue;
    for_each_variant_with((struct queue_options){.rnr_retry = retries}, (struct queue_options){0}, rnr_body);
  }
}

static const struct test_case cases[] = {
    {"wrong token", token_case},
    {"wrong token of the notify address", notify_token_case},
    {"out of range", range_case},
    {"access that was not granted", access_case},
    {"unregistered by the peer", unregistered_case},
    {"WRITE_IMM without access", imm_without_access},
    {"local range outside its segment", local_case},
    {"receive too short", too_short_case},
    {"wrong jetty token", jetty_token_case},
    {"a new token of a segment", new_segment_token_case},
    {"a new token of a queue", new_jetty_token_case},
    {"exclusive memory", exclusive_case},
    {"no receive and few retries", rnr_case},
    {"deleted by the peer", deleted_case},
    {"never there", unknown_queue},
    {"unbound RC", unbound},
    {"bound by one side only", bound_by_us_only},
    {"what UM does not do", unreliable},
    {"wrong target", wrong_target},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
