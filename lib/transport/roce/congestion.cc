// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/congestion.h"

#include <algorithm>

#include "lib/transport/cc/rate.h"
#include "lib/transport/roce/state.h"

namespace ub::roce {
namespace {

cc::Path path_of(const CoreState& s, const Qp& qp) {
  constexpr uint32_t kMostHeaderBytes = 64;
  const uint32_t bytes = qp.headers.size + kMostHeaderBytes + mtu_of_code(qp.path_mtu);
  return {.most_packets = s.config.roce.window_packets,
          .packet_bytes = static_cast<uint16_t>(bytes),
          .line_kbytes_per_second = cc::kbytes_per_second(s.config.line_bytes_per_second),
          .in_flight = qp.req.sent_end.distance(qp.req.oldest),
          .constants = &s.config.congestion};
}

/// Copies the verdict to where packets look, and sets the timer for when the flow wants to be called again. A queue
/// pair that may now send more than before gets a turn.
void heed(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  UB_DCHECK(qp.flow.window_packets != 0);
  const uint16_t window_before = qp.req.window;
  qp.req.window = std::min(s.config.roce.window_packets, qp.flow.window_packets);
  if (qp.req.window > window_before) activate(r, index);
  arm_timer(s, r, index);
}

cc::Algorithm algorithm_for(const CoreConfig& config) {
  if (config.roce.dcqcn) return cc::Algorithm::kDcqcn;
  return config.listen_to_network ? cc::Algorithm::kListener : cc::Algorithm::kNone;
}

}  // namespace

void begin_flow(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  cc::begin(qp.flow, r.send_times, algorithm_for(s.config), path_of(s, qp), qp.req.oldest);
  heed(s, r, index);
}

void end_flow(State& r, Qp& qp) { cc::end(qp.flow, r.send_times); }

void tell_sent(CoreState& s, State& r, uint32_t index, Psn psn, uint32_t bytes, bool again) {
  Qp& qp = r.qps[index];
  if (qp.type == QpType::kRc) {
    cc::sent(qp.flow, r.send_times, path_of(s, qp), s.now, psn, bytes, {.again = again});
  } else {
    cc::sent(qp.flow, path_of(s, qp), s.now, bytes);
  }
  heed(s, r, index);
}

void tell_answered(CoreState& s, State& r, uint32_t index, uint32_t bytes) {
  Qp& qp = r.qps[index];
  cc::sent(qp.flow, path_of(s, qp), s.now, bytes);
  heed(s, r, index);
}

void tell_progress(CoreState& s, State& r, uint32_t index, Psn oldest, const Progress& progress) {
  Qp& qp = r.qps[index];
  const cc::Path path = path_of(s, qp);
  cc::acknowledged(qp.flow, r.send_times, path, s.now, oldest, qp.req.oldest);
  if (progress.gap) cc::lost(qp.flow, path, s.now, {qp.req.oldest, qp.req.sent_end});
  heed(s, r, index);
}

void tell_timed_out(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  cc::timed_out(qp.flow, path_of(s, qp), s.now, qp.req.sent_end);
  heed(s, r, index);
}

void tell_marked(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  cc::marked(qp.flow, path_of(s, qp), s.now, {});
  heed(s, r, index);
}

void look_at_flow(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  cc::timer(qp.flow, path_of(s, qp), s.now);
  heed(s, r, index);
}

}  // namespace ub::roce
