// SPDX-License-Identifier: Apache-2.0
//
// urma_pingpong - two processes throw a message to and fro, and print how long a round trip takes.
//
// Read it from main() downwards in the file: (1) open the device, (2) make a jetty and register memory, (3)
// tell the peer about both over TCP, (4) import what the peer told, (5) play. Everything goes the way that
// every program takes; options and error messages are about half of the text.
#include <getopt.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urma_api.h>

// What a side tells the other one: a jetty to send to, a segment to write into, and the secret for both.
struct introduction {
  urma_jetty_id_t jetty;
  urma_seg_t segment;
  urma_token_t token;
  uint32_t size, rounds, use_write;
};

static int tcp = -1;
static urma_jfc_t* jfc;                // where completions of sends and of receives arrive
static urma_jetty_t* jetty;            // ours
static urma_target_jetty_t* target;    // the peer's
static urma_target_seg_t* memory_seg;  // ours: `size` bytes going out, then `size` bytes coming in
static urma_target_seg_t* remote_seg;  // the peer's, of the same shape
static volatile uint8_t* memory;
static uint32_t size = 64, sent, received;  // completions seen

static void die(const char* what) {
  fprintf(stderr, "urma_pingpong: %s\n", what);
  exit(1);
}
#define CHECK(condition) ((condition) ? (void)0 : die("failed: " #condition))

// A decimal number, and nothing else.
static uint32_t number(char option, const char* text, uint32_t least, uint32_t most) {
  char* end;
  unsigned long long value = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && value >= least && value <= most) return (uint32_t)value;
  fprintf(stderr, "urma_pingpong: -%c %s: a number from %u to %u is wanted\n", option, text, least, most);
  exit(2);
}

static void tcp_open(const char* host, const char* port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE}, *list;
  int error = getaddrinfo(host, port, &hints, &list);
  if (error) die(gai_strerror(error));
  for (struct addrinfo* a = list; a && tcp < 0; a = a->ai_next) {
    int s = socket(a->ai_family, a->ai_socktype, 0), on = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (host && connect(s, a->ai_addr, a->ai_addrlen) == 0) tcp = s;
    if (host || bind(s, a->ai_addr, a->ai_addrlen) || listen(s, 1)) continue;
    printf("waiting for a client on TCP port %s\n", port), fflush(stdout);
    tcp = accept(s, NULL, NULL);
  }
  if (tcp < 0) perror(host ? "urma_pingpong: cannot reach the server" : "urma_pingpong: cannot listen"), exit(1);
  freeaddrinfo(list);
}

// Sends `bytes` of `mine` and waits for as many from the peer. Also serves as a barrier.
static void tcp_exchange(const void* mine, void* theirs, size_t bytes) {
  if (send(tcp, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) die("lost the peer");
  if (recv(tcp, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes) die("lost the peer");
}

// First of all both sides say what they are, and then what they need of each other.
static void introduce(const struct introduction* mine, struct introduction* peer) {
  const char name[8] = "pingpong";
  char other[sizeof name];
  tcp_exchange(name, other, sizeof name);
  if (memcmp(name, other, sizeof name)) die("the other side is not urma_pingpong: is the TCP port (-p) right?");
  tcp_exchange(mine, peer, sizeof *mine);
  if (peer->size == size && peer->rounds == mine->rounds && peer->use_write == mine->use_write) return;
  fprintf(stderr, "urma_pingpong: both sides need the same -s, -n and -w\n");
  exit(2);
}

static urma_context_t* open_device(char* name) {
  int devices = 0;
  CHECK(urma_init(NULL) == URMA_SUCCESS);
  urma_device_t** list = urma_get_device_list(&devices);
  urma_device_t* device = name ? urma_get_device_by_name(name) : devices > 0 ? list[0] : NULL;
  if (!device) die("no such device");
  urma_free_device_list(list);
  urma_context_t* context = urma_create_context(device, 0);  // 0: the first address of the device
  CHECK(context);
  printf("device %s, EID " EID_FMT "\n", device->name, EID_ARGS(context->eid));
  return context;
}

// One completion queue, one receive queue, one jetty, and memory that the peer may read and write.
static void create_objects(urma_context_t* context, urma_token_t token) {
  urma_jfc_cfg_t jfc_cfg = {.depth = 64};
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  urma_jfr_cfg_t jfr_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .jfc = jfc, .token_value = token};
  jfr_cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  jfr_cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
  urma_jetty_cfg_t jetty_cfg = {.flag.bs.share_jfr = URMA_SHARE_JFR};
  CHECK(jetty_cfg.shared.jfr = urma_create_jfr(context, &jfr_cfg));
  jetty_cfg.jfs_cfg = (urma_jfs_cfg_t){.depth = 16, .trans_mode = URMA_TM_RM, .jfc = jfc};
  jetty_cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  jetty_cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  CHECK(jetty = urma_create_jetty(context, &jetty_cfg));

  CHECK(memory = calloc(2, size));
  urma_seg_cfg_t seg_cfg = {.va = (uintptr_t)memory, .len = 2 * (uint64_t)size, .token_value = token};
  seg_cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  seg_cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  CHECK(memory_seg = urma_register_seg(context, &seg_cfg));
}

static void import_peer(urma_context_t* context, struct introduction* peer) {
  urma_rjetty_t rjetty = {.jetty_id = peer->jetty, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  rjetty.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  CHECK(target = urma_import_jetty(context, &rjetty, &peer->token));
  urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE};
  CHECK(remote_seg = urma_import_seg(context, &peer->segment, &peer->token, 0, flag));
}

static void post_receive(void) {
  urma_sge_t sge = {.addr = (uintptr_t)memory + size, .len = size, .tseg = memory_seg};
  urma_jfr_wr_t wr = {.src = {&sge, 1}}, *bad;
  CHECK(urma_post_jetty_recv_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

static void post(int use_write) {
  urma_sge_t from = {.addr = (uintptr_t)memory, .len = size, .tseg = memory_seg};
  urma_sge_t to = {.addr = remote_seg->seg.ubva.va + size, .len = size, .tseg = remote_seg};
  urma_jfs_wr_t wr = {.flag.bs.complete_enable = 1, .tjetty = target}, *bad;
  wr.opcode = use_write ? URMA_OPC_WRITE : URMA_OPC_SEND;
  if (use_write) wr.rw = (urma_rw_wr_t){.src = {&from, 1}, .dst = {&to, 1}};
  if (!use_write) wr.send = (urma_send_wr_t){.src = {&from, 1}};
  CHECK(urma_post_jetty_send_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

// Takes completions, and now and then looks whether the peer is still there.
static void poll_completions(void) {
  static uint32_t idle;
  urma_cr_t records[8];
  int n = urma_poll_jfc(jfc, 8, records);
  for (int i = 0; i < n; ++i) {
    if (records[i].status != URMA_CR_SUCCESS) die("a request failed; did the peer die?");
    records[i].flag.bs.s_r ? received++ : sent++;
  }
  if (n > 0 || ++idle % 4096 != 0) return;
  char byte;
  sched_yield();  // perhaps the peer waits for this CPU
  if (recv(tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) die("lost the peer");
}

static void play(int client, int use_write, uint32_t rounds) {
  volatile uint8_t* out = memory + size - 1;     // the last byte carries the number of the round:
  volatile uint8_t* in = memory + 2 * size - 1;  // a WRITE's last byte arrives after all the others
  for (uint32_t round = 1; round <= rounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == client) {
        while (sent < round - 1) poll_completions();  // the buffer is free again
        *out = (uint8_t)round;
        post(use_write);
      } else if (use_write) {
        while (*in != (uint8_t)round) poll_completions();
      } else {
        while (received < round) poll_completions();
        if (*in != (uint8_t)round) die("wrong data");
        post_receive();  // before we answer, so that the next message finds it
      }
    }
  }
  while (sent < rounds) poll_completions();
}

static const char usage[] =
    "Usage: urma_pingpong [-p port] [-s bytes] [-n rounds] [-d device] [-w] [server]\n"
    "  -w  RDMA WRITE instead of SEND; both sides need the same -s, -n and -w\n"
    "Example: urma_pingpong -s 64 &   urma_pingpong -s 64 localhost\n";

int main(int argc, char** argv) {
  char *port = "21116", *device = NULL;
  struct introduction mine = {.rounds = 100000}, peer;
  static const struct option longs[] = {{"help", 0, 0, 'h'}, {"version", 0, 0, 'V'}, {0, 0, 0, 0}};
  for (int c; (c = getopt_long(argc, argv, "p:s:n:d:wh", longs, NULL)) != -1;) {
    if (c == 'p') number('p', port = optarg, 1, 65535);
    if (c == 's') size = number('s', optarg, 1, 1u << 30);
    if (c == 'n') mine.rounds = number('n', optarg, 1, 1000000000);
    if (c == 'd') device = optarg;
    if (c == 'w') mine.use_write = 1;
    if (c == 'V') return printf("urma_pingpong %s\n", UB_VERSION), 0;
    if (c == 'h') return printf("%s", usage), 0;
    if (c == '?') return fprintf(stderr, "%s", usage), 2;
  }
  const int client = optind < argc;
  if (optind + 1 < argc) return fprintf(stderr, "%s", usage), 2;

  urma_context_t* context = open_device(device);
  CHECK(getentropy(&mine.token, sizeof mine.token) == 0);
  create_objects(context, mine.token);
  post_receive();
  mine.jetty = jetty->jetty_id, mine.segment = memory_seg->seg, mine.size = size;
  tcp_open(client ? argv[optind] : NULL, port);
  introduce(&mine, &peer);
  import_peer(context, &peer);
  char byte = 0;
  tcp_exchange(&byte, &byte, 1);  // both are ready
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  play(client, (int)mine.use_write, mine.rounds);
  clock_gettime(CLOCK_MONOTONIC, &end);
  tcp_exchange(&byte, &byte, 1);  // both are done: now nobody misses the other
  double us = (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) / 1e3;
  const char* kind = mine.use_write ? "WRITE" : "SEND";
  printf("%u %s round trips of %u bytes: %.3f us each\n", mine.rounds, kind, size, us / mine.rounds);
  return urma_uninit() != URMA_SUCCESS;  // takes jetty, queues and segments down, too
}
