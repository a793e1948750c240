// SPDX-License-Identifier: Apache-2.0
//
// Who hears of the notes of a running NIC (docs/looking.md): a trace, latencies. Several may listen at the same time.
//
// Thread: the owner of the Core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/transport/looking/note.h"

namespace ub {

class NoteListener {
 public:
  // `at_ns`: of CLOCK_MONOTONIC. False: it wants to hear of no more.
  virtual bool hear(uint64_t at_ns, const Note&) = 0;

 protected:
  ~NoteListener() = default;
};

class NoteListeners {
 public:
  // One that listens already is not added once more. It lives until it is removed.
  void add(NoteListener& listener) {
    remove(listener);
    listeners_.push_back(&listener);
  }
  void remove(NoteListener& listener) { std::erase(listeners_, &listener); }
  bool any() const { return !listeners_.empty(); }

  // Those that want no more are removed. False: nobody is left.
  bool tell(uint64_t at_ns, const Note& note) {
    std::erase_if(listeners_, [&](NoteListener* listener) { return !listener->hear(at_ns, note); });
    return any();
  }

 private:
  std::vector<NoteListener*> listeners_;
};

}  // namespace ub
