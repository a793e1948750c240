// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/far.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAR_QUEUES 12
#define FAR_SEGMENTS 8

struct stage stage;

const struct variant variants[VARIANTS] = {
    {"RM jetty", {.mode = URMA_TM_RM}},
    {"RC jetty", {.mode = URMA_TM_RC}},
    {"RC jetty, target order", {.mode = URMA_TM_RC, .order = URMA_OT}},
    {"RM simplex", {.mode = URMA_TM_RM, .simplex = true}},
};

// ---- bytes ------------------------------------------------------------------------------------------------

static char pattern(uint64_t place, uint32_t seed) {
  return (char)(seed * 131 + place + (place >> 8) * 7 + (place >> 16) * 13);
}

uint32_t next_random(uint32_t* state) { return *state = *state * 1664525u + 1013904223u, *state >> 8; }

void fill(char* to, uint64_t bytes, uint32_t seed) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = pattern(i, seed);
}

bool holds(const char* at, uint64_t bytes, uint32_t seed) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (at[i] != pattern(i, seed)) return false;
  }
  return true;
}

// ---- orders -----------------------------------------------------------------------------------------------

enum far_kind {
  FAR_OPEN,
  FAR_CLOSE,
  FAR_DELETE,
  FAR_BIND,
  FAR_RECEIVE,
  FAR_TAKE,
  FAR_SEND,
  FAR_STATE,
  FAR_REGISTER,
  FAR_SET_SEGMENT_TOKEN,
  FAR_SET_EXCLUSIVE,
  FAR_SET_QUEUE_TOKEN,
  FAR_UNREGISTER,
  FAR_FILL,
  FAR_HOLDS,
  FAR_WORD,
  FAR_SET_WORD,
  FAR_INJECT,
  FAR_INJECTED
};

struct far_order {
  int32_t kind;
  uint32_t number;  // of the queue
  uint64_t offset, bytes;
  uint64_t value;  // user_ctx, seed, word, access, state, solicited
  double seconds;
  uint32_t token, former_token;
  struct queue_options options;
  urma_jetty_id_t id;
  char text[80];  // of faults
};

struct far_answer {
  int32_t status;
  uint32_t number;
  uint64_t value;
  urma_jetty_id_t receives, sends;
  urma_cr_t record;
  urma_seg_t segment;
  softub_injected_t injected;
};

// ---- the peer's side --------------------------------------------------------------------------------------

struct far_side {
  urma_context_t* context;
  char* bytes;
  urma_target_seg_t* memory;
  struct queue queues[FAR_QUEUES];
  urma_target_jetty_t* targets[FAR_QUEUES];  // of those that are bound
  urma_target_seg_t* segments[FAR_SEGMENTS];
};

static struct far_side side;

static void open_side(void) {
  side.context = open_nic();
  side.bytes = alloc_for_peers(STAGE_BYTES);
  side.memory =
      register_memory(side.context, side.bytes, STAGE_BYTES, URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC);
}

static void close_side(void) {
  check_number("urma_unregister_seg of the peer", urma_unregister_seg(side.memory), URMA_SUCCESS);
  check_number("urma_delete_context of the peer", urma_delete_context(side.context), URMA_SUCCESS);
  free_for_peers(side.bytes);
}

static struct far_answer obey_open(const struct far_order* order) {
  struct far_answer answer = {.status = URMA_SUCCESS};
  while (answer.number < FAR_QUEUES && side.queues[answer.number].jfc != NULL) ++answer.number;
  need(answer.number < FAR_QUEUES, "too many queues of the peer");
  struct queue* q = &side.queues[answer.number];
  *q = open_queue(side.context, order->options);
  answer.receives = q->jetty != NULL ? q->jetty->jetty_id : q->jfr->jfr_id;
  answer.sends = q->jetty != NULL ? q->jetty->jetty_id : q->jfs->jfs_id;
  answer.value = q->jetty != NULL ? (uintptr_t)q->jetty : (uintptr_t)q->jfr;
  return answer;
}

static void unbind(uint32_t number) {
  urma_target_jetty_t** target = &side.targets[number];
  if (*target == NULL) return;
  if (side.queues[number].jetty->remote_jetty == *target) urma_unbind_jetty(side.queues[number].jetty);
  urma_unimport_jetty(*target);
  *target = NULL;
}

// The jetty, or the JFR.
static int delete_queue(uint32_t number) {
  struct queue* q = &side.queues[number];
  unbind(number);
  if (q->jetty != NULL) {
    int status = urma_delete_jetty(q->jetty);
    if (status == URMA_SUCCESS) q->jetty = NULL;
    return status;
  }
  int status = urma_delete_jfr(q->jfr);
  if (status == URMA_SUCCESS) q->jfr = NULL;
  return status;
}

static int obey_close(uint32_t number) {
  struct queue* q = &side.queues[number];
  unbind(number);
  int status = URMA_SUCCESS;
  if (q->jetty != NULL) status |= urma_delete_jetty(q->jetty);
  if (q->jfs != NULL) status |= urma_delete_jfs(q->jfs);
  if (q->jfr != NULL) status |= urma_delete_jfr(q->jfr);
  status |= urma_delete_jfc(q->jfc);
  memset(q, 0, sizeof *q);
  return status;
}

static int obey_send(struct queue* q, const struct far_order* order) {
  urma_target_jetty_t* target = import_jetty(side.context, order->id, 0, URMA_TM_RM);
  struct request r = {.op = URMA_OPC_SEND, .to = target, .local = side.memory, .bytes = (uint32_t)order->bytes};
  r.here = (uintptr_t)side.bytes + order->offset;
  r.solicited = order->value != 0;
  int status = run(q, &r);
  urma_unimport_jetty(target);
  return status;
}

static int obey_bind(uint32_t number, urma_jetty_id_t id) {
  const uint32_t order = side.queues[number].jetty->jetty_cfg.jfs_cfg.flag.bs.order_type;
  side.targets[number] = import_jetty_with_order(side.context, id, 0, URMA_TM_RC, (urma_order_type_t)order);
  return urma_bind_jetty(side.queues[number].jetty, side.targets[number]);
}

static struct far_answer obey_register(const struct far_order* order) {
  struct far_answer answer = {.status = URMA_SUCCESS};
  while (answer.number < FAR_SEGMENTS && side.segments[answer.number] != NULL) ++answer.number;
  need(answer.number < FAR_SEGMENTS, "too many segments of the peer");
  side.segments[answer.number] =
      register_memory(side.context, side.bytes + order->offset, order->bytes, (uint32_t)order->value);
  answer.segment = side.segments[answer.number]->seg;
  return answer;
}

static int obey_unregister(uint32_t token_id) {
  for (uint32_t i = 0; i < FAR_SEGMENTS; ++i) {
    if (side.segments[i] == NULL || side.segments[i]->seg.token_id != token_id) continue;
    int status = urma_unregister_seg(side.segments[i]);
    side.segments[i] = NULL;
    return status;
  }
  return URMA_EINVAL;
}

static urma_target_seg_t* segment_of(uint32_t token_id) {
  for (uint32_t i = 0; i < FAR_SEGMENTS; ++i) {
    if (side.segments[i] != NULL && side.segments[i]->seg.token_id == token_id) return side.segments[i];
  }
  return NULL;
}

static int obey_set_token(const struct far_order* order, softub_set_token_in_t argument) {
  argument.token.token = (uint32_t)order->value;
  argument.former.token = order->former_token;
  urma_user_ctl_in_t in = {(uintptr_t)&argument, sizeof argument, SOFTUB_USER_CTL_SET_TOKEN};
  urma_user_ctl_out_t out = {0};
  return urma_user_ctl(side.context, &in, &out);
}

urma_status_t set_exclusive(urma_context_t* context, urma_target_seg_t* segment, bool exclusive) {
  softub_set_exclusive_in_t argument = {.seg = segment, .exclusive = exclusive};
  urma_user_ctl_in_t in = {(uintptr_t)&argument, sizeof argument, SOFTUB_USER_CTL_SET_EXCLUSIVE};
  urma_user_ctl_out_t out = {0};
  return urma_user_ctl(context, &in, &out);
}

static struct far_answer obey(const struct far_order* order) {
  struct far_answer answer = {.status = URMA_SUCCESS};
  struct queue* q = &side.queues[order->number];
  char* at = side.bytes + order->offset;
  urma_jfr_attr_t attr = {.mask = JFR_STATE, .state = (urma_jfr_state_t)order->value};
  switch (order->kind) {
    case FAR_OPEN:
      return obey_open(order);
    case FAR_CLOSE:
      answer.status = obey_close(order->number);
      break;
    case FAR_DELETE:
      answer.status = delete_queue(order->number);
      break;
    case FAR_BIND:
      answer.status = obey_bind(order->number, order->id);
      break;
    case FAR_RECEIVE:
      answer.status = urma_recv(q->jfr, side.memory, (uintptr_t)at, (uint32_t)order->bytes, order->value);
      break;
    case FAR_TAKE:
      answer.status = wait_on(q->jfc, order->seconds, &answer.record);
      break;
    case FAR_SEND:
      answer.status = obey_send(q, order);
      break;
    case FAR_STATE:
      answer.status = urma_modify_jfr(q->jfr, &attr);
      break;
    case FAR_REGISTER:
      return obey_register(order);
    case FAR_SET_SEGMENT_TOKEN:
      answer.status = obey_set_token(order, (softub_set_token_in_t){.seg = segment_of(order->token)});
      break;
    case FAR_SET_EXCLUSIVE:
      answer.status = set_exclusive(side.context, segment_of(order->token), order->value != 0);
      break;
    case FAR_SET_QUEUE_TOKEN:
      answer.status = obey_set_token(order, (softub_set_token_in_t){.jfr = q->jfr});
      break;
    case FAR_UNREGISTER:
      answer.status = obey_unregister(order->token);
      break;
    case FAR_FILL:
      fill(at, order->bytes, (uint32_t)order->value);
      break;
    case FAR_HOLDS:
      answer.value = holds(at, order->bytes, (uint32_t)order->value);
      break;
    case FAR_WORD:
      memcpy(&answer.value, at, sizeof answer.value);
      break;
    case FAR_SET_WORD:
      memcpy(at, &order->value, sizeof order->value);
      break;
    case FAR_INJECT:
      answer.status = softub_inject(order->text);
      break;
    case FAR_INJECTED:
      answer.status = softub_get_injected(&answer.injected);
      break;
    default:
      answer.status = URMA_EINVAL;
      break;
  }
  return answer;
}

// Between orders the process sleeps outside the library.
static int serve(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  begin_case("peer");
  open_side();
  need(write(socket, &side.memory->seg, sizeof(urma_seg_t)) == sizeof(urma_seg_t), "telling the segment");
  for (struct far_order order; read(socket, &order, sizeof order) == sizeof order;) {
    struct far_answer answer = obey(&order);
    need(write(socket, &answer, sizeof answer) == sizeof answer, "answering");
  }
  close_side();
  check_number("urma_uninit of the peer", urma_uninit(), URMA_SUCCESS);
  return case_failed() ? 1 : 0;
}

// ---- the peer as we see it --------------------------------------------------------------------------------

static int peer_socket;
static pid_t peer_process;

static struct far_answer give(const struct far_order* order) {
  if (stage.loopback) return obey(order);
  struct far_answer answer;
  need(write(peer_socket, order, sizeof *order) == sizeof *order, "giving an order");
  need(read(peer_socket, &answer, sizeof answer) == sizeof answer, "the peer does not answer");
  return answer;
}

static void order_must_work(const char* what, const struct far_order* order) {
  check_number(what, give(order).status, URMA_SUCCESS);
}

softub_path_t best_path(void) {
  softub_aperture_t* handle = softub_open(stage.far, NULL);
  need(handle != NULL, "softub_open");
  const softub_path_t path = (softub_path_t)handle->path;
  softub_close(handle);
  const char* wanted = getenv("BEST_PATH");
  check_true("the best path serves", wanted == NULL || strcmp(wanted, path_name(path)) == 0);
  return path;
}

const char* path_name(softub_path_t path) {
  return path == SOFTUB_PATH_LANE ? "lane" : path == SOFTUB_PATH_FRAMES ? "frames" : "queue";
}

urma_target_jetty_t* far_import(const struct far_queue* q) {
  urma_transport_mode_t mode = q->options.mode != 0 ? q->options.mode : URMA_TM_RM;
  if (!q->options.simplex)
    return import_jetty_with_order(stage.context, q->receives, q->options.token, mode, q->options.order);
  urma_rjfr_t jfr = {.jfr_id = q->receives, .trans_mode = mode};
  urma_token_t token = {q->options.token};
  jfr.flag.bs.token_policy = token.token != 0 ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  urma_target_jetty_t* target = urma_import_jfr(stage.context, &jfr, &token);
  need(target != NULL, "urma_import_jfr");
  return target;
}

urma_status_t far_unimport(const struct far_queue* q, urma_target_jetty_t* target) {
  return q->options.simplex ? urma_unimport_jfr(target) : urma_unimport_jetty(target);
}

struct far_queue far_open(struct queue_options options) {
  struct far_answer answer = give(&(struct far_order){.kind = FAR_OPEN, .options = options});
  struct far_queue q = {.number = answer.number, .options = options, .receives = answer.receives};
  q.sends = answer.sends;
  q.object = answer.value;
  q.target = far_import(&q);
  return q;
}

void far_close(struct far_queue* q) {
  check_number("unimporting a queue of the peer", far_unimport(q, q->target), URMA_SUCCESS);
  order_must_work("the peer closes a queue", &(struct far_order){.kind = FAR_CLOSE, .number = q->number});
}

urma_status_t far_delete(struct far_queue* q) {
  return give(&(struct far_order){.kind = FAR_DELETE, .number = q->number}).status;
}

urma_status_t far_bind(const struct far_queue* q, urma_jetty_id_t ours) {
  return give(&(struct far_order){.kind = FAR_BIND, .number = q->number, .id = ours}).status;
}

void far_receive(const struct far_queue* q, uint64_t offset, uint32_t bytes, uint64_t user_ctx) {
  struct far_order order = {.kind = FAR_RECEIVE, .number = q->number, .offset = offset, .bytes = bytes};
  order.value = user_ctx;
  order_must_work("the peer posts a receive", &order);
}

int far_take(const struct far_queue* q, double seconds, urma_cr_t* record) {
  struct far_order order = {.kind = FAR_TAKE, .number = q->number, .seconds = seconds};
  struct far_answer answer = give(&order);
  if (record != NULL) *record = answer.record;
  return answer.status;
}

void far_send(const struct far_queue* q, urma_jetty_id_t to, uint64_t offset, uint32_t bytes, bool solicited) {
  struct far_order order = {.kind = FAR_SEND, .number = q->number, .offset = offset, .bytes = bytes, .id = to};
  order.value = solicited;
  check_status("the peer's SEND", give(&order).status, URMA_CR_SUCCESS);
}

urma_status_t far_set_jfr_state(const struct far_queue* q, urma_jfr_state_t state) {
  return give(&(struct far_order){.kind = FAR_STATE, .number = q->number, .value = state}).status;
}

urma_status_t far_inject(const char* text) {
  struct far_order order = {.kind = FAR_INJECT};
  need(strlen(text) < sizeof order.text, "the text of faults is too long");
  strcpy(order.text, text);
  return give(&order).status;
}

softub_injected_t far_injected(void) {
  const struct far_answer answer = give(&(struct far_order){.kind = FAR_INJECTED});
  check_number("softub_get_injected of the peer", answer.status, URMA_SUCCESS);
  return answer.injected;
}

urma_target_seg_t* far_register(uint64_t offset, uint32_t bytes, uint32_t access, uint32_t token) {
  struct far_order order = {.kind = FAR_REGISTER, .offset = offset, .bytes = bytes, .value = access};
  return import_segment(stage.context, give(&order).segment, token);
}

urma_status_t far_unregister(urma_target_seg_t* imported) {
  struct far_order order = {.kind = FAR_UNREGISTER, .token = imported->seg.token_id};
  check_number("urma_unimport_seg", urma_unimport_seg(imported), URMA_SUCCESS);
  return give(&order).status;
}

urma_status_t far_set_segment_token(const urma_target_seg_t* imported, uint32_t token, uint32_t former) {
  struct far_order order = {.kind = FAR_SET_SEGMENT_TOKEN, .token = imported->seg.token_id};
  order.value = token;
  order.former_token = former;
  return give(&order).status;
}

urma_status_t far_set_exclusive(const urma_target_seg_t* imported, bool exclusive) {
  struct far_order order = {.kind = FAR_SET_EXCLUSIVE, .token = imported->seg.token_id, .value = exclusive};
  return give(&order).status;
}

urma_status_t far_set_queue_token(const struct far_queue* q, uint32_t token, uint32_t former) {
  struct far_order order = {.kind = FAR_SET_QUEUE_TOKEN, .number = q->number, .value = token};
  order.former_token = former;
  return give(&order).status;
}

void far_fill(uint64_t offset, uint64_t bytes, uint32_t seed) {
  give(&(struct far_order){.kind = FAR_FILL, .offset = offset, .bytes = bytes, .value = seed});
}

bool far_holds(uint64_t offset, uint64_t bytes, uint32_t seed) {
  return give(&(struct far_order){.kind = FAR_HOLDS, .offset = offset, .bytes = bytes, .value = seed}).value != 0;
}

uint64_t far_word(uint64_t offset) { return give(&(struct far_order){.kind = FAR_WORD, .offset = offset}).value; }

void far_set_word(uint64_t offset, uint64_t word) {
  give(&(struct far_order){.kind = FAR_SET_WORD, .offset = offset, .value = word});
}

void prepare(uint64_t offset, uint64_t bytes) {
  fill(stage.bytes + offset - GUARD, GUARD, GUARD_SEED);
  fill(stage.bytes + offset, bytes, CLEARED_SEED);
  fill(stage.bytes + offset + bytes, GUARD, GUARD_SEED);
}

bool landed(uint64_t offset, uint64_t bytes, uint32_t seed) {
  const char* at = stage.bytes + offset;
  return holds(at, bytes, seed) && holds(at - GUARD, GUARD, GUARD_SEED) && holds(at + bytes, GUARD, GUARD_SEED);
}

void far_prepare(uint64_t offset, uint64_t bytes) {
  far_fill(offset - GUARD, GUARD, GUARD_SEED);
  far_fill(offset, bytes, CLEARED_SEED);
  far_fill(offset + bytes, GUARD, GUARD_SEED);
}

bool far_landed(uint64_t offset, uint64_t bytes, uint32_t seed) {
  return far_holds(offset, bytes, seed) && far_holds(offset - GUARD, GUARD, GUARD_SEED) &&
         far_holds(offset + bytes, GUARD, GUARD_SEED);
}

// ---- both -------------------------------------------------------------------------------------------------

uint64_t near_address(uint64_t offset) { return (uintptr_t)stage.bytes + offset; }

uint64_t far_address(uint64_t offset) { return stage.far->seg.ubva.va + offset; }

struct request request_to(const struct far_queue* q, urma_opcode_t op, uint32_t bytes) {
  return (struct request){.op = op,
                          .to = q->options.mode == URMA_TM_RC ? NULL : q->target,
                          .local = stage.memory,
                          .remote = stage.far,
                          .here = near_address(0),
                          .there = far_address(0),
                          .bytes = bytes};
}

struct pair open_pair(struct queue_options ours, struct queue_options theirs) {
  theirs.mode = ours.mode, theirs.simplex = ours.simplex, theirs.order = ours.order;
  struct pair p = {.q = open_queue(stage.context, ours), .far = far_open(theirs)};
  if (ours.mode == URMA_TM_RC) {
    check_number("urma_bind_jetty", urma_bind_jetty(p.q.jetty, p.far.target), URMA_SUCCESS);
    check_number("urma_bind_jetty of the peer", far_bind(&p.far, p.q.jetty->jetty_id), URMA_SUCCESS);
  }
  return p;
}

void close_pair(struct pair* p) {
  if (p->q.jetty != NULL && p->q.jetty->remote_jetty != NULL) {
    check_number("urma_unbind_jetty", urma_unbind_jetty(p->q.jetty), URMA_SUCCESS);
  }
  far_close(&p->far);
  close_queue(&p->q);
}

void for_each_variant_with(struct queue_options ours, struct queue_options theirs, void (*body)(struct pair*)) {
  for (int i = 0; i < VARIANTS; ++i) {
    in_variant(variants[i].name);
    ours.mode = variants[i].options.mode, ours.simplex = variants[i].options.simplex;
    ours.order = variants[i].options.order;
    struct pair p = open_pair(ours, theirs);
    body(&p);
    close_pair(&p);
    in_variant(NULL);
  }
}

void for_each_variant(void (*body)(struct pair*)) {
  for_each_variant_with((struct queue_options){0}, (struct queue_options){0}, body);
}

// ---- the program ------------------------------------------------------------------------------------------

static void start_far(void) {
  urma_seg_t far;
  if (stage.loopback) {
    open_side();
    far = side.memory->seg;
  } else {
    peer_process = start_peer_process(&peer_socket);
    need(read(peer_socket, &far, sizeof far) == sizeof far, "the peer does not start");
  }
  stage.far = import_segment(stage.context, far, GOOD_TOKEN);
}

void far_kill(void) {
  if (stage.loopback) return close_side();
  kill(peer_process, SIGKILL);
  waitpid(peer_process, NULL, 0);
  close(peer_socket);
}

urma_target_seg_t* far_start_again(void) {
  urma_target_seg_t* former = stage.far;
  start_far();
  return former;
}

void check_owner_gone(const char* what, int status) {
  const char* placement = getenv("SOFTUB_PLACEMENT_MODE");
  const bool nic_lives_on = stage.loopback || (placement != NULL && strcmp(placement, "daemon") == 0);
  if (nic_lives_on && status == URMA_CR_REM_ACCESS_ABORT_ERR) return;
  check_status(what, status, URMA_CR_ACK_TIMEOUT_ERR);
}

static void open_stage(void) {
  stage.context = open_nic();
  stage.bytes = aligned_alloc(4096, STAGE_BYTES);
  memset(stage.bytes, 0, STAGE_BYTES);
  stage.memory = register_memory(stage.context, stage.bytes, STAGE_BYTES,
                                 URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC);
  start_far();
}

static void close_stage(void) {
  check_number("urma_unimport_seg", urma_unimport_seg(stage.far), URMA_SUCCESS);
  if (stage.loopback) {
    close_side();
  } else {
    close(peer_socket);
    wait_for_process(peer_process);
  }
  check_number("urma_unregister_seg", urma_unregister_seg(stage.memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(stage.context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  free(stage.bytes);
}

static int run_case(const struct test_case* c, const char* only) {
  if (strstr(c->name, only) == NULL) return 0;
  begin_case(c->name);
  c->run();
  return !end_case();
}

int run_program(int argc, char** argv, const struct test_case* cases, uint32_t count, const struct test_case* finale) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "--peer") == 0) return serve(STDIN_FILENO);
  stage.loopback = strcmp(mode, "--loopback") == 0;
  if (!stage.loopback && strcmp(mode, "--processes") != 0) {
    fprintf(stderr, "usage: %s --processes|--loopback [part of a name]\n", argv[0]);
    return 2;
  }
  const char* only = argc > 2 ? argv[2] : "";
  alarm(150);  // a call that never returns is a failure, too
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  open_stage();
  int failed = 0;
  for (uint32_t i = 0; i < count; ++i) failed += run_case(&cases[i], only);
  begin_case("tear-down");
  close_stage();
  failed += !end_case();
  if (finale != NULL) failed += run_case(finale, only);
  printf("%d failed\n", failed);
  return failed != 0;
}
