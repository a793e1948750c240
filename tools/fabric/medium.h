// SPDX-License-Identifier: Apache-2.0
//
// What joins the NICs to the fabric: where their frames come and go. A medium also knows to which NIC a frame is
// addressed. There are two: udp_medium.cc and switch_medium.cc.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "tools/fabric/config.h"

namespace ub::fabric {

struct MediumCount {
  std::string name;
  uint64_t value = 0;
};

class Medium {
 public:
  // A frame of NIC `from` for NIC `to`, which is another one. It is a whole Ethernet frame, and the sink's for the
  // call. The tag is the medium's own; it wants it back with the frame.
  using Sink = std::function<void(size_t from, size_t to, std::span<const std::byte> frame, uint64_t tag)>;

  virtual ~Medium() = default;

  // Descriptors that are readable when something came.
  virtual std::vector<int> fds() const = 0;
  // Takes what came at one of them, no more than some dozens of frames.
  virtual void receive(int fd, const Sink& sink) = 0;
  // When look() is due, as some NICs cannot tell that a frame came; never: all can.
  virtual Instant next_look() const { return Instant::never(); }
  // Takes what those NICs sent.
  virtual void look(Instant, const Sink&) {}
  // Hands a frame to NIC `to`; what is refused is counted and dropped.
  virtual void send(size_t to, std::span<const std::byte> frame, uint64_t tag) = 0;

  virtual std::vector<MediumCount> counts() const = 0;
};

// Opens what leads to all NICs; throws ToolError, which names the NIC and says what to do.
std::unique_ptr<Medium> open_udp_medium(const Config& config);
std::unique_ptr<Medium> open_switch_medium(const Config& config);

}  // namespace ub::fabric
