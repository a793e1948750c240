// SPDX-License-Identifier: Apache-2.0
//
// Linearizability of atomics by arithmetic. Each word of a target region has one use:
//   count     FADD (FSUB) of 1: old values are all different, and the sum lies between the successes and the
//             successes plus the uncertain ones; one posted after another's completion sees the larger value
//   exchange  CAS and SWAP with values that never repeat: each value is replaced at most once, and a value
//   whose
//             CAS failed is never seen
//   own bit   FXOR, FOR, FAND on a bit that no other request touches
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "lib/base/prng.h"
#include "tests/sim/objects.h"

namespace ub::sim {

struct AtomicPlan {
  uint64_t offset = 0;
  uint32_t bytes = 8;
  WrOp op = WrOp::kFetchAdd;
  uint128 operand = 0, compare = 0;
  uint64_t floor = 0;  // count: successes known when it was posted
};

class AtomicModel {
 public:
  explicit AtomicModel(const Region&);

  // Chooses a request and counts it as posted.
  AtomicPlan plan(Prng&, uint64_t unique);
  AtomicPlan plan_add();                           // FADD on the first word
  AtomicPlan plan_for_qp(Prng&, uint64_t unique);  // of those that RoCE has
  // It can have no effect (a wrong token, say): as if it had not been posted.
  void withdraw(const AtomicPlan&);
  bool succeeded(const AtomicPlan&, uint128 old, std::string* why);
  void uncertain(const AtomicPlan&);
  bool check_final(std::string* why) const;

 private:
  enum class Use : uint8_t { kCount, kExchange, kOwnBit };
  struct Word {
    Use use;
    WrOp op;
    uint64_t offset;
    uint32_t bytes;
    uint128 initial = 0;
    uint64_t posted = 0, successes = 0, unknown = 0;  // count
    std::set<uint128> olds{};                         // count, exchange: old values seen (exchange: replaced)
    std::set<uint128> possible{}, never{};            // exchange: values that may exist; that must not
    uint128 last_seen = 0;
    uint128 bits_used = 0, bits_sure = 0, bits_unknown = 0;
  };
  static AtomicPlan plan_exchange(Prng&, uint64_t unique, Word&, WrOp);
  static uint128 mask(const Word& w) { return w.bytes == 16 ? ~uint128{0} : (uint128{1} << 8 * w.bytes) - 1; }
  uint128 read(const Word& w) const;
  Word& word_of(const AtomicPlan& p) { return words_.at(p.offset); }

  const Region& region_;
  std::map<uint64_t, Word> words_;
};

}  // namespace ub::sim
