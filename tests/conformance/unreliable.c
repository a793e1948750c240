// SPDX-License-Identifier: Apache-2.0
//
// UM: a completion says that a message was sent, whatever becomes of it; what arrives is whole, in a receive of its
// own, and nothing is kept or repeated for who had none (URMA API 0.9, 6.1, 7). Usage: see far.h.
#include "tests/conformance/far.h"

#define SENDS 5
#define MOMENT 0.2  // seconds for what may come or not
#define PLACE 4096  // of the peer's receive
#define SEED 5

static struct pair open_um(uint32_t token) {
  return open_pair((struct queue_options){.mode = URMA_TM_UM}, (struct queue_options){.token = token});
}

static void send_some(struct queue* q, const struct request* s) {
  for (int i = 0; i < SENDS; ++i) check_status("SEND", run(q, s), URMA_CR_SUCCESS);
}

// It may be lost: sent until one is received.
static void send_until_received(struct pair* p, const struct request* s, urma_cr_t* record) {
  int status = NOTHING;
  for (int tries = 0; tries < 50 && status == NOTHING; ++tries) {
    check_status("SEND", run(&p->q, s), URMA_CR_SUCCESS);
    status = far_take(&p->far, MOMENT, record);
  }
  check_status("the receive", status, URMA_CR_SUCCESS);
}

// Nobody has spoken to the peer's host before: whoever asks where that is keeps the datagram meanwhile.
static void the_first_one(void) {
  struct pair p = open_um(0);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 100);
  fill(stage.bytes + s.here - near_address(0), s.bytes, SEED);
  far_prepare(PLACE, 100);
  far_receive(&p.far, PLACE, 100, 1);
  check_status("SEND", run(&p.q, &s), URMA_CR_SUCCESS);
  check_status("the receive", far_take(&p.far, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_true("the bytes", far_landed(PLACE, 100, SEED));
  close_pair(&p);
}

static void without_receive(void) {
  struct pair p = open_um(0);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  send_some(&p.q, &s);
  check_status("no receive", far_take(&p.far, MOMENT, NULL), NOTHING);  // and all have arrived by now
  far_receive(&p.far, PLACE, 16, 1);
  check_status("a receive posted afterwards", far_take(&p.far, MOMENT, NULL), NOTHING);
  close_pair(&p);
}

static void to_a_deleted_jetty(void) {
  struct pair p = open_um(0);
  check_number("the peer deletes it", far_delete(&p.far), URMA_SUCCESS);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  send_some(&p.q, &s);
  close_pair(&p);
}

static void longer_than_the_receive(void) {
  struct pair p = open_um(0);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 100);
  far_prepare(PLACE, 16);
  for (uint64_t i = 0; i < SENDS; ++i) far_receive(&p.far, PLACE, 16, i);
  send_some(&p.q, &s);
  for (int status; (status = far_take(&p.far, MOMENT, NULL)) != NOTHING;) {
    check_status("a receive that is too short", status, URMA_CR_LOC_LEN_ERR);
  }
  check_true("nothing was written", far_landed(PLACE, 16, CLEARED_SEED));
  close_pair(&p);
}

static void wrong_token(void) {
  struct pair p = open_um(JETTY_TOKEN);
  struct far_queue wrong = p.far;
  wrong.options.token = JETTY_TOKEN + 1;
  urma_target_jetty_t* target = far_import(&wrong);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 8);
  far_receive(&p.far, PLACE, 16, 1);
  s.to = target;
  send_some(&p.q, &s);
  check_status("its receive", far_take(&p.far, MOMENT, NULL), NOTHING);
  check_number("unimporting", far_unimport(&p.far, target), URMA_SUCCESS);
  s.to = p.far.target;
  send_until_received(&p, &s, NULL);
  close_pair(&p);
}

static uint32_t packet_bytes(void) {
  urma_device_attr_t attributes;
  need(urma_query_device(stage.context->dev, &attributes) == URMA_SUCCESS, "urma_query_device");
  return 128u << attributes.port_attr[0].active_mtu;
}

static void as_long_as_a_packet(void) {
  struct pair p = open_um(0);
  const uint32_t most = packet_bytes();
  const uint32_t lengths[] = {0, 1, most - 1, most};
  struct request s = request_to(&p.far, URMA_OPC_SEND, most);
  for (int i = 0; i < 4; ++i) {
    urma_cr_t record;
    s.bytes = lengths[i];
    fill(stage.bytes + s.here - near_address(0), s.bytes, SEED + (uint32_t)i);
    far_prepare(PLACE, most);
    far_receive(&p.far, PLACE, most, 1);
    send_until_received(&p, &s, &record);
    check_number("completion_len", record.completion_len, s.bytes);
    check_true("the bytes", far_holds(PLACE, s.bytes, SEED + (uint32_t)i));
  }
  s.bytes = most + 1;
  check_number("one byte more", post(&p.q, &s), URMA_EINVAL);
  close_pair(&p);
}

// There is no CTP: who asks for it gets UTP, and nothing else changes.
static void by_ctp(void) {
  struct pair p = open_um(0);
  urma_rjetty_t jetty = {.jetty_id = p.far.receives, .trans_mode = URMA_TM_UM, .type = URMA_JETTY, .tp_type = URMA_CTP};
  urma_target_jetty_t* target = urma_import_jetty(stage.context, &jetty, &(urma_token_t){0});
  need(target != NULL, "urma_import_jetty");
  check_number("tp_type", target->tp_type, URMA_CTP);
  struct request s = request_to(&p.far, URMA_OPC_SEND, 100);
  s.to = target;
  fill(stage.bytes + s.here - near_address(0), s.bytes, SEED);
  far_prepare(PLACE, s.bytes);
  far_receive(&p.far, PLACE, s.bytes, 1);
  send_until_received(&p, &s, NULL);
  check_true("the bytes", far_landed(PLACE, s.bytes, SEED));
  check_number("unimporting", urma_unimport_jetty(target), URMA_SUCCESS);
  close_pair(&p);
}

static void no_operation(void) {
  struct pair p = open_um(0);
  struct request s = request_to(&p.far, URMA_OPC_NOP, 0);
  check_status("NOP", run(&p.q, &s), URMA_CR_SUCCESS);
  close_pair(&p);
}

static const struct test_case cases[] = {
    {"the first one", the_first_one},  // the first case, too: later ones find the neighbours known
    {"without receive", without_receive},
    {"to a deleted jetty", to_a_deleted_jetty},
    {"longer than the receive", longer_than_the_receive},
    {"wrong token", wrong_token},
    {"as long as a packet", as_long_as_a_packet},
    {"by CTP", by_ctp},
    {"NOP", no_operation},
};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
