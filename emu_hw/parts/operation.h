// SPDX-License-Identifier: Apache-2.0
//
// One operation of a workload, from its issue to its completion, and how a part charges it.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <string>
#include <string_view>

#include "emu_hw/kernel/task.h"
#include "emu_hw/kernel/wait_list.h"
#include "emu_hw/parts/ledger.h"

namespace ub::emu {

enum class Verb : uint8_t { kLoad, kStore, kRead, kWrite, kSend, kFetchAdd, kCompareSwap };

std::string_view name_of(Verb verb);
constexpr bool is_atomic(Verb verb) { return verb == Verb::kFetchAdd || verb == Verb::kCompareSwap; }

class Operation final : public Named {
 public:
  Operation(uint64_t its_number, uint32_t at_node, Verb its_verb, uint32_t its_bytes, Time issued)
      : number(its_number), node(at_node), verb(its_verb), bytes(its_bytes), ledger(issued) {}

  // What its packets are charged for on the way to the target and back, whatever the frames of the Core hold: a request
  // without payload counts as 64 bytes, an answer without payload as eight.
  uint32_t bytes_there() const { return std::min(carries_payload_there() ? bytes : 64, train_bytes); }
  uint32_t bytes_back() const { return std::min(brings_data() ? bytes : 8, train_bytes); }
  bool brings_data() const { return verb == Verb::kRead || verb == Verb::kLoad; }
  // The target's memory is read for it.
  bool reads_there() const { return brings_data() || is_atomic(verb); }

  std::string name() const override {
    return std::string(name_of(verb)) + " " + std::to_string(number) + " of node " + std::to_string(node);
  }

  const uint64_t number;
  const uint32_t node;  // where it was issued
  const Verb verb;
  const uint32_t bytes;
  uint32_t peer = 0;        // which of the hosts that its node talks to
  uint64_t place = 0;       // in the remote memory; not for SEND
  uint32_t receiver = 0;    // SEND: which of the target's endpoints gets it
  bool is_strict = false;   // it has a strict order
  uint32_t train_bytes = UINT32_MAX;  // as many bytes as a train that holds a part of it can carry
  uint64_t compare = 0;     // of a compare-and-swap
  uint64_t operand = 1;     // what an atomic adds, or swaps in
  uint64_t found = 0;       // what it found, when it has ended
  Ledger ledger;

 private:
  bool carries_payload_there() const { return verb == Verb::kWrite || verb == Verb::kStore || verb == Verb::kSend; }
};

// Takes that time of an operation and writes it down. Parts return it, so their use reads `co_await bus.cross(op)`.
class [[nodiscard]] Charge {
 public:
  Charge(Kernel& kernel, Operation& op, const Ledger::Name& name, Span span)
      : kernel_(kernel), op_(op), name_(name), span_(span) {}
  bool await_ready() const noexcept { return span_.ps == 0; }
  void await_suspend(std::coroutine_handle<> handle) const {
    kernel_.push_after(span_, event_of(handle), name_.part.data());
  }
  void await_resume() const { op_.ledger.charge(name_, kernel_.now()); }

 private:
  Kernel& kernel_;
  Operation& op_;
  const Ledger::Name name_;
  const Span span_;
};

}  // namespace ub::emu
