// SPDX-License-Identifier: Apache-2.0
//
// hello_write - the smallest complete program: one process offers memory, another one writes into it and
// reads it back. The server prints a line that says where its memory is; the client gets that line as an
// argument:
//
//   $ hello_write                      $ hello_write 'hello there' 00000000...
//   00000000...                        read back: hello there
//   somebody wrote: hello there
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urma_api.h>

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "failed: %s\n", #condition), exit(1)))

// All that a peer must know, and may know: whoever has the token can use the memory.
struct address {
  urma_jetty_id_t jetty;
  urma_seg_t segment;
  urma_token_t token;
};

static urma_jfc_t* jfc;
static urma_jetty_t* jetty;

// Starts a request and waits for its end.
static void run(urma_jfs_wr_t* wr) {
  urma_jfs_wr_t* bad;
  urma_cr_t record;
  CHECK(urma_post_jetty_send_wr(jetty, wr, &bad) == URMA_SUCCESS);
  while (urma_poll_jfc(jfc, 1, &record) == 0) continue;
  CHECK(record.status == URMA_CR_SUCCESS);
}

int main(int argc, char** argv) {
  static char memory[256];  // any memory will do
  struct address a = {0};
  if (argc != 1 && argc != 3) {
    fprintf(stderr,
            "usage: hello_write                  offer memory, print its address, wait\n"
            "       hello_write TEXT ADDRESS     write there, and read it back\n");
    return 2;
  }

  int count = 0;
  CHECK(urma_init(NULL) == URMA_SUCCESS);
  urma_device_t** devices = urma_get_device_list(&count);
  CHECK(count > 0);
  urma_context_t* context = urma_create_context(devices[0], 0);
  CHECK(context);
  urma_free_device_list(devices);
  urma_jfc_cfg_t jfc_cfg = {.depth = 16};  // completion queue
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  urma_jfr_cfg_t jfr_cfg = {.depth = 1, .trans_mode = URMA_TM_RM, .jfc = jfc};  // receive queue, not used here
  urma_jetty_cfg_t jetty_cfg = {.flag.bs.share_jfr = URMA_SHARE_JFR};
  CHECK(jetty_cfg.shared.jfr = urma_create_jfr(context, &jfr_cfg));
  jetty_cfg.jfs_cfg = (urma_jfs_cfg_t){.depth = 16, .trans_mode = URMA_TM_RM, .jfc = jfc};
  jetty_cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  jetty_cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  CHECK(jetty = urma_create_jetty(context, &jetty_cfg));
  CHECK(getentropy(&a.token, sizeof a.token) == 0);
  urma_seg_cfg_t seg_cfg = {.va = (uintptr_t)memory, .len = sizeof memory, .token_value = a.token};
  seg_cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  seg_cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  urma_target_seg_t* local = urma_register_seg(context, &seg_cfg);
  CHECK(local);

  if (argc < 3) {  // the server: says where it is, and waits without calling the library again
    a.jetty = jetty->jetty_id, a.segment = local->seg;
    for (size_t i = 0; i < sizeof a; ++i) printf("%02x", ((unsigned char*)&a)[i]);
    printf("\n"), fflush(stdout);
    while (((volatile char*)memory)[sizeof memory - 1] == 0) usleep(1000);
    printf("somebody wrote: %s\n", memory);
    usleep(100000);  // the client still reads
    return urma_uninit() != URMA_SUCCESS;
  }

  CHECK(strlen(argv[2]) == 2 * sizeof a);  // else it is not what a server has printed
  for (size_t i = 0; i < sizeof a; ++i) CHECK(sscanf(argv[2] + 2 * i, "%2hhx", (unsigned char*)&a + i) == 1);
  urma_rjetty_t rjetty = {.jetty_id = a.jetty, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  urma_target_jetty_t* target = urma_import_jetty(context, &rjetty, NULL);
  urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE};
  urma_target_seg_t* remote = urma_import_seg(context, &a.segment, &a.token, 0, flag);
  CHECK(target && remote);

  urma_sge_t here = {.addr = (uintptr_t)memory, .len = sizeof memory, .tseg = local};
  urma_sge_t there = {.addr = a.segment.ubva.va, .len = sizeof memory, .tseg = remote};
  urma_jfs_wr_t write = {.opcode = URMA_OPC_WRITE, .flag.bs.complete_enable = 1, .tjetty = target};
  write.rw = (urma_rw_wr_t){.src = {&here, 1}, .dst = {&there, 1}};
  urma_jfs_wr_t read = {.opcode = URMA_OPC_READ, .flag.bs.complete_enable = 1, .tjetty = target};
  read.rw = (urma_rw_wr_t){.src = {&there, 1}, .dst = {&here, 1}};

  snprintf(memory, sizeof memory - 1, "%s", argv[1]);
  memory[sizeof memory - 1] = 1;  // the last byte arrives last: what the server waits for
  run(&write);
  memset(memory, 0, sizeof memory);
  run(&read);
  printf("read back: %s\n", memory);
  return urma_uninit() != URMA_SUCCESS;
}
