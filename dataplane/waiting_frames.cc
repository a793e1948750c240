// SPDX-License-Identifier: Apache-2.0
#include "dataplane/waiting_frames.h"

#include <iterator>

namespace ub {

std::byte* WaitingFrames::hold(const wire::IpAddress& hop, std::byte* frame) {
  auto found = by_hop_.find(hop);
  if (found != by_hop_.end() && found->second->count == kMostOfOne) return frame;
  std::byte* dropped = count_ == kMost ? take_any() : nullptr;
  if (dropped != nullptr) found = by_hop_.find(hop);  // it may have been the one that gave way
  if (found == by_hop_.end()) {
    asked_.push_back({.hop = hop});
    found = by_hop_.emplace(hop, std::prev(asked_.end())).first;
    deadline_ = Instant{};
  }
  Queue& q = *found->second;
  q.frames[(q.first + q.count++) % kMostOfOne] = frame;
  ++count_;
  return dropped;
}

void WaitingFrames::answer(const wire::IpAddress& hop, const wire::MacAddress& mac) {
  auto found = by_hop_.find(hop);
  if (found == by_hop_.end()) return;
  Queue& q = *found->second;
  if (!q.answered) answered_.splice(answered_.end(), asked_, found->second);
  q.answered = true;
  q.mac = mac;
}

std::byte* WaitingFrames::take_answered(wire::MacAddress* mac) {
  if (answered_.empty()) return nullptr;
  *mac = answered_.front().mac;
  return take_first(answered_);
}

void WaitingFrames::ask_again(Instant now) {
  for (Queue& q : asked_) {
    q.ask_at = now;
    q.pause = kFirstPause;
  }
  set_deadline();
}

std::byte* WaitingFrames::take_late(Instant now) {
  if (asked_.empty() || asked_.front().since.is_never() || now - asked_.front().since < kPatience) return nullptr;
  return take_first(asked_);
}

std::byte* WaitingFrames::take_any() {
  if (!asked_.empty()) return take_first(asked_);
  return answered_.empty() ? nullptr : take_first(answered_);
}

// The deadline may be too early from here on: ask() finds that out.
std::byte* WaitingFrames::take_first(Queues& queues) {
  Queue& q = queues.front();
  std::byte* frame = q.frames[q.first];
  q.first = (q.first + 1) % kMostOfOne;
  --count_;
  if (--q.count == 0) {
    by_hop_.erase(q.hop);
    queues.pop_front();
  }
  if (asked_.empty()) deadline_ = Instant::never();
  return frame;
}

void WaitingFrames::set_deadline() {
  deadline_ = Instant::never();
  for (const Queue& q : asked_) deadline_ = earlier(deadline_, q.ask_at);
  if (!asked_.empty()) deadline_ = earlier(deadline_, asked_.front().since + kPatience);
}

}  // namespace ub
