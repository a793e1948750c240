// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/core_config.h"

#include "emu_hw/node/node.h"

namespace ub::emu {
namespace {

Duration whole_ns(Span span) { return nanoseconds(static_cast<int64_t>(span.ps / 1000)); }
uint32_t kbytes_per_second(uint64_t megabits) { return static_cast<uint32_t>(megabits * 125); }

}  // namespace

CoreConfig core_config(const Parameters& p, uint32_t number) {
  CoreConfig config = plain_config(number, 1);
  config.go_back_n = p.ub_recovery == Recovery::kGoBackN;
  config.rto_min = whole_ns(p.rto_min);
  config.rto_max = whole_ns(p.rto_max);
  config.rtt_multiplier = static_cast<uint32_t>(p.rto_round_trips);
  config.roce.dcqcn = p.roce_congestion == CongestionControl::kDcqcn;
  config.line_bytes_per_second = p.link_bw * 125'000'000;
  cc::DcqcnConstants& dcqcn = config.congestion.dcqcn;
  dcqcn.gain_shift = static_cast<uint8_t>(p.dcqcn_gain_shift);
  dcqcn.fast_steps = static_cast<uint8_t>(p.dcqcn_fast_steps);
  dcqcn.bytes_per_step = static_cast<uint32_t>(p.dcqcn_step_bytes);
  dcqcn.step = whole_ns(p.dcqcn_step);
  dcqcn.least_kbytes_per_second = kbytes_per_second(p.dcqcn_least);
  dcqcn.add_kbytes_per_second = kbytes_per_second(p.dcqcn_add);
  dcqcn.add_much_kbytes_per_second = kbytes_per_second(p.dcqcn_add_much);
  dcqcn.notification_pause = whole_ns(p.dcqcn_pause);
  config.congestion.loss_window = {static_cast<uint16_t>(p.loss_window_initial),
                                   static_cast<uint16_t>(p.loss_window_least)};
  config.reorder_packets = static_cast<uint32_t>(p.reorder_packets);
  return config;
}

// It counts in nanoseconds, and what it sends again after 0 it sends for ever.
std::string refusal_of_core_config(const Parameters& p) {
  if (p.rto_min < whole_nanoseconds(1)) return "rto_min: give at least 1 ns";
  if (p.rto_max < p.rto_min) return "rto_max: is less than rto_min; give at least as much";
  return "";
}

}  // namespace ub::emu
