// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/last_events.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "lib/base/assert.h"
#include "lib/transport/looking/sentence.h"

namespace ub::sim {
namespace {

const LastEvents* current = nullptr;  // of the world that runs

void say() {
  if (current != nullptr) std::fputs(current->text(LastEvents::told).c_str(), stderr);
}

}  // namespace

LastEvents::LastEvents() : before_(std::exchange(current, this)) { set_last_words(say); }
LastEvents::~LastEvents() { current = before_; }

std::string LastEvents::text(uint32_t most) const {
  const uint32_t shown = std::min(most, ring_->size());
  if (shown == 0) return "";
  std::string out = "the last " + std::to_string(shown) + " events:\n";
  ring_->each_of_last(most, [&out](const NotedEvent& event) {
    char sentence[kSentenceRoom];
    out += "  node " + std::to_string(event.place) + ": ";
    out += write_sentence(event.at, event.note, sentence);
    out += '\n';
  });
  return out;
}

}  // namespace ub::sim
