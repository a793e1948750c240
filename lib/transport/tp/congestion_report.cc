// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/congestion_report.h"

#include <algorithm>

#include "lib/transport/tp/paths.h"

namespace ub::tp {
namespace {

void describe_paths(const State& s, const Channel& ch, ChannelInfo* out) {
  uint32_t window = 0, rate = 0;
  for (const Path& p : paths_of(s, ch)) {
    if (!p.live) continue;
    window += p.room;
    rate += cc::rate_of(p.flow);
  }
  out->congestion_control = cc::name_of(path_at(s, ch, 0).flow.algorithm);
  out->window_packets = std::min(ch.agreed_window, window);
  out->rate_kbytes_per_second = rate;
  out->paths = static_cast<uint32_t>(paths_of(s, ch).size());
}

}  // namespace

void describe_congestion(const State& s, const Channel& ch, ChannelInfo* out) {
  if (ch.several_paths) return describe_paths(s, ch, out);
  out->congestion_control = cc::name_of(ch.flow.algorithm);
  out->window_packets = std::min<uint32_t>(ch.agreed_window, ch.flow.window_packets);
  out->rate_kbytes_per_second = cc::rate_of(ch.flow);
  out->paths = 1;
}

PathInfo info_of(const Channel& ch, const Path& p) {
  PathInfo info{};
  info.local = p.local;
  info.remote = p.remote;
  info.live = p.live;
  info.in_flight = p.in_flight;
  info.window_packets = std::min<uint32_t>(ch.agreed_window, p.flow.window_packets);
  info.rate_kbytes_per_second = cc::rate_of(p.flow);
  info.smoothed_rtt = p.round_trip.smoothed;
  info.tx_packets = p.tx_packets;
  info.rx_packets = p.rx_packets;
  info.lost = p.lost;
  info.marks = p.marks;
  info.deaths = p.deaths;
  return info;
}

}  // namespace ub::tp
