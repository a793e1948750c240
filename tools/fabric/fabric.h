// SPDX-License-Identifier: Apache-2.0
//
// A running fabric: the NICs' medium, the network between them, and those who tell it what to do. It sleeps until a
// frame comes, one is due, or somebody says something.
//
// Thread: one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/ipc/fd.h"
#include "tools/fabric/config.h"
#include "tools/fabric/console.h"
#include "tools/fabric/control.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/network.h"

namespace ub::fabric {

class Fabric {
 public:
  // Opens everything, and applies the settings of the configuration, whose times begin now. Throws ToolError.
  Fabric(const Config& config, bool with_stdin);

  // Until a signal (tool_error.h) or "quit".
  void run();

  std::string text_report();
  nlohmann::json json_report();

 private:
  static Instant now();
  void watch_controls();
  bool is_control(int fd) const;
  void arm_timer();
  Medium::Sink into_network(Instant arrived);
  void serve(int fd);

  Config config_;
  Network network_;
  std::unique_ptr<Medium> medium_;
  Console console_;
  Control control_;
  ipc::Fd epoll_, timer_;
  std::vector<Control::Watched> controls_;  // descriptors of control_ that epoll_ knows
  Instant armed_ = Instant::never();
};

}  // namespace ub::fabric
