// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ub {
namespace {

void add(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

Capture::Capture(CaptureFilter filter, CaptureTarget target, bool impaired, const TscClock& clock, Describe describe)
    : filter_(std::move(filter)),
      clock_(clock),
      clock_began_ns_(TscClock::wall_ns() - clock.now().ns),
      describe_(std::move(describe)),
      snap_(target.snap),
      is_impaired_(impaired),
      writer_(std::move(target)) {}

// ---- the ports -------------------------------------------------------------------------------------------------

void Capture::received(std::span<const RxFrame> frames) {
  if (filter_.wants_dropped()) return;  // what is dropped is known later
  for (const RxFrame& f : frames) {
    CaptureRecord* record = keep(f.link, pcapng::Direction::kIn, {f.data, f.bytes});
    if (record != nullptr && open_count_ != open_.size()) open_[open_count_++] = {f.data, record};
  }
}

void Capture::sent(uint32_t link, std::span<const std::byte> frame) {
  if (!filter_.wants_dropped()) keep(link, pcapng::Direction::kOut, frame);
}

void Capture::dropped(std::span<const RxFrame> frames, Counter why) {
  if (filter_.wants_dropped() && !filter_.takes_reason(why)) return;
  for (const RxFrame& f : frames) {
    CaptureRecord* record = keep(f.link, pcapng::Direction::kIn, {f.data, f.bytes});
    if (record != nullptr) record->reason = static_cast<uint16_t>(static_cast<uint16_t>(why) + 1);
  }
}

void Capture::forget(uint32_t link) {
  if (link < by_link_.size()) by_link_[link] = {};
}

void Capture::publish() {
  writer_.ring().publish();
  open_count_ = next_open_ = 0;
}

// ---- the Core --------------------------------------------------------------------------------------------------

void Capture::before_frame(uint32_t link, std::span<const std::byte> frame) {
  const std::span open(open_.data() + next_open_, open_count_ - next_open_);
  const auto found = std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.frame == frame.data(); });
  record_ = found == open.end() ? nullptr : found->record;
  if (record_ != nullptr) next_open_ += static_cast<size_t>(found - open.begin()) + 1;
  frame_ = frame;
  link_ = link;
  reason_ = 0;
}

// Where wires are impaired, what the Core gets may have been changed and delayed since it came, so it is kept again.
void Capture::after_frame() {
  if (reason_ == 0) return;
  if (filter_.wants_dropped()) {
    if (!filter_.takes_reason(static_cast<Counter>(reason_ - 1))) return;
  } else if (record_ == nullptr && !is_impaired_) {  // the filter did not take it, or there was no room
    return;
  }
  if (record_ == nullptr) record_ = keep(link_, pcapng::Direction::kIn, frame_, is_impaired_);
  if (record_ != nullptr) record_->reason = reason_;
}

// ---- the ring --------------------------------------------------------------------------------------------------

CaptureRecord* Capture::keep(uint32_t link, pcapng::Direction direction, std::span<const std::byte> frame,
                             bool behind) {
  if (writer_.state() != CaptureWriter::State::kRunning) return nullptr;
  CaptureInterface* interface = interface_of(link, behind);
  if (interface == nullptr) return nullptr;
  add(interface->seen);
  if (!filter_.takes(link, direction, frame)) return nullptr;
  add(interface->accepted);
  const auto length = static_cast<uint32_t>(frame.size());
  CaptureRecord* record = writer_.ring().put(snap_ == 0 ? length : std::min(length, snap_));
  if (record == nullptr) {
    add(interface->missed);
    ++interface->missed_lately;
    ++missed_;
    return nullptr;
  }
  record->length = length;
  record->reason = 0;
  record->direction = direction;
  record->time_ns = wall_ns();
  record->missed = std::exchange(interface->missed_lately, 0);
  record->interface = interface;
  std::memcpy(record->frame(), frame.data(), record->kept);
  return record;
}

// Null: no memory, or too many links have come and gone.
CaptureInterface* Capture::interface_of(uint32_t link, bool behind) try {
  if (link >= by_link_.size()) by_link_.resize(link + 1);
  Faces& faces = by_link_[link];
  CaptureInterface*& face = behind ? faces.behind : faces.port;
  if (face != nullptr) [[likely]]
    return face;
  if (interfaces_.size() == kMostInterfaces) return nullptr;
  LinkText text = describe_(link);
  if (behind && !text.can_be_impaired) return face = interface_of(link, false);
  CaptureInterface& made = interfaces_.emplace_back();
  made.name = std::move(text.name);
  made.description = std::move(text.description);
  if (behind) {
    made.name += ".behind";
    made.description += ", behind impairments";
  }
  return face = &made;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// ---- status ----------------------------------------------------------------------------------------------------

std::string Capture::status() const {
  static constexpr const char* kStates[] = {"opening", "running", "ended", "failed"};
  const CaptureWriter::State state = writer_.state();
  const bool is_ending = writer_.is_stopping() && !has_ended();
  std::string text = std::string("ok ") + (is_ending ? "ending" : kStates[static_cast<size_t>(state)]) + ": " +
                     std::to_string(writer_.packets()) + " packets, " + std::to_string(writer_.bytes()) +
                     " bytes in " + path() + ", " + std::to_string(missed_ + writer_.lost()) + " missed";
  return has_ended() ? text + "; " + writer_.why() : text;
}

}  // namespace ub
