// SPDX-License-Identifier: Apache-2.0
//
// Work requests as an application sees them: memory, elements in a ring, completions.
#pragma once

#include "emu_hw/node/node.h"
#include "emu_hw/parts/operation.h"

namespace ub::emu {

class WorkRequests {
 public:
  explicit WorkRequests(Node& here);

  // Where a request goes: an object of the Core here, and memory there by its key.
  struct Destination {
    uint32_t target;  // 0 of RoCE
    uint32_t key;
    const Region& memory;
  };
  // Into a ring at `here`: READ, WRITE, fetch-add or compare-and-swap between the first bytes of the memory here and a
  // place there, or a SEND.
  void post(SendRing& ring, const Operation& op, const Destination& to) const;
  // Throws if the Core sends nothing for the operation: with the status that it completed it with, if it did.
  void expect_sent(Operation& op, const Train& request);
  // Is the oldest completion that of the operation?
  bool is_complete(const Operation& op);
  // Is the oldest completion that of the operation? Takes it, and what an atomic found. Throws if it is an error.
  void complete(Operation& op);

  static constexpr uint32_t kDepth = 64;  // of the ring
  static constexpr uint32_t kMostBytes = 1 << 20;  // of an operation

  CompletionQueue jfc;
  Region local;

 private:
  Node& here_;
};

}  // namespace ub::emu
