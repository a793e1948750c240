// SPDX-License-Identifier: Apache-2.0
//
// Calls of the data path leave errno alone when they succeed or find nothing (urma_api.h): programs look at it after
// each call. Whether a system call fails within one is a matter of chance, so this program wraps those that the library
// makes: here every one of them leaves EIO behind, also when it succeeds, as POSIX allows. Usage: see far.h.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/conformance/far.h"

#define BEFORE 4711  // no error of any system
#define THERE 8192
#define SOON 10000  // ms for an event that must come
#define ROOM 8

// ---- system calls that leave their mark ---------------------------------------------------------------------------

static atomic_long marks;  // left so far, by any thread

static void* real(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == NULL) abort();
  return function;
}

// A failure's errno is the caller's to read, and stays.
#define MARKED(result, name, parameters, arguments)             \
  result name parameters {                                      \
    static result(*_Atomic next) parameters;                    \
    if (atomic_load(&next) == NULL) {                           \
      atomic_store(&next, (result(*) parameters)real(#name));   \
    }                                                           \
    result done = atomic_load(&next) arguments;                 \
    if (done >= 0) errno = EIO;                                 \
    atomic_fetch_add_explicit(&marks, 1, memory_order_relaxed); \
    return done;                                                \
  }

MARKED(ssize_t, read, (int fd, void* to, size_t bytes), (fd, to, bytes))
MARKED(ssize_t, write, (int fd, const void* from, size_t bytes), (fd, from, bytes))
MARKED(int, poll, (struct pollfd * entries, nfds_t count, int ms), (entries, count, ms))
MARKED(int, ppoll, (struct pollfd * entries, nfds_t count, const struct timespec* time, const sigset_t* mask),
       (entries, count, time, mask))
MARKED(ssize_t, recvfrom,
       (int fd, void* restrict to, size_t bytes, int flags, struct sockaddr* restrict from, socklen_t* restrict length),
       (fd, to, bytes, flags, from, length))
MARKED(ssize_t, recvmsg, (int fd, struct msghdr* message, int flags), (fd, message, flags))
MARKED(int, recvmmsg, (int fd, struct mmsghdr* messages, unsigned count, int flags, struct timespec* time),
       (fd, messages, count, flags, time))
MARKED(ssize_t, sendmsg, (int fd, const struct msghdr* message, int flags), (fd, message, flags))
MARKED(int, sendmmsg, (int fd, struct mmsghdr* messages, unsigned count, int flags), (fd, messages, count, flags))
MARKED(int, nanosleep, (const struct timespec* time, struct timespec* left), (time, left))

// ---- looking ------------------------------------------------------------------------------------------------------

static void look(const char* call) {
  const int after = errno;
  if (after != BEFORE && !case_failed()) check_number(call, after, BEFORE);  // the first one will do
}

// The value of a call, which must leave errno alone.
#define KEPT(call)              \
  __extension__({               \
    errno = BEFORE;             \
    __auto_type value = (call); \
    look(#call);                \
    value;                      \
  })

static void wrappers_are_in_force(void) {
  const long before = atomic_load(&marks);
  struct queue q = open_queue(stage.context, (struct queue_options){.depth = 4});
  urma_cr_t record;
  // Over any wire and with any NIC somebody makes a system call by and by.
  for (double end = now() + PATIENCE; atomic_load(&marks) == before && now() < end;) urma_poll_jfc(q.jfc, 1, &record);
  check_true("the library calls the wrappers", atomic_load(&marks) != before);
  struct timespec none = {0, 0};
  errno = BEFORE;
  nanosleep(&none, NULL);
  check_number("errno after a wrapper", errno, EIO);
  close_queue(&q);
}

// ---- posting and polling ------------------------------------------------------------------------------------------

static urma_status_t post_kept(struct queue* q, urma_jfs_wr_t* list) {
  urma_jfs_wr_t* bad = NULL;
  return q->jfs != NULL ? KEPT(urma_post_jfs_wr(q->jfs, list, &bad))
                        : KEPT(urma_post_jetty_send_wr(q->jetty, list, &bad));
}

static void take_kept(urma_jfc_t* jfc, int count) {
  urma_cr_t records[ROOM];
  for (double end = now() + PATIENCE; count > 0 && now() < end;) {
    const int room = count < ROOM ? count : ROOM;
    const int got = KEPT(urma_poll_jfc(jfc, room, records));
    for (int i = 0; i < got; ++i) check_status("completion", records[i].status, URMA_CR_SUCCESS);
    count -= got;
  }
  check_number("completions missing", count, 0);
}

static struct request request_of(struct pair* p, urma_opcode_t op, uint32_t bytes) {
  struct request r = request_to(&p->far, op, bytes);
  r.there = far_address(THERE);
  return r;
}

static void post_one_kept(struct pair* p, urma_opcode_t op, uint32_t bytes, bool inlined) {
  struct request r = request_of(p, op, bytes);
  r.inlined = inlined;
  urma_sge_t here, there[2];
  urma_jfs_wr_t wr = build(&r, &here, there);
  check_number("post", post_kept(&p->q, &wr), URMA_SUCCESS);
}

static void post_every_kind(struct pair* p) {
  static const urma_opcode_t kinds[] = {URMA_OPC_WRITE, URMA_OPC_READ, URMA_OPC_CAS, URMA_OPC_FADD, URMA_OPC_NOP};
  for (int round = 0; round < 50; ++round) {
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; ++i) post_one_kept(p, kinds[i], 8, false);
    post_one_kept(p, URMA_OPC_WRITE, 8, true);
    take_kept(p->q.jfc, sizeof kinds / sizeof *kinds + 1);
  }
  post_one_kept(p, URMA_OPC_WRITE, 4u << 20, false);
  post_one_kept(p, URMA_OPC_READ, 4u << 20, false);
  take_kept(p->q.jfc, 2);
  far_receive(&p->far, THERE, 64, 1);
  post_one_kept(p, URMA_OPC_SEND, 8, false);
  take_kept(p->q.jfc, 1);
  check_status("receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
}
static void posts(void) { for_each_variant(post_every_kind); }

static void post_a_list(struct pair* p) {
  enum { kRequests = 8 };
  urma_sge_t here[kRequests], there[kRequests][2];
  urma_jfs_wr_t list[kRequests];
  for (int i = 0; i < kRequests; ++i) {
    struct request r = request_of(p, URMA_OPC_WRITE, 8);
    list[i] = build(&r, &here[i], there[i]);
    if (i != 0) list[i - 1].next = &list[i];
  }
  for (int round = 0; round < 50; ++round) {
    check_number("post", post_kept(&p->q, list), URMA_SUCCESS);
    take_kept(p->q.jfc, kRequests);
  }
}
static void lists(void) { for_each_variant(post_a_list); }

static void calls_for_one_piece(void) {
  struct pair p = open_pair((struct queue_options){.simplex = true}, (struct queue_options){0});
  const urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};
  const uint64_t here = near_address(4096), there = far_address(THERE);
  urma_target_jetty_t* to = p.far.target;
  for (int round = 0; round < 20; ++round) {
    far_receive(&p.far, THERE, 64, 1);
    check_number("urma_write", KEPT(urma_write(p.q.jfs, to, stage.far, stage.memory, there, here, 8, flag, 1)),
                 URMA_SUCCESS);
    check_number("urma_read", KEPT(urma_read(p.q.jfs, to, stage.memory, stage.far, here, there, 8, flag, 2)),
                 URMA_SUCCESS);
    check_number("urma_send", KEPT(urma_send(p.q.jfs, to, stage.memory, here, 8, flag, 3)), URMA_SUCCESS);
    check_number("urma_recv", KEPT(urma_recv(p.q.jfr, stage.memory, here, 64, 4)), URMA_SUCCESS);
    take_kept(p.q.jfc, 3);
    check_status("receive", far_take(&p.far, PATIENCE, NULL), URMA_CR_SUCCESS);
  }
  close_pair(&p);
}

static void unreliable_sends(void) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  for (int i = 0; i < 100; ++i) {
    post_one_kept(&p, URMA_OPC_SEND, 8, false);
    take_kept(p.q.jfc, 1);
  }
  close_pair(&p);
}

static void polls_that_find_nothing(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  urma_cr_t records[ROOM];
  check_number("no room", KEPT(urma_poll_jfc(p.q.jfc, 0, records)), 0);
  // Long enough for the helpers of both sides to fall asleep and be woken.
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 500; ++i) check_number("an empty queue", KEPT(urma_poll_jfc(p.q.jfc, ROOM, records)), 0);
    rest_ms(2);
    post_one_kept(&p, URMA_OPC_WRITE, 8, false);
    rest_ms(2);
    take_kept(p.q.jfc, 1);
  }
  close_pair(&p);
}

// The NIC holds completions back and is told that there is room again.
static void full_completion_queue(void) {
  enum { kDepth = 4, kRequests = 24 };
  struct pair p = open_pair((struct queue_options){.depth = kRequests, .jfc_depth = kDepth}, (struct queue_options){0});
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kRequests; ++i) post_one_kept(&p, URMA_OPC_WRITE, 8, false);
    rest_ms(2);
    take_kept(p.q.jfc, kRequests);
  }
  take_async_events(stage.context, p.q.jfc);
  close_pair(&p);
}

// ---- receives -----------------------------------------------------------------------------------------------------

static void post_receives(struct queue* q, int rounds) {
  urma_sge_t piece = {.addr = near_address(4096), .len = 64, .tseg = stage.memory};
  urma_jfr_wr_t second = {.src = {&piece, 1}, .user_ctx = 2},
                first = {.src = {&piece, 1}, .user_ctx = 1, .next = &second};
  urma_jfr_wr_t* bad = NULL;
  for (int i = 0; i < rounds; ++i) {
    check_number("urma_post_jfr_wr", KEPT(urma_post_jfr_wr(q->jfr, &first, &bad)), URMA_SUCCESS);
    check_number("urma_recv", KEPT(urma_recv(q->jfr, stage.memory, near_address(4096), 64, 3)), URMA_SUCCESS);
    if (q->jetty == NULL) continue;
    check_number("urma_post_jetty_recv_wr", KEPT(urma_post_jetty_recv_wr(q->jetty, &second, &bad)), URMA_SUCCESS);
  }
}

static void receives(void) {
  struct pair p = open_pair((struct queue_options){.depth = 64}, (struct queue_options){0});
  post_receives(&p.q, 4);
  for (int i = 0; i < 4; ++i) far_send(&p.far, p.q.jetty->jetty_id, THERE, 8, false);
  take_kept(p.q.jfc, 4);
  close_pair(&p);
}

// They come back at once: posting asks the NIC for it.
static void receives_in_error(void) {
  struct pair p = open_pair((struct queue_options){.depth = 64}, (struct queue_options){0});
  urma_jfr_attr_t attr = {.mask = JFR_STATE, .state = URMA_JFR_STATE_ERROR};
  check_number("urma_modify_jfr", urma_modify_jfr(p.q.jfr, &attr), URMA_SUCCESS);
  post_receives(&p.q, 4);
  close_pair(&p);
}

// ---- events -------------------------------------------------------------------------------------------------------

struct listener {
  urma_jfce_t* channel;
  struct pair pair;
};

static struct listener open_listener(void) {
  struct listener l = {.channel = urma_create_jfce(stage.context)};
  need(l.channel != NULL, "urma_create_jfce");
  l.pair = open_pair((struct queue_options){.channel = l.channel}, (struct queue_options){0});
  return l;
}

static void close_listener(struct listener* l) {
  close_pair(&l->pair);
  check_number("urma_delete_jfce", urma_delete_jfce(l->channel), URMA_SUCCESS);
}

static void arm_kept(struct queue* q, bool solicited_only) {
  check_number("urma_rearm_jfc", KEPT(urma_rearm_jfc(q->jfc, solicited_only)), URMA_SUCCESS);
}

static void ack_kept(urma_jfc_t* jfc) {
  urma_jfc_t* jfcs[] = {NULL, jfc};
  uint32_t events[] = {1, 1};
  errno = BEFORE;
  urma_ack_jfc(jfcs, events, 2);
  look("urma_ack_jfc");
}

static void collect_kept(struct listener* l, int ms) {
  urma_jfc_t* jfcs[ROOM];
  check_number("urma_wait_jfc", KEPT(urma_wait_jfc(l->channel, ROOM, ms, jfcs)), 1);
  ack_kept(l->pair.q.jfc);
}

static void events(void) {
  struct listener l = open_listener();
  urma_jfc_t* jfcs[ROOM];
  for (int round = 0; round < 20; ++round) {
    arm_kept(&l.pair.q, true);
    arm_kept(&l.pair.q, false);
    check_number("0 ms", KEPT(urma_wait_jfc(l.channel, ROOM, 0, jfcs)), 0);
    check_number("2 ms", KEPT(urma_wait_jfc(l.channel, ROOM, 2, jfcs)), 0);
    post_one_kept(&l.pair, URMA_OPC_WRITE, 8, false);
    collect_kept(&l, SOON);
    post_one_kept(&l.pair, URMA_OPC_WRITE, 8, false);
    rest_ms(1);
    arm_kept(&l.pair.q, false);  // with a record waiting
    collect_kept(&l, SOON);
    take_kept(l.pair.q.jfc, 2);
  }
  close_listener(&l);
}

static void* write_later(void* listener) {
  struct listener* l = listener;
  rest_ms(50);
  post_one_kept(&l->pair, URMA_OPC_WRITE, 8, false);
  return NULL;
}

static void on_signal(int number) { (void)number; }

// Signals do not end a wait, and EINTR is not the caller's concern.
static void interrupted_waits(void) {
  struct listener l = open_listener();
  struct sigaction action = {.sa_handler = on_signal}, before;
  struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
  urma_jfc_t* jfcs[ROOM];
  pthread_t thread;
  sigset_t alarms, old;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigaction(SIGALRM, &action, &before);
  arm_kept(&l.pair.q, false);
  pthread_sigmask(SIG_BLOCK, &alarms, &old);  // they are for this thread
  need(pthread_create(&thread, NULL, write_later, &l) == 0, "pthread_create");
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  collect_kept(&l, SOON);
  take_kept(l.pair.q.jfc, 1);
  check_number("30 ms", KEPT(urma_wait_jfc(l.channel, ROOM, 30, jfcs)), 0);
  setitimer(ITIMER_REAL, &never, NULL);
  pthread_join(thread, NULL);
  sigaction(SIGALRM, &before, NULL);
  close_listener(&l);
}

static void asynchronous_events(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  const int fd = stage.context->async_fd, flags = fcntl(fd, F_GETFL);
  urma_async_event_t event;
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  check_number("without event", KEPT(urma_get_async_event(stage.context, &event)), URMA_FAIL);
  fcntl(fd, F_SETFL, flags);
  post_receives(&p.q, 1);
  urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 4};
  check_number("urma_modify_jfr", urma_modify_jfr(p.q.jfr, &attr), URMA_SUCCESS);
  far_send(&p.far, p.q.jetty->jetty_id, THERE, 8, false);
  check_number("urma_get_async_event", KEPT(urma_get_async_event(stage.context, &event)), URMA_SUCCESS);
  check_number("event", event.event_type, URMA_EVENT_JFR_LIMIT);
  errno = BEFORE;
  urma_ack_async_event(&event);
  look("urma_ack_async_event");
  take_kept(p.q.jfc, 1);
  close_pair(&p);
}

// ---- flush --------------------------------------------------------------------------------------------------------

static int flush_kept(struct queue* q, urma_cr_t* records) {
  return q->jfs != NULL ? KEPT(urma_flush_jfs(q->jfs, ROOM, records)) : KEPT(urma_flush_jetty(q->jetty, ROOM, records));
}

static void flush_queue(struct pair* p) {
  urma_cr_t records[ROOM];
  urma_jfs_attr_t jfs = {.mask = JFS_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_jetty_attr_t jetty = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  check_number("before ERROR", flush_kept(&p->q, records), 0);
  check_number("to ERROR", p->q.jfs != NULL ? urma_modify_jfs(p->q.jfs, &jfs) : urma_modify_jetty(p->q.jetty, &jetty),
               URMA_SUCCESS);
  post_one_kept(p, URMA_OPC_WRITE, 8, false);
  for (int status = 0; status != URMA_CR_WR_FLUSH_ERR_DONE && status != NOTHING;) {
    status = wait_completion(&p->q, PATIENCE, records);
    check_true("the marker comes", status != NOTHING);
  }
  check_true("flush", flush_kept(&p->q, records) >= 0);
}
static void flushes(void) { for_each_variant(flush_queue); }

// ---- several threads ----------------------------------------------------------------------------------------------

// They take the NIC from each other, wait for it, and wake its helper.
static void* post_and_poll(void* pair) {
  struct pair* p = pair;
  for (int i = 0; i < 2000; ++i) {
    post_one_kept(p, URMA_OPC_WRITE, 8, false);
    take_kept(p->q.jfc, 1);
  }
  return NULL;
}

static void several_threads(void) {
  enum { kThreads = 3 };
  struct pair pairs[kThreads];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pairs[i] = open_pair((struct queue_options){0}, (struct queue_options){0});
  for (int i = 0; i < kThreads; ++i) {
    need(pthread_create(&threads[i], NULL, post_and_poll, &pairs[i]) == 0, "pthread_create");
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) close_pair(&pairs[i]);
}

static const struct test_case cases[] = {
    {"the wrappers are in force", wrappers_are_in_force},
    {"posts", posts},
    {"lists of requests", lists},
    {"calls for one piece", calls_for_one_piece},
    {"unreliable sends", unreliable_sends},
    {"polls that find nothing", polls_that_find_nothing},
    {"full completion queue", full_completion_queue},
    {"receives", receives},
    {"receives in ERROR", receives_in_error},
    {"events", events},
    {"interrupted waits", interrupted_waits},
    {"asynchronous events", asynchronous_events},
    {"flushes", flushes},
    {"several threads", several_threads},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
