// SPDX-License-Identifier: Apache-2.0
//
// A lock that several contend for, as the reference has it (rule.lock): whoever gets it needs as many attempts as there
// are contenders, one after the other. Each contender has a connection, and nobody else changes the word.
#pragma once

#include <cstdint>
#include <vector>

#include "emu_hw/parts/sample.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class LockRule {
 public:
  explicit LockRule(const Parameters& p) : contenders_(p.active_connections) {}

  uint64_t attempts(uint64_t acquisitions) const { return acquisitions * contenders_; }
  // What it takes to get the lock: the latencies of its attempts, without what is between them.
  std::vector<Sample> acquisitions(const std::vector<Sample>& attempts) const {
    std::vector<Sample> all;
    for (size_t first = 0; first + contenders_ <= attempts.size(); first += contenders_) {
      Sample sample{attempts[first].issued, attempts[first].issued};
      for (uint64_t i = 0; i < contenders_; ++i) sample.ended.ps += attempts[first + i].latency().ps;
      all.push_back(sample);
    }
    return all;
  }

 private:
  const uint64_t contenders_;
};

}  // namespace ub::emu
