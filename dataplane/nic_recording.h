// SPDX-License-Identifier: Apache-2.0
//
// A recording of a NIC: what was asked for, and the recorder (lib/record/recorder.h).
//
// Thread: the owner of the Core.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/recorded_memory.h"
#include "lib/record/recorder.h"

namespace ub {

struct NicRecording {
  static constexpr uint64_t kLeastBytes = 8 << 20;

  NicRecording();
  ~NicRecording();

  std::string path_of(uint32_t number) const;
  std::string status() const;  // "ok ..."

  std::string path;    // of the first file
  uint64_t files = 1;  // so many stay; 0: all
  std::string why_no_more;  // the next file could not be begun
  record::RecorderOptions options;
  record::Recorder recorder;
  RecordedMemory memory{recorder};
};

}  // namespace ub
