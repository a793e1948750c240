// SPDX-License-Identifier: Apache-2.0
//
// Which values each byte of a target region may have: an interval map from offsets to candidate writers. A
// WRITE becomes a candidate when it is posted; its success removes everything that it must have overwritten;
// its failure leaves it a candidate. What was removed is remembered as history while a READ that may have
// seen it is outstanding.
//
// Ticks are the oracle's logical clock (one per observation), because many things share an instant.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/objects.h"

namespace ub::sim {

struct Candidate {
  WriterId writer = 0;
  uint64_t base = 0;     // region offset of the writer's byte 0
  bool literal = false;  // a notify word: its bytes are those of `value`
  uint64_t value = 0;
  uint64_t removed_at = UINT64_MAX;  // tick; history only

  uint8_t byte_at(uint64_t offset) const {
    return literal ? static_cast<uint8_t>(value >> (8 * (offset - base))) : pattern_byte(writer, offset - base);
  }
};

class MemoryModel {
 public:
  explicit MemoryModel(const Region& region);

  void add(const Candidate&, uint64_t offset, uint64_t bytes);
  // The writer succeeded: candidates for which `overwritten` holds cannot be there any more. `remember`: a READ is
  // outstanding that may have seen them.
  void succeed(WriterId, uint64_t offset, uint64_t bytes, uint64_t tick, bool remember,
               const std::function<bool(const Candidate&)>& overwritten);
  // Does memory hold allowed values? Otherwise says what is wrong.
  bool check(uint64_t offset, uint64_t bytes, std::string* why) const;
  // The same, as it would be were the writer to succeed now.
  bool check_as_if_succeeded(WriterId, uint64_t offset, uint64_t bytes,
                             const std::function<bool(const Candidate&)>& overwritten, std::string* why) const;
  // May a READ that was posted at tick `since` have returned these bytes for this range?
  bool readable(uint64_t offset, const std::byte* data, uint64_t bytes, uint64_t since, std::string* why) const;
  // Is this writer the only one that may still change the range?
  bool sole_writer(WriterId, uint64_t offset, uint64_t bytes,
                   const std::function<bool(const Candidate&)>& overwritten) const;
  void forget_history(uint64_t before_tick);

 private:
  struct Cell {
    uint64_t end;
    std::vector<Candidate> now;
    std::vector<Candidate> history;
  };
  using Cells = std::map<uint64_t, Cell>;

  Cells::iterator split(uint64_t at);
  std::string describe(uint64_t offset, uint8_t found, const Cell&) const;

  const Region& region_;
  Cells cells_;
  bool any_history_ = false;
};

}  // namespace ub::sim
