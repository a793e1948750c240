// SPDX-License-Identifier: Apache-2.0
// paths.h - an instance whose channels may have several paths.
#pragma once

#include <vector>

#include "lib/transport/tp/paths.h"
#include "tests/unit/setup/instance.h"

namespace ub::setup {

constexpr LinkConfig kWire{.mtu = 4096};
inline const wire::Endpoint kOtherHost{wire::IpAddress::from_v4(0x0A000009), wire::kUbUdpPort};

inline CoreConfig several(uint32_t most_paths = 4) {
  CoreConfig c = Instance::config();
  c.most_paths = most_paths;
  c.path_channels = 2;
  return c;
}

// Its peer may have several paths, too.
struct Paths : Instance {
  explicit Paths(const CoreConfig& c = several(), const LinkConfig& wire = kWire) : Instance(wire, c) {}

  // A further source port of ours.
  static wire::Endpoint port(uint16_t n) {
    return {wire::IpAddress::from_v4(0x0A000001), static_cast<uint16_t>(30000 + n)};
  }
  void add(const ExtraPath& path) { s->extra_paths[s->extra_path_count++] = path; }
  void add_ports(uint16_t ports) {
    for (uint16_t n = 1; n <= ports; ++n) add({{}, port(n), {}});
  }
  ControlRecord of(uint32_t channel, RecordType type) const {
    ControlRecord r = reply_of_peer(channel, type);
    r.several_paths = true;
    return r;
  }
  // Our REQ is answered. What leaves then stays in the outbox.
  uint32_t open() {
    const uint32_t channel = connect();
    sent();
    on_record(*s, from, of(channel, RecordType::kRep));
    EXPECT_TRUE(ch(channel).is_up());
    return channel;
  }
  std::vector<OutRecord> pings() {
    std::vector<OutRecord> all = sent();
    std::erase_if(all, [](const OutRecord& out) { return out.record.type != RecordType::kPing; });
    return all;
  }
  Arrival over(const wire::Endpoint& local, const wire::Endpoint& remote) const { return {from.link, local, remote}; }
  Arrival over(const OutRecord& out) const { return over(out.local, out.remote); }
  // The peer's PONG to this PING.
  ControlRecord answer_to(const OutRecord& ping, RecordReason reason = RecordReason::kNone) const {
    ControlRecord r = of(channel_of_tpn(*s, ping.record.sender_tpn), RecordType::kPong);
    r.initial_psn = ping.record.initial_psn;
    r.reason = reason;
    return r;
  }
  void answer(const OutRecord& ping, RecordReason reason = RecordReason::kNone) {
    on_record(*s, over(ping), answer_to(ping, reason));
  }
  tp::Path& path(uint32_t channel, uint32_t i) { return tp::path_at(*s, ch(channel), i); }
  size_t paths(uint32_t channel) { return ch(channel).several_paths ? tp::paths_of(*s, ch(channel)).size() : 1; }
  // The next PING of a channel whose timer fires as often as it wants.
  OutRecord next_ping(uint32_t channel) {
    for (int n = 0; n < 1000; ++n) {
      timer(channel);
      const std::vector<OutRecord> all = pings();
      if (!all.empty()) return all[0];
    }
    ADD_FAILURE() << "it asks no more";
    return {};
  }
};

}  // namespace ub::setup
