// SPDX-License-Identifier: Apache-2.0
//
// urma_admin telemetry and urma_admin latency: what an instance answers at its door (dataplane/telemetry.h).
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "dataplane/look_door.h"
#include "tools/admin/commands.h"
#include "tools/admin/table.h"
#include "tools/admin/visit.h"

namespace ub::tools {
namespace {

using Json = nlohmann::ordered_json;

// Nothing, after a message: there is no answer.
std::optional<Json> answer_of(Visit& visit, const std::string& request) {
  const std::string line = "telemetry " + request;
  if (line.size() > LookDoor::kMostRequestBytes) {
    fmt::print(stderr, "urma_admin: the command is too long: {} bytes at most\n", LookDoor::kMostRequestBytes);
    return std::nullopt;
  }
  const std::optional<std::string> answer = visit.ask(line);
  if (!answer) return std::nullopt;
  return Json::parse(answer->substr(3));
}

void print_misses(const std::string& stage, const Json& of) {
  for (const auto& [name, what] : {std::pair{"no_start", "ended, and nobody knows when they began"},
                                   {"forgotten", "began, and gave way to others in a full table"},
                                   {"unseen", "ended while nobody could see when"}}) {
    if (of.at(name) != 0) fmt::print("{}: {} {}\n", stage, of.at(name).get<uint64_t>(), what);
  }
}

void print_latencies(const Json& latency) {
  Json rows = Json::array();
  for (const auto& [stage, of] : latency.at("stages").items()) {
    for (const auto& [traffic, figures] : of.at("classes").items()) {
      Json row = {{"stage", stage}, {"class", traffic}};
      row.update(figures);
      rows.push_back(row);
    }
  }
  for (const std::string& line : table_lines(rows)) fmt::print("{}\n", line);
  for (const auto& [stage, of] : latency.at("stages").items()) print_misses(stage, of);
  if (latency.at("on") == 0) fmt::print("latencies are not measured; `latency on` begins\n");
}

}  // namespace

int ask_telemetry(const InstanceSelection& selection, const std::string& request) {
  Visit visit;
  if (!visit.open(selection)) return 1;
  const std::optional<Json> answer = answer_of(visit, request);
  if (!answer) return 1;
  fmt::print("{}\n", answer->dump(2));
  return 0;
}

int measure_latency(const InstanceSelection& selection, const std::string& verb, bool json) {
  Visit visit;
  if (!visit.open(selection)) return 1;
  if (verb != "show") {
    const std::optional<std::string> answer = visit.ask("latency " + verb);
    if (!answer) return 1;
    if (!json) {
      fmt::print("{}: {}\n", visit.instance(), answer->substr(3));
      return 0;
    }
  }
  const std::optional<Json> answer = answer_of(visit, "/softub/latency");
  if (!answer) return 1;
  const Json& latency = answer->at("/softub/latency");
  if (json) {
    fmt::print("{}\n", latency.dump(2));
  } else {
    print_latencies(latency);
  }
  return 0;
}

}  // namespace ub::tools
