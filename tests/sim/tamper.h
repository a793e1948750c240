// SPDX-License-Identifier: Apache-2.0
//
// Directed faults: rules that the network asks about every frame. The first rule that matches and is not used
// up decides. A rule skips its first `skip` matches and then acts on `count` of them.
//
//   world.tamper.add(drop(1, [](const PacketInfo& p) { return p.taack(); }));
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>

#include "lib/base/time.h"
#include "tests/sim/packet_info.h"

namespace ub::sim {

using Matcher = std::function<bool(const PacketInfo&)>;
constexpr uint32_t kAlways = UINT32_MAX;

struct TamperRule {
  enum class Action : uint8_t { kPass, kDrop, kDelay, kDuplicate, kCorrupt, kSwap, kRewrite };

  Action action = Action::kPass;
  uint32_t count = 1;
  Matcher match;
  uint32_t skip = 0;
  Duration delay{};                                     // kDelay: instead of the usual; kDuplicate: of the second copy
  std::function<void(std::span<std::byte>)> rewrite{};  // the ICRC is made right again afterwards
  uint32_t hits = 0;                                    // how often it acted
};

inline TamperRule drop(uint32_t count, Matcher m, uint32_t skip = 0) {
  return {.action = TamperRule::Action::kDrop, .count = count, .match = std::move(m), .skip = skip};
}
inline TamperRule delay(uint32_t count, Duration by, Matcher m, uint32_t skip = 0) {
  return {.action = TamperRule::Action::kDelay, .count = count, .match = std::move(m), .skip = skip, .delay = by};
}
inline TamperRule duplicate(uint32_t count, Duration later, Matcher m, uint32_t skip = 0) {
  return {
      .action = TamperRule::Action::kDuplicate, .count = count, .match = std::move(m), .skip = skip, .delay = later};
}
inline TamperRule corrupt(uint32_t count, Matcher m, uint32_t skip = 0) {
  return {.action = TamperRule::Action::kCorrupt, .count = count, .match = std::move(m), .skip = skip};
}
// The packet changes places with the next one of its direction.
inline TamperRule swap_with_next(uint32_t count, Matcher m, uint32_t skip = 0) {
  return {.action = TamperRule::Action::kSwap, .count = count, .match = std::move(m), .skip = skip};
}
inline TamperRule rewrite(uint32_t count, Matcher m, std::function<void(std::span<std::byte>)> change) {
  TamperRule r{.action = TamperRule::Action::kRewrite, .count = count, .match = std::move(m)};
  r.rewrite = std::move(change);
  return r;
}
// Only counts.
inline TamperRule watch(Matcher m) {
  return {.action = TamperRule::Action::kPass, .count = kAlways, .match = std::move(m)};
}

class Tamper {
 public:
  // The rule stays valid for the life of this object.
  TamperRule& add(TamperRule rule) { return rules_.emplace_back(std::move(rule)); }
  void clear() { rules_.clear(); }
  bool armed() const { return !rules_.empty(); }

  const TamperRule* decide(const PacketInfo& p) {
    TamperRule* chosen = nullptr;
    for (TamperRule& r : rules_) {
      bool watching = r.action == TamperRule::Action::kPass;
      if ((chosen != nullptr && !watching) || r.hits >= r.count || !r.match(p)) continue;
      if (r.skip > 0) {
        --r.skip;
        continue;
      }
      ++r.hits;
      if (!watching) chosen = &r;
    }
    return chosen;
  }

 private:
  std::deque<TamperRule> rules_;
};

}  // namespace ub::sim
