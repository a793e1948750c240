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
#include "lib/record/recorded_core.h"
#include "lib/record/replay_host.h"
#include "lib/record/selection.h"
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
  CopyTag tag = 0;                  // of a copy that is done
  std::vector<SentFrame>* sent = nullptr;
};

class Replayer {
 public:
  // Null and `*why`: it is no recording that this program can replay, or its addresses are taken.
  static std::unique_ptr<Replayer> open(const std::string& path, std::string* why);
  ~Replayer();

  // From here on, where a turn is over: of the calls those of `selection` alone are made, and recorded anew in a file
  // at `path`; nothing is compared. Once calls are left out copies are done at once, room for frames is always there,
  // and applications take all completions that they have whenever they take some: what the recording has of these is
  // about other calls, too. Selection and recorder outlive the replay. False and `*why`.
  bool rerecord(const std::string& path, const Selection&, Recorder*, std::string* why);

  enum class Outcome { kStep, kEnd, kDiffers };
  // The next call. kDiffers: fault() says at which call, and in what. Nothing more can be replayed then.
  Outcome next();
  const Step& step() const { return step_; }
  // The number of the first call of the turn that is under way.
  uint64_t turn() const { return turn_; }
  const std::string& fault() const { return fault_; }

  const FileHeader& header() const { return file_->header(); }
  bool is_cut() const { return file_->is_cut(); }
  ReplayCore& core() { return *core_; }
  const Shadows& shadows() const { return shadows_; }
  ReplayHost& host() { return host_; }

 private:
  // Of a frame that was sent, if the recording has payload.
  struct SentPayload {
    std::span<const std::byte> bytes;
    uint32_t sum;  // of the whole frame
  };
  struct Expected {
    std::vector<SentFrame> sent;  // `frame` is empty unless the recording has headers
    std::vector<SentPayload> payload;  // of each of them, or of none
    const std::byte* results = nullptr;
    size_t result_bytes = 0;
    bool bad_icrc = false;
  };

  Replayer() = default;
  bool take_start(std::string* why);
  bool take_change(Entry);
  bool check_piece();
  bool end_turn();
  bool take_lent(uint32_t number);
  void take_consumed(Ring& ring, uint32_t count);
  bool take_rate(Ring& ring, uint64_t bytes_per_second);
  void post(Ring& ring, uint64_t count);
  bool has_room(const Ring& ring, uint64_t count) const;
  bool selects() const { return recorder_ != nullptr && calls_ >= selection_->from; }
  bool begin_step();
  void begin_recorded_turn();
  template <class Fn>
  void make(Fn fn);
  bool run_call();
  bool run_turn_call();
  bool run_frame();
  void take_expected();
  bool fits_results(const std::vector<std::byte>& results);
  bool compare_sent();
  bool compare_frame(size_t number, const SentFrame& was, const SentFrame& is);
  bool compare_payload(size_t number, SentFrame& is);
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
  uint64_t calls_ = 1;  // number of the next one, or of that under way
  uint64_t turn_ = 1;   // number of the first one of the turn
  const Selection* selection_ = nullptr;  // null: all
  Recorder* recorder_ = nullptr;
  bool in_recorded_turn_ = false;
  std::vector<std::byte> results_;  // of the call under way
  Step step_;
  std::string fault_;
  uint64_t last_ns_ = 0;
  uint32_t lent_ = 0, object_ = 0, gone_ = 0;  // a ring, an object, the ring of one that was destroyed
};

}  // namespace ub::record
