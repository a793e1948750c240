// SPDX-License-Identifier: Apache-2.0
//
// journal - a program writes records into the memory of a server, which watches a number and prints what is new. The
// program waits for nothing between its requests; their order says what may be seen before what.
//
//   $ journal                          $ journal ::1 one two three
//   one
//   two
//   three
//   copied: three
#include "example.h"

#define PORT port_or("18504")
#define MOST 16
#define DEPTH (2 * MOST + 4)

struct record {
  char text[248];
  uint64_t sum;
};
// What the server offers. The client has the same, as the source of its WRITEs and for what it READs.
static struct journal {
  uint64_t count, copies;  // how many records, and copies, are whole
  struct record records[MOST], copy;
} journal;

static urma_jfc_t* jfc;
static urma_jetty_t* jetty;
static urma_target_jetty_t* server;
static urma_target_seg_t *local, *remote;
static uint64_t base;  // of the server's journal

static uint64_t sum_of(const char* text) {
  uint64_t sum = 1;
  for (; *text != '\0'; ++text) sum = sum * 31 + (unsigned char)*text;
  return sum;
}

// ---- the client ------------------------------------------------------------------------------------------------

// `place`: of the server's journal, as an offset.
static void post(urma_opcode_t op, void* here, size_t place, uint32_t bytes, urma_jfs_wr_flag_t flag) {
  urma_sge_t near = {.addr = (uintptr_t)here, .len = bytes, .tseg = local};
  urma_sge_t far = {.addr = base + place, .len = bytes, .tseg = remote};
  urma_jfs_wr_t wr = {.opcode = op, .flag = flag, .tjetty = server}, *bad;
  wr.rw.src = (urma_sg_t){op == URMA_OPC_WRITE ? &near : &far, 1};
  wr.rw.dst = (urma_sg_t){op == URMA_OPC_WRITE ? &far : &near, 1};
  CHECK(urma_post_jetty_send_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

static const urma_jfs_wr_flag_t relaxed = {.bs.place_order = URMA_RELAX_ORDER};
static const urma_jfs_wr_flag_t strong = {.bs.place_order = URMA_STRONG_ORDER};

static void write_number(size_t place, uint64_t number, bool complete) {
  urma_jfs_wr_flag_t flag = strong;
  flag.bs.inline_flag = 1;
  flag.bs.complete_enable = complete;
  post(URMA_OPC_WRITE, &number, place, sizeof number, flag);
}

static void append(uint32_t at, const char* text) {
  struct record* r = &journal.records[at];
  snprintf(r->text, sizeof r->text, "%s", text);
  r->sum = sum_of(r->text);
  const size_t place = offsetof(struct journal, records) + at * sizeof *r;
  post(URMA_OPC_WRITE, r, place, sizeof *r, relaxed);                 // may pass others, or be passed
  write_number(offsetof(struct journal, count), at + 1, false);  // after all of these
}

// READs a record back and writes what came to another place: the WRITE must not start before the bytes are here.
static void copy_back(uint32_t at) {
  const size_t place = offsetof(struct journal, records) + at * sizeof(struct record);
  post(URMA_OPC_READ, &journal.copy, place, sizeof journal.copy, strong);  // after the WRITE of the record
  urma_jfs_wr_flag_t fenced = relaxed;
  fenced.bs.fence = 1;
  post(URMA_OPC_WRITE, &journal.copy, offsetof(struct journal, copy), sizeof journal.copy, fenced);
  write_number(offsetof(struct journal, copies), 1, true);
}

static void write_journal(urma_context_t* context, const char* host, char** texts, uint32_t count) {
  const struct address there = find_server(context, host, PORT, &server, &remote);
  local = register_memory(context, &journal, sizeof journal, URMA_ACCESS_LOCAL_ONLY, there.token);
  base = there.segment.ubva.va;

  for (uint32_t i = 0; i < count; ++i) append(i, texts[i]);
  copy_back(count - 1);
  urma_cr_t record;  // the only one of all these requests, unless one fails
  while (urma_poll_jfc(jfc, 1, &record) == 0) continue;
  CHECK(record.status == URMA_CR_SUCCESS);
}

// ---- the server ------------------------------------------------------------------------------------------------

static void print_whole(const char* what, const struct record* r) {
  CHECK(r->sum == sum_of(r->text));
  printf("%s%s\n", what, r->text);
}

static void serve(urma_context_t* context) {
  struct address own = {.jetty = jetty->jetty_id};
  CHECK(getentropy(&own.token, sizeof own.token) == 0);
  own.segment =
      register_memory(context, &journal, sizeof journal, URMA_ACCESS_READ | URMA_ACCESS_WRITE, own.token)->seg;
  const int client = accept(listen_at(PORT), NULL, NULL);
  CHECK(client >= 0);
  tell(client, &own, sizeof own);
  uint64_t printed = 0;
  for (bool copied = false; !copied; usleep(100)) {
    copied = __atomic_load_n(&journal.copies, __ATOMIC_ACQUIRE) != 0;
    const uint64_t count = __atomic_load_n(&journal.count, __ATOMIC_ACQUIRE);
    for (; printed != count; ++printed) print_whole("", &journal.records[printed]);
  }
  print_whole("copied: ", &journal.copy);
}

int main(int argc, char** argv) {
  if (argc == 2 || argc > 2 + MOST) {
    fprintf(stderr,
            "usage: journal                     serve one writer\n"
            "       journal HOST TEXT...        write up to %d records\n",
            MOST);
    return 2;
  }
  urma_context_t* context = open_nic();
  urma_jfc_cfg_t jfc_cfg = {.depth = DEPTH};
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  jetty = open_jetty(context, jfc, URMA_TM_RM, DEPTH);
  if (argc == 1) {
    serve(context);
  } else {
    write_journal(context, argv[1], argv + 2, (uint32_t)argc - 2);
  }
  CHECK(urma_uninit() == URMA_SUCCESS);
  return 0;
}
