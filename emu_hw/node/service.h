// SPDX-License-Identifier: Apache-2.0
//
// What a host has for all who reach it: memory, and endpoints that receive messages.
#pragma once

#include <memory>
#include <vector>

#include "emu_hw/node/receivers.h"

namespace ub::emu {

class Service {
 public:
  explicit Service(Node& node) : memory(node, kMemoryBytes), receivers(node), node_(node) {}

  // The ids of so many UB endpoints.
  const std::vector<uint32_t>& jettys(uint64_t count);

  Region memory;
  Receivers receivers;

 private:
  static constexpr size_t kMemoryBytes = size_t{1} << 34;  // costs what is touched of it

  Node& node_;
  std::vector<std::unique_ptr<SendRing>> rings_;  // of the endpoints, which send nothing
  std::vector<uint32_t> jettys_;
};

// A jetty with a ring of its own; without a queue of receives, as it only sends, if `jfr` is 0. Returns its id.
uint32_t make_jetty(Node& node, SendRing& ring, const CompletionQueue& jfc, uint32_t jfr);
// For the ring of a jetty.
size_t jetty_work_bytes(uint32_t depth);

}  // namespace ub::emu
