// SPDX-License-Identifier: Apache-2.0
//
// Where one NIC is plugged into the switch (switch_medium.h). There are two kinds: interface_port.cc and memif_port.cc.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "tools/fabric/config.h"

namespace ub::fabric {

struct PortCounts {
  uint64_t unusable = 0;  // came too short for Ethernet, or longer than any packet
  uint64_t refused = 0;   // could not be sent on: by the kernel, or for want of room
  uint64_t no_link = 0;   // could not be sent on: nobody is at the other end
};

class SwitchPort {
 public:
  // A whole Ethernet frame, which is the receiver's for the call, and what is left to do in it (offload.h).
  using Receiver = std::function<void(std::span<const std::byte> frame, uint64_t tag)>;

  virtual ~SwitchPort() = default;

  // Is readable when a frame came. -1: nothing tells of frames, and somebody has to look (look_pause.h).
  virtual int fd() const = 0;
  // Takes what came, some dozens of frames at most. False: there was nothing.
  virtual bool receive(const Receiver&) = 0;
  // What cannot be sent now is counted and dropped.
  virtual void send(std::span<const std::byte> frame, uint64_t tag) = 0;
  virtual PortCounts counts() const = 0;
};

// Throw ToolError, which names the NIC and says what to do.
std::unique_ptr<SwitchPort> open_interface_port(const NicConfig& nic);
std::unique_ptr<SwitchPort> open_memif_port(const Config& config, size_t nic);

}  // namespace ub::fabric
