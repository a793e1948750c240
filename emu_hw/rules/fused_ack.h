// SPDX-License-Identifier: Apache-2.0
//
// A fused acknowledgement as the reference has it (rule.fused_ack): the answer of a UB operation carries 32 bytes less,
// from the target's NIC over the link, if it has that many. The initiator's NIC takes as long as without.
#pragma once

#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class FusedAck {
 public:
  explicit FusedAck(const Parameters& p) : is_fused_(p.acknowledgement == Acknowledgement::kFused) {}

  uint32_t bytes_sent_back(const Operation& op) const {
    const uint32_t bytes = op.bytes_back();
    return is_fused_ && bytes >= kSaved ? bytes - kSaved : bytes;
  }

 private:
  static constexpr uint32_t kSaved = 32;

  const bool is_fused_;
};

}  // namespace ub::emu
