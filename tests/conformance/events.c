// SPDX-License-Identifier: Apache-2.0
//
// Completion events and asynchronous events: when they come, when not, through which descriptors, and what waits for
// their acknowledgement (URMA API 0.9, 6.6). Usage: see far.h.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/conformance/far.h"

#define THERE 8192
#define ROOM 8
#define SOON 10000  // ms for an event that must come
#define MOMENT 20   // ms for one that must not; too short lets a fault pass, never fails a good library

struct listener {
  urma_jfce_t* channel;
  struct pair pair;
};

static struct listener open_listener(struct queue_options ours) {
  struct listener l = {.channel = urma_create_jfce(stage.context)};
  need(l.channel != NULL, "urma_create_jfce");
  ours.channel = l.channel;
  l.pair = open_pair(ours, (struct queue_options){0});
  return l;
}

static void close_listener(struct listener* l) {
  close_pair(&l->pair);
  check_number("urma_delete_jfce", urma_delete_jfce(l->channel), URMA_SUCCESS);
}

static bool readable(int fd, int ms) {
  struct pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, ms) == 1;
}

static void arm(struct queue* q, bool solicited_only) {
  check_number("urma_rearm_jfc", urma_rearm_jfc(q->jfc, solicited_only), URMA_SUCCESS);
}

static void post_write_to(struct pair* p, uint64_t there) {
  struct request r = request_to(&p->far, URMA_OPC_WRITE, 8);
  r.there = there;
  check_number("post", post(&p->q, &r), URMA_SUCCESS);
}

static void post_write(struct pair* p) { post_write_to(p, far_address(THERE)); }
static void post_bad_write(struct pair* p) { post_write_to(p, far_address(STAGE_BYTES)); }  // it fails

static void take(struct queue* q, int count) {
  for (int i = 0; i < count; ++i) check_status("completion", wait_completion(q, PATIENCE, NULL), URMA_CR_SUCCESS);
}

static void ack(urma_jfc_t* jfc, uint32_t events) { urma_ack_jfc(&jfc, &events, 1); }

// One event of this queue, within `ms`.
static void collect(struct listener* l, int ms) {
  urma_jfc_t* jfcs[ROOM] = {NULL};
  check_number("urma_wait_jfc", urma_wait_jfc(l->channel, ROOM, ms, jfcs), 1);
  check_true("names the queue", jfcs[0] == l->pair.q.jfc);
  ack(l->pair.q.jfc, 1);
}

static void check_quiet(struct listener* l, const char* what) {
  urma_jfc_t* jfcs[ROOM];
  check_true(what, !readable(l->channel->fd, MOMENT));
  check_number(what, urma_wait_jfc(l->channel, ROOM, 0, jfcs), 0);
}

// ---- arming -----------------------------------------------------------------------------------------------

static void one_per_arming(void) {
  struct listener l = open_listener((struct queue_options){0});
  post_write(&l.pair);
  take(&l.pair.q, 1);
  check_quiet(&l, "no event of a queue that was never armed");
  for (int round = 0; round < 20; ++round) {
    arm(&l.pair.q, false);
    if (round % 5 == 0) check_quiet(&l, "no event of an empty queue");
    for (int i = 0; i < 3; ++i) post_write(&l.pair);
    check_true("the descriptor is readable", readable(l.channel->fd, SOON));
    collect(&l, SOON);
    take(&l.pair.q, 3);
    if (round % 5 == 0) check_quiet(&l, "one event for three records");
  }
  close_listener(&l);
}

// As programs do that take one record an event: wait, poll one, acknowledge, arm.
static void arm_with_records_waiting(void) {
  struct listener l = open_listener((struct queue_options){0});
  enum { kRecords = 6 };
  for (int i = 0; i < kRecords; ++i) post_write(&l.pair);
  for (int i = 0; i < kRecords; ++i) {
    arm(&l.pair.q, false);
    collect(&l, SOON);
    urma_cr_t record;
    check_number("records behind an event", urma_poll_jfc(l.pair.q.jfc, 1, &record), 1);
  }
  arm(&l.pair.q, false);
  check_quiet(&l, "no event behind the last record");
  close_listener(&l);
}

static void armed_twice(void) {
  struct listener l = open_listener((struct queue_options){0});
  arm(&l.pair.q, false);
  arm(&l.pair.q, false);
  post_write(&l.pair);
  post_write(&l.pair);
  collect(&l, SOON);
  take(&l.pair.q, 2);
  check_quiet(&l, "no second event");
  close_listener(&l);
}

static void receive(struct queue* q, uint64_t user_ctx) {
  check_number("urma_recv", urma_recv(q->jfr, stage.memory, near_address(4096), 64, user_ctx), URMA_SUCCESS);
}

// The peer's SEND has completed, so our receive has, too.
static void let_peer_send(struct listener* l, bool solicited) {
  far_send(&l->pair.far, l->pair.q.jetty->jetty_id, THERE, 8, solicited);
}

static void solicited_only(void) {
  struct listener l = open_listener((struct queue_options){0});
  struct queue* q = &l.pair.q;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 4; ++i) receive(q, i);
    arm(q, true);
    let_peer_send(&l, false);
    post_write(&l.pair);
    take(q, 2);
    check_quiet(&l, "no event for what is not solicited");
    let_peer_send(&l, false);
    let_peer_send(&l, true);
    collect(&l, SOON);
    take(q, 2);
    // Waiting already.
    let_peer_send(&l, true);
    arm(q, true);
    collect(&l, SOON);
    take(q, 1);
  }
  for (uint64_t i = 0; i < 2; ++i) receive(q, i);
  let_peer_send(&l, false);
  arm(q, true);
  check_quiet(&l, "no event for a waiting record that is not solicited");
  arm(q, false);
  collect(&l, SOON);
  take(q, 1);
  arm(q, true);
  post_bad_write(&l.pair);
  collect(&l, SOON);
  check_status("an error", wait_completion(q, PATIENCE, NULL), URMA_CR_REM_ACCESS_ABORT_ERR);
  close_listener(&l);
}

// ---- moderation -------------------------------------------------------------------------------------------

#define LONGEST_PERIOD 65535  // us

static void moderate(struct queue* q, uint32_t mask, uint16_t count, uint16_t period) {
  urma_jfc_attr_t attr = {mask, count, period};
  check_number("urma_modify_jfc", urma_modify_jfc(q->jfc, &attr), URMA_SUCCESS);
}

static void moderated_by_number(void) {
  enum { kCount = 4 };
  struct listener l = open_listener((struct queue_options){0});
  struct queue* q = &l.pair.q;
  moderate(q, JFC_MODERATE_COUNT, kCount, 0);
  for (int round = 0; round < 3; ++round) {
    arm(q, false);
    for (int i = 1; i < kCount; ++i) {
      post_write(&l.pair);
      take(q, 1);
    }
    check_quiet(&l, "no event of too few records, though they were read");
    post_write(&l.pair);
    collect(&l, SOON);
    take(q, 1);
  }
  for (int i = 0; i < kCount; ++i) post_write(&l.pair);
  arm(q, false);
  collect(&l, SOON);
  take(q, kCount - 1);
  arm(q, false);
  check_quiet(&l, "one record waits when it is armed");
  for (int i = 1; i < kCount; ++i) post_write(&l.pair);
  collect(&l, SOON);
  take(q, kCount);
  moderate(q, JFC_MODERATE_COUNT, UINT16_MAX, 0);
  arm(q, false);
  post_write(&l.pair);
  check_quiet(&l, "no event of one record");
  moderate(q, JFC_MODERATE_COUNT, 1, 0);
  collect(&l, SOON);
  take(q, 1);
  urma_jfc_attr_t unknown = {4, 1, 1};
  check_number("an unknown attribute", urma_modify_jfc(q->jfc, &unknown), URMA_EINVAL);
  check_number("no attributes", urma_modify_jfc(q->jfc, NULL), URMA_EINVAL);
  close_listener(&l);
}

static void moderated_by_time(void) {
  struct listener l = open_listener((struct queue_options){0});
  struct queue* q = &l.pair.q;
  const uint32_t both = JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD;
  moderate(q, both, 1000, LONGEST_PERIOD);
  for (int round = 0; round < 3; ++round) {
    arm(q, false);
    double begin = now();
    post_write(&l.pair);
    if (round == 1) {  // it is told, though the program does not drive the device
      check_true("the descriptor is readable", readable(l.channel->fd, SOON));
    }
    collect(&l, SOON);
    check_true("the period is over", now() - begin >= 0.06);
    take(q, 1);
    check_quiet(&l, "one event");
  }
  moderate(q, JFC_MODERATE_COUNT, 2, 0);  // the period stays
  arm(q, false);
  post_write(&l.pair);
  collect(&l, SOON);
  take(q, 1);
  moderate(q, both, 0, 0);
  for (int i = 0; i < 3; ++i) {
    arm(q, false);
    post_write(&l.pair);
    collect(&l, SOON);
    take(q, 1);
  }
  close_listener(&l);
}

static void told_at_once(void) {
  struct listener l = open_listener((struct queue_options){0});
  struct queue* q = &l.pair.q;
  moderate(q, JFC_MODERATE_COUNT, 1000, 0);
  for (int round = 0; round < 2; ++round) {
    const bool solicited_only = round == 1;
    arm(q, solicited_only);
    post_write(&l.pair);
    take(q, 1);
    check_quiet(&l, "no event of one record");
    post_bad_write(&l.pair);
    collect(&l, SOON);
    check_status("an error", wait_completion(q, PATIENCE, NULL), URMA_CR_REM_ACCESS_ABORT_ERR);
    for (uint64_t i = 0; i < 2; ++i) receive(q, i);
    arm(q, solicited_only);
    let_peer_send(&l, false);
    take(q, 1);
    check_quiet(&l, "no event of one receive");
    let_peer_send(&l, true);
    collect(&l, SOON);
    take(q, 1);
  }
  close_listener(&l);
}

// ---- waiting ----------------------------------------------------------------------------------------------

static void* write_soon(void* listener) {
  post_write(&((struct listener*)listener)->pair);
  return NULL;
}

static void timeouts(void) {
  struct listener l = open_listener((struct queue_options){0});
  urma_jfc_t* jfcs[ROOM];
  arm(&l.pair.q, false);
  check_number("0 ms", urma_wait_jfc(l.channel, ROOM, 0, jfcs), 0);
  double begin = now();
  check_number("30 ms", urma_wait_jfc(l.channel, ROOM, 30, jfcs), 0);
  check_true("30 ms are over", now() - begin >= 0.029);
  check_number("no room", urma_wait_jfc(l.channel, 0, 0, jfcs), -1);
  check_number("no array", urma_wait_jfc(l.channel, ROOM, 0, NULL), -1);
  check_number("no channel", urma_wait_jfc(NULL, ROOM, 0, jfcs), -1);
  pthread_t thread;
  need(pthread_create(&thread, NULL, write_soon, &l) == 0, "pthread_create");
  collect(&l, -1);
  pthread_join(thread, NULL);
  take(&l.pair.q, 1);
  close_listener(&l);
}

static void several_queues_on_a_channel(void) {
  enum { kQueues = 3 };
  urma_jfce_t* channel = urma_create_jfce(stage.context);
  need(channel != NULL, "urma_create_jfce");
  struct pair pairs[kQueues];
  for (int i = 0; i < kQueues; ++i) {
    pairs[i] = open_pair((struct queue_options){.channel = channel}, (struct queue_options){0});
    arm(&pairs[i].q, false);
    post_write(&pairs[i]);
  }
  int events[kQueues] = {0};
  for (int collected = 0; collected < kQueues;) {
    urma_jfc_t* jfcs[2];
    int n = urma_wait_jfc(channel, 2, SOON, jfcs);
    if (n < 1 || n > 2) {
      check_number("urma_wait_jfc", n, 1);
      break;
    }
    collected += n;
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < kQueues; ++k) events[k] += jfcs[i] == pairs[k].q.jfc;
      ack(jfcs[i], 1);
    }
  }
  for (int i = 0; i < kQueues; ++i) check_number("events of one queue", events[i], 1);
  check_true("nothing more", !readable(channel->fd, MOMENT));
  for (int i = 0; i < kQueues; ++i) {
    take(&pairs[i].q, 1);
    close_pair(&pairs[i]);
  }
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
}

static int watch(int fd, uint32_t how) {
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN | how};
  need(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll");
  return epoll;
}

static int reports(int epoll, int ms) {
  struct epoll_event event;
  return epoll_wait(epoll, &event, 1, ms);
}

static void descriptor_in_epoll(void) {
  struct listener l = open_listener((struct queue_options){0});
  int level = watch(l.channel->fd, 0), edge = watch(l.channel->fd, EPOLLET);
  fcntl(l.channel->fd, F_SETFL, fcntl(l.channel->fd, F_GETFL) | O_NONBLOCK);
  for (int round = 0; round < 3; ++round) {
    arm(&l.pair.q, false);
    check_number("by level before", reports(level, 0), 0);
    check_number("by edge before", reports(edge, 0), 0);
    post_write(&l.pair);
    check_number("by level", reports(level, SOON), 1);
    check_number("by level, still", reports(level, 0), 1);
    check_number("by edge", reports(edge, SOON), 1);
    check_number("by edge, once", reports(edge, 0), 0);
    collect(&l, 0);
    check_number("by level afterwards", reports(level, 0), 0);
    take(&l.pair.q, 1);
  }
  // An edge for each event, though nobody collected the first.
  struct pair other = open_pair((struct queue_options){.channel = l.channel}, (struct queue_options){0});
  arm(&l.pair.q, false);
  arm(&other.q, false);
  post_write(&l.pair);
  check_number("by edge", reports(edge, SOON), 1);
  post_write(&other);
  check_number("by edge, the second", reports(edge, SOON), 1);
  urma_jfc_t* jfcs[ROOM];
  check_number("both", urma_wait_jfc(l.channel, ROOM, 0, jfcs), 2);
  ack(l.pair.q.jfc, 1);
  ack(other.q.jfc, 1);
  take(&l.pair.q, 1);
  take(&other.q, 1);
  close_pair(&other);
  close(level);
  close(edge);
  close_listener(&l);
}

// ---- acknowledging ----------------------------------------------------------------------------------------

static urma_jfc_t* create_jfc(urma_jfce_t* channel, bool non_blocking) {
  urma_jfc_cfg_t cfg = {.depth = 16, .flag.bs.non_blocking = non_blocking, .jfce = channel};
  urma_jfc_t* jfc = urma_create_jfc(stage.context, &cfg);
  need(jfc != NULL, "urma_create_jfc");
  return jfc;
}

// A JFC of which `events` events were collected and not acknowledged; it has no users left.
static urma_jfc_t* with_events(urma_jfce_t* channel, bool non_blocking, int events) {
  urma_jfc_t* jfc = create_jfc(channel, non_blocking);
  urma_jfs_cfg_t cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
  urma_jfs_t* jfs = urma_create_jfs(stage.context, &cfg);
  need(jfs != NULL, "urma_create_jfs");
  struct queue q = {.jfc = jfc, .jfs = jfs};
  for (int i = 0; i < events; ++i) {
    urma_jfc_t* jfcs[1];
    struct request nop = {.op = URMA_OPC_NOP};
    arm(&q, false);
    check_number("post", post(&q, &nop), URMA_SUCCESS);
    check_number("urma_wait_jfc", urma_wait_jfc(channel, 1, SOON, jfcs), 1);
    take(&q, 1);
  }
  check_number("urma_delete_jfs", urma_delete_jfs(jfs), URMA_SUCCESS);
  return jfc;
}

static void deletion_asks_again(void) {
  urma_jfce_t* channel = urma_create_jfce(stage.context);
  urma_jfc_t* jfc = with_events(channel, true, 3);
  check_number("with none of 3 acknowledged", urma_delete_jfc(jfc), URMA_EAGAIN);
  ack(jfc, 0);
  check_number("with none of 3 acknowledged", urma_delete_jfc(jfc), URMA_EAGAIN);
  ack(jfc, 2);
  check_number("with 2 of 3 acknowledged", urma_delete_jfc(jfc), URMA_EAGAIN);
  check_number("comp_events_acked", jfc->comp_events_acked, 2);
  urma_jfc_t* pair[] = {NULL, jfc};
  uint32_t events[] = {7, 1};
  urma_ack_jfc(pair, events, 2);  // what is NULL is passed over
  check_number("with all acknowledged", urma_delete_jfc(jfc), URMA_SUCCESS);
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
}

// By another thread: of the JFC, or of the JFR.
struct deletion {
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  atomic_int status;  // -1: not back
};

static void* delete_it(void* argument) {
  struct deletion* d = argument;
  atomic_store(&d->status, d->jfc != NULL ? urma_delete_jfc(d->jfc) : urma_delete_jfr(d->jfr));
  return NULL;
}

static void deletion_waits(void) {
  urma_jfce_t* channel = urma_create_jfce(stage.context);
  struct deletion d = {.jfc = with_events(channel, false, 2), .status = -1};
  pthread_t thread;
  need(pthread_create(&thread, NULL, delete_it, &d) == 0, "pthread_create");
  rest_ms(MOMENT);
  check_number("back before an acknowledgement", atomic_load(&d.status), -1);
  ack(d.jfc, 1);
  rest_ms(MOMENT);
  check_number("back before the second", atomic_load(&d.status), -1);
  ack(d.jfc, 1);
  pthread_join(thread, NULL);
  check_number("its status", atomic_load(&d.status), URMA_SUCCESS);
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
}

// Events that nobody collected go with their queue.
static void events_nobody_collected(void) {
  struct listener l = open_listener((struct queue_options){0});
  arm(&l.pair.q, false);
  post_write(&l.pair);
  check_true("the descriptor is readable", readable(l.channel->fd, SOON));
  urma_jfc_t* jfcs[1];
  close_pair(&l.pair);
  check_true("the descriptor is readable no more", !readable(l.channel->fd, 0));
  check_number("urma_wait_jfc", urma_wait_jfc(l.channel, 1, 0, jfcs), 0);
  check_number("urma_delete_jfce", urma_delete_jfce(l.channel), URMA_SUCCESS);
}

// Of several queues with an event one goes, whether it was the first, one between or the last: it takes no event of the
// others with it, nor of one that comes afterwards.
static void one_goes_of_several_with_events(void) {
  enum { kQueues = 4, kLater = 3 };
  for (int gone = 0; gone < kLater; ++gone) {
    urma_jfce_t* channel = urma_create_jfce(stage.context);
    need(channel != NULL, "urma_create_jfce");
    struct pair pairs[kQueues];
    for (int i = 0; i < kQueues; ++i) {
      pairs[i] = open_pair((struct queue_options){.channel = channel}, (struct queue_options){0});
      arm(&pairs[i].q, false);
    }
    int edge = watch(channel->fd, EPOLLET);
    for (int i = 0; i < kQueues; ++i) {
      if (i == kLater) close_pair(&pairs[gone]);
      post_write(&pairs[i]);
      check_number("by edge", reports(edge, SOON), 1);
    }
    urma_jfc_t* jfcs[ROOM] = {NULL};
    check_number("events of those that are there", urma_wait_jfc(channel, ROOM, 0, jfcs), kQueues - 1);
    for (int i = 0, at = 0; i < kQueues; ++i) {
      if (i == gone) continue;
      check_true("they come in order", jfcs[at++] == pairs[i].q.jfc);
      ack(pairs[i].q.jfc, 1);
    }
    check_true("the descriptor is readable no more", !readable(channel->fd, 0));
    for (int i = 0; i < kQueues; ++i) {
      if (i == gone) continue;
      take(&pairs[i].q, 1);
      close_pair(&pairs[i]);
    }
    close(edge);
    check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
  }
}

// ---- asynchronous events ----------------------------------------------------------------------------------

static urma_async_event_t get_event(void) {
  urma_async_event_t event;
  memset(&event, 0xa5, sizeof event);
  check_number("urma_get_async_event", urma_get_async_event(stage.context, &event), URMA_SUCCESS);
  check_true("the context", event.urma_ctx == stage.context);
  return event;
}

static void set_threshold(struct queue* q, uint32_t threshold) {
  urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = threshold};
  check_number("urma_modify_jfr", urma_modify_jfr(q->jfr, &attr), URMA_SUCCESS);
}

static void nothing_waits(void) {
  int fd = stage.context->async_fd, flags = fcntl(fd, F_GETFL);
  urma_async_event_t event;
  check_true("the descriptor is not readable", !readable(fd, 0));
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  check_number("without event", urma_get_async_event(stage.context, &event), URMA_FAIL);
  check_number("no place for an event", urma_get_async_event(stage.context, NULL), URMA_EINVAL);
  check_number("no context", urma_get_async_event(NULL, &event), URMA_EINVAL);
  fcntl(fd, F_SETFL, flags);
  urma_ack_async_event(NULL);
}

// Twice: each threshold gives one event.
static void low_water(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  struct listener l = {.pair = p};
  int fd = stage.context->async_fd, level = watch(fd, 0), edge = watch(fd, EPOLLET);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 4; ++i) receive(&p.q, i);
    set_threshold(&p.q, 3);
    let_peer_send(&l, false);
    check_true("no event with 3 left", !readable(fd, MOMENT));
    check_number("by edge with 3 left", reports(edge, 0), 0);
    let_peer_send(&l, false);
    check_number("by level", reports(level, SOON), 1);
    check_number("by edge", reports(edge, SOON), 1);
    urma_async_event_t event = get_event();
    check_number("event", event.event_type, URMA_EVENT_JFR_LIMIT);
    check_true("its JFR", event.element.jfr == p.q.jfr);
    check_true("the descriptor is readable no more", !readable(fd, 0));
    urma_ack_async_event(&event);
    for (int i = 0; i < 2; ++i) let_peer_send(&l, false);
    check_true("no second event", !readable(fd, MOMENT));
    take(&p.q, 4);
  }
  close(level);
  close(edge);
  close_pair(&p);
}

static void overrun(void) {
  enum { kDepth = 4, kRequests = 12 };
  struct queue_options options = {.depth = kRequests, .jfc_depth = kDepth};
  struct pair p = open_pair(options, (struct queue_options){0});
  int fd = stage.context->async_fd;
  for (int i = 0; i < kRequests; ++i) post_write(&p);
  check_true("the descriptor is readable", readable(fd, SOON));
  urma_async_event_t event = get_event();
  check_number("event", event.event_type, URMA_EVENT_JFC_ERR);
  check_true("its JFC", event.element.jfc == p.q.jfc);
  urma_ack_async_event(&event);
  take(&p.q, kRequests);  // nothing is lost
  while (readable(fd, 0)) {
    event = get_event();
    check_number("event", event.event_type, URMA_EVENT_JFC_ERR);
    urma_ack_async_event(&event);
  }
  post_write(&p);
  take(&p.q, 1);
  close_pair(&p);
}

static void* wait_for_event(void* event) {
  *(urma_async_event_t*)event = get_event();
  return NULL;
}

static void blocked_thread(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  struct listener l = {.pair = p};
  urma_async_event_t event;
  pthread_t thread;
  for (uint64_t i = 0; i < 2; ++i) receive(&p.q, i);
  set_threshold(&p.q, 1);
  need(pthread_create(&thread, NULL, wait_for_event, &event) == 0, "pthread_create");
  for (int i = 0; i < 2; ++i) let_peer_send(&l, false);
  pthread_join(thread, NULL);
  check_number("event", event.event_type, URMA_EVENT_JFR_LIMIT);
  urma_ack_async_event(&event);
  take(&p.q, 2);
  close_pair(&p);
}

static void jfr_waits_for_ack(void) {
  struct pair p = open_pair((struct queue_options){0}, (struct queue_options){0});
  struct listener l = {.pair = p};
  for (uint64_t i = 0; i < 2; ++i) receive(&p.q, i);
  set_threshold(&p.q, 2);
  let_peer_send(&l, false);
  urma_async_event_t event = get_event();
  take(&p.q, 1);
  check_number("urma_delete_jetty", urma_delete_jetty(p.q.jetty), URMA_SUCCESS);
  p.q.jetty = NULL;
  struct deletion d = {.jfr = p.q.jfr, .status = -1};
  pthread_t thread;
  need(pthread_create(&thread, NULL, delete_it, &d) == 0, "pthread_create");
  rest_ms(MOMENT);
  check_number("back before the acknowledgement", atomic_load(&d.status), -1);
  urma_ack_async_event(&event);
  pthread_join(thread, NULL);
  check_number("its status", atomic_load(&d.status), URMA_SUCCESS);
  far_close(&p.far);
  check_number("urma_delete_jfc", urma_delete_jfc(p.q.jfc), URMA_SUCCESS);
}

// Events of an object that is gone are gone, too.
static void events_of_the_dead(void) {
  enum { kDepth = 2, kRequests = 6 };
  struct pair p = open_pair((struct queue_options){.depth = kRequests, .jfc_depth = kDepth}, (struct queue_options){0});
  for (int i = 0; i < kRequests; ++i) post_write(&p);
  check_true("the descriptor is readable", readable(stage.context->async_fd, SOON));
  close_pair(&p);
  check_true("the descriptor is readable no more", !readable(stage.context->async_fd, 0));
}

static const struct test_case cases[] = {
    {"one event an arming", one_per_arming},
    {"armed with records waiting", arm_with_records_waiting},
    {"armed twice", armed_twice},
    {"solicited only", solicited_only},
    {"moderated by number", moderated_by_number},
    {"moderated by time", moderated_by_time},
    {"moderated, and told at once", told_at_once},
    {"time-outs", timeouts},
    {"several queues on a channel", several_queues_on_a_channel},
    {"descriptor in epoll", descriptor_in_epoll},
    {"deletion asks again", deletion_asks_again},
    {"deletion waits", deletion_waits},
    {"events nobody collected", events_nobody_collected},
    {"one goes of several with events", one_goes_of_several_with_events},
    {"no asynchronous event", nothing_waits},
    {"low water", low_water},
    {"overrun", overrun},
    {"blocked thread", blocked_thread},
    {"deletion of a JFR waits", jfr_waits_for_ack},
    {"events of the dead", events_of_the_dead},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
