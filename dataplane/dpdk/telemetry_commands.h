// SPDX-License-Identifier: Apache-2.0
//
// Commands of DPDK's telemetry socket for the NICs of this process: "/softub/counters" and so on
// (dataplane/telemetry.h). DPDK has no way to take commands back, so they stay, and say nothing where there is no NIC.
// Of several NICs in one process the one that was opened first answers.
//
// Thread: any. Answers are made on threads of DPDK, one for each client of its socket.
#pragma once

#include "dataplane/plugin_port.h"

namespace ub::dpdk {

// A NIC that answers while this lives. EAL runs.
class TelemetryAnswers {
 public:
  explicit TelemetryAnswers(TelemetryAnswer answer);
  ~TelemetryAnswers();  // waits for an answer that is being made
  TelemetryAnswers(const TelemetryAnswers&) = delete;
  TelemetryAnswers& operator=(const TelemetryAnswers&) = delete;

 private:
  TelemetryAnswer answer_;  // empty: it has none
};

}  // namespace ub::dpdk
