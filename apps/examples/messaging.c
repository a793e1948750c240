// SPDX-License-Identifier: Apache-2.0
//
// messaging - remote procedure calls over a reliable connection: the client sends numbers, the server sends back their
// sum, the immediate says which call it is about. Receives are posted before they are needed, and a queue is emptied
// before it is deleted.
//
//   $ messaging                        $ messaging ::1 1 2 3
//   3 numbers, sum 6                   sum 6
#include "example.h"

#define PORT port_or("18501")
#define DEPTH 16
#define MOST 64  // numbers in a call

static urma_jfc_t* jfc;
static urma_jetty_t* jetty;
static urma_target_seg_t* local;
static int64_t buffers[DEPTH + 1][MOST];  // the last is what we send

static void post_receive(uint64_t number) {
  urma_sge_t sge = {.addr = (uintptr_t)buffers[number], .len = sizeof buffers[number], .tseg = local};
  urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = number}, *bad;
  CHECK(urma_post_jetty_recv_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

static void send_numbers(uint32_t count, uint64_t call) {
  urma_sge_t sge = {.addr = (uintptr_t)buffers[DEPTH], .len = count * 8, .tseg = local};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM, .flag.bs.complete_enable = 1}, *bad;
  wr.send.src = (urma_sg_t){&sge, 1}, wr.send.imm_data = call;  // the jetty is bound: no wr.tjetty
  CHECK(urma_post_jetty_send_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

// The next completion of that side; of the other side there is none under way that matters.
static urma_cr_t wait_for(bool receive) {
  for (;;) {
    urma_cr_t record;
    if (urma_poll_jfc(jfc, 1, &record) == 0) continue;
    CHECK(record.status == URMA_CR_SUCCESS);
    if (record.flag.bs.s_r == receive) return record;
  }
}

// To ERROR, until the library says that nothing of it is under way any more; then everything can be deleted.
static void close_jetty(urma_target_jetty_t* peer) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
  urma_cr_t record;
  do {
    while (urma_poll_jfc(jfc, 1, &record) == 0) continue;
  } while (record.status != URMA_CR_WR_FLUSH_ERR_DONE);
  CHECK(urma_unbind_jetty(jetty) == URMA_SUCCESS);
  CHECK(urma_unimport_jetty(peer) == URMA_SUCCESS);
  urma_jfr_t* jfr = jetty->jetty_cfg.shared.jfr;
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
}

int main(int argc, char** argv) {
  if (argc == 2 || argc > MOST + 2) {
    fprintf(stderr,
            "usage: messaging                      serve one client\n"
            "       messaging HOST NUMBER...       at most %d\n",
            MOST);
    return 2;
  }
  urma_context_t* context = open_nic();
  urma_jfc_cfg_t jfc_cfg = {.depth = 4 * DEPTH};
  CHECK(jfc = urma_create_jfc(context, &jfc_cfg));
  jetty = open_jetty(context, jfc, URMA_TM_RC, DEPTH);
  local = register_memory(context, buffers, sizeof buffers, URMA_ACCESS_LOCAL_ONLY, (urma_token_t){0});
  for (uint64_t n = 0; n < DEPTH; ++n) post_receive(n);  // before anybody can send to us

  int listener = -1, socket;
  if (argc == 1) {
    listener = listen_at(PORT);
    CHECK((socket = accept(listener, NULL, NULL)) >= 0);
  } else {
    socket = connect_to(argv[1], PORT);
  }
  urma_rjetty_t rjetty = {.trans_mode = URMA_TM_RC, .type = URMA_JETTY};
  tell(socket, &jetty->jetty_id, sizeof jetty->jetty_id);
  hear(socket, &rjetty.jetty_id, sizeof rjetty.jetty_id);
  urma_target_jetty_t* peer = urma_import_jetty(context, &rjetty, NULL);
  CHECK(peer && urma_bind_jetty(jetty, peer) == URMA_SUCCESS);

  if (argc == 1) {
    const urma_cr_t call = wait_for(true);
    int64_t sum = 0;
    for (uint32_t i = 0; i < call.completion_len / 8; ++i) sum += buffers[call.user_ctx][i];
    printf("%u numbers, sum %lld\n", call.completion_len / 8, (long long)sum);
    post_receive(call.user_ctx);  // it can take the next call
    buffers[DEPTH][0] = sum;
    send_numbers(1, call.imm_data);
    wait_for(false);  // the client has it
  } else {
    for (int i = 2; i < argc; ++i) buffers[DEPTH][i - 2] = atoll(argv[i]);
    send_numbers((uint32_t)argc - 2, 42);
    const urma_cr_t answer = wait_for(true);
    CHECK(answer.imm_data == 42);
    printf("sum %lld\n", (long long)buffers[answer.user_ctx][0]);
  }
  shutdown(socket, SHUT_WR);  // neither leaves before the other one is done
  hear_the_end(socket);
  close_jetty(peer);
  CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(local) == URMA_SUCCESS);
  CHECK(urma_delete_context(context) == URMA_SUCCESS);
  return urma_uninit() != URMA_SUCCESS;
}
