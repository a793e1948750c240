// SPDX-License-Identifier: Apache-2.0
#include "lib/impair/link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/impair/congestion_mark.h"
#include "lib/impair/queue_rules.h"
#include "lib/transport/wire/network_header.h"

namespace ub::impair {
namespace {

constexpr Duration kLeastPatience = microseconds(100);

// How long a late frame waits for others to pass it: as long as so many like it take, but long enough for a link that
// is not busy.
Duration patience(const Spec& s, size_t bytes) {
  if (s.wait.ns != 0) return s.wait;
  if (s.rate == 0) return kLeastPatience;
  const double ns = 8e9 * static_cast<double>(bytes) * s.reorder / static_cast<double>(s.rate);
  return std::max(kLeastPatience, Duration{static_cast<int64_t>(ns)});
}

// Do both give frames the same times?
bool same_times(const Spec& a, const Spec& b) {
  return a.rate == b.rate && a.delay == b.delay && a.jitter == b.jitter && a.reorder == b.reorder && a.wait == b.wait;
}

}  // namespace

Link::Link(const Script& script, uint64_t seed, Instant start, uint32_t most_frames)
    : most_frames_(most_frames),
      losses_(8 * seed),
      jitter_(8 * seed + 1),
      marks_(8 * seed + 2),
      corruption_(8 * seed + 3),
      lateness_(8 * seed + 4),
      duplication_(8 * seed + 5),
      caqm_(8 * seed + 6) {
  set(start, script);
}

// ---- changes ----

void Link::set(Instant now, Script script) {
  spec_at(now);
  script_ = std::move(script);
  start_ = now;
  changes_made_ = 0;
  change(now, script_.first);
}

const Spec& Link::spec_at(Instant now) {
  while (next_change() <= now) {
    const Instant at = next_change();
    change(at, script_.changes[changes_made_++].spec);
  }
  return spec_;
}

void Link::change(Instant at, const Spec& spec) {
  const bool keeps_times = same_times(spec_, spec);
  spec_ = spec;
  caqm_.set(spec.rate, spec.caqm);
  if (keeps_times) return;
  line_.change_rate(at, spec.rate);
  latest_ = earlier(latest_, latest_arrival(at, line_.position()));
  due_.move([&](const Calendar::Entry& entry) {
    if (is_gone(entry)) return entry.at;
    Slot& s = slots_[entry.slot];
    s.due = earlier(s.due, latest_arrival(at, s.position));
    return s.due.ns;
  });
  drop_gone();
}

// Of a frame under way, after a change to what is in force now.
Instant Link::latest_arrival(Instant at, uint64_t position) {
  return line_.leaves(at, position, spec_.rate) + spec_.delay + spec_.jitter;
}

// ---- a frame enters ----

Verdict Link::offer(Instant now, std::span<const std::byte> frame, uint64_t tag) {
  spec_at(now);
  ++counts_.offered;
  if (spec_.down) {
    ++counts_.lost_down;
    return {Fate::kDown};
  }
  if (has_no_room(frame.size(), now)) {
    ++counts_.lost_queue;
    return {Fate::kQueueFull};
  }
  const uint64_t in_front = line_.queued_bytes(now);
  const Instant due = arrival(now, frame.size());
  const bool concerned = spec_.kinds == kAllKinds || has_kind(spec_.kinds, kind_of(frame));
  Verdict verdict;
  if (concerned) verdict.fate = loss();
  if (verdict.fate != Fate::kUnderWay) return verdict;

  const uint32_t slot = take_slot(frame, tag);
  const std::span<std::byte> bytes{slots_[slot].bytes.data(), frame.size()};
  verdict.marked = mark(in_front, bytes);
  verdict.corrupted = concerned && corruption_.chance(spec_.corrupt);
  verdict.late = concerned && is_late();
  verdict.duplicated = concerned && duplication_.chance(spec_.duplicate) && under_way_ < most_frames_;
  counts_.marked += verdict.marked;
  counts_.corrupted += verdict.corrupted;
  counts_.reordered += verdict.late;
  counts_.duplicated += verdict.duplicated;
  if (verdict.corrupted) flip_a_bit(bytes);
  verdict.late ? hold(slot, due) : pass(slot, due);
  if (verdict.duplicated) {
    const Instant again = arrival(now, frame.size());
    pass(take_slot(bytes, tag), again);
  }
  return verdict;
}

bool Link::has_no_room(size_t bytes, Instant now) {
  const Queued queued{line_.queued_frames(now), line_.queued_bytes(now)};
  return under_way_ >= most_frames_ || queued.frames >= most_frames_ || is_full(spec_, queued, bytes);
}

// By ECN alone, or as C-AQM has it, where a frame can also be granted or refused what it asks for.
bool Link::mark(uint64_t in_front, std::span<std::byte> frame) {
  if (spec_.caqm.target_bytes == 0) return marks_.chance(mark_chance(spec_.mark, in_front)) && mark_congestion(frame);
  const CaqmAnswer answer = caqm_.pass(in_front, frame);
  counts_.granted += answer == CaqmAnswer::kGrant;
  counts_.refused += answer == CaqmAnswer::kRefusal;
  return answer == CaqmAnswer::kMark;
}

Fate Link::loss() {
  switch (losses_.next(spec_)) {
    case Losses::Cause::kNone:
      return Fate::kUnderWay;
    case Losses::Cause::kRandom:
      ++counts_.lost_random;
      return Fate::kLostRandom;
    case Losses::Cause::kBurst:
      ++counts_.lost_burst;
      return Fate::kLostBurst;
    case Losses::Cause::kNth:
      break;
  }
  ++counts_.lost_nth;
  return Fate::kLostNth;
}

bool Link::is_late() {
  if (spec_.reorder == 0) return false;
  return spec_.late == 0 ? ++candidates_ % 2 == 0 : lateness_.chance(spec_.late);
}

// Behind the UDP header, or that of Ethernet if the frame is something else: a frame with another address would not
// come at all, or to somebody else.
void Link::flip_a_bit(std::span<std::byte> frame) {
  wire::NetHeader net;
  const bool is_udp = wire::parse_network(frame, net) == wire::Drop::kNone;
  const size_t first = is_udp ? static_cast<size_t>(net.tph - frame.data()) : wire::kEthSize;
  if (frame.size() <= first) return;
  const uint64_t bit = corruption_.between(first * 8, frame.size() * 8 - 1);
  frame[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
}

// When a frame that takes its turn on the line now arrives, if nothing holds it up.
Instant Link::arrival(Instant now, size_t bytes) {
  const Duration jitter{static_cast<int64_t>(jitter_.below(static_cast<uint64_t>(spec_.jitter.ns) + 1))};
  latest_ = later(latest_, line_.send(now, bytes, spec_.rate) + spec_.delay + jitter);
  return latest_;
}

// ---- frames under way ----

uint32_t Link::take_slot(std::span<const std::byte> frame, uint64_t tag) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  Slot& s = slots_[slot];
  if (s.bytes.size() < frame.size()) s.bytes.resize(frame.size());
  std::memcpy(s.bytes.data(), frame.data(), frame.size());
  s.size = frame.size();
  s.tag = tag;
  s.position = line_.position();
  ++under_way_;
  return slot;
}

// Its place in the calendar, in place of an earlier one.
void Link::plan(uint32_t slot, Instant due) {
  slots_[slot].due = due;
  slots_[slot].order = ++order_;
  due_.put({due.ns, order_, slot});
  due_.tidy(under_way_, [this](const auto& entry) { return is_gone(entry); });
}

void Link::hold(uint32_t slot, Instant due) {
  plan(slot, due + patience(spec_, slots_[slot].size));
  late_.put({passed_ + lateness_.between(1, spec_.reorder), order_, slot});
  late_.tidy(under_way_, [this](const auto& entry) { return is_gone(entry); });
}

// A frame gets its place in the order, and behind it those that let enough others pass.
void Link::pass(uint32_t slot, Instant due) {
  plan(slot, due);
  ++passed_;
  while (!late_.empty() && late_.first().at <= passed_) {
    const Calendar::Entry held = late_.first();
    late_.drop_first();
    if (is_gone(held) || slots_[held.slot].due <= due) continue;  // it waited long enough, and leaves in front
    plan(held.slot, due);
    slots_[held.slot].position = slots_[slot].position;
    ++passed_;
  }
  drop_gone();
}

void Link::drop_gone() {
  while (!due_.empty() && is_gone(due_.first())) due_.drop_first();
}

std::optional<Arrival> Link::take(Instant now) {
  spec_at(now);
  if (now < next_due()) return {};
  const uint32_t slot = due_.first().slot;
  Slot& s = slots_[slot];
  s.order = 0;
  --under_way_;
  drop_gone();
  ++counts_.delivered;
  counts_.delivered_bytes += s.size;
  return Arrival{{s.bytes.data(), s.size}, s.tag, s.due, slot};
}

}  // namespace ub::impair
