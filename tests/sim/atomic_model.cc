// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/atomic_model.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace ub::sim {
namespace {

bool fail(std::string* why, const char* format, ...) {
  char buf[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(buf, sizeof buf, format, args);
  va_end(args);
  *why = buf;
  return false;
}

std::string hex(uint128 n) {
  char buf[40];
  std::snprintf(buf, sizeof buf, "%" PRIx64 "%016" PRIx64, high_half(n), low_half(n));
  return buf;
}

}  // namespace

AtomicModel::AtomicModel(const Region& region) : region_(region) {
  for (const Word& w : {Word{Use::kCount, WrOp::kFetchAdd, 0, 8}, Word{Use::kCount, WrOp::kFetchSub, 8, 8},
                        Word{Use::kExchange, WrOp::kCompareSwap, 16, 8}, Word{Use::kCount, WrOp::kFetchAdd, 24, 4},
                        Word{Use::kExchange, WrOp::kCompareSwap, 28, 4}, Word{Use::kOwnBit, WrOp::kFetchXor, 32, 8},
                        Word{Use::kOwnBit, WrOp::kFetchOr, 40, 8}, Word{Use::kOwnBit, WrOp::kFetchAnd, 48, 8},
                        Word{Use::kExchange, WrOp::kCompareSwap, 56, 8}, Word{Use::kCount, WrOp::kFetchAdd, 64, 16},
                        Word{Use::kExchange, WrOp::kCompareSwap, 80, 16}, Word{Use::kOwnBit, WrOp::kFetchXor, 96, 16},
                        Word{Use::kOwnBit, WrOp::kFetchAnd, 112, 16}}) {
    Word& word = words_.emplace(w.offset, w).first->second;
    word.initial = word.last_seen = read(word);
    word.possible.insert(word.initial);
  }
}

uint128 AtomicModel::read(const Word& w) const {
  uint128 v = 0;
  std::memcpy(&v, region_.memory() + w.offset, w.bytes);
  return v;
}

AtomicPlan AtomicModel::plan_add() {
  Word& w = words_.at(0);
  ++w.posted;
  return {w.offset, w.bytes, w.op, 1, 0, w.successes};
}

AtomicPlan AtomicModel::plan_for_qp(Prng& rng, uint64_t unique) {
  if (rng.chance(0.5)) return plan_add();
  return plan_exchange(rng, unique, words_.at(16), WrOp::kCompareSwap);
}

AtomicPlan AtomicModel::plan_exchange(Prng& rng, uint64_t unique, Word& w, WrOp op) {
  AtomicPlan p{w.offset, w.bytes, op, 0, 0, 0};
  p.operand = make_uint128(0x51000000 + unique, ~unique) & mask(w);
  p.compare = rng.chance(0.85) ? w.last_seen : make_uint128(rng.next_u64(), unique) & mask(w);
  w.possible.insert(p.operand);
  return p;
}

AtomicPlan AtomicModel::plan(Prng& rng, uint64_t unique) {
  auto it = words_.begin();
  std::advance(it, static_cast<long>(rng.below(words_.size())));
  Word& w = it->second;
  AtomicPlan p{w.offset, w.bytes, w.op, 0, 0, 0};
  switch (w.use) {
    case Use::kCount:
      ++w.posted;
      p.operand = 1;
      p.floor = w.successes;
      return p;
    case Use::kExchange:
      return plan_exchange(rng, unique, w, rng.chance(0.3) ? WrOp::kSwap : WrOp::kCompareSwap);
    case Use::kOwnBit:
      break;
  }
  const uint32_t bits = 8 * w.bytes;
  uint32_t n = 0;
  while (n < bits && (w.bits_used >> n & 1) != 0) ++n;
  if (n == bits) return plan_add();
  const uint128 bit = uint128{1} << n;
  w.bits_used |= bit;
  p.operand = w.op == WrOp::kFetchAnd ? ~bit : bit;
  return p;
}

void AtomicModel::withdraw(const AtomicPlan& p) {
  Word& w = word_of(p);
  if (w.use == Use::kCount) --w.posted;
  if (w.use == Use::kExchange) w.never.insert(p.operand);
}

bool AtomicModel::succeeded(const AtomicPlan& p, uint128 old, std::string* why) {
  Word& w = word_of(p);
  old &= mask(w);
  switch (w.use) {
    case Use::kCount: {
      ++w.successes;
      const uint128 steps = (p.op == WrOp::kFetchSub ? w.initial - old : old - w.initial) & mask(w);
      if (steps >= w.posted)
        return fail(why, "old value is %s steps on, %" PRIu64 " were posted", hex(steps).c_str(), w.posted);
      if (steps < p.floor)
        return fail(why, "old value is %s steps on, but %" PRIu64 " had completed before", hex(steps).c_str(), p.floor);
      if (!w.olds.insert(old).second) return fail(why, "old value %s was returned twice", hex(old).c_str());
      return true;
    }
    case Use::kExchange: {
      if (!w.possible.contains(old)) return fail(why, "old value %s was never stored", hex(old).c_str());
      if (w.never.contains(old)) return fail(why, "old value %s must not have been stored", hex(old).c_str());
      bool swapped = p.op == WrOp::kSwap || old == p.compare;
      w.last_seen = swapped ? p.operand : old;
      if (!swapped) {
        w.never.insert(p.operand);
        if (w.olds.contains(p.operand)) return fail(why, "%s was seen, but its CAS failed", hex(p.operand).c_str());
        return true;
      }
      if (!w.olds.insert(old).second) return fail(why, "value %s was replaced twice", hex(old).c_str());
      return true;
    }
    case Use::kOwnBit: {
      const uint128 bit = p.op == WrOp::kFetchAnd ? ~p.operand : p.operand;
      w.bits_sure |= bit;
      if (((old ^ w.initial) & bit) != 0)
        return fail(why, "old value %s shows bit %s changed", hex(old).c_str(), hex(bit).c_str());
      return true;
    }
  }
  return true;
}

void AtomicModel::uncertain(const AtomicPlan& p) {
  Word& w = word_of(p);
  ++w.unknown;
  if (w.use == Use::kOwnBit) w.bits_unknown |= p.op == WrOp::kFetchAnd ? ~p.operand : p.operand;
}

bool AtomicModel::check_final(std::string* why) const {
  for (const auto& [offset, w] : words_) {
    const uint128 value = read(w);
    if (w.use == Use::kCount) {
      const uint128 steps = (w.op == WrOp::kFetchSub ? w.initial - value : value - w.initial) & mask(w);
      if (steps < w.successes || steps > w.successes + w.unknown)
        return fail(
            why, "atomic word %" PRIu64 " of region %u made %s steps: %" PRIu64 " succeeded, %" PRIu64 " are uncertain",
            offset, region_.uid, hex(steps).c_str(), w.successes, w.unknown);
    } else if (w.use == Use::kExchange) {
      if (!w.possible.contains(value) || w.never.contains(value) || w.olds.contains(value))
        return fail(why, "atomic word %" PRIu64 " of region %u holds %s, which %s", offset, region_.uid,
                    hex(value).c_str(),
                    !w.possible.contains(value) ? "was never stored"
                    : w.never.contains(value)   ? "must not have been stored"
                                                : "was replaced");
    } else {
      const uint128 changed = w.op == WrOp::kFetchXor  ? w.initial ^ w.bits_sure
                              : w.op == WrOp::kFetchOr ? w.initial | w.bits_sure
                                                       : w.initial & ~w.bits_sure;
      if (((value ^ changed) & ~w.bits_unknown) != 0)
        return fail(why, "atomic word %" PRIu64 " of region %u holds %s, expected %s but for %s", offset, region_.uid,
                    hex(value).c_str(), hex(changed).c_str(), hex(w.bits_unknown).c_str());
    }
  }
  return true;
}

}  // namespace ub::sim
