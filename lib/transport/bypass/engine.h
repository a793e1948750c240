// SPDX-License-Identifier: Apache-2.0
//
// TP bypass as an engine of a Core (engine.h): loads and stores of remote memory without channel, number or record.
// Requests come by lanes (lib/ipc/lane.h). It sends nothing but answers, at once, so it is never polled.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/transport/bypass/server.h"
#include "lib/transport/core_state.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/network_header.h"

namespace ub::bypass {

template <class Host>
class Engine {
 public:
  struct State {};  // it keeps nothing
  static void lay_out(CoreState&, State&, Arena&) {}
  Engine(CoreState& s, State&, Host& host) : s_(s), server_(s, host) {}

  // By a wire it would need a requester at the other end, which there is not yet.
  bool on_link_frame(uint32_t, std::span<const std::byte> eth_frame) {
    if (!wire::is_bypass(eth_frame)) return false;
    s_.drop(Counter::kRxDropNoBypass);
    return true;
  }
  void on_lane_frame(uint32_t link, std::span<const std::byte> eth_frame) {
    wire::PlainLoad load;
    if (wire::read_plain_load(eth_frame, load)) [[likely]] {
      server_.on_plain_load(link, load);
    } else {
      on_other(link, eth_frame);
    }
  }

  bool claims(const wire::NetHeader&) const { return false; }
  void on_packet(uint32_t, const wire::NetHeader&) {}
  bool on_posted(ObjectKind, uint32_t) { return false; }
  bool on_copy_done(CopyTag, bool) { return false; }
  bool on_gathered(const HeldFrame&) { return false; }
  bool on_timer(uint32_t) { return false; }
  bool has_packets(Acks) const { return false; }
  size_t poll_packets(size_t, Acks) { return 0; }
  void link_down(uint32_t) {}
  void close_owner(Owner) {}
  void close() {}

 private:
  [[gnu::noinline]] void on_other(uint32_t link, std::span<const std::byte> eth_frame) {
    wire::BypassPacket packet;
    const wire::Drop drop = wire::parse_bypass(eth_frame, packet);
    if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
    if (packet.is_response) return s_.drop(Counter::kRxDropNoBypass);
    server_.on_request(link, packet);
  }

  CoreState& s_;
  Server<Host> server_;
};

}  // namespace ub::bypass
