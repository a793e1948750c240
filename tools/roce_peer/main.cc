// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tools/common/tool_error.h"
#include "tools/roce_peer/tests.h"

using namespace ub;
using namespace ub::roce_peer;

namespace {

std::string run(const Options& o) {
  switch (o.test) {
    case Test::kRcPingpong:
      return run_rc_pingpong(o);
    case Test::kUcPingpong:
      return run_uc_pingpong(o);
    case Test::kUdPingpong:
      return run_ud_pingpong(o);
    case Test::kRping:
      return run_rping(o);
    default:
      return run_perftest(o);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  tools::install_stop_handler();
  const Options options = parse_options(argc, argv);
  fmt::print("{}\n", run(options));
  return tools::kExitOk;
} catch (const std::exception& e) {
  fmt::print(stderr, "roce_peer: {}\n", e.what());
  return tools::exit_code_of(e);
}
