// SPDX-License-Identifier: Apache-2.0
//
// Lives of objects: states and flush, deletion of what is busy and in the wrong order, ids, several contexts, the
// library started again (URMA API 0.9, 5.1 to 5.9, 6.5). Usage: see far.h.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/conformance/far.h"

#define THERE 8192
#define SEED 8
#define LARGE (8u << 20)

static urma_status_t set_state(struct queue* q, urma_jetty_state_t state) {
  urma_jfs_attr_t jfs = {.mask = JFS_STATE, .state = state};
  urma_jetty_attr_t jetty = {.mask = JETTY_STATE, .state = state};
  return q->jfs != NULL ? urma_modify_jfs(q->jfs, &jfs) : urma_modify_jetty(q->jetty, &jetty);
}

static int state_of(struct queue* q) {
  urma_jfs_cfg_t jfs_cfg;
  urma_jfs_attr_t jfs = {.state = (urma_jetty_state_t)77};
  urma_jetty_cfg_t jetty_cfg;
  urma_jetty_attr_t jetty = {.state = (urma_jetty_state_t)77};
  if (q->jfs != NULL) {
    check_number("urma_query_jfs", urma_query_jfs(q->jfs, &jfs_cfg, &jfs), URMA_SUCCESS);
    return (int)jfs.state;
  }
  check_number("urma_query_jetty", urma_query_jetty(q->jetty, &jetty_cfg, &jetty), URMA_SUCCESS);
  return (int)jetty.state;
}

static int flush(struct queue* q, int room, urma_cr_t* records) {
  memset(records, 0xa5, (size_t)room * sizeof *records);
  return q->jfs != NULL ? urma_flush_jfs(q->jfs, room, records) : urma_flush_jetty(q->jetty, room, records);
}

static uint32_t id_of(const struct queue* q) { return q->jfs != NULL ? q->jfs->jfs_id.id : q->jetty->jetty_id.id; }

static void check_marker_of(struct queue* q, const urma_cr_t* record, urma_cr_status_t status) {
  check_status("marker", record->status, status);
  check_number("flags of the marker", record->flag.value, q->jfs != NULL ? 0 : 2);
  check_number("local_id of the marker", record->local_id, id_of(q));
}

static void check_marker(struct queue* q, const urma_cr_t* record) {
  check_marker_of(q, record, URMA_CR_WR_FLUSH_ERR_DONE);
}

// Nothing else came: the next completion is that of the next request.
static void check_usable(struct pair* p) {
  struct request r = request_to(&p->far, URMA_OPC_WRITE, 64);
  urma_cr_t record;
  r.there = far_address(THERE);
  r.user_ctx = 4711;
  fill(stage.bytes, 64, SEED);
  far_prepare(THERE, 64);
  check_number("post", post(&p->q, &r), URMA_SUCCESS);
  check_status("WRITE", wait_completion(&p->q, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("its user_ctx", (long long)record.user_ctx, 4711);
  check_true("it landed", far_landed(THERE, 64, SEED));
}

// ---- states -----------------------------------------------------------------------------------------------

static void idle_error_body(struct pair* p) {
  urma_cr_t record, flushed[4];
  check_number("state at first", state_of(&p->q), URMA_JETTY_STATE_READY);
  for (int round = 0; round < 3; ++round) {
    check_number("to ERROR", set_state(&p->q, URMA_JETTY_STATE_ERROR), URMA_SUCCESS);
    check_number("state", state_of(&p->q), URMA_JETTY_STATE_ERROR);
    check_number("to ERROR again", set_state(&p->q, URMA_JETTY_STATE_ERROR), URMA_SUCCESS);
    wait_completion(&p->q, PATIENCE, &record);
    check_marker(&p->q, &record);
    check_number("nothing to flush", flush(&p->q, 4, flushed), 0);
    check_number("to READY", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
    check_number("state", state_of(&p->q), URMA_JETTY_STATE_READY);
    check_usable(p);
  }
  check_number("flush of none", flush(&p->q, 0, flushed), -URMA_EINVAL);
  check_number("flush of too many",
               p->q.jfs != NULL ? urma_flush_jfs(p->q.jfs, 1000, flushed) : urma_flush_jetty(p->q.jetty, 1000, flushed),
               -URMA_EINVAL);
}

static void idle_error(void) { for_each_variant(idle_error_body); }

// Requests that the peer cannot take end one way or the other, in order and once, around one marker.
static void busy_error_body(struct pair* p) {
  enum { kRequests = 12 };
  urma_cr_t record, flushed[kRequests + 1];
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  for (int round = 0; round < 2; ++round) {
    for (s.user_ctx = 0; s.user_ctx < kRequests; ++s.user_ctx) {
      s.quiet = s.user_ctx % 3 == 1;
      check_number("post", post(&p->q, &s), URMA_SUCCESS);
    }
    check_number("to ERROR", set_state(&p->q, URMA_JETTY_STATE_ERROR), URMA_SUCCESS);
    check_number("flush before the marker", flush(&p->q, 4, flushed), 0);
    uint64_t next = 0;
    while (wait_completion(&p->q, PATIENCE, &record) == URMA_CR_WR_FLUSH_ERR) {
      check_number("user_ctx of what was started", (long long)record.user_ctx, (long long)next++);
      check_number("its opcode", (long long)record.opcode, 0xff);
      check_number("its flags", record.flag.value, p->q.jfs != NULL ? 0 : 2);
      check_number("its local_id", record.local_id, id_of(&p->q));
    }
    check_marker(&p->q, &record);
    for (int n; (n = flush(&p->q, 5, flushed)) > 0;) {
      for (int i = 0; i < n; ++i) {
        int status = flushed[i].status;
        if (status != URMA_CR_WR_FLUSH_ERR) check_status("flushed", status, URMA_CR_WR_UNHANDLED);
        check_number("user_ctx of what was not started", (long long)flushed[i].user_ctx, (long long)next++);
        check_number("its opcode", (long long)flushed[i].opcode, 0xff);
        check_number("its flags", flushed[i].flag.value, p->q.jfs != NULL ? 0 : 2);
        check_number("its local_id", flushed[i].local_id, id_of(&p->q));
      }
    }
    check_number("requests that ended", (long long)next, kRequests);
    check_number("to READY", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
    check_usable(p);
  }
  far_receive(&p->far, THERE, 64, 1);
  check_status("SEND", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
}

static void busy_error(void) { for_each_variant(busy_error_body); }

// What is posted in ERROR is refused, or comes back.
static void post_in_error_body(struct pair* p) {
  urma_cr_t record, flushed[8];
  check_number("to ERROR", set_state(&p->q, URMA_JETTY_STATE_ERROR), URMA_SUCCESS);
  wait_completion(&p->q, PATIENCE, &record);
  check_marker(&p->q, &record);
  struct request r = request_to(&p->far, URMA_OPC_WRITE, 64);
  r.there = far_address(THERE);
  r.user_ctx = 12;
  far_prepare(THERE, 64);
  if (post(&p->q, &r) == URMA_SUCCESS) {
    int n = flush(&p->q, 8, flushed);
    if (n == 0) {
      check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_WR_FLUSH_ERR);
    } else {
      record = flushed[0];
      check_number("flushed", n, 1);
      check_status("its status", record.status, URMA_CR_WR_UNHANDLED);
    }
    check_number("its user_ctx", (long long)record.user_ctx, 12);
  }
  check_true("nothing landed", far_landed(THERE, 64, CLEARED_SEED));
  check_number("to READY", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
  check_usable(p);
}

static void post_in_error(void) { for_each_variant(post_in_error_body); }

// Nobody flushed: leaving ERROR drops the rest.
static void back_without_flush_body(struct pair* p) {
  urma_cr_t record;
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  for (int i = 0; i < 10; ++i) check_number("post", post(&p->q, &s), URMA_SUCCESS);
  check_number("to ERROR", set_state(&p->q, URMA_JETTY_STATE_ERROR), URMA_SUCCESS);
  while (wait_completion(&p->q, PATIENCE, &record) == URMA_CR_WR_FLUSH_ERR) {
  }
  check_marker(&p->q, &record);
  check_number("to RESET", set_state(&p->q, URMA_JETTY_STATE_RESET), URMA_SUCCESS);
  check_number("state", state_of(&p->q), URMA_JETTY_STATE_RESET);
  check_number("to READY", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
  check_usable(p);
}

static void back_without_flush(void) { for_each_variant(back_without_flush_body); }

// In RESET everything ends with an error: what was begun, what was posted, and what is posted there.
static void post_in_reset_body(struct pair* p) {
  urma_cr_t record;
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  for (s.user_ctx = 1; s.user_ctx <= 3; ++s.user_ctx) check_number("post", post(&p->q, &s), URMA_SUCCESS);
  check_number("to RESET", set_state(&p->q, URMA_JETTY_STATE_RESET), URMA_SUCCESS);
  check_number("state", state_of(&p->q), URMA_JETTY_STATE_RESET);
  check_number("post in RESET", post(&p->q, &s), URMA_SUCCESS);
  for (uint64_t i = 1; i <= 4; ++i) {
    check_status("completion", wait_completion(&p->q, PATIENCE, &record), URMA_CR_WR_FLUSH_ERR);
    check_number("user_ctx", (long long)record.user_ctx, (long long)i);
  }
  check_number("and no marker", wait_completion(&p->q, 0, &record), NOTHING);
  check_number("to READY", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
  check_usable(p);
}

static void post_in_reset(void) { for_each_variant(post_in_reset_body); }

static void receive_queue_error_body(struct pair* p) {
  urma_cr_t record;
  for (uint64_t i = 0; i < 4; ++i) far_receive(&p->far, THERE + 100 * i, 64, 40 + i);
  struct request s = request_to(&p->far, URMA_OPC_SEND, 8);
  check_status("SEND", run(&p->q, &s), URMA_CR_SUCCESS);
  check_number("to ERROR", far_set_jfr_state(&p->far, URMA_JFR_STATE_ERROR), URMA_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, 40);
  for (uint64_t i = 1; i < 4; ++i) {
    check_status("the others", far_take(&p->far, PATIENCE, &record), URMA_CR_WR_FLUSH_ERR);
    check_number("user_ctx", (long long)record.user_ctx, (long long)(40 + i));
    check_number("flag.s_r", record.flag.bs.s_r, 1);
  }
  check_number("to READY", far_set_jfr_state(&p->far, URMA_JFR_STATE_READY), URMA_SUCCESS);
  far_receive(&p->far, THERE, 64, 50);
  check_status("SEND", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, 50);
}

static void receive_queue_error(void) { for_each_variant(receive_queue_error_body); }

static void modify_arguments(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  urma_jetty_attr_t jetty = {.mask = 0, .state = URMA_JETTY_STATE_ERROR};
  urma_jfr_attr_t jfr = {.mask = 0, .state = URMA_JFR_STATE_ERROR};
  check_number("jetty without mask", urma_modify_jetty(p.q.jetty, &jetty), URMA_EINVAL);
  jetty.mask = JETTY_RX_THRESHOLD;
  check_true("the jetty's RX_THRESHOLD", urma_modify_jetty(p.q.jetty, &jetty) != URMA_SUCCESS);
  jetty.mask = JETTY_STATE, jetty.state = (urma_jetty_state_t)9;
  check_number("unknown state", urma_modify_jetty(p.q.jetty, &jetty), URMA_EINVAL);
  check_number("JFR without mask", urma_modify_jfr(p.q.jfr, &jfr), URMA_EINVAL);
  check_number("no attributes", urma_modify_jfr(p.q.jfr, NULL), URMA_EINVAL);
  urma_jfr_cfg_t cfg;
  check_number("urma_query_jfr", urma_query_jfr(p.q.jfr, &cfg, &jfr), URMA_SUCCESS);
  check_number("its state", (int)jfr.state, URMA_JFR_STATE_READY);
  check_number("its depth", cfg.depth, p.q.jfr->jfr_cfg.depth);
  check_usable(&p);
  close_pair(&p);
}

// ---- deletion of what is busy -----------------------------------------------------------------------------

static void delete_busy_body(struct pair* p) {
  struct request s = request_to(&p->far, URMA_OPC_SEND, 100000), w = request_to(&p->far, URMA_OPC_WRITE, 1u << 20);
  w.there = far_address(2u << 20);  // what is on its way may still land there
  for (int i = 0; i < 4; ++i) check_number("post SEND", post(&p->q, &s), URMA_SUCCESS);
  for (int i = 0; i < 4; ++i) check_number("post WRITE", post(&p->q, &w), URMA_SUCCESS);
  if (p->q.jfs != NULL) {
    check_number("urma_delete_jfs", urma_delete_jfs(p->q.jfs), URMA_SUCCESS);
    p->q.jfs = NULL;
  } else {
    if (p->q.jetty->remote_jetty != NULL) {
      check_number("urma_delete_jetty while bound", urma_delete_jetty(p->q.jetty), URMA_ENOPERM);
      check_number("urma_unbind_jetty", urma_unbind_jetty(p->q.jetty), URMA_SUCCESS);
    }
    check_number("urma_delete_jetty", urma_delete_jetty(p->q.jetty), URMA_SUCCESS);
    p->q.jetty = NULL;
  }
  urma_cr_t record;
  check_number("completions of a deleted queue", urma_poll_jfc(p->q.jfc, 1, &record), 0);
  // The peer works on, whatever of it was under way.
  struct pair other = open_pair((struct queue_options){0}, (struct queue_options){0});
  check_usable(&other);
  close_pair(&other);
}

static void delete_busy(void) { for_each_variant(delete_busy_body); }

// Unregistered memory is the program's at once, whatever is in flight.
static void unregister_busy_body(struct pair* p) {
  static const urma_opcode_t ops[] = {URMA_OPC_WRITE, URMA_OPC_READ};
  for (int i = 0; i < 2; ++i) {
    char* other = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(other != MAP_FAILED, "mmap");
    urma_target_seg_t* segment = register_memory(stage.context, other, LARGE, URMA_ACCESS_LOCAL_ONLY);
    struct request r = request_to(&p->far, ops[i], LARGE);
    r.local = segment;
    r.here = (uintptr_t)other;
    r.there = far_address(1u << 20);  // what is on its way may still land there
    check_number("post", post(&p->q, &r), URMA_SUCCESS);
    check_number("urma_unregister_seg", urma_unregister_seg(segment), URMA_SUCCESS);
    munmap(other, LARGE);
    int status = wait_completion(&p->q, PATIENCE, NULL);
    if (status != URMA_CR_SUCCESS) check_status("completion", status, URMA_CR_LOC_ACCESS_ERR);
    check_usable(p);
  }
}

static void unregister_busy(void) { for_each_variant(unregister_busy_body); }

// ---- order of deletion ------------------------------------------------------------------------------------

static void wrong_order(void) {
  urma_context_t* context = urma_create_context(stage.context->dev, 0);
  need(context != NULL, "urma_create_context");
  urma_jfce_t* channel = urma_create_jfce(context);
  need(channel != NULL, "urma_create_jfce");
  struct queue q = open_queue(context, (struct queue_options){.mode = URMA_TM_RC, .channel = channel});
  struct queue peer = open_queue(context, (struct queue_options){.mode = URMA_TM_RC});
  urma_target_jetty_t* target = import_jetty(context, peer.jetty->jetty_id, 0, URMA_TM_RC);
  check_number("urma_bind_jetty", urma_bind_jetty(q.jetty, target), URMA_SUCCESS);
  urma_token_id_t* token_id = urma_alloc_token_id(context);
  need(token_id != NULL, "urma_alloc_token_id");
  urma_seg_cfg_t cfg = {.va = near_address(0), .len = 4096, .token_id = token_id};
  cfg.flag.bs.token_id_valid = 1;
  urma_target_seg_t* segment = urma_register_seg(context, &cfg);
  need(segment != NULL, "urma_register_seg");

  check_number("context before its objects", urma_delete_context(context), URMA_EAGAIN);
  check_number("JFCE before its JFC", urma_delete_jfce(channel), URMA_FAIL);
  check_number("JFC before its queues", urma_delete_jfc(q.jfc), URMA_FAIL);
  check_number("JFR before its jetty", urma_delete_jfr(q.jfr), URMA_FAIL);
  check_number("jetty before it is unbound", urma_delete_jetty(q.jetty), URMA_ENOPERM);
  check_number("token id before its segment", urma_free_token_id(token_id), URMA_EINVAL);
  check_number("an imported object by the other call", urma_unimport_jfr(target), URMA_EINVAL);
  check_number("a registered segment by the other call", urma_unimport_seg(segment), URMA_EINVAL);

  check_number("a bound target", urma_unimport_jetty(target), URMA_SUCCESS);
  check_true("the jetty is not bound any more", q.jetty->remote_jetty == NULL);
  close_queue(&q);
  close_queue(&peer);
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(segment), URMA_SUCCESS);
  check_number("context before its last object", urma_delete_context(context), URMA_EAGAIN);
  check_number("urma_free_token_id", urma_free_token_id(token_id), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
}

static void double_delete(void) {
  urma_context_t* context = urma_create_context(stage.context->dev, 0);
  need(context != NULL, "urma_create_context");
  struct queue q = open_queue(context, (struct queue_options){0}),
               jfs = open_queue(context, (struct queue_options){.simplex = true});
  urma_jfce_t* channel = urma_create_jfce(context);
  urma_target_jetty_t* target = import_jetty(context, q.jetty->jetty_id, 0, URMA_TM_RM);
  urma_token_id_t* token_id = urma_alloc_token_id(context);
  urma_target_seg_t* segment = register_memory(context, stage.bytes, 4096, URMA_ACCESS_LOCAL_ONLY);
  urma_target_seg_t* imported = import_segment(context, segment->seg, GOOD_TOKEN);
  for (int round = 0; round < 2; ++round) {
    int expected = round == 0 ? URMA_SUCCESS : URMA_EINVAL;
    check_number("urma_unimport_jetty", urma_unimport_jetty(target), expected);
    check_number("urma_unimport_seg", urma_unimport_seg(imported), expected);
    check_number("urma_unregister_seg", urma_unregister_seg(segment), expected);
    check_number("urma_free_token_id", urma_free_token_id(token_id), expected);
    check_number("urma_delete_jetty", urma_delete_jetty(q.jetty), expected);
    check_number("urma_delete_jfs", urma_delete_jfs(jfs.jfs), expected);
    check_number("urma_delete_jfr", urma_delete_jfr(q.jfr), expected);
    check_number("urma_delete_jfr", urma_delete_jfr(jfs.jfr), expected);
    check_number("urma_delete_jfc", urma_delete_jfc(q.jfc), expected);
    check_number("urma_delete_jfc", urma_delete_jfc(jfs.jfc), expected);
    check_number("urma_delete_jfce", urma_delete_jfce(channel), expected);
    check_number("urma_delete_context", urma_delete_context(context), expected);
  }
  urma_cr_t record;
  check_number("poll of what is gone", urma_poll_jfc(q.jfc, 1, &record), -1);
}

// All of an array or none of it.
static void batches(void) {
  struct queue q[2] = {open_queue(stage.context, (struct queue_options){0}),
                       open_queue(stage.context, (struct queue_options){0})};
  struct queue simplex[2] = {open_queue(stage.context, (struct queue_options){.simplex = true}),
                             open_queue(stage.context, (struct queue_options){.simplex = true})};
  urma_jetty_t *jettys[2] = {q[0].jetty, NULL}, *bad_jetty = NULL;
  urma_jfs_t *jfs[2] = {simplex[0].jfs, NULL}, *bad_jfs = NULL;
  urma_jfr_t *jfrs[2] = {q[0].jfr, NULL}, *bad_jfr = NULL;
  urma_jfc_t *jfcs[4] = {q[0].jfc, NULL, simplex[0].jfc, simplex[1].jfc}, *bad_jfc = NULL;
  for (int round = 0; round < 2; ++round) {
    int expected = round == 0 ? URMA_EINVAL : URMA_SUCCESS;
    check_number("urma_delete_jetty_batch", urma_delete_jetty_batch(jettys, 2, &bad_jetty), expected);
    check_number("urma_delete_jfs_batch", urma_delete_jfs_batch(jfs, 2, &bad_jfs), expected);
    check_number("urma_delete_jfr_batch", urma_delete_jfr_batch(jfrs, 2, &bad_jfr), expected);
    if (round == 1) {
      check_number("urma_delete_jfr", urma_delete_jfr(simplex[0].jfr), URMA_SUCCESS);
      check_number("urma_delete_jfr", urma_delete_jfr(simplex[1].jfr), URMA_SUCCESS);
    }
    check_number("urma_delete_jfc_batch", urma_delete_jfc_batch(jfcs, 4, &bad_jfc), expected);
    check_true("the first is named",
               bad_jetty == q[0].jetty && bad_jfs == simplex[0].jfs && bad_jfr == q[0].jfr && bad_jfc == q[0].jfc);
    jettys[1] = q[1].jetty, jfs[1] = simplex[1].jfs, jfrs[1] = q[1].jfr, jfcs[1] = q[1].jfc;
  }
  check_number("an empty array", urma_delete_jetty_batch(jettys, 0, &bad_jetty), URMA_EINVAL);
  check_number("no array", urma_delete_jfc_batch(NULL, 1, &bad_jfc), URMA_EINVAL);
}

// ---- what asks for nothing --------------------------------------------------------------------------------

static void check_advised_again(const char* what, urma_status_t status) {
  if (status != URMA_EEXIST) check_number(what, status, URMA_SUCCESS);  // there is nothing to be had twice
}

static void advice(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  struct pair s = open_pair((struct queue_options){.simplex = true}, (struct queue_options){0});
  struct pair c = open_pair((struct queue_options){.mode = URMA_TM_RC}, (struct queue_options){0});
  int argument = 0;
  check_number("urma_advise_jetty", urma_advise_jetty(p.q.jetty, p.far.target), URMA_SUCCESS);
  check_advised_again("urma_advise_jetty again", urma_advise_jetty(p.q.jetty, p.far.target));
  check_number("urma_unadvise_jetty", urma_unadvise_jetty(p.q.jetty, p.far.target), URMA_SUCCESS);
  check_number("urma_advise_jetty, RC", urma_advise_jetty(c.q.jetty, c.far.target), URMA_EINVAL);
  check_number("urma_advise_jetty without target", urma_advise_jetty(p.q.jetty, NULL), URMA_EINVAL);
  check_number("urma_advise_jfr", urma_advise_jfr(s.q.jfs, s.far.target), URMA_SUCCESS);
  check_advised_again("urma_advise_jfr again", urma_advise_jfr(s.q.jfs, s.far.target));
  check_number("urma_unadvise_jfr", urma_unadvise_jfr(s.q.jfs, s.far.target), URMA_SUCCESS);
  check_number("urma_advise_jfr_async without callback", urma_advise_jfr_async(s.q.jfs, s.far.target, NULL, &argument),
               URMA_EINVAL);
  check_usable(&p);
  check_usable(&s);
  close_pair(&p);
  close_pair(&s);
  close_pair(&c);
}

static void several_segments_of_a_token_id(void) {
  urma_token_id_flag_t flag = {.bs.multi_seg = 1};
  urma_token_id_t* token_id = urma_alloc_token_id_ex(stage.context, flag);
  need(token_id != NULL, "urma_alloc_token_id_ex");
  urma_target_seg_t* segments[2];
  for (uint64_t i = 0; i < 2; ++i) {
    urma_seg_cfg_t cfg = {.va = near_address(8192 * i), .len = 4096, .token_id = token_id, .flag.bs.token_id_valid = 1};
    segments[i] = urma_register_seg(stage.context, &cfg);
    need(segments[i] != NULL, "urma_register_seg");
    check_number("token id of a segment", segments[i]->seg.token_id, token_id->token_id);
  }
  check_number("free with 2 segments", urma_free_token_id(token_id), URMA_EINVAL);
  check_number("urma_unregister_seg", urma_unregister_seg(segments[0]), URMA_SUCCESS);
  check_number("free with 1 segment", urma_free_token_id(token_id), URMA_EINVAL);
  check_number("urma_unregister_seg", urma_unregister_seg(segments[1]), URMA_SUCCESS);
  check_number("urma_free_token_id", urma_free_token_id(token_id), URMA_SUCCESS);
}

// ---- ids --------------------------------------------------------------------------------------------------

static bool all_different(const uint32_t* ids, int count) {
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < i; ++k) {
      if (ids[i] == ids[k]) return false;
    }
  }
  return true;
}

static void ids_are_not_used_again(void) {
  enum { kRounds = 200 };
  uint32_t jettys[kRounds], jfrs[kRounds], tokens[kRounds];
  for (int i = 0; i < kRounds; ++i) {
    struct queue q = open_queue(stage.context, (struct queue_options){0});
    urma_token_id_t* token = urma_alloc_token_id(stage.context);
    need(token != NULL, "urma_alloc_token_id");
    jettys[i] = q.jetty->jetty_id.id;
    jfrs[i] = q.jfr->jfr_id.id;
    tokens[i] = token->token_id;
    check_true("ids are not 0", jettys[i] != 0 && jfrs[i] != 0);
    check_number("urma_free_token_id", urma_free_token_id(token), URMA_SUCCESS);
    close_queue(&q);
  }
  check_true("jetty ids differ", all_different(jettys, kRounds));
  check_true("JFR ids differ", all_different(jfrs, kRounds));
  check_true("token ids differ", all_different(tokens, kRounds));
}

// A message for the dead reaches nobody who came after.
static void old_id(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  struct far_queue old = p.far, after;
  check_number("the peer deletes its jetty", far_delete(&old), URMA_SUCCESS);
  after = far_open((struct queue_options){0});
  far_receive(&after, THERE, 64, 5);
  struct request s = request_to(&old, URMA_OPC_SEND, 8);
  check_status("SEND to the old one", run(&p.q, &s), URMA_CR_REM_ACCESS_ABORT_ERR);
  s.to = after.target;
  check_status("SEND to the new one", run(&p.q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&after, PATIENCE, NULL), URMA_CR_SUCCESS);
  far_close(&after);
  close_pair(&p);
}

static void wanted_id(void) {
  struct queue q = open_queue(stage.context, (struct queue_options){0});
  urma_jetty_cfg_t cfg = q.jetty->jetty_cfg;
  cfg.shared.jfr = q.jfr;
  cfg.id = 0;
  urma_jetty_t* jettys[3];
  for (uint32_t i = 0; i < 3; ++i) {
    cfg.id = i < 2 ? 700 + i : 700;  // the third is too late
    jettys[i] = urma_create_jetty(stage.context, &cfg);
    need(jettys[i] != NULL, "urma_create_jetty");
  }
  check_number("first", jettys[0]->jetty_id.id, 700);
  check_number("second", jettys[1]->jetty_id.id, 701);
  check_true("the third has another", jettys[2]->jetty_id.id != 700 && jettys[2]->jetty_id.id != 701);
  for (int i = 0; i < 3; ++i) check_number("urma_delete_jetty", urma_delete_jetty(jettys[i]), URMA_SUCCESS);
  close_queue(&q);
}

// ---- several contexts -------------------------------------------------------------------------------------

static void exchange(urma_context_t* from, urma_context_t* to) {
  char words[2][8] = {"letters", "nothing"};
  struct queue sender = open_queue(from, (struct queue_options){0}),
               receiver = open_queue(to, (struct queue_options){0});
  urma_target_seg_t* source = register_memory(from, words[0], 8, URMA_ACCESS_LOCAL_ONLY);
  urma_target_seg_t* sink = register_memory(to, words[1], 8, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  urma_target_jetty_t* target = import_jetty(from, receiver.jetty->jetty_id, 0, URMA_TM_RM);
  check_number("urma_recv", urma_recv(receiver.jfr, sink, (uintptr_t)words[1], 8, 1), URMA_SUCCESS);
  struct request s = {.op = URMA_OPC_SEND, .to = target, .local = source, .here = (uintptr_t)words[0], .bytes = 8};
  check_status("SEND", run(&sender, &s), URMA_CR_SUCCESS);
  check_status("its receive", wait_completion(&receiver, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_true("the bytes landed", memcmp(words[0], words[1], 8) == 0);
  check_number("urma_unimport_jetty", urma_unimport_jetty(target), URMA_SUCCESS);
  close_queue(&sender);
  close_queue(&receiver);
  check_number("urma_unregister_seg", urma_unregister_seg(source), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(sink), URMA_SUCCESS);
}

static void several_contexts(void) {
  urma_context_t* contexts[3];
  for (int i = 0; i < 3; ++i) {
    contexts[i] = urma_create_context(stage.context->dev, 0);
    need(contexts[i] != NULL, "urma_create_context");
    check_true("the same EID", memcmp(&contexts[i]->eid, &stage.context->eid, sizeof(urma_eid_t)) == 0);
  }
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) exchange(contexts[i], contexts[k]);
  }
  struct queue q = open_queue(contexts[0], (struct queue_options){0});
  urma_jfr_cfg_t cfg = q.jfr->jfr_cfg;
  cfg.id = 0;
  errno = 0;
  check_true("a JFR with another context's JFC", urma_create_jfr(contexts[1], &cfg) == NULL);
  check_number("errno", errno, EINVAL);
  close_queue(&q);
  for (int i = 0; i < 3; ++i) check_number("urma_delete_context", urma_delete_context(contexts[i]), URMA_SUCCESS);
}

// ---- the library ------------------------------------------------------------------------------------------

static void start_again(void) {
  check_number("urma_uninit when it is down", urma_uninit(), URMA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    check_number("urma_init", urma_init(NULL), URMA_SUCCESS);
    check_number("urma_init again", urma_init(NULL), URMA_EEXIST);
    urma_context_t* context = open_nic();
    urma_context_t* other = open_nic();
    exchange(context, other);
    struct queue leaked = open_queue(context, (struct queue_options){0});
    urma_target_jetty_t* target = import_jetty(context, leaked.jetty->jetty_id, 0, URMA_TM_RM);
    static char page[4096];
    urma_target_seg_t* segment = register_memory(context, page, sizeof page, URMA_ACCESS_READ);
    check_number("urma_uninit with objects left", urma_uninit(), URMA_SUCCESS);
    urma_cr_t record;
    check_true("a JFC of before", urma_poll_jfc(leaked.jfc, 1, &record) < 0);
    check_number("a jetty of before", urma_delete_jetty(leaked.jetty), URMA_EINVAL);
    check_number("a target of before", urma_unimport_jetty(target), URMA_EINVAL);
    check_number("a segment of before", urma_unregister_seg(segment), URMA_EINVAL);
    check_number("a context of before", urma_delete_context(context), URMA_EINVAL);
  }
}

// With error_suspend a request that fails stops those behind it, and the program repairs what was wrong (6.5).
static void suspended_body(struct pair* p) {
  enum { kBehind = 6 };
  urma_cr_t record, flushed[kBehind];
  for (int round = 0; round < 2; ++round) {
    check_number("state", state_of(&p->q), URMA_JETTY_STATE_READY);
    struct request wrong = request_to(&p->far, URMA_OPC_WRITE, 64);
    wrong.there = far_address(0) - 4096;
    check_status("WRITE outside", run(&p->q, &wrong), URMA_CR_REM_ACCESS_ABORT_ERR);
    wait_completion(&p->q, PATIENCE, &record);
    check_marker_of(&p->q, &record, URMA_CR_WR_SUSPEND_DONE);
    check_number("state", state_of(&p->q), URMA_JETTY_STATE_SUSPENDED);
    struct request r = request_to(&p->far, URMA_OPC_WRITE, 64);
    r.there = far_address(THERE);
    far_prepare(THERE, 64);
    for (r.user_ctx = 0; r.user_ctx < kBehind; ++r.user_ctx) {
      check_number("post in SUSPENDED", post(&p->q, &r), URMA_SUCCESS);
    }
    check_status("completion in SUSPENDED", wait_completion(&p->q, 0.05, &record), NOTHING);
    check_number("to READY at once", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_EAGAIN);
    uint64_t next = 0;
    for (int n; (n = flush(&p->q, 4, flushed)) > 0;) {
      for (int i = 0; i < n; ++i) {
        check_status("flushed", flushed[i].status, URMA_CR_WR_UNHANDLED);
        check_number("its user_ctx", (long long)flushed[i].user_ctx, (long long)next++);
      }
    }
    check_number("requests that came back", (long long)next, kBehind);
    check_true("nothing landed", far_landed(THERE, 64, CLEARED_SEED));
    check_number("to READY", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
    check_usable(p);
  }
  check_number("to SUSPENDED", set_state(&p->q, URMA_JETTY_STATE_SUSPENDED), URMA_SUCCESS);
  wait_completion(&p->q, PATIENCE, &record);
  check_marker_of(&p->q, &record, URMA_CR_WR_SUSPEND_DONE);
  check_number("to READY with nothing to flush", set_state(&p->q, URMA_JETTY_STATE_READY), URMA_SUCCESS);
  check_usable(p);
}

static void suspended(void) {
  for_each_variant_with((struct queue_options){.suspends = true}, (struct queue_options){0}, suspended_body);
}

// Without error_suspend nobody suspends a queue.
static void not_suspended_body(struct pair* p) {
  struct request wrong = request_to(&p->far, URMA_OPC_WRITE, 64);
  wrong.there = far_address(0) - 4096;
  check_status("WRITE outside", run(&p->q, &wrong), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("state", state_of(&p->q), URMA_JETTY_STATE_READY);
  check_number("to SUSPENDED", set_state(&p->q, URMA_JETTY_STATE_SUSPENDED), URMA_EINVAL);
  check_usable(p);
}

static void not_suspended(void) { for_each_variant(not_suspended_body); }

static const struct test_case cases[] = {
    {"ERROR with nothing outstanding", idle_error},
    {"ERROR with requests outstanding", busy_error},
    {"post in ERROR", post_in_error},
    {"post in RESET", post_in_reset},
    {"back without flush", back_without_flush},
    {"SUSPENDED after an error", suspended},
    {"no SUSPENDED unless asked for", not_suspended},
    {"receive queue in ERROR", receive_queue_error},
    {"arguments of modify and query", modify_arguments},
    {"delete while busy", delete_busy},
    {"unregister while busy", unregister_busy},
    {"wrong order of deletion", wrong_order},
    {"delete twice", double_delete},
    {"batches", batches},
    {"advice", advice},
    {"several segments of a token id", several_segments_of_a_token_id},
    {"ids are not used again", ids_are_not_used_again},
    {"message to an old id", old_id},
    {"wanted ids", wanted_id},
    {"several contexts", several_contexts},
};
static const struct test_case finale = {"start again", start_again};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, &finale); }
