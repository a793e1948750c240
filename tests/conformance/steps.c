// SPDX-License-Identifier: Apache-2.0
//
// Objects made step by step carry traffic like those of one step, and again after they were stopped: two jettys of
// this process write and send to each other, and a JFS sends to a JFR.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define BYTES 8192
#define HALF (BYTES / 2)

static urma_context_t* context;
static char* bytes;
static urma_target_seg_t* memory;

// A queue in which nothing is active yet.
static struct queue alloc_queue(void) {
  struct queue q = {0};
  urma_jfc_cfg_t jfc_cfg = {.depth = 1};
  urma_jfr_cfg_t jfr_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER};
  urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = URMA_SHARE_JFR};
  check_number("urma_alloc_jfc", urma_alloc_jfc(context, &jfc_cfg, &q.jfc), URMA_SUCCESS);
  jfr_cfg.jfc = q.jfc;
  check_number("urma_alloc_jfr", urma_alloc_jfr(context, &jfr_cfg, &q.jfr), URMA_SUCCESS);
  cfg.jfs_cfg = (urma_jfs_cfg_t){.depth = 1, .trans_mode = URMA_TM_RM, .jfc = q.jfc};
  cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  check_number("urma_alloc_jetty", urma_alloc_jetty(context, &cfg, &q.jetty), URMA_SUCCESS);
  return q;
}

static void adjust(struct queue* q, uint32_t depth) {
  check_number("JFC depth", urma_set_jfc_opt(q->jfc, URMA_JFC_DEPTH, &depth, sizeof depth), URMA_SUCCESS);
  check_number("JFS depth", urma_set_jetty_opt(q->jetty, URMA_JFS_DEPTH, &depth, sizeof depth), URMA_SUCCESS);
  check_number("JFR", urma_set_jetty_opt(q->jetty, URMA_JETTY_BIND_JFR, &q->jfr, sizeof q->jfr), URMA_SUCCESS);
}

static void activate(struct queue* q) {
  check_number("jetty before its JFR", urma_active_jetty(q->jetty), URMA_EINVAL);
  check_number("JFR before its JFC", urma_active_jfr(q->jfr), URMA_EINVAL);
  check_number("urma_active_jfc", urma_active_jfc(q->jfc), URMA_SUCCESS);
  check_number("urma_active_jfr", urma_active_jfr(q->jfr), URMA_SUCCESS);
  check_number("urma_active_jetty", urma_active_jetty(q->jetty), URMA_SUCCESS);
}

static void deactivate(struct queue* q) {
  check_number("JFC in use", urma_deactive_jfc(q->jfc), URMA_FAIL);
  check_number("JFR in use", urma_deactive_jfr(q->jfr), URMA_FAIL);
  check_number("urma_deactive_jetty", urma_deactive_jetty(q->jetty), URMA_SUCCESS);
  check_number("urma_deactive_jfr", urma_deactive_jfr(q->jfr), URMA_SUCCESS);
  check_number("urma_deactive_jfc", urma_deactive_jfc(q->jfc), URMA_SUCCESS);
}

static void free_queue(struct queue* q) {
  check_number("urma_free_jetty", urma_free_jetty(q->jetty), URMA_SUCCESS);
  check_number("urma_free_jfr", urma_free_jfr(q->jfr), URMA_SUCCESS);
  check_number("urma_free_jfc", urma_free_jfc(q->jfc), URMA_SUCCESS);
}

static uint64_t at(uint32_t offset) { return (uint64_t)(uintptr_t)bytes + offset; }

static void check_moved(const char* what, char mark) {
  for (int i = 0; i < HALF; ++i) {
    if (bytes[HALF + i] != mark) return fail_case(what, "other bytes", "those of the sender");
  }
}

// The first half of the memory goes to the second, once by a WRITE and once by a SEND.
static void carry(struct queue* from, struct queue* to, char mark) {
  urma_target_jetty_t* target = import_jetty(context, to->jetty->jetty_id, 0, URMA_TM_RM);
  urma_target_seg_t* there = import_segment(context, memory->seg, GOOD_TOKEN);
  struct request r = {.to = target, .local = memory, .remote = there, .here = at(0), .there = at(HALF), .bytes = HALF};
  memset(bytes, mark, HALF);
  r.op = URMA_OPC_WRITE;
  check_status("WRITE", run(from, &r), URMA_CR_SUCCESS);
  check_moved("WRITE", mark);

  memset(bytes, mark + 1, HALF);
  check_number("urma_recv", urma_recv(to->jfr, memory, at(HALF), HALF, (uint64_t)mark), URMA_SUCCESS);
  r.op = URMA_OPC_SEND;
  check_status("SEND", run(from, &r), URMA_CR_SUCCESS);
  urma_cr_t record;
  memset(&record, 0, sizeof record);
  check_status("its receive", wait_completion(to, 5, &record), URMA_CR_SUCCESS);
  check_number("user_ctx", (long long)record.user_ctx, mark);
  check_number("local_id", record.local_id, to->jetty->jetty_id.id);
  check_moved("SEND", (char)(mark + 1));
  check_number("urma_unimport_seg", urma_unimport_seg(there), URMA_SUCCESS);
  check_number("urma_unimport_jetty", urma_unimport_jetty(target), URMA_SUCCESS);
}

// Requests that nobody waits for and receives that nothing arrives at go with the life in which they were posted.
static void leave_behind(struct queue* from, struct queue* to) {
  urma_target_jetty_t* target = import_jetty(context, to->jetty->jetty_id, 0, URMA_TM_RM);
  struct request r = {.op = URMA_OPC_SEND, .to = target, .local = memory, .here = at(0), .bytes = 8};
  check_number("post", post(from, &r), URMA_SUCCESS);
  check_number("urma_recv", urma_recv(from->jfr, memory, at(HALF), 8, 1), URMA_SUCCESS);
  check_number("urma_unimport_jetty", urma_unimport_jetty(target), URMA_SUCCESS);
}

static void several_lives(void) {
  struct queue a = alloc_queue();
  struct queue b = alloc_queue();
  const struct queue same = a;
  for (int life = 0; life < 3; ++life) {
    adjust(&a, 4u << life);
    adjust(&b, 16u >> life);
    activate(&a);
    activate(&b);
    check_true("the handles stay", a.jetty == same.jetty && a.jfr == same.jfr && a.jfc == same.jfc);
    carry(&a, &b, (char)(10 + 20 * life));
    carry(&b, &a, (char)(20 + 20 * life));
    leave_behind(&a, &b);
    deactivate(&a);
    deactivate(&b);
  }
  check_number("the context has children", urma_delete_context(context), URMA_EAGAIN);
  free_queue(&a);
  free_queue(&b);
}

static void wanted_ids(void) {
  struct queue q = alloc_queue();
  // An id rests after its use. A daemon remembers those of programs that ran before: each process wants its own.
  const uint32_t wanted = 500000 + 2 * ((uint32_t)getpid() % 200000);
  uint32_t id = wanted;
  adjust(&q, 4);
  check_number("set the id", urma_set_jfr_opt(q.jfr, URMA_JFR_ID, &id, sizeof id), URMA_SUCCESS);
  id = wanted + 1;
  check_number("set the id", urma_set_jetty_opt(q.jetty, URMA_JETTY_ID, &id, sizeof id), URMA_SUCCESS);
  activate(&q);
  check_number("id of the JFR", q.jfr->jfr_id.id, wanted);
  check_number("id of the jetty", q.jetty->jetty_id.id, wanted + 1);
  deactivate(&q);
  // Another one may be given now: the option tells which.
  activate(&q);
  check_number("get the id", urma_get_jfr_opt(q.jfr, URMA_JFR_ID, &id, sizeof id), URMA_SUCCESS);
  check_number("id of the JFR", id, q.jfr->jfr_id.id);
  check_number("get the id", urma_get_jetty_opt(q.jetty, URMA_JETTY_ID, &id, sizeof id), URMA_SUCCESS);
  check_number("id of the jetty", id, q.jetty->jetty_id.id);
  deactivate(&q);
  free_queue(&q);
}

static void events(void) {
  urma_jfce_t* channel = urma_create_jfce(context);
  need(channel != NULL, "urma_create_jfce");
  struct queue receiver = alloc_queue();
  struct queue sender = open_queue(context, (struct queue_options){0});
  uint32_t one = 1;
  adjust(&receiver, 4);
  check_number("set the JFCE", urma_set_jfc_opt(receiver.jfc, URMA_JFC_BIND_JFCE, &channel, sizeof channel),
               URMA_SUCCESS);
  for (int life = 0; life < 2; ++life) {
    activate(&receiver);
    check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_FAIL);
    urma_target_jetty_t* target = import_jetty(context, receiver.jetty->jetty_id, 0, URMA_TM_RM);
    struct request r = {.op = URMA_OPC_SEND, .to = target, .local = memory, .here = at(0), .bytes = 8};
    check_number("urma_recv", urma_recv(receiver.jfr, memory, at(HALF), 8, 1), URMA_SUCCESS);
    check_number("urma_rearm_jfc", urma_rearm_jfc(receiver.jfc, false), URMA_SUCCESS);
    check_status("SEND", run(&sender, &r), URMA_CR_SUCCESS);
    urma_jfc_t* got = NULL;
    check_number("urma_wait_jfc", urma_wait_jfc(channel, 1, 5000, &got), 1);
    check_true("the event is of our JFC", got == receiver.jfc);
    check_status("the receive", wait_completion(&receiver, 5, NULL), URMA_CR_SUCCESS);
    urma_ack_jfc(&receiver.jfc, &one, 1);
    check_number("urma_unimport_jetty", urma_unimport_jetty(target), URMA_SUCCESS);
    deactivate(&receiver);
  }
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
  free_queue(&receiver);
  close_queue(&sender);
}

static void send_queue_to_receive_queue(void) {
  struct queue ends = alloc_queue();
  adjust(&ends, 4);
  activate(&ends);
  urma_jfs_cfg_t cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .jfc = ends.jfc};
  cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  urma_jfs_t* jfs = NULL;
  check_number("urma_alloc_jfs", urma_alloc_jfs(context, &cfg, &jfs), URMA_SUCCESS);
  urma_rjfr_t remote = {.jfr_id = ends.jfr->jfr_id, .trans_mode = URMA_TM_RM};
  urma_target_jetty_t* target = urma_import_jfr(context, &remote, NULL);
  need(target != NULL, "urma_import_jfr");
  urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};
  check_number("send while inactive", urma_send(jfs, target, memory, at(0), 8, flag, 2), URMA_EINVAL);
  for (int life = 0; life < 2; ++life) {
    check_number("urma_active_jfs", urma_active_jfs(jfs), URMA_SUCCESS);
    memset(bytes, 90 + life, HALF);
    check_number("urma_recv", urma_recv(ends.jfr, memory, at(HALF), HALF, 1), URMA_SUCCESS);
    check_number("urma_send", urma_send(jfs, target, memory, at(0), HALF, flag, 2), URMA_SUCCESS);
    check_status("one completion", wait_completion(&ends, 5, NULL), URMA_CR_SUCCESS);
    check_status("the other one", wait_completion(&ends, 5, NULL), URMA_CR_SUCCESS);
    check_moved("SEND", (char)(90 + life));
    check_number("urma_deactive_jfs", urma_deactive_jfs(jfs), URMA_SUCCESS);
  }
  check_number("urma_free_jfs", urma_free_jfs(jfs), URMA_SUCCESS);
  check_number("urma_unimport_jfr", urma_unimport_jfr(target), URMA_SUCCESS);
  deactivate(&ends);
  free_queue(&ends);
}

int main(void) {
  alarm(60);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  urma_log_set_level(URMA_VLOG_LEVEL_EMERG);  // refusals are what some checks provoke
  context = open_nic();
  bytes = aligned_alloc(4096, BYTES);
  memset(bytes, 0, BYTES);
  memory = register_memory(context, bytes, BYTES, URMA_ACCESS_READ | URMA_ACCESS_WRITE);

  const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"several lives", several_lives},
               {"wanted ids", wanted_ids},
               {"events", events},
               {"JFS to JFR", send_queue_to_receive_queue}};
  int failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    begin_case(cases[i].name);
    cases[i].run();
    failed += !end_case();
  }
  begin_case("tear-down");
  check_number("urma_unregister_seg", urma_unregister_seg(memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  free(bytes);
  return failed != 0;
}
