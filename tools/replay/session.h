// SPDX-License-Identifier: Apache-2.0
//
// The commands of urma_replay: forwards through a recording, and a look at what the Core is at that moment.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/note_filter.h"
#include "lib/record/replayer.h"
#include "lib/transport/looking/event_ring.h"

namespace ub::tools {

class Session {
 public:
  // Both outlive the session.
  Session(record::Replayer& replayer, std::FILE* out);

  enum class Said { kGoOn, kQuit, kMistake, kDiffers };
  // Carries out a command. What is wrong with one is said, and nothing is done.
  Said run(std::string_view line);
  // What there is, in a line for each command.
  static const char* commands();
  // Version, commit, time and size of the recording.
  void describe() const;

 private:
  static constexpr uint32_t kKept = 4096;

  Said mistake(const std::string& what) const;
  // Makes calls until done() holds after one, or nothing is left, or the replay differs.
  template <class Done>
  Said advance(Done done);
  void tell_step() const;
  void tell_frame(const char* way, uint32_t link, std::span<const std::byte> frame) const;
  void hear(const Note& note);
  void tell_note(Instant at, const Note& note) const;
  Said go_until(std::string_view filter);
  Said set_trace(std::string_view filter);
  void list_channels() const;
  void list_queues() const;
  void list_completions() const;
  void list_counters() const;
  void list_last(uint64_t count) const;

  record::Replayer& replayer_;
  std::FILE* out_;
  EventRing<kKept> last_;
  std::optional<NoteFilter> trace_, until_;
  bool met_ = false;     // a note that `until_` takes
  bool frames_ = false;  // each is told
};

}  // namespace ub::tools
