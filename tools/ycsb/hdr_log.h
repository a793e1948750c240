// SPDX-License-Identifier: Apache-2.0
//
// Histograms as the tools of HdrHistogram read them: the compressed encoding V2, and logs of format 1.3.
//
// An encoded histogram is base64 of: cookie 0x1c849314, length, and that many bytes of zlib. These hold, big-endian:
// cookie 0x1c849313, length of the counts, normalizing offset 0, 3 significant digits, lowest and highest value,
// the ratio 1.0, and the counts of the buckets in ascending order. Each count is a zigzag LEB128 of at most nine bytes;
// a negative one stands for so many empty buckets. Values are nanoseconds.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "tools/ycsb/latencies.h"

namespace ub::ycsb {

std::string encode_histogram(const LatencyHistogram& histogram);

// A log of intervals; times are seconds since it was opened.
class HdrLog {
 public:
  // ToolError if the file cannot be written. `epoch_s`: the time of day now.
  HdrLog(const std::string& path, double epoch_s);
  ~HdrLog();
  HdrLog(HdrLog&& other) noexcept;
  HdrLog(const HdrLog&) = delete;
  HdrLog& operator=(const HdrLog&) = delete;

  void write(double begin_s, double length_s, const LatencyHistogram& histogram);

 private:
  void flush();

  std::string path_;
  std::FILE* file_;
};

}  // namespace ub::ycsb
