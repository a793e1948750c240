// SPDX-License-Identifier: Apache-2.0
//
// What an instance can have heard of its network: which packets of each channel left, which of them once, and which met
// congestion. Told by the network, that is by frames, and compared in at_rest.cc with what flows noted (cc/listener.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lib/transport/wire/rtp_header.h"
#include "tests/sim/read_network.h"

namespace ub::sim {

class Departures {
 public:
  struct OfChannel {
    uint32_t once = 0;    // packets that left once, by their numbers
    bool marked = false;  // one met congestion
    std::unordered_map<uint32_t, bool> again;
  };

  // Is it a packet that left before?
  bool left(uint32_t node, uint32_t epoch, std::span<const std::byte> frame) {
    uint32_t psn;
    OfChannel* c = find(node, epoch, frame, &psn);
    if (c == nullptr) return false;
    const auto [packet, first] = c->again.try_emplace(psn, false);
    if (first) ++c->once;
    if (first) return false;
    if (!std::exchange(packet->second, true)) --c->once;
    return true;
  }
  void marked(uint32_t node, uint32_t epoch, std::span<const std::byte> frame) {
    marked_[{node, epoch}] = true;
    uint32_t psn;
    if (OfChannel* c = find(node, epoch, frame, &psn)) c->marked = true;
  }
  const OfChannel& of_channel(uint32_t node, uint32_t epoch, uint32_t tpn) { return channels_[{node, epoch, tpn}]; }
  // Did any packet of that instance meet congestion, of UB or RoCE?
  bool any_marked(uint32_t node, uint32_t epoch) { return marked_[{node, epoch}]; }

 private:
  // Null: no data of a channel.
  OfChannel* find(uint32_t node, uint32_t epoch, std::span<const std::byte> frame, uint32_t* psn) {
    wire::NetHeader net;
    wire::RtpHeader rtp;
    if (!read_network(frame, net) || net.dst.port == kRocePort) return nullptr;
    if (wire::RtpHeader::read(net.tph, net.tp_size(), rtp) != wire::Drop::kNone || !rtp.is_data()) return nullptr;
    *psn = rtp.psn.value();
    return &channels_[{node, epoch, rtp.src_tpn}];
  }

  static constexpr uint16_t kRocePort = 4791;

  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, OfChannel> channels_;
  std::map<std::pair<uint32_t, uint32_t>, bool> marked_;
};

}  // namespace ub::sim
