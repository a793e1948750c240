// SPDX-License-Identifier: Apache-2.0
//
// Work requests as an application sees them: memory at both ends, elements in a ring, completions.
#pragma once

#include "emu_hw/node/node.h"
#include "emu_hw/parts/operation.h"

namespace ub::emu {

class WorkRequests {
 public:
  WorkRequests(Node& here, Node& there);

  // Into a ring at `here`: READ, WRITE, fetch-add or compare-and-swap between the first bytes of the memory here and a
  // place there, or a SEND.
  void post(SendRing& ring, const Operation& op, uint32_t target, uint32_t remote_key) const;
  // Throws if the Core sends nothing for the operation: with the status that it completed it with, if it did.
  void expect_sent(const Operation& op, const Train& request);
  // Is the oldest completion that of the operation? Takes it. Throws if it is an error.
  void complete(const Operation& op);

  static constexpr uint32_t kDepth = 64;  // of the ring

  CompletionQueue jfc;
  Region local, remote;

 private:
  Node& here_;
};

}  // namespace ub::emu
