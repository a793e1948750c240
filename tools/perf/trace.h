// SPDX-License-Identifier: Apache-2.0
//
// The time series of --trace: a CSV file with lines for the program, and for each channel and path of its NIC, as the
// statistics page shows them (docs/tools.md). A thread of its own samples and writes, so that the measuring thread only
// tells its progress. tools/plot_trace.py draws the file.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/stats_page.h"
#include "tools/perf/options.h"
#include "tools/perf/progress.h"

namespace ub::tools {

// To be called before the library starts: asks the NIC of this process, if it gets one, to publish its statistics often
// enough, unless the environment says how often.
void want_statistics_for_trace(const Options&);

class Trace {
 public:
  // Opens the file, and throws ToolError if that cannot be. The thread may run wherever the caller may run now.
  // `progress` must outlive the object. `uasid`: that of the NIC.
  Trace(const Options&, const Progress& progress, uint32_t uasid);
  ~Trace();  // ends the time series; what was written stays, whatever failed
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void begin();
  // Ends the time series. Throws ToolError if the file could not be written.
  void end();

  LatestTimes& times() { return times_; }

 private:
  using Clock = std::chrono::steady_clock;

  void sample_until_end();
  void sample();
  void write_program(const std::string& at, double seconds);
  void write_nic(const std::string& at);
  void write(const std::string& text);
  void stop();

  const Progress& progress_;
  LatestTimes times_;
  std::string path_;
  Clock::duration interval_;
  double us_per_tick_;
  std::unique_ptr<StatsPageReader> page_;
  std::FILE* file_ = nullptr;
  int error_ = 0;  // of the first write that failed

  // What was there at the last sample.
  Clock::time_point begun_at_, sampled_at_;
  uint64_t requests_ = 0, bytes_ = 0, times_seen_ = 0;
  std::vector<uint32_t> latest_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace ub::tools
