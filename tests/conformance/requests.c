// SPDX-License-Identifier: Apache-2.0
//
// Requests of every form: scattered, gathered, inline, empty, in lists, without completion, fenced, of all sizes, and
// by the calls for one piece (URMA API 0.9, 5.10, 6.1, 6.7). Usage: see far.h.
#include <stdlib.h>
#include <string.h>
#include <urma_ubagg.h>

#include "tests/conformance/far.h"

#define HERE 4096
#define THERE 8192
#define SEED 6
#define PIECES 4

// ---- scatter and gather -----------------------------------------------------------------------------------

// Pieces of odd lengths, out of order, one of them empty. Together they hold the bytes of one pattern.
static const uint32_t piece_bytes[PIECES] = {1, 0, 4097, 333};
static const uint64_t piece_place[PIECES] = {70000, 66000, 50001, 60003};
#define PIECES_BYTES (1 + 4097 + 333)

static void describe_pieces(urma_sge_t* pieces) {
  for (int i = 0; i < PIECES; ++i) {
    pieces[i] = (urma_sge_t){.addr = near_address(piece_place[i]), .len = piece_bytes[i], .tseg = stage.memory};
    if (piece_bytes[i] == 0) pieces[i].tseg = NULL;  // not looked at
  }
}

static void fill_pieces(void) {
  char whole[PIECES_BYTES];
  fill(whole, sizeof whole, SEED);
  const char* at = whole;
  for (int i = 0; i < PIECES; at += piece_bytes[i++]) memcpy(stage.bytes + piece_place[i], at, piece_bytes[i]);
}

static void prepare_pieces(void) {
  for (int i = 0; i < PIECES; ++i) prepare(piece_place[i], piece_bytes[i]);
}

static bool pieces_hold(void) {
  char whole[PIECES_BYTES];
  char* at = whole;
  for (int i = 0; i < PIECES; at += piece_bytes[i++]) memcpy(at, stage.bytes + piece_place[i], piece_bytes[i]);
  bool good = holds(whole, sizeof whole, SEED);
  for (int i = 0; i < PIECES; ++i) {
    const char* piece = stage.bytes + piece_place[i];
    good &= holds(piece - GUARD, GUARD, GUARD_SEED) && holds(piece + piece_bytes[i], GUARD, GUARD_SEED);
  }
  return good;
}

// What a list of pieces may need: as many remote pieces, which are the rest of one range.
static void describe_rest(urma_sge_t* there) {
  uint64_t offset = 0;
  for (int i = 0; i < PIECES; offset += piece_bytes[i++]) {
    there[i] = (urma_sge_t){.addr = far_address(THERE + offset), .len = piece_bytes[i], .tseg = stage.far};
  }
}

static void post_pieces(struct pair* p, urma_opcode_t op, uint32_t remote_pieces) {
  struct request r = request_to(&p->far, op, PIECES_BYTES);
  urma_sge_t here, there[2], pieces[PIECES], rest[PIECES];
  urma_jfs_wr_t wr = build(&r, &here, there), *bad = NULL;
  describe_pieces(pieces);
  describe_rest(rest);
  if (remote_pieces == 1) rest[0].len = PIECES_BYTES;
  urma_sg_t near_list = {pieces, PIECES}, far_list = {rest, remote_pieces};
  if (op == URMA_OPC_SEND) {
    wr.send.src = near_list;
  } else if (op == URMA_OPC_READ) {
    wr.rw.src = far_list, wr.rw.dst = near_list;
  } else {
    wr.rw.src = near_list, wr.rw.dst = far_list;
  }
  check_number("post", post_list(&p->q, &wr, &bad), URMA_SUCCESS);
  urma_cr_t record;
  check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("completion_len", record.completion_len, PIECES_BYTES);
}

static void gather_body(struct pair* p) {
  fill_pieces();
  for (uint32_t remote_pieces = 1; remote_pieces <= PIECES; remote_pieces += PIECES - 1) {
    far_prepare(THERE, PIECES_BYTES);
    post_pieces(p, URMA_OPC_WRITE, remote_pieces);
    check_true("WRITE landed", far_landed(THERE, PIECES_BYTES, SEED));
  }
  urma_cr_t record;
  far_prepare(THERE, PIECES_BYTES);
  far_receive(&p->far, THERE, PIECES_BYTES, 1);
  post_pieces(p, URMA_OPC_SEND, 0);
  check_status("receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("bytes received", record.completion_len, PIECES_BYTES);
  check_true("SEND landed", far_landed(THERE, PIECES_BYTES, SEED));
}

static void scatter_read_body(struct pair* p) {
  far_fill(THERE, PIECES_BYTES, SEED);
  for (uint32_t remote_pieces = 1; remote_pieces <= PIECES; remote_pieces += PIECES - 1) {
    prepare_pieces();
    post_pieces(p, URMA_OPC_READ, remote_pieces);
    check_true("the pieces hold the bytes", pieces_hold());
  }
}

// The peer sends, for the receive in pieces is ours.
static void scatter_receive(void) {
  struct pair p = open_pair((struct queue_options){.max_receive_sge = PIECES}, (struct queue_options){0});
  urma_sge_t pieces[PIECES];
  describe_pieces(pieces);
  prepare_pieces();
  far_fill(THERE, PIECES_BYTES, SEED);
  urma_jfr_wr_t wr = {.src = {pieces, PIECES}, .user_ctx = 77}, *bad = NULL;
  check_number("urma_post_jetty_recv_wr", urma_post_jetty_recv_wr(p.q.jetty, &wr, &bad), URMA_SUCCESS);
  far_send(&p.far, p.q.jetty->jetty_id, THERE, PIECES_BYTES, false);
  urma_cr_t record;
  check_status("receive", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("bytes received", record.completion_len, PIECES_BYTES);
  check_number("user_ctx", (long long)record.user_ctx, 77);
  check_true("the pieces hold the bytes", pieces_hold());
  close_pair(&p);
}

static void most_pieces(void) {
  urma_device_attr_t attr;
  check_number("urma_query_device", urma_query_device(stage.context->dev, &attr), URMA_SUCCESS);
  uint32_t most = attr.dev_cap.max_jfs_sge;
  struct pair p = open_pair((struct queue_options){.max_sge = (uint8_t)most}, (struct queue_options){0});
  struct request r = request_to(&p.far, URMA_OPC_WRITE, 100 * most);
  r.there = far_address(THERE);
  urma_sge_t here, there[2], *pieces = calloc(most + 1, sizeof *pieces);
  urma_jfs_wr_t wr = build(&r, &here, there), *bad = NULL;
  fill(stage.bytes + HERE, (uint64_t)100 * most, SEED);
  for (uint32_t i = 0; i <= most; ++i) {
    pieces[i] = (urma_sge_t){.addr = near_address(HERE + 100ul * i), .len = 100, .tseg = stage.memory};
  }
  far_prepare(THERE, 100ul * most);
  wr.rw.src = (urma_sg_t){pieces, most + 1};
  check_number("one piece more", post_list(&p.q, &wr, &bad), URMA_EINVAL);
  check_true("bad_wr names it", bad == &wr);
  wr.rw.src.num_sge = most;
  check_number("as many as may be", post_list(&p.q, &wr, &bad), URMA_SUCCESS);
  check_status("completion", wait_completion(&p.q, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_true("the bytes landed", far_landed(THERE, 100ul * most, SEED));
  free(pieces);
  close_pair(&p);
}

// ---- inline -----------------------------------------------------------------------------------------------

static uint32_t inline_room(const struct queue* q) {
  return q->jfs != NULL ? q->jfs->jfs_cfg.max_inline_data : q->jetty->jetty_cfg.jfs_cfg.max_inline_data;
}

// The bytes are ours again when post returns, and need no segment.
static void run_inline(struct pair* p, urma_opcode_t op, uint32_t bytes) {
  char text[512];
  struct request r = request_to(&p->far, op, bytes);
  r.inlined = true;
  r.local = NULL;
  r.here = (uintptr_t)text;
  r.there = far_address(THERE);
  fill(text, bytes, SEED);
  far_prepare(THERE, bytes);
  bool two_sided = op != URMA_OPC_WRITE;
  if (two_sided) far_receive(&p->far, op == URMA_OPC_WRITE_IMM ? 65536 : THERE, bytes, 3);
  urma_status_t status = post(&p->q, &r);
  memset(text, 0x11, sizeof text);
  check_number("post", status, URMA_SUCCESS);
  check_status("completion", wait_completion(&p->q, PATIENCE, NULL), URMA_CR_SUCCESS);
  urma_cr_t record = {.completion_len = bytes};
  if (two_sided) check_status("receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("bytes received", record.completion_len, bytes);
  check_true("the bytes landed", far_landed(THERE, bytes, SEED));
}

static void inline_body(struct pair* p) {
  uint32_t room = inline_room(&p->q);
  check_number("max_inline_data that was asked for", room, 200);
  const uint32_t sizes[] = {0, 1, 8, 63, 64, 65, 199, room};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    run_inline(p, URMA_OPC_WRITE, sizes[i]);
    run_inline(p, URMA_OPC_SEND, sizes[i]);
    run_inline(p, URMA_OPC_WRITE_IMM, sizes[i]);
  }
  struct request r = request_to(&p->far, URMA_OPC_WRITE, room + 1);
  r.inlined = true;
  check_number("one byte more", post(&p->q, &r), URMA_EINVAL);
}

static void inline_case(void) {
  for_each_variant_with((struct queue_options){.max_inline = 200}, (struct queue_options){0}, inline_body);
}

static void inline_default_body(struct pair* p) {
  uint32_t room = inline_room(&p->q);
  check_true("max_inline_data tells what may be used", room > 0 && room <= 512);
  run_inline(p, URMA_OPC_SEND, room);
}

static void inline_default(void) { for_each_variant(inline_default_body); }

static void most_inline(void) {
  urma_device_attr_t attr;
  check_number("urma_query_device", urma_query_device(stage.context->dev, &attr), URMA_SUCCESS);
  check_true("room for what the reference tools ask", attr.dev_cap.max_jfs_inline_len >= 188);
  struct queue_options options = {.max_inline = attr.dev_cap.max_jfs_inline_len};
  struct pair p = open_pair(options, (struct queue_options){0});
  check_number("max_inline_data", inline_room(&p.q), attr.dev_cap.max_jfs_inline_len);
  run_inline(&p, URMA_OPC_WRITE, inline_room(&p.q));
  close_pair(&p);
}

static void inline_pieces(void) {
  struct queue_options options = {.max_inline = 100, .max_sge = 3};
  struct pair p = open_pair(options, (struct queue_options){0});
  char text[60];
  fill(text, sizeof text, SEED);
  urma_sge_t pieces[3] = {{.addr = (uintptr_t)text, .len = 7},
                          {.addr = (uintptr_t)text + 7, .len = 0},
                          {.addr = (uintptr_t)text + 7, .len = 53}};
  struct request r = request_to(&p.far, URMA_OPC_WRITE, 60);
  r.inlined = true;
  r.there = far_address(THERE);
  urma_sge_t here, there[2];
  urma_jfs_wr_t wr = build(&r, &here, there), *bad = NULL;
  wr.rw.src = (urma_sg_t){pieces, 3};
  far_prepare(THERE, 60);
  check_number("post", post_list(&p.q, &wr, &bad), URMA_SUCCESS);
  memset(text, 0, sizeof text);
  check_status("completion", wait_completion(&p.q, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_true("the bytes landed", far_landed(THERE, 60, SEED));
  close_pair(&p);
}

// ---- nothing to carry -------------------------------------------------------------------------------------

static void check_empty_receive(struct pair* p, int opcode) {
  urma_cr_t record;
  check_status("receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("bytes received", record.completion_len, 0);
  check_number("opcode", (long long)record.opcode, opcode);
  if (opcode != URMA_CR_OPC_SEND) check_number("imm_data", (long long)record.imm_data, -2);
}

static void empty_body(struct pair* p) {
  far_prepare(THERE, 8);
  urma_opcode_t ops[] = {URMA_OPC_WRITE, URMA_OPC_SEND, URMA_OPC_SEND_IMM, URMA_OPC_WRITE_IMM};
  int received[] = {-1, URMA_CR_OPC_SEND, URMA_CR_OPC_SEND_WITH_IMM, URMA_CR_OPC_WRITE_WITH_IMM};
  for (int i = 0; i < 4; ++i) {
    struct request r = request_to(&p->far, ops[i], 0);
    r.there = far_address(THERE);
    r.immediate = (uint64_t)-2;
    if (received[i] >= 0) far_receive(&p->far, THERE, 64, 0);
    urma_cr_t record;
    check_number("post", post(&p->q, &r), URMA_SUCCESS);
    check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("completion_len", record.completion_len, 0);
    if (received[i] >= 0) check_empty_receive(p, received[i]);
  }
  check_true("nothing landed", far_landed(THERE, 8, CLEARED_SEED));
  struct request r = request_to(&p->far, URMA_OPC_SEND, 0);
  urma_sge_t here, there[2];
  urma_jfs_wr_t wr = build(&r, &here, there), *bad = NULL;
  wr.send.src = (urma_sg_t){NULL, 0};
  far_receive(&p->far, THERE, 64, 0);
  check_number("post of a SEND without pieces", post_list(&p->q, &wr, &bad), URMA_SUCCESS);
  check_status("completion", wait_completion(&p->q, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_empty_receive(p, URMA_CR_OPC_SEND);
}

static void empty_case(void) { for_each_variant(empty_body); }

// ---- lists ------------------------------------------------------------------------------------------------

enum fault { NO_FAULT, BAD_OPCODE, NO_SEGMENT, TOO_MANY_PIECES };

static void run_list(struct pair* p, enum fault fault) {
  enum { kRequests = 5, kOffender = 3 };
  struct request r = request_to(&p->far, URMA_OPC_WRITE, 8);
  urma_sge_t here[kRequests], there[kRequests][2];
  urma_jfs_wr_t list[kRequests], *bad = NULL;
  far_prepare(THERE, 8 * kRequests);
  fill(stage.bytes + HERE, 8 * kRequests, SEED);
  for (uint64_t i = 0; i < kRequests; ++i) {
    r.here = near_address(HERE + 8 * i), r.there = far_address(THERE + 8 * i), r.user_ctx = 50 + i;
    list[i] = build(&r, &here[i], there[i]);
    list[i].next = i + 1 < kRequests ? &list[i + 1] : NULL;
  }
  if (fault == BAD_OPCODE) list[kOffender].opcode = (urma_opcode_t)0x33;
  if (fault == NO_SEGMENT) here[kOffender].tseg = NULL;
  if (fault == TOO_MANY_PIECES) list[kOffender].rw.src.num_sge = 200;
  uint64_t good = fault == NO_FAULT ? kRequests : kOffender;
  check_number("post", post_list(&p->q, list, &bad), fault == NO_FAULT ? URMA_SUCCESS : URMA_EINVAL);
  if (fault != NO_FAULT) check_number("bad_wr", bad - list, kOffender);
  urma_cr_t record;
  for (uint64_t i = 0; i < good; ++i) {
    check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)(50 + i));
  }
  // The next completion is that of the next request: nothing of the rest was posted.
  r = request_to(&p->far, URMA_OPC_NOP, 0);
  r.user_ctx = 99;
  check_number("post", post(&p->q, &r), URMA_SUCCESS);
  check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx of the one behind the list", (long long)record.user_ctx, 99);
  check_true("the good ones landed", far_holds(THERE, 8 * good, SEED));
  if (fault != NO_FAULT) check_true("the offender did not", !far_holds(THERE, 8 * good + 8, SEED));
}

static void list_body(struct pair* p) {
  for (enum fault fault = NO_FAULT; fault <= TOO_MANY_PIECES; ++fault) run_list(p, fault);
}

static void list_case(void) { for_each_variant(list_body); }

static void list_of_receives(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  urma_sge_t pieces[4];
  urma_jfr_wr_t list[4], *bad = NULL;
  for (uint64_t i = 0; i < 4; ++i) {
    pieces[i] = (urma_sge_t){.addr = near_address(HERE + 64 * i), .len = 64, .tseg = stage.memory};
    list[i] = (urma_jfr_wr_t){.src = {&pieces[i], 1}, .user_ctx = 60 + i, .next = i < 3 ? &list[i + 1] : NULL};
  }
  pieces[2].tseg = NULL;
  check_number("post", urma_post_jfr_wr(p.q.jfr, list, &bad), URMA_EINVAL);
  check_number("bad_wr", bad - list, 2);
  pieces[2].tseg = stage.memory;
  list[2].next = NULL;
  check_number("post of the third", urma_post_jfr_wr(p.q.jfr, &list[2], &bad), URMA_SUCCESS);
  memset(list, 0xa5, sizeof list);
  memset(pieces, 0xa5, sizeof pieces);
  far_fill(THERE, 64, SEED);
  for (uint64_t i = 0; i < 3; ++i) {
    urma_cr_t record;
    memset(stage.bytes + HERE + 64 * i, 0, 64);
    far_send(&p.far, p.q.jetty->jetty_id, THERE, 64, false);
    check_status("receive", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)(60 + i));
    check_true("in its memory", holds(stage.bytes + HERE + 64 * i, 64, SEED));
  }
  close_pair(&p);
}

// ---- without completion, fenced ---------------------------------------------------------------------------

static void quiet_body(struct pair* p) {
  enum { kQuiet = 7, kRounds = 8 };  // more than the queue is deep
  urma_cr_t record;
  fill(stage.bytes + HERE, 8 * (kQuiet + 1), SEED);
  for (uint64_t round = 0; round < kRounds; ++round) {
    far_prepare(THERE, 8 * (kQuiet + 1));
    for (uint64_t i = 0; i <= kQuiet; ++i) {
      struct request r = request_to(&p->far, URMA_OPC_WRITE, 8);
      r.here = near_address(HERE + 8 * i), r.there = far_address(THERE + 8 * i);
      r.quiet = i < kQuiet;
      r.user_ctx = 100 * round + i;
      check_number("post", post(&p->q, &r), URMA_SUCCESS);
    }
    check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)(100 * round + kQuiet));
    check_true("all of them landed", far_landed(THERE, 8 * (kQuiet + 1), SEED));
  }
}

static void quiet_case(void) { for_each_variant(quiet_body); }

// The fenced request carries what the one before brings.
static void fence_body(struct pair* p) {
  enum { kRounds = 100 };
  far_set_word(THERE, 1000);
  for (uint64_t i = 0; i < kRounds; ++i) {
    bool atomic = i % 2 == 0;
    struct request first = request_to(&p->far, atomic ? URMA_OPC_FADD : URMA_OPC_READ, 8);
    struct request second = request_to(&p->far, URMA_OPC_WRITE, 8);
    first.here = second.here = near_address(HERE);
    first.there = far_address(THERE), second.there = far_address(THERE + 8);
    first.immediate = 3;
    first.quiet = second.fence = true;
    memset(stage.bytes + HERE, 0xee, 8);
    uint64_t before = far_word(THERE);
    check_number("post", post(&p->q, &first), URMA_SUCCESS);
    check_number("post", post(&p->q, &second), URMA_SUCCESS);
    check_status("completion", wait_completion(&p->q, PATIENCE, NULL), URMA_CR_SUCCESS);
    check_number("what the fenced WRITE carried", (long long)far_word(THERE + 8), (long long)before);
  }
  check_number("the sum", (long long)far_word(THERE), 1000 + 3 * kRounds / 2);
}

static void fence_case(void) { for_each_variant(fence_body); }

// ---- sizes ------------------------------------------------------------------------------------------------

static void run_size(struct pair* p, uint32_t bytes, uint32_t seed) {
  const uint64_t there = THERE + bytes % 64;
  struct request w = request_to(&p->far, URMA_OPC_WRITE, bytes), r = request_to(&p->far, URMA_OPC_READ, bytes);
  struct request s = request_to(&p->far, URMA_OPC_SEND, bytes);
  w.here = r.here = s.here = near_address(HERE);
  w.there = r.there = far_address(there);
  fill(stage.bytes + HERE, bytes, seed);
  far_prepare(there, bytes);
  check_status("WRITE", run(&p->q, &w), URMA_CR_SUCCESS);
  check_true("WRITE landed", far_landed(there, bytes, seed));
  prepare(HERE, bytes);
  check_status("READ", run(&p->q, &r), URMA_CR_SUCCESS);
  check_true("READ landed", landed(HERE, bytes, seed));
  urma_cr_t record;
  far_prepare(there, bytes);
  far_receive(&p->far, there, bytes, bytes);
  check_status("SEND", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("bytes received", record.completion_len, bytes);
  check_true("SEND landed", far_landed(there, bytes, seed));
}

static void sizes_body(struct pair* p) {
  static const uint32_t borders[] = {4, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536, 131072};
  for (uint32_t bytes = 1; bytes <= 2; ++bytes) run_size(p, bytes, bytes);
  for (uint32_t i = 0; i < sizeof borders / sizeof *borders; ++i) {
    for (uint32_t bytes = borders[i] - 1; bytes <= borders[i] + 1; ++bytes) run_size(p, bytes, bytes);
  }
  run_size(p, (1u << 20) + 7, 3);
  run_size(p, 8u << 20, 4);
}

static void sizes_case(void) { for_each_variant(sizes_body); }

// ---- calls for one piece ----------------------------------------------------------------------------------

static void one_piece_calls(void) {
  struct pair p = open_pair((struct queue_options){.simplex = true}, (struct queue_options){0});
  const urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1}, inlined = {.bs = {.complete_enable = 1, .inline_flag = 1}};
  urma_jfs_t* jfs = p.q.jfs;
  urma_target_jetty_t* to = p.far.target;
  const uint64_t here = near_address(HERE), there = far_address(THERE);
  urma_cr_t record;
  fill(stage.bytes + HERE, 100, SEED);
  far_prepare(THERE, 100);
  check_number("urma_write", urma_write(jfs, to, stage.far, stage.memory, there, here, 100, flag, 1), URMA_SUCCESS);
  check_status("completion", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, 1);
  check_true("the bytes landed", far_landed(THERE, 100, SEED));
  prepare(HERE, 100);
  check_number("urma_read", urma_read(jfs, to, stage.memory, stage.far, here, there, 100, flag, 2), URMA_SUCCESS);
  check_status("completion", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, 2);
  check_true("the bytes came", landed(HERE, 100, SEED));
  far_prepare(THERE, 40);
  far_receive(&p.far, THERE, 100, 9);  // by urma_recv
  check_number("urma_send", urma_send(jfs, to, NULL, here, 40, inlined, 3), URMA_SUCCESS);
  check_status("completion", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, 3);
  check_status("receive", far_take(&p.far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("bytes received", record.completion_len, 40);
  check_number("user_ctx of the receive", (long long)record.user_ctx, 9);
  check_true("the bytes landed", far_holds(THERE, 40, SEED));

  check_number("urma_write without target", urma_write(jfs, NULL, stage.far, stage.memory, there, here, 8, flag, 0),
               URMA_EINVAL);
  check_number("urma_write without memory there", urma_write(jfs, to, NULL, stage.memory, there, here, 8, flag, 0),
               URMA_EINVAL);
  check_number("urma_write without memory here", urma_write(jfs, to, stage.far, NULL, there, here, 8, flag, 0),
               URMA_EINVAL);
  check_number("urma_read without memory", urma_read(jfs, to, NULL, stage.far, here, there, 8, flag, 0), URMA_EINVAL);
  check_number("urma_send without memory", urma_send(jfs, to, NULL, here, 8, flag, 0), URMA_EINVAL);
  check_number("urma_recv without memory", urma_recv(p.q.jfr, NULL, here, 8, 0), URMA_EINVAL);
  check_number("urma_write_affinity, for bonding devices only",
               urma_write_affinity(jfs, to, stage.far, stage.memory, there, here, 8, flag, 0, 0, 0), URMA_EINVAL);
  check_number("urma_recv at 0", urma_recv(p.q.jfr, stage.memory, 0, 8, 0), URMA_FAIL);
  close_pair(&p);
}

// ---- whose memory the request is --------------------------------------------------------------------------

static void reuse_body(struct pair* p) {
  enum { kRequests = 60 };
  urma_sge_t here, there[2];
  urma_jfs_wr_t wr, *bad = NULL;
  fill(stage.bytes + HERE, 8 * kRequests, SEED);
  far_prepare(THERE, 8 * kRequests);
  for (uint64_t i = 0; i < kRequests; ++i) {
    struct request r = request_to(&p->far, URMA_OPC_WRITE, 8);
    r.here = near_address(HERE + 8 * i), r.there = far_address(THERE + 8 * i), r.user_ctx = i;
    wr = build(&r, &here, there);
    check_number("post", post_list(&p->q, &wr, &bad), URMA_SUCCESS);
    memset(&wr, 0xa5, sizeof wr);
    memset(&here, 0xa5, sizeof here);
    memset(there, 0xa5, sizeof there);
  }
  for (uint64_t i = 0; i < kRequests; ++i) {
    urma_cr_t record;
    check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)i);
  }
  check_true("the bytes landed", far_landed(THERE, 8 * kRequests, SEED));
}

static void reuse_case(void) {
  for_each_variant_with((struct queue_options){.depth = 64}, (struct queue_options){0}, reuse_body);
}

// ---- full queues ------------------------------------------------------------------------------------------

static void full_body(struct pair* p) {
  urma_cr_t record;
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  for (s.user_ctx = 0; s.user_ctx < 5; ++s.user_ctx) check_number("one of 5", post(&p->q, &s), URMA_SUCCESS);
  check_number("the sixth", post(&p->q, &s), URMA_ENOMEM);
  for (uint64_t i = 0; i < 5; ++i) far_receive(&p->far, THERE + 64 * i, 64, i);
  for (uint64_t i = 0; i < 5; ++i) {
    check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("user_ctx", (long long)record.user_ctx, (long long)i);
    check_status("receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  }
  far_receive(&p->far, THERE, 64, 5);
  check_status("the sixth, when there is room", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
}

static void full_case(void) {
  for_each_variant_with((struct queue_options){.depth = 5}, (struct queue_options){0}, full_body);
}

static void full_receive_queue(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  uint32_t depth = p.q.jfr->jfr_cfg.depth;
  for (uint32_t i = 0; i < depth; ++i) {
    check_number("one of its depth", urma_recv(p.q.jfr, stage.memory, near_address(HERE), 64, i), URMA_SUCCESS);
  }
  check_number("one more", urma_recv(p.q.jfr, stage.memory, near_address(HERE), 64, depth), URMA_ENOMEM);
  far_send(&p.far, p.q.jetty->jetty_id, THERE, 8, false);
  urma_cr_t record;
  check_status("receive", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, 0);
  check_number("one when there is room", urma_recv(p.q.jfr, stage.memory, near_address(HERE), 64, depth), URMA_SUCCESS);
  close_pair(&p);
}

// ---- atomics that are none --------------------------------------------------------------------------------

static void malformed_atomics_body(struct pair* p) {
  static const urma_opcode_t ops[] = {URMA_OPC_CAS,  URMA_OPC_SWAP, URMA_OPC_FADD, URMA_OPC_FSUB,
                                      URMA_OPC_FAND, URMA_OPC_FOR,  URMA_OPC_FXOR};
  static const struct {
    uint32_t offset, bytes;
  } wrong[] = {{1, 8}, {4, 8}, {12, 8}, {2, 4}, {1, 4}, {1, 2}, {0, 0}, {0, 3}, {0, 5}, {0, 7}, {0, 9}, {0, 32}};
  far_prepare(THERE, 64);
  for (size_t op = 0; op < sizeof ops / sizeof *ops; ++op) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
      struct request r = request_to(&p->far, ops[op], wrong[i].bytes);
      r.there = far_address(THERE + wrong[i].offset);
      r.immediate = 1;
      check_number("post", post(&p->q, &r), URMA_EINVAL);
    }
  }
  check_true("nothing was done", far_landed(THERE, 64, CLEARED_SEED));
}

static void malformed_atomics(void) { for_each_variant(malformed_atomics_body); }

static const struct queue_options several_pieces = {.max_sge = PIECES};
static void gather_case(void) { for_each_variant_with(several_pieces, (struct queue_options){0}, gather_body); }
static void scatter_read(void) { for_each_variant_with(several_pieces, (struct queue_options){0}, scatter_read_body); }

static const struct test_case cases[] = {
    {"gather", gather_case},
    {"scatter by READ", scatter_read},
    {"scatter by receive", scatter_receive},
    {"as many pieces as may be", most_pieces},
    {"inline", inline_case},
    {"inline, not asked for", inline_default},
    {"as much inline as may be", most_inline},
    {"inline in pieces", inline_pieces},
    {"empty messages", empty_case},
    {"lists", list_case},
    {"list of receives", list_of_receives},
    {"without completion", quiet_case},
    {"fence", fence_case},
    {"sizes", sizes_case},
    {"calls for one piece", one_piece_calls},
    {"request memory used again", reuse_case},
    {"full send queue", full_case},
    {"full receive queue", full_receive_queue},
    {"malformed atomics", malformed_atomics},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
