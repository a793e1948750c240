// SPDX-License-Identifier: Apache-2.0
//
// urma_ycsb: the YCSB benchmark against one store. Properties become a workload (spec.h) and settings; threads
// (client.h) draw operations (requests.h), keep a window of them in flight at a store (stores/), and measure
// (latencies.h).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/common/json_file.h"
#include "tools/common/tool_error.h"
#include "tools/ycsb/options.h"
#include "tools/ycsb/phase.h"
#include "tools/ycsb/report.h"
#include "tools/ycsb/stores/backends.h"
#include "tools/ycsb/stores/tcp_server.h"

namespace ub::ycsb {
namespace {

using tools::kExitUsage;
using tools::ToolError;

// What the workload wants and the store does not have.
void check_store(const BackendEntry& store, const Options& o, const Spec& spec, const Settings& settings) {
  if (o.run && !store.scans && spec.proportion(Operation::kScan) > 0) {
    throw ToolError(kExitUsage, fmt::format("-db {} cannot scan: {} must be 0", store.name,
                                            o.properties.describe("scanproportion")));
  }
  if (o.run && spec.operation_count == 0 && settings.max_seconds == 0) {
    throw ToolError(kExitUsage, "say when -run ends: by operationcount, maxexecutiontime (seconds), or both");
  }
  if (!store.single_fields && spec.field_count > 1 && !(spec.read_all_fields && spec.write_all_fields)) {
    fmt::print(stderr, "urma_ycsb: -db {} has whole records alone: all fields are read and written\n", store.name);
  }
}

// Properties of other stores may stand in the same file.
bool is_of_a_store(const std::string& property) {
  const std::string prefix = property.substr(0, property.find('.'));
  return std::any_of(std::begin(kBackends), std::end(kBackends),
                     [&](const BackendEntry& entry) { return prefix == entry.name; });
}

void tell_unread(const Options& o) {
  for (const std::string& name : o.properties.unread()) {
    if (is_of_a_store(name)) continue;
    fmt::print(stderr, "urma_ycsb: {} means nothing here and is ignored\n", o.properties.describe(name));
  }
}

void tell_problems(const PhaseResult& result) {
  if (!result.first_error.empty()) fmt::print(stderr, "urma_ycsb: requests failed: {}\n", result.first_error);
  if (result.wrong > 0) {
    fmt::print(stderr, "urma_ycsb: {} records have wrong data, the first of them {}\n", result.wrong,
               result.first_wrong_key);
  }
}

int run(const Options& o) {
  if (o.serve_tcp) {
    serve_tcp(*o.serve_tcp, o.serve_busy ? Wait::kBusy : Wait::kBlock);
    return tools::kExitOk;
  }
  const BackendEntry& store = find_backend(o.store);
  const Spec spec = read_spec(o.properties);
  const Settings settings = read_settings(o.properties);
  check_store(store, o, spec, settings);
  std::optional<tools::JsonFile> json_file;
  if (!o.json_file.empty()) json_file.emplace(o.json_file);
  const std::unique_ptr<Backend> backend = store.open(o.properties, spec);
  tell_unread(o);

  const TimeBase time;
  nlohmann::json document = {{"tool", "urma_ycsb"},
                             {"version", UB_VERSION},
                             {"db", store.name},
                             {"threads", settings.threads},
                             {"window", settings.window},
                             {"target", settings.target},
                             {"properties", o.properties.values()},
                             {"phases", nlohmann::json::array()}};
  int exit_code = tools::kExitOk;
  for (const bool load : {true, false}) {
    if (!(load ? o.load : o.run) || tools::stop_requested) continue;
    const PhaseResult result = run_phase(spec, settings, {load, !store.single_fields, o.status}, *backend, time);
    print_result(result, settings);
    tell_problems(result);
    document["phases"].push_back(result_json(result, settings));
    if (result.wrong > 0) {
      exit_code = tools::kExitWrongData;
    } else if (!result.first_error.empty() && exit_code == tools::kExitOk) {
      exit_code = tools::kExitFailed;
    }
  }
  if (json_file) json_file->write(document);
  return tools::stop_requested ? tools::kExitInterrupted : exit_code;
}

}  // namespace
}  // namespace ub::ycsb

int main(int argc, char** argv) {
  using namespace ub;
  tools::install_stop_handler();
  try {
    int exit_code = tools::kExitOk;
    const auto options = ycsb::parse_options(argc, argv, &exit_code);
    return options ? ycsb::run(*options) : exit_code;
  } catch (const std::exception& e) {
    fmt::print(stderr, "urma_ycsb: {}\n", e.what());
    return tools::exit_code_of(e);
  }
}
