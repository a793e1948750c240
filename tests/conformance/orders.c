// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/orders.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/conformance/world.h"

struct peer start_obedient(void) {
  struct peer peer;
  int word;
  peer.process = start_peer_process(&peer.socket);
  need(read(peer.socket, &word, sizeof word) == sizeof word, "the peer does not start");
  return peer;
}

void stop_obedient(struct peer peer) {
  close(peer.socket);
  wait_for_process(peer.process);
}

void tell_peer(struct peer peer, const void* order, size_t bytes) {
  need(write(peer.socket, order, bytes) == (ssize_t)bytes, "giving an order");
}

void hear_peer(struct peer peer, void* answer, size_t bytes) {
  need(read(peer.socket, answer, bytes) == (ssize_t)bytes, "the peer does not answer");
}

int obey_orders(int socket, urma_context_t** context, struct order_sizes sizes,
                void (*obey)(const void* order, void* answer)) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  begin_case("peer");
  *context = open_nic();
  need(write(socket, &socket, sizeof socket) == sizeof socket, "telling that it is there");
  void* order = malloc(sizes.order);
  void* answer = malloc(sizes.answer);
  need(order != NULL && answer != NULL, "memory for orders");
  while (read(socket, order, sizes.order) == (ssize_t)sizes.order) {
    obey(order, answer);
    need(write(socket, answer, sizes.answer) == (ssize_t)sizes.answer, "answering");
  }
  free(order);
  free(answer);
  check_number("urma_delete_context of the peer", urma_delete_context(*context), URMA_SUCCESS);
  check_number("urma_uninit of the peer", urma_uninit(), URMA_SUCCESS);
  return case_failed() ? 1 : 0;
}
