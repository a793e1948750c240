// SPDX-License-Identifier: Apache-2.0
// looking.h - somebody who looks at a Core in a test, and keeps all notes.
#pragma once

#include <vector>

#include "lib/transport/looking/note.h"

namespace ub {

struct Looking {
  std::vector<Note> notes;
  void note(const Note& n) { notes.push_back(n); }
};

}  // namespace ub
