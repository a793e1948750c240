// SPDX-License-Identifier: Apache-2.0
//
// Packet captures that tools ask for (docs/capture.md).
#include <algorithm>
#include <optional>
#include <utility>

#include "dataplane/nic.h"
#include "dataplane/words.h"

namespace ub {
namespace {

constexpr std::string_view kUsage =
    "requests are: pcap on BYTES FILES SNAP [FILTER] file=PATH, pcap status, pcap off";

// "BYTES FILES SNAP [FILTER] file=PATH": what CaptureTarget has, and the path is the rest of the line.
bool read_wish(std::string_view text, CaptureTarget* target, CaptureFilter* filter, std::string* why) {
  *why = kUsage;
  if (!read_number(take_part(&text, ' '), &target->most_bytes)) return false;
  if (!read_number(take_part(&text, ' '), &target->files)) return false;
  if (!read_number(take_part(&text, ' '), &target->snap)) return false;
  std::string terms;
  while (!text.empty() && !text.starts_with("file=")) terms += std::string(take_part(&text, ' ')) + " ";
  target->path = text.substr(std::min<size_t>(5, text.size()));
  if (!target->path.starts_with('/')) {
    *why = "the path of a capture has to be absolute";
    return false;
  }
  if (target->most_bytes != 0 && target->most_bytes < CaptureTarget::kLeastBytes) {
    *why = "a file of a capture has at least " + std::to_string(CaptureTarget::kLeastBytes) + " bytes";
    return false;
  }
  if (target->files != 0 && target->most_bytes == 0) {
    *why = "with several files there has to be a limit of their size";
    return false;
  }
  return filter->parse(terms, why);
}

}  // namespace

// Owned. "ok ...", or what is wrong.
std::string Nic::answer_capture(std::string_view request) {
  const std::string_view verb = take_part(&request, ' ');
  std::string why;
  if (capture_ != nullptr && !is_capturing()) capture_->free_memory();
  if (verb == "on") {
    if (!begin_capture(request, &why)) return why;
  } else if (verb == "off") {
    if (capture_ == nullptr) return "there is no capture";
    end_capture();
  } else if (verb != "status") {
    return std::string(kUsage);
  }
  return capture_ != nullptr ? capture_->status() : "ok there is no capture";
}

bool Nic::begin_capture(std::string_view wish, std::string* why) {
  CaptureTarget target;
  CaptureFilter filter;
  if (!read_wish(wish, &target, &filter, why)) return false;
  if (capture_ != nullptr && !capture_->has_ended()) {
    *why = "there is a capture already, in " + capture_->path() + "; `urma_admin pcap off` ends it";
    return false;
  }
  end_capture();
  // Not only on the CPU that our own thread has chosen, or that a daemon's worker was given.
  target.cpus = clients_ != nullptr ? worker_cpus_ : std::optional(helper_cpus_);
  auto capture = std::make_unique<Capture>(std::move(filter), std::move(target), ports_.impaired() != nullptr,
                                           worker_->clock(), [this](uint32_t link) { return text_of_link(link); });
  if (!capture->start(why)) return false;
  capture_ = std::move(capture);
  ports_.set_capture(capture_.get());
  watch(*capture_);
  listen(*capture_, true);
  return true;
}

// Owned, not within a turn. What it has is still told.
void Nic::end_capture() {
  if (!is_capturing()) return;
  ports_.set_capture(nullptr);
  unwatch(*capture_);
  capture_->stop();
  capture_->free_memory();
  listen(*capture_, false);
}

bool Nic::is_capturing() const { return ports_.capture() != nullptr; }

Capture::LinkText Nic::text_of_link(uint32_t link) const {
  const LinkKind kind = ports_.kind_of(link);
  const auto text = [&](const char* port, const std::string& description) {
    return Capture::LinkText{std::string(port) + "." + std::to_string(link), description,
                             PortSet::can_be_impaired(kind)};
  };
  switch (kind) {
    case LinkKind::kShm:
      return text("shm", "shared memory, to " + ports_.shm.peer_of(link));
    case LinkKind::kUdp:
      return text("udp", "UDP sockets of port " + std::to_string(udp_port_));
    case LinkKind::kPlugin: {
      const auto found = std::find(dpdk_links_.begin(), dpdk_links_.end(), link);
      const auto index = static_cast<size_t>(found - dpdk_links_.begin());
      return text("dpdk", index < dpdk_ports_.size() ? "DPDK port " + dpdk_ports_[index].device : "DPDK port");
    }
    case LinkKind::kLoopback:
      return text("loopback", "frames of this NIC to itself");
    case LinkKind::kLane:
      return text("lane", "loads and stores of a program of this host");
    default:
      return text("link", "a link that is gone");
  }
}

}  // namespace ub
