// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <softub_aperture.h>
#include <softub_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PEER_BYTES (1u << 20)
#define QUARTER (PEER_BYTES / 4)
#define PASSING_BYTES (32u << 20)
#define RECEIVE_BYTES (128u << 10)
#define RECEIVES 64

// ---- results ----------------------------------------------------------------------------------------------

static const char* case_name;
static const char* variant_name;
static bool failed;

void begin_case(const char* name) {
  case_name = name;
  variant_name = NULL;
  failed = false;
}

bool end_case(void) {
  if (!failed) printf("ok %s\n", case_name);
  fflush(stdout);
  return !failed;
}

bool case_failed(void) { return failed; }

int run_named_cases(const struct named_case* cases, size_t count, const char* part) {
  int failures = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strstr(cases[i].name, part) == NULL) continue;
    begin_case(cases[i].name);
    cases[i].run();
    failures += !end_case();
  }
  return failures;
}

void in_variant(const char* name) { variant_name = name; }

void fail_case(const char* what, const char* got, const char* expected) {
  failed = true;
  printf("FAIL %s%s%s: %s: got %s expected %s\n", case_name, variant_name != NULL ? ", " : "",
         variant_name != NULL ? variant_name : "", what, got, expected);
  fflush(stdout);
}

static const char* status_name(int status) {
  static const char* const names[] = {"SUCCESS",
                                      "UNSUPPORTED_OPCODE_ERR",
                                      "LOC_LEN_ERR",
                                      "LOC_OPERATION_ERR",
                                      "LOC_ACCESS_ERR",
                                      "REM_RESP_LEN_ERR",
                                      "REM_UNSUPPORTED_REQ_ERR",
                                      "REM_OPERATION_ERR",
                                      "REM_ACCESS_ABORT_ERR",
                                      "ACK_TIMEOUT_ERR",
                                      "RNR_RETRY_CNT_EXC_ERR",
                                      "WR_FLUSH_ERR",
                                      "WR_SUSPEND_DONE",
                                      "WR_FLUSH_ERR_DONE",
                                      "WR_UNHANDLED",
                                      "LOC_DATA_POISON",
                                      "REM_DATA_POISON"};
  if (status == NOTHING) return "no completion";
  if (status == NOT_POSTED) return "a refusal by post";
  return status >= 0 && status < (int)(sizeof names / sizeof *names) ? names[status] : "an unknown status";
}

void check_status(const char* what, int got, int expected) {
  if (got != expected) fail_case(what, status_name(got), status_name(expected));
}

void check_number(const char* what, long long got, long long expected) {
  char a[24], b[24];
  snprintf(a, sizeof a, "%lld", got);
  snprintf(b, sizeof b, "%lld", expected);
  if (got != expected) fail_case(what, a, b);
}

void check_true(const char* what, bool got) {
  if (!got) fail_case(what, "false", "true");
}

void need(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "conformance: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  exit(1);
}

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void rest_ms(int ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

// ---- our side ---------------------------------------------------------------------------------------------

urma_context_t* open_nic(void) {
  int count = 0;
  urma_status_t status = urma_init(NULL);
  need(status == URMA_SUCCESS || status == URMA_EEXIST, "urma_init");
  urma_device_t** devices = urma_get_device_list(&count);
  need(count > 0, "urma_get_device_list");
  urma_context_t* context = urma_create_context(devices[0], 0);
  urma_free_device_list(devices);
  need(context != NULL, "urma_create_context");
  return context;
}

static bool shares_memory(void) { return getenv("SHARED_MEMORY") != NULL; }

char* alloc_for_peers(uint64_t bytes) {
  char* memory = shares_memory() ? softub_alloc_shared(bytes, SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE)
                                 : aligned_alloc(4096, bytes);
  need(memory != NULL, "memory for peers");
  memset(memory, 0, bytes);
  return memory;
}

void free_for_peers(void* memory) { shares_memory() ? softub_free(memory) : free(memory); }

urma_target_seg_t* register_memory(urma_context_t* context, void* memory, uint64_t bytes, uint32_t access) {
  urma_seg_cfg_t cfg = {.va = (uintptr_t)memory, .len = bytes, .token_value = {GOOD_TOKEN}};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = access;
  urma_target_seg_t* segment = urma_register_seg(context, &cfg);
  need(segment != NULL, "urma_register_seg");
  return segment;
}

urma_target_jetty_t* import_jetty(urma_context_t* context, urma_jetty_id_t id, uint32_t token,
                                  urma_transport_mode_t mode) {
  return import_jetty_with_order(context, id, token, mode, URMA_DEF_ORDER);
}

urma_target_jetty_t* import_jetty_with_order(urma_context_t* context, urma_jetty_id_t id, uint32_t token,
                                             urma_transport_mode_t mode, urma_order_type_t order) {
  urma_rjetty_t jetty = {.jetty_id = id, .trans_mode = mode, .type = URMA_JETTY};
  jetty.tp_type = mode == URMA_TM_UM ? URMA_UTP : URMA_RTP;
  urma_token_t value = {token};
  jetty.flag.bs.order_type = (uint8_t)order;
  jetty.flag.bs.token_policy = token != 0 ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  urma_target_jetty_t* target = urma_import_jetty(context, &jetty, &value);
  need(target != NULL, "urma_import_jetty");
  return target;
}

urma_target_seg_t* import_segment(urma_context_t* context, urma_seg_t segment, uint32_t token) {
  urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC};
  urma_token_t value = {token};
  urma_target_seg_t* imported = urma_import_seg(context, &segment, &value, 0, flag);
  need(imported != NULL, "urma_import_seg");
  return imported;
}

static urma_jfr_t* open_jfr(urma_context_t* context, urma_jfc_t* jfc, const struct queue_options* o) {
  urma_jfr_cfg_t cfg = {.depth = RECEIVES, .trans_mode = o->mode, .max_sge = o->max_receive_sge, .jfc = jfc};
  cfg.flag.bs.order_type = (uint8_t)o->order;
  cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
  cfg.token_value.token = o->token;
  cfg.flag.bs.token_policy = o->token != 0 ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  urma_jfr_t* jfr = urma_create_jfr(context, &cfg);
  need(jfr != NULL, "urma_create_jfr");
  return jfr;
}

struct queue open_queue(urma_context_t* context, struct queue_options o) {
  struct queue q = {.jfc = NULL};
  if (o.mode == 0) o.mode = URMA_TM_RM;
  if (o.max_receive_sge == 0) o.max_receive_sge = 1;
  urma_jfc_cfg_t jfc_cfg = {.depth = o.jfc_depth != 0 ? o.jfc_depth : 64, .jfce = o.channel};
  q.jfc = urma_create_jfc(context, &jfc_cfg);
  need(q.jfc != NULL, "urma_create_jfc");
  q.jfr = open_jfr(context, q.jfc, &o);
  urma_jfs_cfg_t sends = {.depth = o.depth != 0 ? o.depth : 16, .trans_mode = o.mode, .jfc = q.jfc};
  sends.max_sge = o.max_sge != 0 ? o.max_sge : 1;
  sends.flag.bs.order_type = (uint8_t)o.order;
  sends.flag.bs.error_suspend = o.suspends;
  sends.flag.bs.outorder_comp = o.completes_early;
  sends.max_inline_data = o.max_inline;
  sends.rnr_retry = o.rnr_retry == 0 ? URMA_TYPICAL_RNR_RETRY : o.rnr_retry < 0 ? 0 : (uint8_t)o.rnr_retry;
  sends.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  if (o.simplex) {
    q.jfs = urma_create_jfs(context, &sends);
    need(q.jfs != NULL, "urma_create_jfs");
    return q;
  }
  urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = URMA_SHARE_JFR, .jfs_cfg = sends};
  cfg.shared.jfr = q.jfr;
  q.jetty = urma_create_jetty(context, &cfg);
  need(q.jetty != NULL, "urma_create_jetty");
  return q;
}

void close_queue(struct queue* q) {
  if (q->jetty != NULL) check_number("urma_delete_jetty", urma_delete_jetty(q->jetty), URMA_SUCCESS);
  if (q->jfs != NULL) check_number("urma_delete_jfs", urma_delete_jfs(q->jfs), URMA_SUCCESS);
  check_number("urma_delete_jfr", urma_delete_jfr(q->jfr), URMA_SUCCESS);
  check_number("urma_delete_jfc", urma_delete_jfc(q->jfc), URMA_SUCCESS);
}

urma_jfs_wr_t build(const struct request* r, urma_sge_t* here, urma_sge_t* there) {
  urma_jfs_wr_t wr = {.opcode = r->op, .tjetty = r->to, .user_ctx = r->user_ctx};
  wr.flag.bs.complete_enable = !r->quiet;
  wr.flag.bs.fence = r->fence;
  wr.flag.bs.inline_flag = r->inlined;
  wr.flag.bs.solicited_enable = r->solicited;
  wr.flag.bs.place_order = r->order & 3;
  wr.flag.bs.comp_order = r->receive_in_order;
  *here = (urma_sge_t){.addr = r->here, .len = r->bytes, .tseg = r->local};
  there[0] = (urma_sge_t){.addr = r->there, .len = r->bytes, .tseg = r->remote};
  there[1] = (urma_sge_t){.addr = r->notify, .len = 8, .tseg = r->remote};
  switch ((int)r->op) {
    case URMA_OPC_READ:
      wr.rw.src = (urma_sg_t){there, 1}, wr.rw.dst = (urma_sg_t){here, 1};
      break;
    case URMA_OPC_SEND:
    case URMA_OPC_SEND_IMM:
    case URMA_OPC_SEND_INVALIDATE:
      wr.send = (urma_send_wr_t){.src = {here, 1}, .imm_data = r->immediate, .tseg = r->remote};
      break;
    case URMA_OPC_FADD:
    case URMA_OPC_FSUB:
    case URMA_OPC_FAND:
    case URMA_OPC_FOR:
    case URMA_OPC_FXOR:
      wr.faa = (urma_faa_wr_t){.dst = there, .src = here, .operand = r->immediate};
      break;
    case URMA_OPC_CAS:
    case URMA_OPC_SWAP:
      wr.cas = (urma_cas_wr_t){.dst = there, .src = here, .cmp_data = r->compare, .swap_data = r->immediate};
      break;
    case URMA_OPC_NOP:
      break;
    default:
      wr.rw.src = (urma_sg_t){here, 1}, wr.rw.dst = (urma_sg_t){there, r->op == URMA_OPC_WRITE_NOTIFY ? 2 : 1};
      wr.rw.notify_data = r->immediate;
      break;
  }
  return wr;
}

urma_status_t post_list(struct queue* q, urma_jfs_wr_t* list, urma_jfs_wr_t** bad) {
  return q->jfs != NULL ? urma_post_jfs_wr(q->jfs, list, bad) : urma_post_jetty_send_wr(q->jetty, list, bad);
}

urma_status_t post(struct queue* q, const struct request* r) {
  urma_sge_t here, there[2];
  urma_jfs_wr_t wr = build(r, &here, there), *bad = NULL;
  urma_status_t status = post_list(q, &wr, &bad);
  if (status != URMA_SUCCESS) check_true("bad_wr names the request", bad == &wr);
  return status;
}

int wait_on(urma_jfc_t* jfc, double seconds, urma_cr_t* record) {
  double end = now() + seconds;
  memset(record, 0xa5, sizeof *record);
  for (int looks = 0;; ++looks) {
    int n = urma_poll_jfc(jfc, 1, record);
    need(n >= 0, "urma_poll_jfc");
    if (n == 1) return record->status;
    if (now() > end) return NOTHING;
    if (looks > 1000) rest_ms(1);
  }
}

int wait_completion(struct queue* q, double seconds, urma_cr_t* record) {
  urma_cr_t own;
  return wait_on(q->jfc, seconds, record != NULL ? record : &own);
}

int run(struct queue* q, const struct request* r) {
  if (post(q, r) != URMA_SUCCESS) return NOT_POSTED;
  return wait_completion(q, PATIENCE, NULL);
}

int take_async_events(urma_context_t* context, const urma_jfc_t* jfc) {
  int count = 0;
  for (struct pollfd fd = {context->async_fd, POLLIN, 0}; poll(&fd, 1, 0) == 1;) {
    urma_async_event_t event;
    if (urma_get_async_event(context, &event) != URMA_SUCCESS) break;
    if (event.event_type == URMA_EVENT_JFC_ERR && event.element.jfc == jfc) {
      ++count;
    } else {
      fail_case("async event", "another one", "JFC_ERR of the full JFC");
    }
    urma_ack_async_event(&event);
  }
  return count;
}

// ---- the peer's side --------------------------------------------------------------------------------------

struct peer {
  urma_context_t* context;
  struct queue work, sink, doomed, guarded;
  urma_target_seg_t *all, *part, *readable, *hidden, *passing, *received;
  char *memory, *passing_memory, *receive_memory;
  uint32_t receives;  // posted to `sink` so far
};

static char* receive_slot(struct peer* p, uint64_t number) {
  return p->receive_memory + number % RECEIVES * RECEIVE_BYTES;
}

static struct offer describe(const struct peer* p) {
  return (struct offer){.work = p->work.jetty->jetty_id,
                        .sink = p->sink.jetty->jetty_id,
                        .doomed = p->doomed.jetty->jetty_id,
                        .guarded = p->guarded.jetty->jetty_id,
                        .all = p->all->seg,
                        .part = p->part->seg,
                        .readable = p->readable->seg,
                        .hidden = p->hidden->seg,
                        .passing = p->passing->seg};
}

static struct peer* open_peer(void) {
  const uint32_t read_write = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  struct peer* p = calloc(1, sizeof *p);
  p->context = open_nic();
  p->memory = alloc_for_peers(PEER_BYTES);
  p->passing_memory = alloc_for_peers(PASSING_BYTES);
  p->receive_memory = aligned_alloc(4096, (size_t)RECEIVES * RECEIVE_BYTES);
  p->all = register_memory(p->context, p->memory, PEER_BYTES, read_write | URMA_ACCESS_ATOMIC);
  p->part = register_memory(p->context, p->memory + QUARTER, QUARTER, read_write);
  p->readable = register_memory(p->context, p->memory + 2 * QUARTER, QUARTER, URMA_ACCESS_READ);
  p->hidden = register_memory(p->context, p->memory + 3 * QUARTER, QUARTER, 0);
  p->passing = register_memory(p->context, p->passing_memory, PASSING_BYTES, read_write);
  p->received = register_memory(p->context, p->receive_memory, (uint64_t)RECEIVES * RECEIVE_BYTES, 0);
  p->work = open_queue(p->context, (struct queue_options){0});
  p->sink = open_queue(p->context, (struct queue_options){.jfc_depth = 4});
  p->doomed = open_queue(p->context, (struct queue_options){0});
  p->guarded = open_queue(p->context, (struct queue_options){.token = JETTY_TOKEN});
  for (int i = 0; i < 4; ++i) {
    urma_recv(p->guarded.jfr, p->received, (uintptr_t)receive_slot(p, RECEIVES - 1), 64, 0);
    urma_recv(p->doomed.jfr, p->received, (uintptr_t)receive_slot(p, RECEIVES - 1), 64, 0);
  }
  return p;
}

static void close_peer(struct peer* p) {
  if (p->passing != NULL) urma_unregister_seg(p->passing);
  urma_unregister_seg(p->received);
  urma_unregister_seg(p->hidden);
  urma_unregister_seg(p->readable);
  urma_unregister_seg(p->part);
  urma_unregister_seg(p->all);
  close_queue(&p->work);
  close_queue(&p->sink);
  close_queue(&p->doomed);
  close_queue(&p->guarded);
  check_number("urma_delete_context of the peer", urma_delete_context(p->context), URMA_SUCCESS);
  free_for_peers(p->memory);
  free_for_peers(p->passing_memory);
  free(p->receive_memory);
  free(p);
}

static struct answer take_message(struct peer* p) {
  urma_cr_t record = {.completion_len = 0};
  struct answer answer = {.status = wait_on(p->sink.jfc, PATIENCE / 2, &record)};
  if (answer.status == NOTHING) return answer;
  answer.length = record.completion_len;
  memcpy(&answer.text, receive_slot(p, record.user_ctx), sizeof answer.text);
  return answer;
}

static struct answer obey(struct peer* p, struct order order) {
  struct answer answer = {0};
  uint32_t number = p->receives;
  switch (order.kind) {
    case ORDER_POST:
      answer.status = urma_recv(p->sink.jfr, p->received, (uintptr_t)receive_slot(p, number), order.bytes, number);
      ++p->receives;
      break;
    case ORDER_TAKE:
      return take_message(p);
    case ORDER_UNREGISTER:
      answer.status = urma_unregister_seg(p->passing);
      p->passing = NULL;
      memset(p->passing_memory, 0, PASSING_BYTES);  // ours again
      break;
    case ORDER_LOOK:
      for (uint32_t i = 0; i < PASSING_BYTES; ++i) answer.status |= p->passing_memory[i] != 0;
      break;
    case ORDER_DELETE:
      answer.status = urma_delete_jetty(p->doomed.jetty);
      p->doomed.jetty = NULL;
      break;
    default:
      answer.status = URMA_EINVAL;
      break;
  }
  return answer;
}

int serve_orders(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  begin_case("peer");
  struct peer* p = open_peer();
  struct offer offer = describe(p);
  need(write(socket, &offer, sizeof offer) == sizeof offer, "telling the offer");
  // Between orders the process sleeps here, outside the library.
  for (struct order order; read(socket, &order, sizeof order) == sizeof order;) {
    struct answer answer = obey(p, order);
    need(write(socket, &answer, sizeof answer) == sizeof answer, "answering");
  }
  close_peer(p);
  return urma_uninit() == URMA_SUCCESS && !failed ? 0 : 1;
}

// ---- the peer as we see it --------------------------------------------------------------------------------

// Variables PEER_NAME are NAME for the peer, if it is to have another NIC than we; PEER_NETNS, the file of the network
// namespace that it enters.
static void take_peer_environment(void) {
  extern char** environ;
  const char* namespace = getenv("PEER_NETNS");
  if (namespace != NULL) {
    int fd = open(namespace, O_RDONLY | O_CLOEXEC);
    need(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, namespace);
  }
  char* own[64];
  int count = 0;
  for (char** entry = environ; *entry != NULL && count < 64; ++entry) {
    if (strncmp(*entry, "PEER_", 5) == 0) own[count++] = *entry + 5;
  }
  for (int i = 0; i < count; ++i) putenv(own[i]);
}

pid_t start_peer_process(int* socket) {
  int sockets[2];
  need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");
  pid_t pid = fork();
  need(pid >= 0, "fork");
  if (pid == 0) {
    dup2(sockets[1], STDIN_FILENO);
    take_peer_environment();
    execl("/proc/self/exe", "peer", "--peer", NULL);
    _exit(127);
  }
  close(sockets[1]);
  *socket = sockets[0];
  return pid;
}

void wait_for_process(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  check_number("exit code of the peer", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0);
}

struct remote* start_peer(urma_context_t* context, bool loopback) {
  struct remote* r = calloc(1, sizeof *r);
  if (loopback) {
    r->local = open_peer();
    r->offer = describe(r->local);
  } else {
    r->pid = start_peer_process(&r->socket);
    need(read(r->socket, &r->offer, sizeof r->offer) == sizeof r->offer, "the peer does not start");
  }
  r->work = import_jetty(context, r->offer.work, 0, URMA_TM_RM);
  r->sink = import_jetty(context, r->offer.sink, 0, URMA_TM_RM);
  r->doomed = import_jetty(context, r->offer.doomed, 0, URMA_TM_RM);
  r->guarded = import_jetty(context, r->offer.guarded, JETTY_TOKEN, URMA_TM_RM);
  r->all = import_segment(context, r->offer.all, GOOD_TOKEN);
  r->part = import_segment(context, r->offer.part, GOOD_TOKEN);
  r->readable = import_segment(context, r->offer.readable, GOOD_TOKEN);
  r->hidden = import_segment(context, r->offer.hidden, GOOD_TOKEN);
  r->passing = import_segment(context, r->offer.passing, GOOD_TOKEN);
  return r;
}

static void unimport_all(struct remote* r) {
  urma_target_jetty_t* targets[] = {r->work, r->sink, r->doomed, r->guarded};
  urma_target_seg_t* segments[] = {r->all, r->part, r->readable, r->hidden, r->passing};
  for (int i = 0; i < 5; ++i) check_number("urma_unimport_seg", urma_unimport_seg(segments[i]), URMA_SUCCESS);
  for (int i = 0; i < 4; ++i) check_number("urma_unimport_jetty", urma_unimport_jetty(targets[i]), URMA_SUCCESS);
}

void bury_peer(struct remote* r) {
  waitpid(r->pid, NULL, 0);
  close(r->socket);
  unimport_all(r);
  free(r);
}

void stop_peer(struct remote* r) {
  unimport_all(r);
  if (r->local != NULL) {
    close_peer(r->local);
  } else {
    close(r->socket);
    wait_for_process(r->pid);
  }
  free(r);
}

struct answer give_order(struct remote* r, enum order_kind kind, uint32_t bytes) {
  struct order order = {kind, bytes};
  struct answer answer;
  if (r->local != NULL) return obey(r->local, order);
  need(write(r->socket, &order, sizeof order) == sizeof order, "giving an order");
  need(read(r->socket, &answer, sizeof answer) == sizeof answer, "the peer does not answer");
  return answer;
}
