// SPDX-License-Identifier: Apache-2.0
//
// What joins the NICs to the fabric: sockets through which their frames come and go. A medium also knows to which NIC a
// frame is addressed. There are two: udp_medium.cc and ethernet_medium.cc.
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
  // Hands a frame to NIC `to`; what its socket refuses is counted and dropped.
  virtual void send(size_t to, std::span<const std::byte> frame, uint64_t tag) = 0;

  virtual std::vector<MediumCount> counts() const = 0;
};

// Opens the sockets of all NICs; throws ToolError, which names the NIC and says what to do.
std::unique_ptr<Medium> open_udp_medium(const Config& config);
std::unique_ptr<Medium> open_ethernet_medium(const Config& config);

}  // namespace ub::fabric
