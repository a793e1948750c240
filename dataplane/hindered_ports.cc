// SPDX-License-Identifier: Apache-2.0
//
// Frames of ports that somebody hinders on purpose: a fault took them down (docs/fault-injection.md), or their wires
// are impaired (docs/impair.md); or of those that are captured (docs/capture.md).
#include <cstring>

#include "dataplane/capture.h"
#include "dataplane/port_set.h"
#include "lib/record/recorder.h"

namespace ub {

// ---- both directions -------------------------------------------------------------------------------------------

size_t PortSet::rx_hindered(Instant now, RxFrame* out, size_t room) {
  if (down_) return lose_received(now, out, room);
  if (impaired_) return rx_impaired(now, out, room);
  const size_t n = rx_ports(now, out, room);
  if (capture_ != nullptr) capture_->received({out, n});
  return n;
}

size_t PortSet::rx_lanes_hindered(RxFrame* out, size_t room) {
  if (down_) return 0;
  const size_t n = lanes.rx_burst(out, room);
  received_ += n;
  if (capture_ != nullptr) capture_->received({out, n});
  return n;
}

// Null: a sender of a slow line has to wait.
std::byte* PortSet::begin_hindered(uint32_t link, size_t bytes) {
  std::byte* frame = is_impaired(link) && !impaired_->has_room() ? nullptr : begin_frame(ports_[link], link, bytes);
  if (recorder_ != nullptr) recorder_->began(frame != nullptr);
  return frame;
}

void PortSet::commit_hindered(uint32_t link, std::byte* frame, size_t bytes) {
  if (recorder_ != nullptr) recorder_->sent(link, {frame, bytes});
  if (!is_impaired(link)) return commit_to_port(link, frame, bytes);
  if (!impaired_->stage({link, frame, bytes})) abort_hindered(link, frame);
}

void PortSet::abort_hindered(uint32_t link, std::byte* frame) { abort_frame(ports_[link], link, frame); }

// The end of a turn.
void PortSet::flush_hindered(Instant now) {
  if (impaired_) flush_impaired(now);
  if (capture_ != nullptr) capture_->publish();
}

// ---- capture ---------------------------------------------------------------------------------------------------

void PortSet::set_capture(Capture* capture) {
  capture_ = capture;
  for (uint32_t link = 0; link < ports_.size(); ++link) set_way(link);
  set_down(down_);
}

void PortSet::forget_captured(uint32_t link) { capture_->forget(link); }

// A frame leaves.
void PortSet::commit_to_port(uint32_t link, std::byte* frame, size_t bytes) {
  if (capture_ != nullptr) capture_->sent(link, {frame, bytes});
  commit_frame(ports_[link], link, frame, bytes);
}

// ---- recording -------------------------------------------------------------------------------------------------

void PortSet::set_recorder(record::Recorder* recorder) {
  recorder_ = recorder;
  for (uint32_t link = 0; link < ports_.size(); ++link) set_way(link);
  set_down(down_);
}

// ---- a fault ---------------------------------------------------------------------------------------------------

std::byte* PortSet::refuse_while_down() {
  if (recorder_ != nullptr) recorder_->began(false);
  return nullptr;
}

void PortSet::lose_sent(uint32_t link, std::byte* frame, size_t bytes) {
  if (recorder_ != nullptr) recorder_->sent(link, {frame, bytes});
  ++lost_;
  abort_frame(kinds_[link], link, frame);
}

// What came to ports that do not hold it while they are down. None of it is handed on.
size_t PortSet::lose_received(Instant now, RxFrame* out, size_t room) {
  size_t n = rx_plugins(now, out, room);
  if (n < room && udp.is_open()) n += rx_udp(now, out + n, room - n);
  lost_ += n;
  if (capture_ != nullptr) capture_->dropped({out, n}, Counter::kInjectedFrames);
  if (udp.is_open()) udp.rx_release();
  for (const auto& plugin : plugins) plugin->rx_release();
  return 0;
}

// ---- impairments -----------------------------------------------------------------------------------------------

// Frames of other instances go through the impairments, those of our own come as always.
size_t PortSet::rx_impaired(Instant now, RxFrame* out, size_t room) {
  RxFrame in[kBurst];
  size_t came = shm.link_count() != 0 ? shm.rx_burst(in, kBurst) : 0;
  came += rx_plugins(now, in + came, kBurst - came);
  if (came < kBurst && udp_is_due(now)) came += rx_udp(now, in + came, kBurst - came);
  if (capture_ != nullptr) capture_->received({in, came});
  impaired_->receive(now, {in, came});
  release_wires();
  const size_t own = loopback_used_ ? loopback.rx_burst(out, room) : 0;
  if (capture_ != nullptr) capture_->received({out, own});
  received_ += came + own;
  return own + impaired_->take_received(now, out + own, room - own);
}

// What is under way when the port goes down leaves when it is up again.
void PortSet::flush_impaired(Instant now) {
  impaired_->enter(now, [this](const auto& staged) { abort_hindered(staged.link, staged.frame); });
  if (down_) return;
  const auto send = [this](uint32_t link, std::span<const std::byte> frame) { return leave_impaired(link, frame); };
  impaired_->leave(now, send);
}

// False: its port has no room. A frame whose link is gone is lost.
bool PortSet::leave_impaired(uint32_t link, std::span<const std::byte> frame) {
  const LinkKind port = kind_of(link);
  if (port == LinkKind::kNone) return true;
  std::byte* room = begin_frame(port, link, frame.size());
  if (room == nullptr) return false;
  std::memcpy(room, frame.data(), frame.size());
  commit_to_port(link, room, frame.size());
  return true;
}

}  // namespace ub
