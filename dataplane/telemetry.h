// SPDX-License-Identifier: Apache-2.0
//
// What a NIC says of itself in JSON, by commands as DPDK's telemetry has them: "/softub/counters", or with a parameter,
// "/softub/channels,FROM". An answer is an object with one member, which is named like the command. DPDK's socket and
// the NIC's own (look_door.h) give the same ones. There are only objects, arrays, texts and unsigned integers in it,
// since DPDK knows no others, and an answer has at most kMostTelemetryBytes.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/stats_page.h"

namespace ub {

constexpr size_t kMostTelemetryBytes = 16 * 1024 - 256;

struct TelemetryCommand {
  const char* path;
  const char* help;
};
// All of them, sorted; the last has null pointers.
const TelemetryCommand* telemetry_commands();

// Nothing and `*why`: there is no such command, or its parameter is none. "/" lists all.
std::optional<std::string> answer_telemetry(const StatsReport&, std::string_view request, std::string* why);

}  // namespace ub
