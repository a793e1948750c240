// SPDX-License-Identifier: Apache-2.0
//
// One-sided RoCE requests, step by step. The NIC sits behind PCIe. It takes a short request out of the doorbell itself
// (BF, "BlueFlame"), or fetches it from memory (DMA).
#pragma once

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/one_sided.h"
#include "emu_hw/node/queue_pair.h"

namespace ub::emu {

enum class RequestWay : uint8_t { kBlueFlame, kDma };

class RoceStack {
 public:
  // A connected queue pair at each of the two hosts, which are joined.
  RoceStack(const Parameters&, RequestWay, EmulatedHost& here, EmulatedHost& there);

  // The operation completes when the task ends. Throws if the Core completed it with an error.
  Task run(Operation& op);

 private:
  Task there_and_back(Operation& op);
  bool is_fetched(const Operation& op) const;

  const Parameters& parameters_;
  const RequestWay way_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  OneSided requests_;
  CompletionQueue jfc_there_;
  ReceiveQueue jfr_here_, jfr_there_;
  QueuePair<Node> qp_here_, qp_there_;
};

}  // namespace ub::emu
