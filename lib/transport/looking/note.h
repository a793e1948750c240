// SPDX-License-Identifier: Apache-2.0
//
// The seam for looking: what happens to packets, requests, messages, copies, completions and receives is said in notes
// (stages.def), and a Host that wants to know has a member
//
//   void note(const Note&);
//
// which is called while Core::look(true) holds. A note has no time: the Host knows what clock it wants. docs/looking.md
// says what looking costs, and which notes are where.
#pragma once

#include <cstdint>

namespace ub {

enum class Stage : uint8_t {
#define UB_STAGE(id, sentence) id,
#include "lib/transport/looking/stages.def"
#undef UB_STAGE
};

inline constexpr const char* kStageSentences[] = {
#define UB_STAGE(id, sentence) sentence,
#include "lib/transport/looking/stages.def"
#undef UB_STAGE
};
inline constexpr const char* kStageNames[] = {
#define UB_STAGE(id, sentence) #id,
#include "lib/transport/looking/stages.def"
#undef UB_STAGE
};
inline constexpr uint32_t kStageCount = sizeof kStageSentences / sizeof kStageSentences[0];

// Whether the last notes of a stage are kept all the time (last_notes.h).
enum class Kept : uint8_t {
  kNo,
  kEach,     // those that are equal and follow each other at once take one place
  kCounted,  // those that are equal and follow each other soon do
  kNewest,   // those of one object that follow each other soon do
};
inline constexpr Kept kStageKept[] = {
#define UB_STAGE(id, sentence) Kept::kNo,
#define UB_RARE(id, sentence) Kept::kEach,
#define UB_COUNTED(id, sentence) Kept::kCounted,
#define UB_SERIES(id, sentence) Kept::kNewest,
#include "lib/transport/looking/stages.def"
#undef UB_STAGE
};
constexpr Kept kept_of(Stage stage) { return kStageKept[static_cast<uint32_t>(stage)]; }

struct Note {
  Stage stage;
  uint32_t object;
  uint32_t a = 0, b = 0, c = 0;

  bool operator==(const Note&) const = default;
};

template <class Host>
concept Looks = requires(Host& host, const Note& note) {
  host.note(note);
};

// Does it want to hear of steps within a packet's way, too? A test in each of them would be too much for live traffic,
// so that is decided when the Host is compiled: `static constexpr bool kLooksClosely = true`.
template <class Host>
concept LooksClosely = Looks<Host> && requires {
  requires Host::kLooksClosely;
};

// Who looks at a Core. One that nobody looks at has a null pointer: a note is a branch that is never taken.
class Looker {
 public:
  template <Looks Host>
  void begin(Host& host) {
    host_ = &host;
    note_ = [](void* to, const Note& note) { static_cast<Host*>(to)->note(note); };
  }
  void end() { note_ = nullptr; }

  bool looks() const { return note_ != nullptr; }
  [[gnu::noinline, gnu::cold]] void say(Stage stage, uint32_t object, uint32_t a, uint32_t b, uint32_t c) const {
    note_(host_, {stage, object, a, b, c});
  }

 private:
  void (*note_)(void* host, const Note&) = nullptr;
  void* host_ = nullptr;
};

}  // namespace ub
