// SPDX-License-Identifier: Apache-2.0
//
// Those who receive messages at a host: endpoints that share a queue of receives, which is filled again as it is used.
#pragma once

#include <cstdint>

#include "emu_hw/node/node.h"
#include "emu_hw/parts/operation.h"

namespace ub::emu {

class Receivers {
 public:
  explicit Receivers(Node& node);

  // Was something received that was not taken?
  bool has_message() { return jfc.front() != nullptr; }
  // The Core has received the message of the operation: takes the completion, and posts a receive. Throws if it has
  // not, or with an error.
  void take(const Operation& op);

  CompletionQueue jfc;
  ReceiveQueue jfr;

 private:
  static constexpr uint32_t kReceives = 64;
  static constexpr uint32_t kReceiveBytes = 1 << 16;

  void post(uint64_t number) { jfr.post(number, memory_.sge(number * kReceiveBytes, kReceiveBytes)); }

  Node& node_;
  Region memory_;
};

}  // namespace ub::emu
