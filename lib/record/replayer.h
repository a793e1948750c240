// SPDX-License-Identifier: Apache-2.0
//
// Feeds a recording to a Core of its own, call by call, and compares what comes out (docs/recording-design.md).
//
// Thread: one at a time. A process can have only one replay of a recording, because its memory lies at the addresses of
// the recorded Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/record/file.h"
#include "lib/record/recorder.h"
#include "lib/record/replay_host.h"
#include "lib/record/varint.h"
#include "lib/transport/core.h"

// Compiled once, in replay_core.cc.
extern template class ub::Core<ub::record::ReplayHost>;
extern template class ub::roce::Engine<ub::record::ReplayHost>;

namespace ub::record {

using ReplayCore = Core<ReplayHost>;

// A call as the recording has it, and what became of it in the replay.
struct Step {
  uint64_t number = 0;  // of the call, from 1 on
  Call call{};
  Instant now{};
  uint32_t link = 0;                // of a frame
  std::vector<std::byte> received = {};  // that frame; its payload is zeros
  uint32_t object = 0;              // of a doorbell and the like
  std::vector<SentFrame>* sent = nullptr;
};

class Replayer {
 public:
  // Null and `*why`: it is no recording that this program can replay, or its addresses are taken.
  static std::unique_ptr<Replayer> open(const std::string& path, std::string* why);
  ~Replayer();

  enum class Outcome { kStep, kEnd, kDiffers };
  // The next call. kDiffers: fault() says at which call, and in what. Nothing more can be replayed then.
  Outcome next();
  const Step& step() const { return step_; }
  const std::string& fault() const { return fault_; }

  const FileHeader& header() const { return file_->header(); }
  bool is_cut() const { return file_->is_cut(); }
  ReplayCore& core() { return *core_; }
  const Shadows& shadows() const { return shadows_; }
  ReplayHost& host() { return host_; }

 private:
  struct Expected {
    std::vector<SentFrame> sent;  // `frame` is empty unless the recording has headers
    const std::byte* results = nullptr;
    size_t result_bytes = 0;
    bool bad_icrc = false;
  };

  Replayer() = default;
  bool take_start(std::string* why);
  bool take_change(Entry);
  void post(Ring& ring, uint64_t count);
  bool run_call();
  bool run_turn_call();
  bool run_frame();
  void take_expected();
  bool fits_results(const std::vector<std::byte>& results);
  bool compare_sent();
  bool compare_output(bool all);
  void settle_made(const std::vector<std::byte>& results);
  bool differs(const std::string& what);  // false

  std::unique_ptr<FileReader> file_;
  ipc::PlacedMemory arena_;
  Shadows shadows_;
  ReplayHost host_;
  std::unique_ptr<ReplayCore> core_;
  std::unique_ptr<Input> in_;
  LikeFrames frames_in_, frames_out_;
  Expected expected_;
  Answers answers_;
  std::vector<std::byte> results_;  // of the call under way
  Step step_;
  std::string fault_;
  uint64_t last_ns_ = 0;
  uint32_t lent_ = 0, object_ = 0, gone_ = 0;  // a ring, an object, the ring of one that was destroyed
};

}  // namespace ub::record
