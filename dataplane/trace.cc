// SPDX-License-Identifier: Apache-2.0
#include "dataplane/trace.h"

#include <new>
#include <utility>

#include "lib/transport/looking/sentence.h"

namespace ub {

bool Trace::begin(uint64_t most, std::string_view filter, std::string* why) {
  if (most == 0 || most > kMostNotes) {
    *why = "a trace has 1 to " + std::to_string(kMostNotes) + " notes";
    return false;
  }
  NoteFilter wanted;
  if (!wanted.parse(filter, why)) return false;
  std::vector<Event> room;
  try {
    room.reserve(most);
  } catch (const std::bad_alloc&) {
    *why = "there is no memory for so many notes";
    return false;
  }
  filter_ = std::move(wanted);
  events_ = std::move(room);
  most_ = most;
  return true;
}

void Trace::clear() {
  events_ = {};
  most_ = 0;
}

bool Trace::hear(uint64_t at_ns, const Note& note) {
  if (is_running() && filter_.takes(note)) events_.push_back({at_ns, note});
  return is_running();
}

std::string Trace::status() const {
  if (most_ == 0) return "ok there is no trace";
  return "ok " + std::to_string(events_.size()) + " of " + std::to_string(most_) + " notes, " + state();
}

std::string Trace::page(uint64_t from, size_t most_bytes) const {
  constexpr size_t kHeadRoom = 64, kTimeRoom = 24;
  std::string lines;
  uint64_t next = from;
  for (; next < events_.size() && lines.size() + kHeadRoom + kTimeRoom + kSentenceRoom <= most_bytes; ++next) {
    char sentence[kSentenceRoom];
    lines += std::to_string(events_[next].at_ns) + " ";
    lines += write_sentence(events_[next].note, sentence);
    lines += '\n';
  }
  return "ok " + std::to_string(next) + " " + std::to_string(events_.size()) + " " + state() + "\n" + lines;
}

}  // namespace ub
