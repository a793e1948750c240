// SPDX-License-Identifier: Apache-2.0
//
// No wake-up is lost, however two sides wait for each other. They send a word to and fro; a seed draws for each turn
// how it travels (WRITE, WRITE of many packets, WRITE_IMM, SEND, a READ by who waits) and how each side waits: it spins
// on memory and calls nothing, polls, sleeps in urma_wait_jfc, sleeps in epoll, or sleeps outside the library and looks
// afterwards. A second thread of each side now and then polls, posts or spins beside it.
//
// A turn that takes longer than 50 ms is counted and printed; it is no failure, for the machine may be busy. With
// --long-timers no timer comes to the aid of who was not woken: a lost wake-up then is a turn that does not end.
//
// With --chain one side posts thousands of small WRITEs at once, each to be done after the one before it, and calls
// nothing until the other has seen the last, which calls nothing either: their helpers alone do it all. One that slept
// its nap out at each of them would be at it for longer than a turn may take. No rounds come before: who has ever
// waited for an event is rung for all.
//
//   wakeups --processes|--loopback [--long-timers] [--seed N] [--rounds N]
//   wakeups --processes|--loopback --chain
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define SLOTS 64u
#define BULK_BYTES (512u << 10)
#define MOST_UNDER_WAY 12
#define CHAIN 4096u      // requests
#define CHAINS 6u        // one after the other: together they outlast a turn if who is held back is not rung
#define AWAY_US 8000u    // who polls for so long is left alone by its helper, and must be found again
#define SLOW 0.05        // seconds of a turn that is worth a line
#define ENDLESS 6.0      // seconds of a turn that will not end; shorter than the long timers
#define TIME_LIMIT 30.0  // seconds for everything

enum kind { KIND_WRITE, KIND_BULK, KIND_WRITE_IMM, KIND_SEND, KIND_READ, KINDS };
enum way { WAY_SPIN, WAY_POLL, WAY_SLEEP, WAY_EPOLL, WAY_NAP, WAYS };
enum aside { ASIDE_POLL, ASIDE_TALK, ASIDE_SPIN, ASIDES };
static const char* const kind_names[] = {"WRITE", "WRITE of many packets", "WRITE_IMM", "SEND", "READ"};
static const char* const way_names[] = {"spins", "polls", "sleeps in urma_wait_jfc", "sleeps in epoll", "naps"};

// What others write lies in lines of its own.
struct line {
  _Alignas(64) _Atomic uint64_t word;
};
struct memory {
  struct line mailbox, published, read, talk;
  struct line sources[SLOTS], receives[SLOTS];
  _Alignas(64) char bulk_source[BULK_BYTES];
  _Alignas(64) char bulk[BULK_BYTES];
};

struct plan {
  uint64_t seed;
  uint32_t rounds;
  bool chain;
};
struct card {  // what a side tells about itself
  urma_jetty_id_t jetty, aside;
  urma_seg_t segment;
};

struct side {
  int number, socket;
  struct plan plan;
  urma_context_t* context;
  urma_jfce_t* channel;
  struct queue q, aside_q;
  struct memory* memory;
  urma_target_seg_t *local, *remote;
  urma_target_jetty_t *peer, *peer_aside;
  uint64_t peer_base;
  int epoll;
  uint64_t posted, sent;        // requests, and their completions
  uint64_t expected, received;  // messages that take a receive, and their completions
  uint32_t slow;
  // Of the second thread.
  pthread_t thread;
  sem_t wanted;
  _Atomic int aside;  // ASIDES: nothing; -1: to end
  uint32_t aside_us;
};

// ---- where we are, for who looks whether it goes on -----------------------------------------------------------------

struct place {
  _Atomic uint64_t since_us;  // 0: not in a turn
  _Atomic uint32_t round;
  _Atomic int leg, kind, way;
  _Atomic(const char*) what;
};
static struct place places[2];
static uint64_t seed_told;

static uint64_t now_us(void) { return (uint64_t)(now() * 1e6); }

static void* watch(void* unused) {
  (void)unused;
  const double end = now() + TIME_LIMIT;
  for (;;) {
    rest_ms(100);
    const bool over = now() > end;
    for (int i = 0; i < 2; ++i) {
      struct place* p = &places[i];
      const uint64_t since = atomic_load(&p->since_us);
      if (since == 0 || (!over && now_us() < since + (uint64_t)(ENDLESS * 1e6))) continue;
      printf("FAIL wakeups: side %d %s: round %u, leg %d, %s, it %s: %s; again with --seed %llu\n", i,
             over ? "is not done in time" : "was not woken", p->round, p->leg, kind_names[p->kind], way_names[p->way],
             p->what, (unsigned long long)seed_told);
      fflush(stdout);
      if (!over) _exit(1);
    }
    if (over) _exit(1);
  }
  return NULL;
}

static void start_watch(void) {
  pthread_t thread;
  need(pthread_create(&thread, NULL, watch, NULL) == 0, "a thread that watches");
  pthread_detach(thread);
}

// ---- chance ---------------------------------------------------------------------------------------------------------

// Both sides draw the same.
static uint32_t draw(uint64_t* state, uint32_t below) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

struct turn {
  enum kind kind;
  enum way way, sender_way;  // of who waits for the word, of who waits for its own completions
  uint32_t us, sender_us;    // of its naps
  bool sender_waits;
  uint32_t hesitates_us;  // calling nothing, so that the word meets the peer as it falls asleep
  int aside[2];           // ASIDES: nothing
  uint32_t aside_us[2];
};

static struct turn draw_turn(uint64_t* state) {
  struct turn t;
  const uint32_t kind = draw(state, 32);
  t.kind = kind == 0 ? KIND_BULK : (enum kind[]){KIND_WRITE, KIND_WRITE_IMM, KIND_SEND, KIND_READ}[kind % 4];
  t.way = (enum way)draw(state, WAYS);
  t.sender_way = (enum way)draw(state, WAYS);
  t.us = draw(state, 300);
  t.sender_us = draw(state, 300);
  t.sender_waits = draw(state, 3) == 0;
  t.hesitates_us = draw(state, 2) == 0 ? draw(state, 250) : 0;
  if (draw(state, 48) == 0) t.hesitates_us = AWAY_US;
  for (int i = 0; i < 2; ++i) {
    t.aside[i] = draw(state, 12) == 0 ? (int)draw(state, ASIDES) : ASIDES;
    t.aside_us[i] = draw(state, 200);
  }
  return t;
}

// ---- completions ----------------------------------------------------------------------------------------------------

static void post_one_receive(struct side* s, uint64_t number) {
  struct line* slot = &s->memory->receives[number % SLOTS];
  need(urma_recv(s->q.jfr, s->local, (uintptr_t)slot, sizeof *slot, number) == URMA_SUCCESS, "urma_recv");
}

static void take(struct side* s) {
  urma_cr_t records[8];
  for (int n; (n = urma_poll_jfc(s->q.jfc, 8, records)) != 0;) {
    need(n > 0, "urma_poll_jfc");
    for (int i = 0; i < n; ++i) {
      if (records[i].status != URMA_CR_SUCCESS) check_status("completion", records[i].status, URMA_CR_SUCCESS);
      if (records[i].flag.bs.s_r == 0) {
        ++s->sent;
      } else {
        post_one_receive(s, SLOTS / 2 + s->received++);
      }
    }
  }
}

// What is waited for: all that is given.
struct goal {
  _Atomic uint64_t* word;
  uint64_t value;
  bool unlike;  // any other value
  uint64_t sent, received;
};

static bool has_come(const struct goal* g) {
  return g->word == NULL || (atomic_load_explicit(g->word, memory_order_acquire) == g->value) != g->unlike;
}

static bool is_met(const struct side* s, const struct goal* g) {
  return has_come(g) && s->sent >= g->sent && s->received >= g->received;
}

static void await_event(struct side* s, const struct goal* g, bool by_epoll) {
  need(urma_rearm_jfc(s->q.jfc, false) == URMA_SUCCESS, "urma_rearm_jfc");
  take(s);
  if (is_met(s, g)) return;
  struct epoll_event event;
  if (by_epoll) epoll_wait(s->epoll, &event, 1, -1);
  urma_jfc_t* jfc;
  const int events = urma_wait_jfc(s->channel, 1, by_epoll ? 0 : -1, &jfc);
  need(events >= 0, "urma_wait_jfc");
  if (events == 1) urma_ack_jfc(&jfc, &(uint32_t){1}, 1);
}

static void await(struct side* s, struct goal goal, enum way way, uint32_t us, const char* what) {
  atomic_store(&places[s->number].way, (int)way);
  atomic_store(&places[s->number].what, what);
  // No event tells of what one sees in memory alone.
  const bool silent = goal.word != NULL && s->sent >= goal.sent && s->received >= goal.received;
  if (silent && way == WAY_SLEEP) way = WAY_SPIN;
  if (silent && way == WAY_EPOLL) way = WAY_NAP;
  for (uint32_t looks = 0;; ++looks) {
    const bool calls_nothing = (way == WAY_SPIN || way == WAY_NAP) && !has_come(&goal);
    if (!calls_nothing) take(s);
    if (is_met(s, &goal)) return;
    if (way == WAY_NAP) {
      usleep(us);
    } else if (way == WAY_SLEEP || way == WAY_EPOLL) {
      await_event(s, &goal, way == WAY_EPOLL);
      if (is_met(s, &goal)) return;
    } else if (looks % 1024 == 1023) {
      sched_yield();
    }
  }
}

// ---- requests -------------------------------------------------------------------------------------------------------

static uint64_t there(const struct side* s, const void* here) {
  return s->peer_base + (uint64_t)((const char*)here - (const char*)s->memory);
}

static void post_request(struct side* s, urma_opcode_t op, void* here, const void* at, uint32_t bytes) {
  struct request r = {.op = op, .to = s->peer, .local = s->local, .here = (uintptr_t)here, .bytes = bytes};
  if (op != URMA_OPC_SEND) r.remote = s->remote, r.there = there(s, at);
  check_number("post", post(&s->q, &r), URMA_SUCCESS);
  ++s->posted;
}

static void tell(struct side* s, const struct turn* t, uint64_t value) {
  struct memory* m = s->memory;
  struct line* source = &m->sources[value % SLOTS];
  atomic_store(&source->word, value);
  for (const uint64_t end = now_us() + t->hesitates_us; t->hesitates_us != 0 && now_us() < end;) {
  }
  switch (t->kind) {
    case KIND_BULK:
      // The source must not change before what lies there has left.
      await(s, (struct goal){.sent = s->posted}, t->sender_way, t->sender_us, "for what it sent before");
      memcpy(m->bulk_source + BULK_BYTES - sizeof value, &value, sizeof value);
      post_request(s, URMA_OPC_WRITE, m->bulk_source, m->bulk, BULK_BYTES);
      break;
    case KIND_READ:
      atomic_store(&m->published.word, value);
      break;
    case KIND_SEND:
      post_request(s, URMA_OPC_SEND, source, NULL, sizeof value);
      break;
    default:
      post_request(s, t->kind == KIND_WRITE ? URMA_OPC_WRITE : URMA_OPC_WRITE_IMM, source, &m->mailbox, sizeof value);
      break;
  }
  if (t->sender_waits || s->posted - s->sent > MOST_UNDER_WAY)
    await(s, (struct goal){.sent = s->posted}, t->sender_way, t->sender_us, "for its own completions");
}

static void read_until(struct side* s, const struct turn* t, uint64_t value) {
  const uint64_t nothing = UINT64_MAX;
  _Atomic uint64_t* word = &s->memory->read.word;
  for (;;) {
    atomic_store(word, nothing);
    post_request(s, URMA_OPC_READ, word, &s->memory->published, sizeof value);
    await(s, (struct goal){.word = word, .value = nothing, .unlike = true, .sent = s->posted}, t->way, t->us,
          "for the answer of its READ");
    if (atomic_load(word) == value) return;
    usleep(t->us / 4);
  }
}

static void hear(struct side* s, const struct turn* t, uint64_t value) {
  struct memory* m = s->memory;
  struct goal g = {.word = &m->mailbox.word, .value = value};
  switch (t->kind) {
    case KIND_READ:
      return read_until(s, t, value);
    case KIND_BULK:
      g.word = (_Atomic uint64_t*)(m->bulk + BULK_BYTES - sizeof value);
      break;
    case KIND_SEND:
      g.word = &m->receives[s->expected % SLOTS].word;
      g.received = ++s->expected;
      break;
    case KIND_WRITE_IMM:
      g.received = ++s->expected;
      break;
    default:
      break;
  }
  await(s, g, t->way, t->us, "for the word");
}

// ---- the second thread of a side ------------------------------------------------------------------------------------

static void talk_aside(struct side* s) {
  struct request r = {.op = URMA_OPC_WRITE, .to = s->peer_aside, .local = s->local, .remote = s->remote, .bytes = 8};
  r.here = (uintptr_t)&s->memory->published;
  r.there = there(s, &s->memory->talk);
  for (int i = 0; i < 3; ++i) {
    check_number("post aside", post(&s->aside_q, &r), URMA_SUCCESS);
    urma_cr_t record;
    for (int n = 0; n == 0;) {
      n = urma_poll_jfc(s->aside_q.jfc, 1, &record);
      need(n >= 0, "urma_poll_jfc aside");
    }
    if (record.status != URMA_CR_SUCCESS) check_status("completion aside", record.status, URMA_CR_SUCCESS);
  }
}

static void* be_aside(void* argument) {
  struct side* s = argument;
  for (;;) {
    sem_wait(&s->wanted);
    const int what = atomic_load(&s->aside);
    if (what < 0) return NULL;
    const uint64_t end = now_us() + s->aside_us;
    urma_cr_t record;
    if (what == ASIDE_TALK) talk_aside(s);
    while (what != ASIDE_TALK && now_us() < end) {
      if (what == ASIDE_POLL) urma_poll_jfc(s->aside_q.jfc, 1, &record);
    }
    atomic_store(&s->aside, ASIDES);
  }
}

static void start_aside(struct side* s, const struct turn* t) {
  if (t->aside[s->number] == ASIDES || atomic_load(&s->aside) != ASIDES) return;  // none, or it is still busy
  s->aside_us = t->aside_us[s->number];
  atomic_store(&s->aside, t->aside[s->number]);
  sem_post(&s->wanted);
}

static void end_aside(struct side* s) {
  while (atomic_load(&s->aside) != ASIDES) rest_ms(1);
  atomic_store(&s->aside, -1);
  sem_post(&s->wanted);
  pthread_join(s->thread, NULL);
}

// ---- a side ---------------------------------------------------------------------------------------------------------

static void take_turn(struct side* s, uint32_t round, int leg, const struct turn* t) {
  struct place* p = &places[s->number];
  const uint64_t begin = now_us();
  atomic_store(&p->round, round);
  atomic_store(&p->leg, leg);
  atomic_store(&p->kind, (int)t->kind);
  atomic_store(&p->since_us, begin);
  start_aside(s, t);
  const uint64_t value = 2ull * round + (uint64_t)leg + 1;
  if ((leg == 0) == (s->number == 0)) {
    tell(s, t, value);
  } else {
    hear(s, t, value);
  }
  const double seconds = (double)(now_us() - begin) * 1e-6;
  if (seconds > SLOW) {
    ++s->slow;
    printf("side %d: %.0f ms: round %u, leg %d, %s, %s %s\n", s->number, seconds * 1e3, round, leg, kind_names[t->kind],
           way_names[atomic_load(&p->way)], atomic_load(&p->what));
  }
}

static void post_chain(struct side* s, uint64_t value) {
  struct memory* m = s->memory;
  atomic_store(&m->published.word, value);
  struct request r = {.op = URMA_OPC_WRITE, .to = s->peer, .local = s->local, .remote = s->remote, .bytes = 8};
  static urma_jfs_wr_t list[CHAIN];  // posted as one, for who posts drives each time
  static urma_sge_t pieces[CHAIN][3];
  for (uint32_t i = 0; i < CHAIN; ++i) {
    const bool last = i + 1 == CHAIN;
    r.here = (uintptr_t)(last ? &m->published : &m->sources[0]);
    r.there = there(s, last ? &m->mailbox : &m->talk);
    r.quiet = !last;
    list[i] = build(&r, &pieces[i][0], &pieces[i][1]);
    list[i].flag.bs.place_order = URMA_STRONG_ORDER;
    list[i].next = last ? NULL : &list[i + 1];
  }
  urma_jfs_wr_t* bad;
  check_number("post of a chain", post_list(&s->q, list, &bad), URMA_SUCCESS);
  ++s->posted;
}

static void take_chain(struct side* s) {
  struct place* p = &places[s->number];
  char word = 'x';
  atomic_store(&p->what, "for the end of a chain of WRITEs");
  atomic_store(&p->way, WAY_NAP);
  const double begin = now();
  for (uint64_t value = 1; value <= CHAINS; ++value) {
    atomic_store(&p->since_us, now_us());
    if (s->number == 0) {
      post_chain(s, value);
      need(read(s->socket, &word, 1) == 1, "the peer saw no end of the chain");
      await(s, (struct goal){.sent = s->posted}, WAY_POLL, 0, "for the completion of the chain");
    } else {
      while (atomic_load_explicit(&s->memory->mailbox.word, memory_order_acquire) != value) usleep(1000);
      need(write(s->socket, &word, 1) == 1, "saying that the chain is done");
    }
  }
  if (s->number == 1) printf("chains: %.0f ms\n", (now() - begin) * 1e3);
}

static void open_side(struct side* s) {
  const uint32_t any = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  s->context = open_nic();
  s->memory = aligned_alloc(4096, (sizeof *s->memory + 4095) / 4096 * 4096);
  need(s->memory != NULL, "memory");
  memset(s->memory, 0, sizeof *s->memory);
  s->local = register_memory(s->context, s->memory, sizeof *s->memory, any);
  s->channel = urma_create_jfce(s->context);
  need(s->channel != NULL, "urma_create_jfce");
  s->q = open_queue(
      s->context, (struct queue_options){.depth = s->plan.chain ? CHAIN : 64, .jfc_depth = 256, .channel = s->channel});
  s->aside_q = open_queue(s->context, (struct queue_options){0});
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  need(epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->channel->fd, &event) == 0, "epoll_ctl");
  for (uint64_t i = 0; i < SLOTS / 2; ++i) post_one_receive(s, i);
}

static void meet_peer(struct side* s) {
  struct card ours = {s->q.jetty->jetty_id, s->aside_q.jetty->jetty_id, s->local->seg}, theirs;
  need(write(s->socket, &ours, sizeof ours) == sizeof ours, "telling what we have");
  need(read(s->socket, &theirs, sizeof theirs) == sizeof theirs, "hearing what the peer has");
  s->peer = import_jetty(s->context, theirs.jetty, 0, URMA_TM_RM);
  s->peer_aside = import_jetty(s->context, theirs.aside, 0, URMA_TM_RM);
  s->remote = import_segment(s->context, theirs.segment, GOOD_TOKEN);
  s->peer_base = theirs.segment.ubva.va;
}

static void part(struct side* s) {
  char word = 'x';
  need(write(s->socket, &word, 1) == 1, "saying that we are done");
  need(read(s->socket, &word, 1) == 1, "the peer is not done");
}

static void* run_side(void* argument) {
  struct side* s = argument;
  meet_peer(s);
  sem_init(&s->wanted, 0, 0);
  atomic_store(&s->aside, ASIDES);
  need(pthread_create(&s->thread, NULL, be_aside, s) == 0, "a second thread");
  uint64_t state = s->plan.seed;
  for (uint32_t round = 0; round < s->plan.rounds; ++round) {
    for (int leg = 0; leg < 2; ++leg) {
      const struct turn t = draw_turn(&state);
      take_turn(s, round, leg, &t);
    }
  }
  if (s->plan.chain) take_chain(s);
  await(s, (struct goal){.sent = s->posted}, WAY_POLL, 0, "for the last of its completions");
  end_aside(s);
  part(s);
  atomic_store(&places[s->number].since_us, 0);
  urma_unimport_seg(s->remote);
  urma_unimport_jetty(s->peer);
  urma_unimport_jetty(s->peer_aside);
  part(s);
  return NULL;
}

static void close_side(struct side* s) {
  close_queue(&s->q);
  close_queue(&s->aside_q);
  check_number("urma_delete_jfce", urma_delete_jfce(s->channel), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(s->local), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(s->context), URMA_SUCCESS);
  close(s->epoll);
  free(s->memory);
}

static int be_peer(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct side s = {.number = 1, .socket = STDIN_FILENO};
  need(read(s.socket, &s.plan, sizeof s.plan) == sizeof s.plan, "hearing the plan");
  seed_told = s.plan.seed;
  begin_case("wakeups, the peer");
  start_watch();
  open_side(&s);
  run_side(&s);
  close_side(&s);
  return urma_uninit() == URMA_SUCCESS && !case_failed() ? 0 : 1;
}

static uint32_t in_one_process(struct plan plan) {
  int sockets[2];
  need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");
  struct side sides[2] = {{.number = 0, .socket = sockets[0], .plan = plan},
                          {.number = 1, .socket = sockets[1], .plan = plan}};
  open_side(&sides[0]);
  open_side(&sides[1]);
  pthread_t other;
  need(pthread_create(&other, NULL, run_side, &sides[1]) == 0, "a thread for the other side");
  run_side(&sides[0]);
  pthread_join(other, NULL);
  close_side(&sides[0]);
  close_side(&sides[1]);
  return sides[0].slow + sides[1].slow;
}

static uint32_t in_two_processes(struct plan plan) {
  struct side s = {.number = 0, .plan = plan};
  const pid_t pid = start_peer_process(&s.socket);
  need(write(s.socket, &plan, sizeof plan) == sizeof plan, "telling the plan");
  open_side(&s);
  run_side(&s);
  close_side(&s);
  wait_for_process(pid);
  return s.slow;
}

// What would come to the aid of somebody who was not woken. How long a helper stays away from an application that
// polls is left as it is: to look again by and by is how it notices that the polling ended.
static void make_timers_long(void) {
  static const char* const settings[][2] = {
      {"TRANSPORT_RTO_MIN", "10s"},          {"TRANSPORT_RTO_MAX", "60s"},      {"TRANSPORT_CHANNEL_TIMEOUT", "600s"},
      {"TRANSPORT_KEEPALIVE_IDLE", "3600s"}, {"PROGRESS_DOORBELL_AFTER", "1s"}, {"LOG_STATS_DIR", "/dev/null"},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i) {
    char name[64];
    snprintf(name, sizeof name, "SOFTUB_%s", settings[i][0]);
    setenv(name, settings[i][1], 1);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--peer") == 0) return be_peer();
  struct plan plan = {.seed = 1, .rounds = 500};
  bool loopback = false, processes = false, long_timers = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--loopback") == 0) loopback = true;
    if (strcmp(argv[i], "--processes") == 0) processes = true;
    if (strcmp(argv[i], "--long-timers") == 0) long_timers = true;
    if (strcmp(argv[i], "--chain") == 0) plan = (struct plan){.seed = plan.seed, .chain = true};
    if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) plan.seed = strtoull(argv[++i], NULL, 0);
    if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) plan.rounds = (uint32_t)strtoul(argv[++i], NULL, 0);
  }
  if (loopback == processes) {
    fprintf(stderr, "usage: wakeups --processes|--loopback [--long-timers] [--seed N] [--rounds N] [--chain]\n");
    return 2;
  }
  if (long_timers) make_timers_long();
  seed_told = plan.seed;
  begin_case(long_timers ? "wakeups, long timers" : "wakeups");
  start_watch();
  const double begin = now();
  const uint32_t slow = loopback ? in_one_process(plan) : in_two_processes(plan);
  printf("seed %llu: %u rounds in %.1f s, %u turns longer than %.0f ms\n", (unsigned long long)plan.seed, plan.rounds,
         now() - begin, slow, SLOW * 1e3);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  return end_case() ? 0 : 1;
}
