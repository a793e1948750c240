// SPDX-License-Identifier: Apache-2.0
#include "dataplane/congestion_settings.h"

#include <utility>

namespace ub {
namespace {

constexpr uint32_t kKbytesOfMegabit = 125;

cc::Control control_of(const std::string& algorithm) {
  constexpr std::pair<const char*, cc::Control> kNames[] = {{"caqm", cc::Control::kCaqm},
                                                            {"ldcp", cc::Control::kLdcp},
                                                            {"dcqcn", cc::Control::kDcqcn},
                                                            {"swift", cc::Control::kSwift}};
  for (const auto& [name, control] : kNames) {
    if (algorithm == name) return control;
  }
  return cc::Control::kNone;
}

// The ranges of the keys lie within those of the constants.
template <class To>
constexpr To narrow(uint32_t value) {
  return static_cast<To>(value);
}

Duration duration_of(std::chrono::nanoseconds value) { return nanoseconds(value.count()); }

cc::DcqcnConstants dcqcn_of(const CongestionKeys& k) {
  return {.gain_shift = narrow<uint8_t>(k.dcqcn_gain_shift),
          .fast_steps = narrow<uint8_t>(k.dcqcn_fast_steps),
          .bytes_per_step = k.dcqcn_step_bytes,
          .step = duration_of(k.dcqcn_step),
          .least_kbytes_per_second = k.dcqcn_least_rate * kKbytesOfMegabit,
          .add_kbytes_per_second = k.dcqcn_add * kKbytesOfMegabit,
          .add_much_kbytes_per_second = k.dcqcn_add_much * kKbytesOfMegabit,
          .notification_pause = duration_of(k.dcqcn_pause)};
}

cc::CaqmConstants caqm_of(const CongestionKeys& k) {
  return {.initial_packets = narrow<uint16_t>(k.caqm_initial_packets),
          .increase_percent = narrow<uint8_t>(k.caqm_increase),
          .decrease_percent = narrow<uint8_t>(k.caqm_decrease),
          .calm_round_trips = narrow<uint8_t>(k.caqm_calm_round_trips)};
}

cc::LdcpConstants ldcp_of(const CongestionKeys& k) {
  return {.initial_packets = narrow<uint16_t>(k.ldcp_initial_packets),
          .gain_shift = narrow<uint8_t>(k.ldcp_gain_shift)};
}

cc::SwiftConstants swift_of(const CongestionKeys& k) {
  return {.initial_packets = narrow<uint16_t>(k.swift_initial_packets),
          .base_target = duration_of(k.swift_base_target),
          .most_scaling = duration_of(k.swift_scaling),
          .least_scaled_packets = narrow<uint16_t>(k.swift_least_scaled),
          .most_scaled_packets = narrow<uint16_t>(k.swift_most_scaled),
          .increase_percent = narrow<uint8_t>(k.swift_increase),
          .decrease_percent = narrow<uint8_t>(k.swift_decrease),
          .most_decrease_percent = narrow<uint8_t>(k.swift_most_decrease)};
}

cc::LossWindowConstants loss_window_of(const CongestionKeys& k) {
  return {.initial_packets = narrow<uint16_t>(k.loss_initial_packets),
          .least_packets = narrow<uint16_t>(k.loss_least_packets)};
}

}  // namespace

void set_congestion(const CongestionKeys& keys, CoreConfig* core) {
  core->congestion_control = control_of(keys.algorithm);
  core->line_bytes_per_second = uint64_t{keys.line_rate} * kKbytesOfMegabit * 1000;
  core->congestion = {.dcqcn = dcqcn_of(keys),
                      .caqm = caqm_of(keys),
                      .ldcp = ldcp_of(keys),
                      .swift = swift_of(keys),
                      .loss_window = loss_window_of(keys)};
}

void set_classes(const PortConfig& keys, CoreConfig* core) {
  constexpr uint32_t kThatOfAll = 64;
  core->dscp = narrow<uint8_t>(keys.dscp);
  core->bulk_dscp = narrow<uint8_t>(keys.bulk_dscp == kThatOfAll ? keys.dscp : keys.bulk_dscp);
}

bool reads_marks(const Config& config) {
  return config.roce.dcqcn || (config.congestion.algorithm != "none" && config.congestion.algorithm != "swift");
}

}  // namespace ub
