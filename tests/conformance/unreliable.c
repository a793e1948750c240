// SPDX-License-Identifier: Apache-2.0
//
// UM at its sender: a completion says that a message was sent, whatever becomes of it (URMA API 0.9, 6.1, 7). Usage:
// see far.h.
#include "tests/conformance/far.h"

#define SENDS 5

static void send_some(struct queue* q, const struct request* s) {
  for (int i = 0; i < SENDS; ++i) check_status("SEND", run(q, s), URMA_CR_SUCCESS);
}

static void without_receive(void) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  send_some(&p.q, &s);
  close_pair(&p);
}

static void to_a_deleted_jetty(void) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  check_number("the peer deletes it", far_delete(&p.far), URMA_SUCCESS);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  send_some(&p.q, &s);
  close_pair(&p);
}

static void longer_than_the_receive(void) {
  struct pair p = open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){0});
  struct request s = request_to(&p.far, URMA_OPC_SEND, 100);
  for (uint64_t i = 0; i < SENDS; ++i) far_receive(&p.far, 4096, 16, i);
  send_some(&p.q, &s);
  close_pair(&p);
}

static const struct test_case cases[] = {
    {"without receive", without_receive},
    {"to a deleted jetty", to_a_deleted_jetty},
    {"longer than the receive", longer_than_the_receive},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
