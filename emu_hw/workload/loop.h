// SPDX-License-Identifier: Apache-2.0
//
// A program of a host that carries out operations, and what became of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu_hw/kernel/wait_list.h"
#include "emu_hw/parts/ledger.h"
#include "emu_hw/parts/sample.h"

namespace ub::emu {

class Loop {
 public:
  virtual ~Loop() = default;

  // So many, the first one a nanosecond from now. The samples are complete when the kernel has nothing to do.
  virtual void start(uint64_t operations) = 0;

  const std::vector<Sample>& samples() const { return samples_; }  // in the order of their ends
  // Of the operation that ended first; none before that.
  const std::optional<Ledger>& first_ledger() const { return first_ledger_; }

 protected:
  // For the message of a deadlock.
  class Program final : public Named {
   public:
    explicit Program(uint32_t node) : node_(node) {}
    std::string name() const override { return "the program of node " + std::to_string(node_); }

   private:
    const uint32_t node_;
  };

  void record(const Ledger& ledger) {
    if (!first_ledger_) first_ledger_ = ledger;
  }
  std::vector<Sample> samples_;

 private:
  std::optional<Ledger> first_ledger_;
};

}  // namespace ub::emu
