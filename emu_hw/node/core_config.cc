// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/core_config.h"

#include "emu_hw/node/node.h"

namespace ub::emu {
namespace {

Duration whole_ns(Span span) { return nanoseconds(static_cast<int64_t>(span.ps / 1000)); }

}  // namespace

CoreConfig core_config(const Parameters& p, uint32_t number) {
  CoreConfig config = plain_config(number, 1);
  config.go_back_n = p.ub_recovery == Recovery::kGoBackN;
  config.rto_min = whole_ns(p.rto_min);
  config.rto_max = whole_ns(p.rto_max);
  config.rtt_multiplier = static_cast<uint32_t>(p.rto_round_trips);
  config.roce.dcqcn = p.roce_congestion == CongestionControl::kDcqcn;
  config.line_bytes_per_second = p.link_bw * 125'000'000;
  config.reorder_packets = static_cast<uint32_t>(p.reorder_packets);
  return config;
}

}  // namespace ub::emu
