// SPDX-License-Identifier: Apache-2.0
//
// What client and server of kv_store tell each other over TCP, once, as texts of JSON. The connection then stays open:
// its end tells each of them that the other one is gone.
//
//   client                                 server
//   hello {version, wants}         ->
//                                  <-      stat {...}, if that is what it wants; else
//   hello {.., queue, token}       ->      a queue for this client
//                                  <-      welcome {queue, token, segment, geometry}
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
  urma_seg_t segment;
  Geometry geometry;
};

}  // namespace ub::kv
