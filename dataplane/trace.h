// SPDX-License-Identifier: Apache-2.0
//
// A trace: what a running NIC notes of packets and requests (docs/looking.md), from the moment at which somebody asks
// for it until there are as many notes as were asked for. The way of a packet is read from it in sentences.
//
// Thread: the owner of the Core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/note_filter.h"
#include "dataplane/note_listeners.h"

namespace ub {

class Trace final : public NoteListener {
 public:
  static constexpr uint64_t kMostNotes = 1'000'000;  // 32 bytes each

  // Forgets what there is, and takes the next `most` notes that pass the filter. False and `*why`: the filter is none,
  // the number is out of range, or there is no memory; what there was is still there.
  bool begin(uint64_t most, std::string_view filter, std::string* why);
  // Takes no more, and keeps what there is.
  void end() { most_ = events_.size(); }
  // Forgets what there is.
  void clear();

  bool is_running() const { return events_.size() < most_; }
  bool hear(uint64_t at_ns, const Note& note) override;

  // "ok 12 of 1000 notes, running", "... complete", or "ok there is no trace".
  std::string status() const;
  // A page of at most `most_bytes`: "ok NEXT TOTAL running|complete", and a line for each note from number `from` on:
  // its time in ns of CLOCK_MONOTONIC, and its sentence. NEXT is the `from` of the page behind it, and TOTAL on the
  // last.
  std::string page(uint64_t from, size_t most_bytes) const;

 private:
  struct Event {
    uint64_t at_ns;
    Note note;
  };
  const char* state() const { return is_running() ? "running" : "complete"; }

  NoteFilter filter_;
  std::vector<Event> events_;
  uint64_t most_ = 0;
};

}  // namespace ub
