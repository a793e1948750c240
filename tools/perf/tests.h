// SPDX-License-Identifier: Apache-2.0
//
// The measurements for one message size. A side may be active (it starts operations), passive (it is the
// target), or both (-b).
#pragma once

#include <softub_aperture.h>

#include "tools/common/peer.h"
#include "tools/perf/endpoint.h"
#include "tools/perf/options.h"

namespace ub::tools {

// The active side's row of the table: see report.h. Afterwards all requests have ended.
// `trace_times`: where each time goes besides; null: nowhere.
Json measure_latency(const Options&, Endpoint&, Peer&, LatestTimes* trace_times);
Json measure_bandwidth(const Options&, Endpoint&, Peer&);

// Loads, stores and windows, whose target is as passive as that of READs and WRITEs.
Json measure_aperture(const Options&, Endpoint&);
Json measure_window(const Options&, Endpoint&);
// The path that is asked for, and the name of the one that serves.
softub_path_t wanted_path(const Options&);
std::string serving_path(const Options&, Endpoint&);

// Being a target, until the peer's "done" waits (it is left to the caller) or, if the mode is to block, at
// once.
void answer_latency(const Options&, Endpoint&, Peer&);
void answer_bandwidth(const Options&, Endpoint&, Peer&);
// send_bw: the peer has sent so many messages in all; waits for the rest of them.
void receive_rest(Endpoint&, Peer&, uint64_t total);

}  // namespace ub::tools
