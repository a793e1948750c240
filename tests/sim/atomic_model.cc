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

}  // namespace

AtomicModel::AtomicModel(const Region& region) : region_(region) {
  for (const Word& w : {Word{Use::kCount, WrOp::kFetchAdd, 0, 8}, Word{Use::kCount, WrOp::kFetchSub, 8, 8},
                        Word{Use::kExchange, WrOp::kCompareSwap, 16, 8}, Word{Use::kCount, WrOp::kFetchAdd, 24, 4},
                        Word{Use::kExchange, WrOp::kCompareSwap, 28, 4}, Word{Use::kOwnBit, WrOp::kFetchXor, 32, 8},
                        Word{Use::kOwnBit, WrOp::kFetchOr, 40, 8}, Word{Use::kOwnBit, WrOp::kFetchAnd, 48, 8},
                        Word{Use::kExchange, WrOp::kCompareSwap, 56, 8}}) {
    Word& word = words_.emplace(w.offset, w).first->second;
    word.initial = word.last_seen = read(word);
    word.possible.insert(word.initial);
  }
}

uint64_t AtomicModel::read(const Word& w) const {
  uint64_t v = 0;
  std::memcpy(&v, region_.memory() + w.offset, w.bytes);
  return v;
}

AtomicPlan AtomicModel::plan_add() {
  Word& w = words_.at(0);
  ++w.posted;
  return {w.offset, w.bytes, w.op, 1, 0, w.successes};
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
      p.op = rng.chance(0.3) ? WrOp::kSwap : WrOp::kCompareSwap;
      p.operand = (0x51000000 + unique) & mask(w);
      p.compare = rng.chance(0.85) ? w.last_seen : rng.next_u64() & mask(w);
      w.possible.insert(p.operand);
      return p;
    case Use::kOwnBit:
      break;
  }
  uint64_t bit = 0;
  while (bit < 64 && (w.bits_used >> bit & 1) != 0) ++bit;
  if (bit == 64) return plan_add();
  w.bits_used |= uint64_t{1} << bit;
  p.operand = w.op == WrOp::kFetchAnd ? ~(uint64_t{1} << bit) : uint64_t{1} << bit;
  return p;
}

void AtomicModel::withdraw(const AtomicPlan& p) {
  Word& w = word_of(p);
  if (w.use == Use::kCount) --w.posted;
  if (w.use == Use::kExchange) w.never.insert(p.operand);
}

bool AtomicModel::succeeded(const AtomicPlan& p, uint64_t old, std::string* why) {
  Word& w = word_of(p);
  old &= mask(w);
  switch (w.use) {
    case Use::kCount: {
      ++w.successes;
      uint64_t steps = (p.op == WrOp::kFetchSub ? w.initial - old : old - w.initial) & mask(w);
      if (steps >= w.posted)
        return fail(why, "old value is %" PRIu64 " steps on, %" PRIu64 " were posted", steps, w.posted);
      if (steps < p.floor)
        return fail(why, "old value is %" PRIu64 " steps on, but %" PRIu64 " had completed before", steps, p.floor);
      if (!w.olds.insert(old).second) return fail(why, "old value %" PRIx64 " was returned twice", old);
      return true;
    }
    case Use::kExchange: {
      if (!w.possible.contains(old)) return fail(why, "old value %" PRIx64 " was never stored", old);
      if (w.never.contains(old)) return fail(why, "old value %" PRIx64 " must not have been stored", old);
      bool swapped = p.op == WrOp::kSwap || old == p.compare;
      w.last_seen = swapped ? p.operand : old;
      if (!swapped) {
        w.never.insert(p.operand);
        if (w.olds.contains(p.operand)) return fail(why, "%" PRIx64 " was seen, but its CAS failed", p.operand);
        return true;
      }
      if (!w.olds.insert(old).second) return fail(why, "value %" PRIx64 " was replaced twice", old);
      return true;
    }
    case Use::kOwnBit: {
      uint64_t bit = p.op == WrOp::kFetchAnd ? ~p.operand : p.operand;
      w.bits_sure |= bit;
      if (((old ^ w.initial) & bit) != 0)
        return fail(why, "old value %" PRIx64 " shows bit %" PRIx64 " changed", old, bit);
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
    uint64_t value = read(w);
    if (w.use == Use::kCount) {
      uint64_t steps = (w.op == WrOp::kFetchSub ? w.initial - value : value - w.initial) & mask(w);
      if (steps < w.successes || steps > w.successes + w.unknown)
        return fail(why,
                    "atomic word %" PRIu64 " of region %u made %" PRIu64 " steps: %" PRIu64 " succeeded, %" PRIu64
                    " are uncertain",
                    offset, region_.uid, steps, w.successes, w.unknown);
    } else if (w.use == Use::kExchange) {
      if (!w.possible.contains(value) || w.never.contains(value) || w.olds.contains(value))
        return fail(why, "atomic word %" PRIu64 " of region %u holds %" PRIx64 ", which %s", offset, region_.uid, value,
                    !w.possible.contains(value) ? "was never stored"
                    : w.never.contains(value)   ? "must not have been stored"
                                                : "was replaced");
    } else {
      uint64_t changed = w.op == WrOp::kFetchXor  ? w.initial ^ w.bits_sure
                         : w.op == WrOp::kFetchOr ? w.initial | w.bits_sure
                                                  : w.initial & ~w.bits_sure;
      if (((value ^ changed) & ~w.bits_unknown) != 0)
        return fail(why,
                    "atomic word %" PRIu64 " of region %u holds %" PRIx64 ", expected %" PRIx64 " but for %" PRIx64,
                    offset, region_.uid, value, changed, w.bits_unknown);
    }
  }
  return true;
}

}  // namespace ub::sim
