// SPDX-License-Identifier: Apache-2.0
//
// A CPU of a coherent fabric with two caches of its own; the second one has all lines of the first one. On each level a
// miss is a request, an answer and an acknowledgement, and ends with the last of them.
#pragma once

#include <cstdint>
#include <string>

#include "emu_hw/coherent/home.h"

namespace ub::emu {

class CoherentCore final : public Holder {
 public:
  static constexpr uint64_t kWays = 8;

  CoherentCore(Kernel& kernel, const Parameters& p, Home& home, uint32_t number);

  // Does the first cache have the line, with the right that it takes? Then it was used.
  bool hits(Access access, uint64_t line);
  Task miss(Access access, uint64_t line);
  // Until the home takes the right to read a line.
  WaitList::Waiter loses_a_line() { return losses_.wait(*this); }

  uint64_t l1_misses() const { return l1_misses_; }
  uint64_t l2_misses() const { return l2_misses_; }
  Span missed() const { return missed_; }  // what all misses took

  void restrict_to(uint64_t line, Right right) override;
  std::string name() const override { return "core " + std::to_string(number_); }

 private:
  Task ask_home(Access access, uint64_t line);
  void keep_in_l2(uint64_t line, Right right);

  const Parameters& p_;
  const CoherentTiming timing_;
  Home& home_;
  const uint32_t number_;
  SetCache l1_, l2_;
  WaitList losses_;
  uint64_t l1_misses_ = 0, l2_misses_ = 0;
  Span missed_;
};

}  // namespace ub::emu
