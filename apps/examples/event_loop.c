// SPDX-License-Identifier: Apache-2.0
//
// event_loop - an echo server for many clients that sleeps while nothing happens: one epoll waits for TCP connections,
// for completions and for asynchronous events. Clients come and go; who has gone is noticed at its TCP connection.
//
//   $ event_loop                       $ event_loop ::1 hello
//   client 0 comes                     hello
//   client 0 goes
#include <fcntl.h>
#include <sys/epoll.h>

#include "example.h"

#define PORT port_or("18502")
#define DEPTH 64
#define CLIENTS 32
#define BYTES 256

struct client {
  int socket;
  urma_target_jetty_t* jetty;
};

static urma_jfce_t* jfce;
static urma_jfc_t* jfc;
static urma_jetty_t* jetty;
static urma_target_seg_t* local;
static char buffers[DEPTH][BYTES];
static struct client clients[CLIENTS];

static void post_receive(uint64_t number) {
  urma_sge_t sge = {.addr = (uintptr_t)buffers[number], .len = BYTES, .tseg = local};
  urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = number}, *bad;
  CHECK(urma_post_jetty_recv_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

static void send_buffer(urma_target_jetty_t* to, uint64_t number, uint32_t bytes) {
  urma_sge_t sge = {.addr = (uintptr_t)buffers[number], .len = bytes, .tseg = local};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag.bs.complete_enable = 1, .tjetty = to, .user_ctx = number}, *bad;
  wr.send.src = (urma_sg_t){&sge, 1};
  CHECK(urma_post_jetty_send_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

static urma_target_jetty_t* import(urma_context_t* context, int socket) {
  urma_rjetty_t rjetty = {.trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  tell(socket, &jetty->jetty_id, sizeof jetty->jetty_id);
  hear(socket, &rjetty.jetty_id, sizeof rjetty.jetty_id);
  return urma_import_jetty(context, &rjetty, NULL);
}

// ---- server ----------------------------------------------------------------------------------------------------

static void watch(int epoll, int fd, uint32_t what) {
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void welcome(urma_context_t* context, int epoll, int listener) {
  const int socket = accept(listener, NULL, NULL);
  uint32_t n = 0;
  while (n < CLIENTS && clients[n].jetty != NULL) ++n;
  if (n == CLIENTS) {
    close(socket);
    return;
  }
  clients[n] = (struct client){socket, import(context, socket)};
  CHECK(clients[n].jetty);
  watch(epoll, socket, n);
  printf("client %u comes\n", n), fflush(stdout);
}

static void farewell(uint32_t n) {
  close(clients[n].socket);  // epoll forgets it
  CHECK(urma_unimport_jetty(clients[n].jetty) == URMA_SUCCESS);
  clients[n] = (struct client){0};
  printf("client %u goes\n", n), fflush(stdout);
}

// A message goes back to its sender, and its buffer serves again when it has left.
static void handle(const urma_cr_t* record) {
  if (!record->flag.bs.s_r) return post_receive(record->user_ctx);  // sent, or its receiver is gone: free either way
  CHECK(record->status == URMA_CR_SUCCESS);
  for (uint32_t n = 0; n < CLIENTS; ++n) {
    if (clients[n].jetty == NULL || memcmp(&clients[n].jetty->id, &record->remote_id, sizeof record->remote_id) != 0)
      continue;
    return send_buffer(clients[n].jetty, record->user_ctx, record->completion_len);
  }
  post_receive(record->user_ctx);  // of nobody we know
}

static void completions(void) {
  urma_jfc_t* woken;
  uint32_t events = 1;
  if (urma_wait_jfc(jfce, 1, 0, &woken) == 1) urma_ack_jfc(&woken, &events, 1);
  urma_cr_t records[16];
  for (int count; (count = urma_poll_jfc(jfc, 16, records)) > 0;) {
    for (int i = 0; i < count; ++i) handle(&records[i]);
  }
  // What came since the last poll makes an event at once: nothing is slept over.
  CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
}

static void trouble(urma_context_t* context) {
  urma_async_event_t event;
  while (urma_get_async_event(context, &event) == URMA_SUCCESS) {
    fprintf(stderr, "asynchronous event %d\n", event.event_type);
    urma_ack_async_event(&event);
  }
}

static void serve(urma_context_t* context) {
  enum { kListener = CLIENTS, kCompletions, kTrouble };
  const int epoll = epoll_create1(0), listener = listen_at(PORT);
  CHECK(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
  watch(epoll, listener, kListener);
  watch(epoll, jfce->fd, kCompletions);
  watch(epoll, context->async_fd, kTrouble);
  CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
  for (;;) {
    struct epoll_event event;
    if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
    if (event.data.u32 == kListener) {
      welcome(context, epoll, listener);
    } else if (event.data.u32 == kCompletions) {
      completions();
    } else if (event.data.u32 == kTrouble) {
      trouble(context);
    } else {
      farewell(event.data.u32);  // clients say nothing more over TCP: it is the end
    }
  }
}

// ---- client ----------------------------------------------------------------------------------------------------

static void wait_for_message(void) {
  for (;;) {
    urma_cr_t record;
    while (urma_poll_jfc(jfc, 1, &record) == 1) {
      CHECK(record.status == URMA_CR_SUCCESS);
      if (record.flag.bs.s_r) return (void)printf("%.*s\n", (int)record.completion_len, buffers[record.user_ctx]);
    }
    CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
    urma_jfc_t* woken;
    uint32_t events = 1;
    CHECK(urma_wait_jfc(jfce, 1, 5000, &woken) == 1);
    urma_ack_jfc(&woken, &events, 1);
  }
}

int main(int argc, char** argv) {
  if (argc != 1 && (argc != 3 || strlen(argv[2]) > BYTES)) {
    fprintf(stderr,
            "usage: event_loop                     serve\n"
            "       event_loop HOST TEXT           at most %d characters\n",
            BYTES);
    return 2;
  }
  urma_context_t* context = open_nic();
  CHECK(jfce = urma_create_jfce(context));
  urma_jfc_cfg_t jfc_cfg = {.depth = 2 * DEPTH, .jfce = jfce};
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  jetty = open_jetty(context, jfc, URMA_TM_RM, DEPTH);
  local = register_memory(context, buffers, sizeof buffers, URMA_ACCESS_LOCAL_ONLY, (urma_token_t){0});
  for (uint64_t n = 1; n < DEPTH; ++n) post_receive(n);
  if (argc == 1) serve(context);

  const int socket = connect_to(argv[1], PORT);
  urma_target_jetty_t* server = import(context, socket);
  CHECK(server);
  memcpy(buffers[0], argv[2], strlen(argv[2]));
  send_buffer(server, 0, (uint32_t)strlen(argv[2]));
  wait_for_message();
  close(socket);
  return urma_uninit() != URMA_SUCCESS;
}
