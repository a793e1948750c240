// SPDX-License-Identifier: Apache-2.0
//
// A peer process that obeys orders of a program's own kind: structs of fixed sizes that go over a socket, each answered
// by another one.
#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <urma_api.h>

struct peer {
  pid_t process;
  int socket;
};

struct order_sizes {
  size_t order, answer;
};

// Starts this program again as a peer, and waits until it is there.
struct peer start_obedient(void);
// The peer ends well, or the case fails.
void stop_obedient(struct peer peer);
void tell_peer(struct peer peer, const void* order, size_t bytes);
void hear_peer(struct peer peer, void* answer, size_t bytes);

// Main program of the peer, which ends with the socket or with its parent. Opens a NIC for `*context` first.
int obey_orders(int socket, urma_context_t** context, struct order_sizes sizes,
                void (*obey)(const void* order, void* answer));
