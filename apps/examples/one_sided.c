// SPDX-License-Identifier: Apache-2.0
//
// one_sided - a key-value store whose server does nothing. It offers a table; clients find their slot, lock it with a
// CAS, and read and write it by themselves.
//
//   $ one_sided                        $ one_sided ::1 put apple red
//                                      $ one_sided ::1 get apple
//                                      red
#include "example.h"

#define PORT port_or("18500")
#define SLOTS 1024

struct slot {
  uint64_t lock;  // who holds it; 0: nobody
  char key[56], value[64];
};

static urma_jfc_t* jfc;
static urma_jetty_t* jetty;
static urma_target_jetty_t* server;
static urma_target_seg_t *local, *table;

// One request, to its end.
static void run(urma_jfs_wr_t* wr) {
  urma_jfs_wr_t* bad;
  urma_cr_t record;
  wr->flag.bs.complete_enable = 1;
  wr->tjetty = server;
  CHECK(urma_post_jetty_send_wr(jetty, wr, &bad) == URMA_SUCCESS);
  while (urma_poll_jfc(jfc, 1, &record) == 0) continue;
  CHECK(record.status == URMA_CR_SUCCESS);
}

static void transfer(urma_opcode_t op, void* here, uint64_t there, uint32_t bytes) {
  urma_sge_t near = {.addr = (uintptr_t)here, .len = bytes, .tseg = local};
  urma_sge_t far = {.addr = there, .len = bytes, .tseg = table};
  urma_jfs_wr_t wr = {.opcode = op};
  wr.rw.src = (urma_sg_t){op == URMA_OPC_WRITE ? &near : &far, 1};
  wr.rw.dst = (urma_sg_t){op == URMA_OPC_WRITE ? &far : &near, 1};
  run(&wr);
}

// Puts `next` there if it is `expected`. Answers what it was.
static uint64_t compare_and_swap(uint64_t* result, uint64_t there, uint64_t expected, uint64_t next) {
  urma_sge_t near = {.addr = (uintptr_t)result, .len = 8, .tseg = local};
  urma_sge_t far = {.addr = there, .len = 8, .tseg = table};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_CAS};
  wr.cas.src = &near, wr.cas.dst = &far, wr.cas.cmp_data = expected, wr.cas.swap_data = next;
  run(&wr);
  return *result;
}

static uint32_t hash(const char* key) {
  uint32_t h = 2166136261u;
  for (; *key != '\0'; ++key) h = (h ^ (unsigned char)*key) * 16777619u;
  return h % SLOTS;
}

static int serve(urma_context_t* context) {
  static struct slot slots[SLOTS];
  struct address own = {.jetty = jetty->jetty_id};
  CHECK(getentropy(&own.token, sizeof own.token) == 0);
  const uint32_t all = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  own.segment = register_memory(context, slots, sizeof slots, all, own.token)->seg;
  const int listener = listen_at(PORT);
  for (;;) {  // the clients need nothing but the address
    const int client = accept(listener, NULL, NULL);
    CHECK(client >= 0);
    tell(client, &own, sizeof own);
    close(client);
  }
}

int main(int argc, char** argv) {
  const bool put = argc == 5 && strcmp(argv[2], "put") == 0, get = argc == 4 && strcmp(argv[2], "get") == 0;
  if (argc != 1 && !put && !get) {
    fprintf(stderr,
            "usage: one_sided                      serve\n"
            "       one_sided HOST put KEY VALUE\n"
            "       one_sided HOST get KEY\n");
    return 2;
  }
  urma_context_t* context = open_nic();
  urma_jfc_cfg_t jfc_cfg = {.depth = 16};
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  jetty = open_jetty(context, jfc, URMA_TM_RM, 16);
  if (argc == 1) return serve(context);

  const struct address there = find_server(context, argv[1], PORT, &server, &table);
  static struct slot slot;
  local = register_memory(context, &slot, sizeof slot, URMA_ACCESS_LOCAL_ONLY, there.token);

  const uint64_t at = there.segment.ubva.va + hash(argv[3]) * sizeof slot;
  const uint64_t me = (uint64_t)jetty->jetty_id.uasid << 32 | jetty->jetty_id.id;
  while (compare_and_swap(&slot.lock, at, 0, me) != 0) usleep(100);
  transfer(URMA_OPC_READ, &slot, at, sizeof slot);
  const bool taken = slot.key[0] != '\0' && strcmp(slot.key, argv[3]) != 0;
  if (put && !taken) {
    snprintf(slot.key, sizeof slot.key, "%s", argv[3]);
    snprintf(slot.value, sizeof slot.value, "%s", argv[4]);
    transfer(URMA_OPC_WRITE, slot.key, at + sizeof slot.lock, sizeof slot - sizeof slot.lock);
  }
  const bool found = slot.key[0] != '\0' && !taken;
  uint64_t* scratch = &slot.lock;
  CHECK(compare_and_swap(scratch, at, me, 0) == me);
  if (get && found) printf("%s\n", slot.value);
  if (!found) fprintf(stderr, taken ? "another key has that slot\n" : "no such key\n");
  CHECK(urma_uninit() == URMA_SUCCESS);
  return !found;
}
