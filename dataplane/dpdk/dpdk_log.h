// SPDX-License-Identifier: Apache-2.0
//
// What DPDK and its drivers say while something is tried: their error numbers rarely tell the cause, their log does.
// Where the arguments for DPDK ask for a log (--log-level), it is left alone.
//
// Thread: one capture at a time.
#pragma once

#include <string>
#include <vector>

namespace ub::dpdk {

class LogCapture {
 public:
  explicit LogCapture(const std::vector<std::string>& arguments);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // ": " and the last lines, as one; empty if there are none.
  std::string text();
};

// From now to the next capture: no errors of drivers that complain of a missing peer again and again.
void hush_drivers(const std::vector<std::string>& arguments);

}  // namespace ub::dpdk
