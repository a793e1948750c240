// SPDX-License-Identifier: Apache-2.0
#include "dataplane/impaired_wires.h"

#include <new>
#include <utility>

namespace ub {

ImpairedWires::ImpairedWires(const impair::Script& send, const impair::Script& receive, uint64_t seed, Instant now)
    : send_(send, 2 * seed, now), receive_(receive, 2 * seed + 1, now), now_(now) {
  handed_on_.reserve(kBurst);
}

void ImpairedWires::set(Instant now, std::optional<impair::Script> send,
                        std::optional<impair::Script> receive) noexcept {
  if (send) send_.set(now, std::move(*send));
  if (receive) receive_.set(now, std::move(*receive));
}

bool ImpairedWires::has_room() {
  const impair::Spec& spec = send_.spec_at(now_);
  if (spec.rate == 0 || spec.down || spec.queue_frames != 0 || spec.queue_bytes != 0) return true;
  const Duration staged{
      static_cast<int64_t>(8e9 * static_cast<double>(staged_bytes_) / static_cast<double>(spec.rate))};
  return later(send_.line_free_at(), now_) + staged <= now_ + kPortTime;
}

bool ImpairedWires::stage(const Staged& staged) try {
  staged_.push_back(staged);
  staged_bytes_ += staged.bytes;
  return true;
} catch (const std::bad_alloc&) {
  ++no_room_;
  return false;
}

void ImpairedWires::offer(impair::Link& link, std::span<const std::byte> frame, uint32_t number) try {
  link.offer(now_, frame, number);
} catch (const std::bad_alloc&) {  // a network that loses frames may lose this one
  ++no_room_;
}

bool ImpairedWires::has_leaving(Instant now) {
  if (!leaving_) leaving_ = send_.take(now);
  return leaving_.has_value();
}

void ImpairedWires::receive(Instant now, std::span<const RxFrame> frames) {
  now_ = now;
  for (const RxFrame& f : frames) offer(receive_, {f.data, f.bytes}, f.link);
}

size_t ImpairedWires::take_received(Instant now, RxFrame* out, size_t room) {
  size_t n = 0;
  while (n < room) {
    const std::optional<impair::Arrival> arrival = receive_.take(now);
    if (!arrival) break;
    handed_on_.push_back(*arrival);
    out[n++] = {arrival->frame.data(), static_cast<uint32_t>(arrival->frame.size()),
                static_cast<uint32_t>(arrival->tag)};
  }
  return n;
}

void ImpairedWires::release_received() {
  for (const impair::Arrival& arrival : handed_on_) receive_.release(arrival);
  handed_on_.clear();
}

Instant ImpairedWires::next_due() const {
  const Instant sends = leaving_ ? now_ + kRetry : send_.next_due();
  return earlier(sends, receive_.next_due());
}

std::array<uint64_t, ImpairedWires::kCounters.size()> ImpairedWires::counters() const {
  const impair::Counts& sent = send_.counts();
  const impair::Counts& received = receive_.counts();
  return {
#define UB_IMPAIR_COUNT(member, text) sent.member + received.member,
#include "lib/impair/counts.def"
#undef UB_IMPAIR_COUNT
      no_room_,
  };
}

}  // namespace ub
