// SPDX-License-Identifier: Apache-2.0
//
// lock - many programs add to numbers in the memory of a server that does nothing, each by READ and WRITE, and nothing
// is lost, since they do so under a lock in the same memory: one of CAS (whoever comes first), or of tickets drawn with
// FADD (one after the other).
//
//   $ lock                             $ lock ::1 cas 1000 & lock ::1 ticket 1000 & wait
//                                      $ lock ::1 show
//                                      cas 1000, ticket 1000
#include "example.h"

#define PORT port_or("18503")
#define DEPTH 16

// What the server has; each client has the same, where its requests put what they found, and take what they write.
enum word { LOCK, NEXT_TICKET, SERVED, CAS_SUM, TICKET_SUM, WORDS };
static uint64_t words[WORDS];

static urma_jfc_t* jfc;
static urma_jetty_t* jetty;
static urma_target_jetty_t* server;
static urma_target_seg_t *local, *shared;

static void post(urma_jfs_wr_t* wr) {
  urma_jfs_wr_t* bad;
  wr->tjetty = server;
  CHECK(urma_post_jetty_send_wr(jetty, wr, &bad) == URMA_SUCCESS);
}

// One request, to its end; it must be the only one that reports.
static void run(urma_jfs_wr_t* wr) {
  urma_cr_t record;
  wr->flag.bs.complete_enable = 1;
  post(wr);
  while (urma_poll_jfc(jfc, 1, &record) == 0) continue;
  CHECK(record.status == URMA_CR_SUCCESS);
}

#define NEAR(w) (&(urma_sge_t){.addr = (uintptr_t)&words[w], .len = 8, .tseg = local})
#define FAR(w) (&(urma_sge_t){.addr = shared->seg.ubva.va + 8 * (w), .len = 8, .tseg = shared})

static uint64_t read_word(enum word w) {
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_READ, .rw = {.src = {FAR(w), 1}, .dst = {NEAR(w), 1}}};
  run(&wr);
  return words[w];
}

// Returns when the request is posted. RELAX_ORDER: a later request may wait for it with STRONG_ORDER.
static void write_word(enum word w, uint64_t value) {
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .rw = {.src = {NEAR(w), 1}, .dst = {FAR(w), 1}}};
  wr.flag.bs.place_order = URMA_RELAX_ORDER;
  words[w] = value;
  post(&wr);
}

static uint64_t compare_and_swap(enum word w, uint64_t expected, uint64_t next, urma_place_order_t order) {
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_CAS, .flag.bs.place_order = order};
  wr.cas = (urma_cas_wr_t){.dst = FAR(w), .src = NEAR(w), .cmp_data = expected, .swap_data = next};
  run(&wr);
  return words[w];
}

static uint64_t fetch_and_add_1(enum word w, urma_place_order_t order) {
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .flag.bs.place_order = order};
  wr.faa = (urma_faa_wr_t){.dst = FAR(w), .src = NEAR(w), .operand = 1};
  run(&wr);
  return words[w];
}

static void add_1(enum word sum) { write_word(sum, read_word(sum) + 1); }

// The unlock goes out right behind the WRITE: STRONG_ORDER keeps it from being done earlier.
static void add_under_cas(uint64_t me) {
  while (compare_and_swap(LOCK, 0, me, URMA_NO_ORDER) != 0) usleep(20);
  add_1(CAS_SUM);
  CHECK(compare_and_swap(LOCK, me, 0, URMA_STRONG_ORDER) == me);
}

static void add_under_ticket(void) {
  const uint64_t ticket = fetch_and_add_1(NEXT_TICKET, URMA_NO_ORDER);
  for (uint64_t served; (served = read_word(SERVED)) != ticket;) {
    CHECK(served < ticket);
    usleep(20 * (useconds_t)(ticket - served));  // the longer the queue, the fewer questions
  }
  add_1(TICKET_SUM);
  CHECK(fetch_and_add_1(SERVED, URMA_STRONG_ORDER) == ticket);
}

static int serve(urma_context_t* context) {
  struct address own = {.jetty = jetty->jetty_id};
  CHECK(getentropy(&own.token, sizeof own.token) == 0);
  const uint32_t all = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  own.segment = register_memory(context, words, sizeof words, all, own.token)->seg;
  const int listener = listen_at(PORT);
  for (;;) {
    const int client = accept(listener, NULL, NULL);
    CHECK(client >= 0);
    tell(client, &own, sizeof own);
    close(client);
  }
}

static void connect_words(urma_context_t* context, const char* host) {
  const struct address there = find_server(context, host, PORT, &server, &shared);
  local = register_memory(context, words, sizeof words, URMA_ACCESS_LOCAL_ONLY, there.token);
}

int main(int argc, char** argv) {
  const bool cas = argc == 4 && strcmp(argv[2], "cas") == 0, ticket = argc == 4 && strcmp(argv[2], "ticket") == 0;
  const bool show = argc == 3 && strcmp(argv[2], "show") == 0;
  if (argc != 1 && !cas && !ticket && !show) {
    fprintf(stderr,
            "usage: lock                           serve\n"
            "       lock HOST cas|ticket TIMES     add 1 so often\n"
            "       lock HOST show\n");
    return 2;
  }
  urma_context_t* context = open_nic();
  urma_jfc_cfg_t jfc_cfg = {.depth = 2 * DEPTH};
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  jetty = open_jetty(context, jfc, URMA_TM_RM, DEPTH);
  if (argc == 1) return serve(context);

  connect_words(context, argv[1]);
  const uint64_t me = (uint64_t)jetty->jetty_id.uasid << 32 | jetty->jetty_id.id;  // nobody else has that
  for (long left = show ? 0 : atol(argv[3]); left > 0; --left) {
    if (cas) add_under_cas(me);
    if (ticket) add_under_ticket();
  }
  if (show) {
    const unsigned long long by_cas = read_word(CAS_SUM), by_ticket = read_word(TICKET_SUM);
    printf("cas %llu, ticket %llu\n", by_cas, by_ticket);
  }
  CHECK(urma_uninit() == URMA_SUCCESS);
  return 0;
}
