// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cc/flow.h"

#include <type_traits>

#include "lib/base/assert.h"

namespace ub::cc {
namespace {

/// Calls fn with the state of the flow's algorithm, if it has one.
template <class Fn>
void with_member(Flow& f, Fn fn) {
  switch (f.algorithm) {
    case Algorithm::kNone:
      return;
#define UB_CC_CASE(Type, name) \
  case Algorithm::k##Type:     \
    return fn(f.name);
      UB_CC_MEMBERS(UB_CC_CASE)
#undef UB_CC_CASE
  }
}

#define UB_CC_FITS(Type, name) static_assert(std::is_trivially_copyable_v<Type> && sizeof(Type) <= 24);
UB_CC_MEMBERS(UB_CC_FITS)
#undef UB_CC_FITS

/// Are round trips of packets that did not ask for an acknowledgement none to the flow?
bool only_asked(Flow& f) {
  bool only = false;
  with_member(f, [&]<class Type>(Type&) { only = Type::kOnlyAsked; });
  return only;
}

void measure(Flow& f, SendTimes& times, const Path& path, Instant now, Psn psn) {
  Duration sample;
  if (!times.arrived(f.send_times, psn, now, &sample)) return;
  with_member(f, [&](auto& member) { member.round_trip(f, path, now, sample); });
}

}  // namespace

const char* name_of(Algorithm algorithm) {
#define UB_CC_NAME(Type, name) , #name
  static constexpr const char* kNames[] = {"none" UB_CC_MEMBERS(UB_CC_NAME)};
#undef UB_CC_NAME
  return kNames[static_cast<size_t>(algorithm)];
}

void begin(Flow& f, SendTimes& times, Algorithm algorithm, const Path& path, Psn next) {
  end(f, times);
  f.algorithm = algorithm;
  with_member(f, [&]<class Type>(Type& member) {
    member = Type{};
    if constexpr (Type::kHearsRoundTrips) f.send_times = times.take();
    member.begin(f, path, next);
  });
}

void begin(Flow& f, Algorithm algorithm, const Path& path, Psn next) {
  UB_DCHECK(f.send_times == 0);
  f = Flow{};
  f.algorithm = algorithm;
  with_member(f, [&]<class Type>(Type& member) {
    member = Type{};
    member.begin(f, path, next);
  });
}

void take_over(Flow& f, const Flow& before) {
  if (f.algorithm != before.algorithm) return;
  switch (f.algorithm) {
    case Algorithm::kNone:
      return;
#define UB_CC_CASE(Type, name) \
  case Algorithm::k##Type:     \
    return f.name.take_over(before.name);
      UB_CC_MEMBERS(UB_CC_CASE)
#undef UB_CC_CASE
  }
}

void end(Flow& f, SendTimes& times) {
  times.give_back(f.send_times);
  f = Flow{};
}

bool hears_packets(const Flow& f) {
  bool hears = false;
  with_member(const_cast<Flow&>(f), [&]<class Type>(Type&) { hears = Type::kHearsPackets || f.send_times != 0; });
  return hears;
}

void sent(Flow& f, SendTimes& times, const Path& path, Instant now, Psn psn, uint32_t bytes, Departure departure) {
  if (f.send_times != 0) {
    const bool measured = !departure.again && (departure.asked || !only_asked(f));
    measured ? times.left(f.send_times, psn, now) : times.forget(f.send_times, psn);
  }
  sent(f, path, now, bytes);
}

void sent(Flow& f, const Path& path, Instant now, uint32_t bytes) {
  with_member(f, [&](auto& member) { member.sent(f, path, now, bytes); });
}

void arrived(Flow& f, SendTimes& times, const Path& path, Instant now, Psn psn) {
  if (f.send_times != 0) measure(f, times, path, now, psn);
}

void acknowledged(Flow& f, SendTimes& times, const Path& path, Instant now, Psn from, Psn to) {
  const uint32_t packets = to.distance(from);
  if (packets == 0) return;
  if (f.send_times != 0) {
    UB_DCHECK(packets <= times.packets());
    for (Psn psn = from; psn != to; ++psn) measure(f, times, path, now, psn);
  }
  acknowledged(f, path, now, packets, to);
}

void acknowledged(Flow& f, const Path& path, Instant now, uint32_t packets, Psn until) {
  with_member(f, [&](auto& member) { member.acknowledged(f, path, now, packets, until); });
}

void round_trip(Flow& f, const Path& path, Instant now, Duration sample) {
  with_member(f, [&](auto& member) { member.round_trip(f, path, now, sample); });
}

void marked(Flow& f, const Path& path, Instant now, const Mark& mark) {
  with_member(f, [&](auto& member) { member.marked(f, path, now, mark); });
}

void fed_back(Flow& f, const Path& path, Instant now, const Feedback& feedback) {
  with_member(f, [&](auto& member) { member.fed_back(f, path, now, feedback); });
}

void lost(Flow& f, const Path& path, Instant now, const Loss& loss) {
  with_member(f, [&](auto& member) { member.lost(f, path, now, loss); });
}

void timed_out(Flow& f, const Path& path, Instant now, Psn next) {
  with_member(f, [&](auto& member) { member.timed_out(f, path, now, next); });
}

void timer(Flow& f, const Path& path, Instant now) {
  with_member(f, [&](auto& member) { member.timer(f, path, now); });
}

}  // namespace ub::cc
