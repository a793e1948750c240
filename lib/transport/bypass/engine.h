// SPDX-License-Identifier: Apache-2.0
//
// TP bypass as an engine of a Core (engine.h): loads and stores of remote memory without channel, number or record at
// the target. Requests come by lanes (lib/ipc/lane.h), whose programs keep their own books, and by links that carry
// frames of TP bypass (LinkConfig::bypass), where SCNA and DCNA name a pair of channel ends (pair.h) and this engine
// has a requester, too.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/transport/bypass/asked.h"
#include "lib/transport/bypass/owed_answers.h"
#include "lib/transport/bypass/pair.h"
#include "lib/transport/bypass/requester.h"
#include "lib/transport/bypass/server.h"
#include "lib/transport/core_state.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/network_header.h"

namespace ub::bypass {

template <class Host>
class Engine {
 public:
  struct State {
    AskedState asked;
    OwedAnswers owed;
  };
  static void lay_out(CoreState& s, State& state, Arena& arena) { lay_out_asked(s, state.asked, arena); }
  Engine(CoreState& s, State& state, Host& host)
      : s_(s), state_(state), host_(host), server_(s, host, state.owed), requester_(s, state.asked, host) {}

  Requester<Host>& requester() { return requester_; }
  // For tools and tests.
  State& state() { return state_; }
  const State& state() const { return state_; }

  bool on_link_frame(uint32_t link, std::span<const std::byte> eth_frame) {
    if (!wire::is_bypass(eth_frame)) return false;
    on_frame(link, eth_frame);
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
  bool on_timer(uint32_t timer) {
    if (!state_.asked.timers.contains(timer)) return false;
    requester_.on_timer(state_.asked.timers.index_of(timer) + 1);
    return true;
  }
  bool has_packets(Acks) const { return !state_.owed.empty(); }
  size_t poll_packets(size_t budget, Acks) {
    size_t sent = 0;
    for (uint32_t left = state_.owed.size(); left != 0 && sent < budget; --left) {
      const OwedAnswer answer = state_.owed.pop();
      server_.send_owed(answer) ? static_cast<void>(++sent) : state_.owed.push(answer);
    }
    return sent;
  }
  void link_down(uint32_t link) {
    state_.owed.drop(link);
    requester_.break_those([=](const Handle& h) { return h.link == link; });
  }
  void close_owner(Owner owner) { requester_.close_those(owner); }
  void close() {
    requester_.break_those([](const Handle&) { return true; });
  }

 private:
  [[gnu::noinline]] void on_other(uint32_t link, std::span<const std::byte> eth_frame) {
    wire::BypassPacket packet;
    const wire::Drop drop = wire::parse_bypass(eth_frame, packet);
    if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
    if (packet.is_response) return s_.drop(Counter::kRxDropNoBypass);
    server_.on_request(link, packet, false);
  }

  // A frame that came by a wire.
  void on_frame(uint32_t link, std::span<const std::byte> eth_frame) {
    if (!s_.links[link].config.bypass) return s_.drop(Counter::kRxDropNoBypass);
    wire::BypassPacket packet;
    const wire::Drop drop = wire::parse_bypass(eth_frame, packet);
    if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
    const uint32_t channel = channel_of_pair(s_, link, packet.route.dcna, packet.route.scna);
    if (channel == 0) return s_.drop(Counter::kRxDropNoBypass);
    // Ports put real Ethernet addresses in place of those that stand in, and take only the latter from us.
    packet.route.to = wire::stand_in_mac(s_.channels[channel].local_endpoint);
    packet.route.from = wire::stand_in_mac(s_.channels[channel].remote_endpoint);
    packet.is_response ? requester_.on_answer(link, packet) : server_.on_request(link, packet, true);
  }

  CoreState& s_;
  State& state_;
  Host& host_;
  Server<Host> server_;
  Requester<Host> requester_;
};

}  // namespace ub::bypass
