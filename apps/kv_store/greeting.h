// SPDX-License-Identifier: Apache-2.0
//
// What client and server of kv_store tell each other over TCP, once, as texts of JSON. The connection then stays open:
// its end tells each of them that the other one is gone.
//
//   client                                 server
//   hello {version, wants: stat}   ->
//                                  <-      stat {keys, ...}
// or
//   hello {.., wants: store,       ->      makes a queue for this client, and registers the memory for it
//          client, writes}
//                                  <-      welcome {server}
#pragma once

#include <urma_api.h>

#include "apps/kv_store/layout.h"
#include "tools/common/peer.h"

namespace ub::kv {

constexpr const char* kProgram = "kv_store";
constexpr int kVersion = 1;  // of layout.h and messages.h, too
constexpr int kGreetingMs = 10'000;

struct Introduction {
  urma_jetty_id_t queue;
  urma_token_t token;
};

struct Welcome {
  Introduction server;
  urma_seg_t memory;
  urma_token_t memory_token;
  Geometry geometry;
};

// What a client may do in the memory.
constexpr uint32_t access_of(bool writes) {
  return writes ? URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC : URMA_ACCESS_READ;
}

}  // namespace ub::kv
