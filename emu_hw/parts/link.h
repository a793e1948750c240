// SPDX-License-Identifier: Apache-2.0
//
// A link as the lumped fidelities see it: propagation, and the time that the bytes take. It is busy with no other
// packet, unless it is told to send one after the other.
#pragma once

#include <cstdint>
#include <optional>

#include "emu_hw/parts/part.h"
#include "emu_hw/parts/transmitter.h"

namespace ub::emu {

inline Span time_of_bytes(const Parameters& p, uint32_t bytes) {
  return {uint64_t{bytes} * 8 * 1000 / p.link_bw};  // bits at Gb/s, in ps
}
inline Span time_on_wire(const Parameters& p, uint32_t bytes) { return p.link_delay + time_of_bytes(p, bytes); }

class Link : public Part {
 public:
  using Part::Part;

  void send_one_after_the_other() { transmitter_.emplace(parameters_.link_bw); }

  Charge wire(Operation& op, uint32_t bytes) {
    const Time now = kernel_.now();
    const Span sending = transmitter_ ? transmitter_->send(now, bytes) - now : time_of_bytes(parameters_, bytes);
    return take(op, "link", parameters_.link_delay + sending);
  }

 private:
  std::optional<Transmitter> transmitter_;
};

}  // namespace ub::emu
